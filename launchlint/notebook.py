"""Notebooks: the Python cells of an `.ipynb` file as one text, and what becomes of that text as JSON again.

Cells share their names, so they are checked as one module, in the order of the file. Between two of them stands a line of
form feeds, which Python takes for an empty one and which occurs in no cell: after edits the cells are told apart by it.
Magics and shell lines (`%time x`, `!ls`, `x = !ls`, `torch.nn?`) are no Python. Each gives way to one letter and spaces of
the same length, so that no place moves; the letter occurs nowhere else in the file and says later what stood there.

Left out are cells of other languages (`%%bash`), and cells that do not parse, which are named in `fault`.
"""

from __future__ import annotations

import bisect
import codecs
import difflib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from launchlint.model import Applicability, Finding, Fix, Span
from launchlint.source import LINE_END, Position, Source, SourceError, parse

SUFFIX = ".ipynb"
MAX_BYTES = 200_000_000  # pictures among the outputs are large, and cost nothing but reading
PYTHON_MAGICS = frozenset({"capture", "debug", "memit", "prun", "scalene", "time", "timeit"})  # cell magics whose cell is Python
LETTERS = range(0x20000, 0x2A6E0)  # CJK extension B: each is a name in Python, and stands for itself under normalization

Members = dict[str, tuple[int, int]]  # where the values of a JSON object begin and end


@dataclass(frozen=True, slots=True)
class Piece:
    """One JSON string of a cell's source: where it stands in the file, quotes included, and what it says."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A Python cell."""

    number: int  # 1-based, among all cells of the notebook
    start: int  # of the JSON value of its source, in the text of the file
    end: int
    pieces: tuple[Piece, ...]
    code: str  # its text with magics out of the way; as long as its text
    magics: tuple[tuple[str, str], ...] = ()  # what stands in `code` for a magic, and the magic

    def written(self, file: str, code: str) -> str:
        """The JSON value of its source once its code is `code`; what has not changed stays as it is written."""
        for stand_in, magic in self.magics:
            if code.count(stand_in) != 1:
                raise SourceError(f"a magic of cell {self.number} would change")
            code = code.replace(stand_in, magic)
        if file[self.start] == "[":
            return self._list(file, _lines(code))
        return self._string(file, code)

    def _list(self, file: str, lines: list[str]) -> str:
        old = [piece.text for piece in self.pieces]
        strings: list[str] = []
        for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
            if tag == "equal":
                strings += [file[piece.start : piece.end] for piece in self.pieces[start:end]]
            else:
                strings += [_string(file, line) for line in lines[new_start:new_end]]
        if not strings:
            return "[]"
        first, last = self.pieces[0], self.pieces[-1]
        before = file[self.start + 1 : first.start]
        between = file[first.end : self.pieces[1].start] if len(self.pieces) > 1 else f",{before or ' '}"
        return f"[{before}{between.join(strings)}{file[last.end : self.end]}"

    def _string(self, file: str, code: str) -> str:
        (piece,) = self.pieces
        old = piece.text
        head = _common(old, code)
        tail = _common(old[head:][::-1], code[head:][::-1])
        start, end = place_in(file, piece, head), place_in(file, piece, len(old) - tail)
        return file[piece.start : start] + _string(file, code[head : len(code) - tail])[1:-1] + file[end : piece.end]

    def place_of(self, file: str, offset: int) -> int:
        """Where the character at `offset` of its code stands in the file."""
        for piece in self.pieces:
            if offset < len(piece.text):
                return place_in(file, piece, offset)
            offset -= len(piece.text)
        return self.pieces[-1].end - 1 if self.pieces else self.start


@dataclass
class Notebook(Source):
    """A notebook; its text is the code of its Python cells."""

    file: str = ""  # the JSON
    cells: tuple[Cell, ...] = ()
    mark: str = "\f"  # the line between two cells
    reason: str = ""

    @property
    def runs_at_top(self) -> bool:
        return True

    @property
    def fault(self) -> str:
        """The cells that do not parse."""
        return self.reason

    def encode(self, text: str) -> bytes:
        """The file with `text` as the code of its cells; raise SourceError where the cells cannot be told apart in it."""
        codes = [text[start:end] for start, end in _ranges(text, self.mark)]
        if len(codes) != max(len(self.cells), 1):
            raise SourceError("the cells of the notebook cannot be told apart any more")
        parts: list[str] = []
        done = 0
        for cell, code in zip(self.cells, codes, strict=False):
            if code != cell.code:
                parts += (self.file[done : cell.start], cell.written(self.file, code))
                done = cell.end
        return super().encode("".join([*parts, self.file[done:]]))

    # ---------------------------------------------------------------- places

    def line(self, number: int) -> str:
        """A line of the text as it is in the notebook, magics included."""
        text = super().line(number)
        for stand_in, magic in () if text.isascii() else (pair for cell in self.cells for pair in cell.magics):
            if (at := text.find(stand_in[0])) >= 0:
                first = LINE_END.split(magic, maxsplit=1)[0]
                text = text[:at] + first + text[at + len(first) :]
        return text

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Where the code of each cell begins and ends in the text."""
        return _ranges(self.text, self.mark)

    def _at(self, offset: int) -> int:
        """The index of the cell at an offset of the text; the line between two cells belongs to the first."""
        return bisect.bisect_right(self.ranges, offset, key=lambda part: part[0]) - 1

    def number(self, line: int, cell: int = 0) -> int:
        """The number in the text of a line of a cell."""
        for each, (start, end) in zip(self.cells, self.ranges, strict=False):
            if each.number == cell and 1 <= line <= self.text.count("\n", start, end) + 1:
                return self.position(start).line + line - 1
        what = f"cell {cell} has no line {line}, or is not checked" if cell else "the place in a notebook is FILE:CELL:LINE"
        raise SourceError(what)

    def shown(self, offset: int) -> Position:
        """The number of the cell and the line within it."""
        if not self.cells:
            return super().shown(offset)
        index = self._at(offset)
        above = self.position(self.ranges[index][0]).line - 1
        place = self.position(offset)
        return Position(place.line - above, place.column, self.cells[index].number)

    def on_disk(self, span: Span) -> tuple[Source, Span]:
        """The JSON, and where the span stands in it."""
        written = self._as_written
        json_text = Source(self.path, written.file)
        if not written.cells:
            return json_text, Span(0, 0)
        start = written._place(span.start)
        return json_text, Span(start, max(start, written._place(span.end)))

    @cached_property
    def _as_written(self) -> Notebook:
        """This notebook, read again where its text has been edited."""
        if [self.text[start:end] for start, end in self.ranges] == [cell.code for cell in self.cells] or not self.cells:
            return self
        return read(self.path, self.encode(self.text))

    def _place(self, offset: int) -> int:
        index = self._at(offset)
        return self.cells[index].place_of(self.file, offset - self.ranges[index][0])

    # ---------------------------------------------------------------- fixes

    def confine(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, where a fix that reaches out of one cell, or into a magic, is only shown."""
        return [
            replace(finding, fix=replace(finding.fix, applicability=Applicability.DISPLAY))
            if finding.fix is not None and finding.fix.edits and not self._is_confined(finding.fix)
            else finding
            for finding in findings
        ]

    def _is_confined(self, fix: Fix) -> bool:
        from launchlint.fixes import imports

        added = imports.add(self, list(fix.imports))
        spans = [edit.span for edit in fix.edits] + ([added.span] if added else [])
        index = self._at(spans[0].start)
        start = self.ranges[index][0]
        limit = self.ranges[index + 1][0] - len(self.mark) - 1 if index + 1 < len(self.ranges) else len(self.text)
        return all(start <= span.start and span.end <= limit and not self._is_magic(span) for span in spans)

    def _is_magic(self, span: Span) -> bool:
        places = (Span(at, at + len(each)) for cell in self.cells for each, _ in cell.magics if (at := self.text.find(each)) >= 0)
        return any(
            (place.start < span.end and span.start < place.end) or place.start < span.start == span.end < place.end for place in places
        )


# ---------------------------------------------------------------- reading


def read(path: str, data: bytes) -> Notebook:
    """The notebook in `data`; raise SourceError with one clear reason where it is none."""
    if len(data) > MAX_BYTES:
        raise SourceError(f"larger than {MAX_BYTES // 1_000_000} MB, not analysed")
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        file = data[len(bom) :].decode("utf-8")
        document = json.loads(file)
    except UnicodeDecodeError as error:
        raise SourceError(f"not a notebook: not valid UTF-8: {error.reason}", data.count(b"\n", 0, error.start) + 1) from None
    except json.JSONDecodeError as error:
        raise SourceError(f"not a notebook: not valid JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise SourceError("not a notebook: nested too deeply") from None
    reader = _Reader(file)
    return reader.notebook(path, bom) if _is_python(document) else Notebook(path, "", bom=bom, file=file)


class _Reader:
    """Reads what is known to be JSON, and remembers where things stand."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.decoder = json.JSONDecoder()
        self.broken: list[str] = []

    def notebook(self, path: str, bom: bytes) -> Notebook:
        found = [*self.written()]
        used = frozenset("".join(piece.text for cell in found for piece in cell.pieces))
        letters = (letter for letter in map(chr, LETTERS) if letter not in used)
        cells = tuple(cell for each in found if (cell := self.parsed(each, letters)) is not None)
        mark = "\f"
        while any(mark in cell.code for cell in cells):
            mark += "\f"
        reason = self.broken[0] if self.broken else ""
        if len(self.broken) > 1:
            reason += f" (and {len(self.broken) - 1} more)"
        return Notebook(
            path, f"\n{mark}\n".join(cell.code for cell in cells), bom=bom, file=self.file, cells=cells, mark=mark, reason=reason
        )

    def written(self) -> Iterator[Cell]:
        """The Python cells as they are written."""
        for number, (at, key) in enumerate(self.sources(), 1):
            about = self.members(at)
            if self.value(about, "cell_type") != "code" or not _is_python_cell(self.value(about, "metadata")):
                continue
            if key not in about:
                raise SourceError(f"not a notebook: cell {number} has no source")
            start, end = about[key]
            pieces = tuple(self.pieces(start, number))
            text = "".join(piece.text for piece in pieces)
            if not _is_foreign(text):
                yield Cell(number, start, end, pieces, text)

    def sources(self) -> Iterator[tuple[int, str]]:
        """Where each cell begins, and the key of its source; before format 4, cells lay in worksheets."""
        top = self.members(_skip(self.file, 0))
        lists = [(top["cells"][0], "source")] if "cells" in top else []
        if "worksheets" in top and self.file[top["worksheets"][0]] == "[":
            sheets = (self.members(at) for at, _ in self.items(top["worksheets"][0]))
            lists += [(sheet["cells"][0], "input") for sheet in sheets if "cells" in sheet]
        if not lists:
            raise SourceError("not a notebook: has no cells")
        for at, key in lists:
            if self.file[at] != "[":
                raise SourceError("not a notebook: its cells are no list")
            yield from ((start, key) for start, _ in self.items(at))

    def pieces(self, at: int, number: int) -> Iterator[Piece]:
        """The strings of a source, which is a string or a list of them."""
        places = self.items(at) if self.file[at] == "[" else [(at, self.decoder.raw_decode(self.file, at)[1])]
        for start, end in places:
            if self.file[start] != '"':
                raise SourceError(f"not a notebook: the source of cell {number} is no text")
            yield Piece(start, end, self.decoder.raw_decode(self.file, start)[0])

    def parsed(self, cell: Cell, letters: Iterator[str]) -> Cell | None:
        """The cell without magics; None where it does not parse, which is noted unless all of it is what a magic reads (%sql)."""
        if _fault(cell.code) is None:
            return cell
        code, magics = hide_magics(cell.code, letters)
        if fault := _fault(code):
            if not _begins_with_magic(cell.code):
                line = f", line {fault.line}" if fault.line else ""
                self.broken.append(f"cell {cell.number}{line}: {fault.reason}")
            return None
        return replace(cell, code=code, magics=tuple(magics))

    def members(self, at: int) -> Members:
        """The values of the object at a place, none where it is something else; of equal keys the last counts, as in `json`."""
        found: Members = {}
        file = self.file
        if file[at] != "{":
            return found
        at = _skip(file, at + 1)
        while file[at] != "}":
            key, at = self.decoder.raw_decode(file, at)
            start = _skip(file, _skip(file, at) + 1)
            _, end = self.decoder.raw_decode(file, start)
            found[key] = (start, end)
            at = _skip(file, end)
            at = _skip(file, at + 1) if file[at] == "," else at
        return found

    def items(self, at: int) -> Iterator[tuple[int, int]]:
        """The values of the list at a place."""
        at = _skip(self.file, at + 1)
        while self.file[at] != "]":
            _, end = self.decoder.raw_decode(self.file, at)
            yield at, end
            at = _skip(self.file, end)
            at = _skip(self.file, at + 1) if self.file[at] == "," else at

    def value(self, members: Members, key: str) -> Any:
        return self.decoder.raw_decode(self.file, members[key][0])[0] if key in members else None


_SPACE = re.compile(r"[ \t\r\n]*")
_CHARACTER = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)


def _skip(file: str, at: int) -> int:
    found = _SPACE.match(file, at)
    return found.end() if found else at


def place_in(file: str, piece: Piece, offset: int) -> int:
    """Where the character at `offset` of a JSON string begins, escapes counted as written."""
    at = piece.start + 1
    for _ in range(offset):
        found = _CHARACTER.match(file, at)
        at = found.end() if found else at
    return at


def _string(file: str, text: str) -> str:
    """`text` as JSON, with the escapes that the file is written with."""
    return json.dumps(text, ensure_ascii=file.isascii() and "\\u" in file)


def _lines(text: str) -> list[str]:
    """Lines with their ends; no empty one at the end."""
    starts = [0, *(found.end() for found in LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(starts) if start < end]


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def _ranges(text: str, mark: str) -> list[tuple[int, int]]:
    """The parts of a text between the lines that are `mark`, without the line end before each of those."""
    found: list[tuple[int, int]] = []
    start = 0
    for boundary in re.finditer(rf"^{mark}\n", text, re.MULTILINE):
        found.append((start, max(start, boundary.start() - 1)))
        start = boundary.end()
    return [*found, (start, len(text))]


# ---------------------------------------------------------------- languages


def _is_python(document: Any) -> bool:
    """False for a notebook of another language. What says nothing of a language is taken for Python."""
    match document:
        case {"metadata": {"language_info": {"name": str(name)}}} | {"metadata": {"kernelspec": {"language": str(name)}}}:
            return name.lower().startswith(("python", "ipython"))
    return True


def _is_python_cell(metadata: Any) -> bool:
    match metadata:
        case {"vscode": {"languageId": str(name)}}:
            return name == "python"
    return True


def _is_foreign(text: str) -> bool:
    """True for a cell that a magic gives to something else than this notebook's Python."""
    for line in LINE_END.split(text):
        word = line.strip()
        if not word.startswith("%%"):
            if word:
                return False
        elif word[2:].split(maxsplit=1)[:1] and word[2:].split(maxsplit=1)[0] not in PYTHON_MAGICS:
            return True
    return False


def _begins_with_magic(text: str) -> bool:
    return bool(re.match(r"\s*%[A-Za-z]", text))


def _fault(code: str) -> SourceError | None:
    try:
        parse(code)
    except SourceError as error:
        return error
    return None


# ---------------------------------------------------------------- magics

_MAGIC = re.compile(
    r"""
    (?P<head>[ \t]*(?:[\w., \t]+=[ \t]*(?=[!%]))?)               # `files = !ls` keeps its target
    (?P<magic>
        [!%?,;/](?:\\\r?\n|[^\r\n])*                             # to the end of the line, which a backslash moves
        | [^\s\#'"=(),]+\?{1,2}[ \t]*(?=[\r\n]|\Z)               # a question after a name
    )
    """,
    re.VERBOSE,
)
_TOKEN = re.compile(
    r"""
    \#[^\r\n]*
    | '''(?:\\[\s\S]|(?!''')[\s\S])*(?:'''|\Z) | \"""(?:\\[\s\S]|(?!\""")[\s\S])*(?:\"""|\Z)
    | '(?:\\[\s\S]|[^'\\\r\n])*'? | "(?:\\[\s\S]|[^"\\\r\n])*"?
    | \\(?:\r\n|[\s\S])
    | \r\n | [\s\S]
    """,
    re.VERBOSE,
)


def hide_magics(text: str, letters: Iterator[str]) -> tuple[str, list[tuple[str, str]]]:
    """The text with a name and spaces for each magic, and the pairs of what stands there now and what stood there.

    A magic begins a statement: what looks like one inside a string or brackets is code.
    """
    parts: list[str] = []
    magics: list[tuple[str, str]] = []
    at, depth, begins = 0, 0, True
    while at < len(text):
        if begins and (magic := _MAGIC.match(text, at)):
            stand_in = next(letters) + re.sub(r"[^\r\n]", " ", magic["magic"])[1:]
            magics.append((stand_in, magic["magic"]))
            parts += (magic["head"], stand_in)
            at, begins = magic.end(), False
            continue
        token = _TOKEN.match(text, at)
        word = token.group() if token else text[at]
        depth = max(0, depth + (word in "([{") - (word in ")]}"))
        begins = depth == 0 and word in ("\n", "\r", "\r\n")
        parts.append(word)
        at += len(word)
    return "".join(parts), magics

"""One file of code: its bytes, its text, its tree and its lines.

This is the only module that converts positions. Four columns exist: `ast` counts UTF-8 bytes, editors count UTF-16
units, people count code points, and a terminal prints what it is given. A `Span` counts code points from the start
of the text; everything else is asked for here.

Lines end at LF, CRLF and bare CR and nowhere else, which is what Python's own tokenizer does (a form feed or U+2028
does not end a line, although `str.splitlines` thinks so).
"""

from __future__ import annotations

import ast
import bisect
import codecs
import io
import itertools
import operator
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from launchlint.model import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launchlint.model import Finding

LINE_END = re.compile(r"\r\n|\r|\n")
MAX_BYTES = 20_000_000  # a larger file is generated data; parsing it costs gigabytes


class SourceError(Exception):
    """A file that cannot be analysed. `line` is 1-based, 0 for the whole file."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class Position:
    """A place for people: 1-based line and 1-based column in code points."""

    line: int
    column: int
    cell: int = 0  # of a notebook, 1-based: the line is then a line of that cell


@dataclass
class Source:
    """A parsed file.

    `text` is the decoded text without a byte-order mark and with its line ends as they are on disk. `bom` and
    `encoding` say how to get the bytes back.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    given_tree: ast.Module | None = field(default=None, repr=False)

    # ---------------------------------------------------------------- making one

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Source:
        """Decode `data` by its byte-order mark or coding cookie, or as a notebook; raise SourceError if that fails."""
        if path.endswith(".ipynb"):
            from launchlint import notebook

            return notebook.read(path, data)
        if len(data) > MAX_BYTES:
            raise SourceError(f"larger than {MAX_BYTES // 1_000_000} MB, not analysed")
        if b"\0" in data:
            raise SourceError("contains a NUL byte, which Python does not accept", data[: data.index(b"\0")].count(b"\n") + 1)
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except (SyntaxError, UnicodeDecodeError) as error:
            raise SourceError(_reason_of_encoding(error), _line_of_bad_byte(data)) from None
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        if encoding == "utf-8-sig":
            encoding = "utf-8"
        try:
            text = data[len(bom) :].decode(encoding)
        except UnicodeDecodeError as error:
            line = len(LINE_END.findall(data[: len(bom) + error.start].decode("latin-1"))) + 1
            raise SourceError(f"not valid {encoding}: {error.reason}", line) from None
        except LookupError:
            raise SourceError(f"unknown encoding: {encoding}", 1) from None
        return cls(path, text, encoding, bom)

    @classmethod
    def from_lines(cls, path: str, lines: list[str], tree: ast.Module | None = None) -> Source:
        """Take over what a host (flake8, an editor) has already read and parsed."""
        text = "".join(lines)
        return cls(path, text.removeprefix("\ufeff"), given_tree=tree)

    def encode(self, text: str) -> bytes:
        """The bytes of `text` as this file would store them."""
        return self.bom + text.encode(self.encoding)

    # ---------------------------------------------------------------- tree

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; raise SourceError if the text does not parse."""
        if self.given_tree is not None:
            return self.given_tree
        return parse(self.text)

    # ---------------------------------------------------------------- lines and positions

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first code point of every line."""
        if "\r" in self.text:
            return [0, *(found.end() for found in LINE_END.finditer(self.text))]
        lengths = map(len, self.text.split("\n")[:-1])  # no step of which runs Python code: every file with a finding asks
        return [0, *map(operator.add, itertools.accumulate(lengths), itertools.count(1))]

    def line(self, number: int) -> str:
        """Text of the 1-based line without its line end; empty where there is no such line."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    @cached_property
    def newline(self) -> str:
        """The line end this file uses first; LF for a file of one line."""
        found = LINE_END.search(self.text)
        return found.group() if found else "\n"

    def offset(self, line: int, byte_column: int) -> int:
        """Offset of `ast`'s 1-based line and 0-based UTF-8 byte column."""
        if line > len(self.line_starts):
            return len(self.text)
        start = self.line_starts[line - 1]
        if self.text.isascii():
            return start + byte_column
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.text)
        prefix = self.text[start:end].encode("utf-8", "surrogatepass")[:byte_column]
        return start + len(prefix.decode("utf-8", "replace"))

    def span(self, node: ast.expr | ast.stmt | ast.excepthandler) -> Span:
        """Where `node` stands."""
        end_line = node.end_lineno if node.end_lineno is not None else node.lineno
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return Span(self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column))

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The text of `node` as written."""
        span = self.span(node)
        return self.text[span.start : span.end]

    def header(self, node: ast.stmt) -> Span:
        """Where a compound statement starts, up to the colon: the first line of a loop or of a definition."""
        start = self.offset(node.lineno, node.col_offset)
        body = getattr(node, "body", None)
        if not body:
            return self.span(node)
        end = self.offset(body[0].lineno, body[0].col_offset)
        return Span(start, start + len(self.text[start:end].rstrip()))

    def position(self, offset: int) -> Position:
        """Line and column, 1-based, in code points."""
        line = bisect.bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def number(self, line: int, cell: int = 0) -> int:
        """The 1-based number of a line in the text, from its number in a cell where there are cells; raise SourceError if none has it."""
        if cell or not 1 <= line <= len(self.line_starts):
            raise SourceError(f"has no cell {cell}: it is no notebook" if cell else f"has no line {line}")
        return line

    def shown(self, offset: int) -> Position:
        """The place as people are told it; in a notebook, the line within its cell."""
        return self.position(offset)

    def on_disk(self, span: Span) -> tuple[Source, Span]:
        """The text that lies on the disk, and where the span stands in it; of a notebook, the JSON."""
        return self, span

    @property
    def runs_at_top(self) -> bool:
        """True for a notebook, whose loops stand outside functions."""
        return False

    @property
    def fault(self) -> str:
        """What of the file could not be read although the rest could; only a notebook has such parts."""
        return ""

    def confine(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with the fixes that this kind of file takes."""
        return list(findings)

    def utf16_column(self, offset: int) -> int:
        """0-based column of `offset` in UTF-16 units, as the language server protocol counts."""
        start = self.line_starts[bisect.bisect_right(self.line_starts, offset) - 1]
        return len(self.text[start:offset].encode("utf-16-le", "surrogatepass")) // 2

    def byte_column(self, offset: int) -> int:
        """0-based column of `offset` in UTF-8 bytes, as `ast` and reviewdog count."""
        start = self.line_starts[bisect.bisect_right(self.line_starts, offset) - 1]
        return len(self.text[start:offset].encode("utf-8", "surrogatepass"))


def parse(text: str) -> ast.Module:
    """Parse `text`; raise SourceError with one clear line whatever the parser throws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are the file's business, not ours
        try:
            return ast.parse(text)
        except SyntaxError as error:
            raise SourceError(f"syntax error: {error.msg}", error.lineno or 0) from None
        except ValueError as error:
            raise SourceError(f"syntax error: {error}") from None
        except (RecursionError, MemoryError):
            raise SourceError("nested too deeply for Python's parser") from None


def _reason_of_encoding(error: Exception) -> str:
    message = str(error)
    if message.startswith("unknown encoding"):
        return message
    return "not valid UTF-8, and no coding cookie says otherwise"


def _line_of_bad_byte(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data[: error.start].count(b"\n") + 1
    return 1

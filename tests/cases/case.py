"""A case: a heading, a sentence, a `py` block with marks, and what its fixes must give.

    ## One fill per expert

    Every expert gets its own launch.

    ```py min-confidence=low
    out[start:end].fill_(expert)  # error: [slice-fill-loop] "one launch"
    ```

    ```fixed unsafe
    ...
    ```

    ```inputs
    Receiver().forward([3, 0, 2], torch.device("cpu"))
    ```

Marks stand on the line that is reported: `# error: [name] "part of the message"` (the part may be left out),
`# todo-error: [name] why` for a known missed alarm and `# todo-ok: [name] why` for a known false alarm. They are cut
off before the code is looked at. Words after `py` are options, see `Options`.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchlint.dev.markdown import Block, MarkdownError, Section, sections
from launchlint.model import Applicability, Confidence
from launchlint.settings import Settings

MARK = re.compile(r"\s*#\s*(error|todo-error|todo-ok):\s*(.*?)\s*(?=#\s*(?:error|todo-error|todo-ok):|$)")
NEAR_MARK = re.compile(r"#\s*(?:error\s*\[|(?:todo|error)[-_ ]?(?:error|ok)?\s*\[)", re.IGNORECASE)
EXPECTED = re.compile(r'\[([a-z0-9-]+)\](?:\s+"([^"]+)")?$')
KNOWN = re.compile(r"\[([a-z0-9-]+)\](?:\s+(\S.*))?$")
DEFAULT_PATH = "layer.py"


class CaseError(Exception):
    """A case that is not written as it must be."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.line = line
        self.reason = reason


class Expect(enum.Enum):
    """What a mark claims about its line."""

    ERROR = "error"  # fires, and must
    TODO_ERROR = "todo-error"  # ought to fire, does not yet
    TODO_OK = "todo-ok"  # fires, ought not to


@dataclass(frozen=True, slots=True)
class Mark:
    """One claim: the 1-based line of the code, the rule's name and a part of its message."""

    line: int
    expect: Expect
    rule: str
    part: str = ""

    def __str__(self) -> str:
        return f"# {self.expect.value}: [{self.rule}]" + (f' "{self.part}"' if self.part else "")


@dataclass(frozen=True, slots=True)
class Options:
    """The words after `py`.

    Any setting (`min-confidence=low`, `hot=layer.pack`, `preview`, `pin-memory=PIN`), and: `path=a/b.py` is the name
    of the file, `with=rule-name` runs another rule as well, `with=all` all of them, `python=3.12` needs that version,
    `skip=twin,alias` leaves out variants that make no sense for this code.
    """

    settings: Settings = field(default_factory=Settings)
    path: str = DEFAULT_PATH
    others: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 10)
    skip: frozenset[str] = frozenset()

    @property
    def runs_here(self) -> bool:
        """False where this interpreter is too old for the syntax of the case."""
        return sys.version_info[:2] >= self.python


@dataclass(frozen=True, slots=True)
class Fixed:
    """What applying fixes down to `floor` gives."""

    floor: Applicability
    text: str
    block: Block


@dataclass(frozen=True, slots=True)
class Case:
    """One case of one page; `code` is free of marks."""

    path: Path
    title: str
    line: int
    sentence: str
    code: str
    marks: tuple[Mark, ...]
    options: Options
    fixed: tuple[Fixed, ...] = ()
    inputs: str = ""

    @property
    def name(self) -> str:
        """Heading in a form that pytest can select."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def read(path: Path, variants: frozenset[str]) -> list[Case]:
    """The cases of a page; raise CaseError for the first that is not well formed or not new."""
    try:
        found = sections(path.read_text(encoding="utf-8"))
    except MarkdownError as error:
        raise CaseError(path, error.line, error.reason) from None
    cases = [_case(path, section, variants) for section in found if section.blocks]
    if not cases:
        raise CaseError(path, 1, "a page of cases without a case")
    _refuse_duplicates(cases)
    return cases


def _refuse_duplicates(cases: list[Case]) -> None:
    titles: dict[str, Case] = {}
    codes: dict[tuple[str, str], Case] = {}
    for case in cases:
        if (other := titles.setdefault(case.name, case)) is not case:
            raise CaseError(case.path, case.line, f"the same heading as line {other.line}")
        if (other := codes.setdefault((_essence(case), repr(case.options)), case)) is not case:
            raise CaseError(case.path, case.line, f"the same code as '{other.title}' (line {other.line})")


def _essence(case: Case) -> str:
    """The code without blank lines: layout within a line counts, since where a finding stands depends on it."""
    return "\n".join(line.rstrip() for line in case.code.split("\n") if line.strip())


def _case(path: Path, section: Section, variants: frozenset[str]) -> Case:
    blocks: dict[str, list[Block]] = {"py": [], "fixed": [], "inputs": []}
    for block in section.blocks:
        if block.language not in blocks:
            raise CaseError(path, block.line, f"a case has `py`, `fixed` and `inputs` blocks, not {block.language!r}")
        if block.language != "py" and not blocks["py"]:
            raise CaseError(path, block.line, "the `py` block comes first")
        blocks[block.language].append(block)
    if section.level < 2 or not section.title:
        raise CaseError(path, section.line, "a case needs a heading of its own, of level 2 or deeper")
    if not section.prose:
        raise CaseError(path, section.line, "a case says in a sentence what it shows")
    if len(blocks["py"]) != 1 or len(blocks["inputs"]) > 1:
        raise CaseError(path, section.line, "one `py` block to a heading, and at most one `inputs` block")
    (block,) = blocks["py"]
    options = _options(path, block, variants)
    code, marks = _cut_marks(path, block)
    fixed = tuple(_fixed(path, each) for each in blocks["fixed"])
    if len({each.floor for each in fixed}) != len(fixed):
        raise CaseError(path, section.line, "two `fixed` blocks of one applicability")
    if blocks["inputs"] and not fixed:
        raise CaseError(path, section.line, "an `inputs` block runs the code beside its fixed form, and there is none")
    inputs = blocks["inputs"][0].text if blocks["inputs"] else ""
    if options.runs_here:
        _refuse_broken(path, block, code)
    return Case(path, section.title, section.line, section.prose, code, marks, options, fixed, inputs)


def _refuse_broken(path: Path, block: Block, code: str) -> None:
    try:
        ast.parse(code)
    except SyntaxError as error:
        raise CaseError(path, block.line + (error.lineno or 0), f"the code does not parse: {error.msg}") from None


def _fixed(path: Path, block: Block) -> Fixed:
    match block.words[1:]:
        case ():
            return Fixed(Applicability.SAFE, block.text, block)
        case ("unsafe",):
            return Fixed(Applicability.UNSAFE, block.text, block)
        case words:
            raise CaseError(path, block.line, f"`fixed` or `fixed unsafe`, not {' '.join(('fixed', *words))!r}")


def _cut_marks(path: Path, block: Block) -> tuple[str, tuple[Mark, ...]]:
    lines: list[str] = []
    marks: list[Mark] = []
    for number, line in enumerate(block.text.split("\n")[:-1], start=1):
        first = MARK.search(line)
        if first is None:
            if NEAR_MARK.search(line):
                raise CaseError(path, block.line + number, f"looks like a mark and is none: {line.strip()}")
            lines.append(line)
            continue
        lines.append(line[: first.start()].rstrip())
        marks += _marks(path, block.line + number, number, line[first.start() :])
    return "".join(line + "\n" for line in lines), tuple(marks)


def _marks(path: Path, page_line: int, line: int, text: str) -> Iterator[Mark]:
    for found in MARK.finditer(text):
        expect = Expect(found[1])
        claim = (EXPECTED if expect is Expect.ERROR else KNOWN).match(found[2])
        if claim is None:
            raise CaseError(path, page_line, f'a mark reads `# {expect.value}: [rule-name] "part of the message"`')
        yield Mark(line, expect, claim[1], claim[2] or "")


def _options(path: Path, block: Block, variants: frozenset[str]) -> Options:
    options = Options()
    for word in block.words[1:]:
        key, _, value = word.partition("=")
        try:
            options = _with_option(options, key, value, variants)
        except ValueError as error:
            raise CaseError(path, block.line, str(error)) from None
    return options


def _with_option(options: Options, key: str, value: str, variants: frozenset[str]) -> Options:
    match key:
        case "path":
            return dataclasses.replace(options, path=value)
        case "with":
            return dataclasses.replace(options, others=tuple(value.split(",")))
        case "python":
            major, minor = value.split(".")
            return dataclasses.replace(options, python=(int(major), int(minor)))
        case "skip":
            skip = frozenset(value.split(","))
            if unknown := skip - variants:
                raise ValueError(f"no such variant: {', '.join(sorted(unknown))} (there are {', '.join(sorted(variants))})")
            return dataclasses.replace(options, skip=skip)
        case _:
            return dataclasses.replace(options, settings=_with_setting(options.settings, key, value))


def _with_setting(settings: Settings, key: str, value: str) -> Settings:
    name = key.replace("-", "_")
    if name not in {each.name for each in dataclasses.fields(settings)}:
        raise ValueError(f"no such option or setting: {key}")
    new: Any
    match getattr(settings, name):
        case bool():
            new = value in ("", "true")
        case Confidence():
            new = Confidence[value.upper()]
        case tuple():
            new = tuple(value.split(","))
        case str():
            new = value
        case _:
            raise ValueError(f"a case cannot set {key}")
    changes: dict[str, Any] = {name: new}
    return dataclasses.replace(settings, **changes)

"""From findings to output: positions for people, fingerprints, and one module a format.

Every other module of this package is a format: it is called as the format is, and has `render(result) -> str`. Adding
a format is adding a module.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from launchlint import registry
from launchlint.model import Applicability, Edit, FileReport, Finding, Meta, Problem, Span
from launchlint.settings import Settings
from launchlint.source import Source, SourceError

if TYPE_CHECKING:
    from launchlint.trace.join import Measured

LINES = frozenset({"concise", "github", "text"})  # these may share one stream; the others are whole documents
PAGES = "rules/{folder}/README.md"  # a reference relative to the project's source, the same on every machine


@dataclass(frozen=True, slots=True)
class Place:
    """A range for people: 1-based lines, 1-based columns in code points, the end column exclusive.

    In a notebook, lines are those of the cell with the number `cell`, and `above` lines of the joint text stand before it.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int = 0
    above: int = 0

    def __str__(self) -> str:
        """`path:line:column`, or `path:cell 3:line:column`."""
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.path}:{cell}{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding with everything that output needs."""

    finding: Finding
    meta: Meta
    place: Place
    related: tuple[tuple[Place, str], ...]
    fingerprint: str
    source: Source
    measured: Measured | None = None  # what a recording says, where one was given

    @property
    def on_disk(self) -> Place:
        """The place in the file as it lies on the disk: of a notebook, in its JSON."""
        return place(*self.source.on_disk(self.finding.span), self.place.path)

    @property
    def url(self) -> str:
        return PAGES.format(folder=registry.folder(self.meta))


@dataclass(slots=True)
class Result:
    """All that a run has to say."""

    entries: list[Entry]
    problems: list[Problem]
    silenced: Counter[str]  # by what silenced them: noqa, ignore, a waiver's word, per-file-ignores
    stats: dict[str, object]
    files: int
    settings: Settings
    colour: bool = False
    statistics: bool = False
    quiet: bool = False
    notes: list[str] = field(default_factory=list)
    fixed: Counter[str] = field(default_factory=Counter)  # by code


def formats() -> list[str]:
    """The names of the formats."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def render(name: str, result: Result) -> str:
    """`result` in the format `name`; ends with a newline unless it is empty."""
    module = importlib.import_module(f"{__name__}.{name}")
    text: str = module.render(result)
    return text


def gather(
    files: Iterable[FileReport], settings: Settings, stats: Mapping[str, object] | None = None, sources: Mapping[str, Source] | None = None
) -> Result:
    """Resolve positions. Sources that are not given are read again, which only files with findings need."""
    result = Result([], [], Counter(), dict(stats or {}), 0, settings)
    for report in files:
        result.files += 1
        result.problems += report.problems
        result.silenced.update(reason.split(":", 1)[0] for _, reason in report.silenced)
        if report.findings:
            source = (sources or {}).get(report.path) or read(report.path)
            result.entries += locate(source, report.findings, settings)
    return result


def read(path: str) -> Source:
    """The decoded file; an empty one where it has gone or changed in the meantime."""
    try:
        with open(path, "rb") as file:
            return Source.from_bytes(path, file.read())
    except (OSError, SourceError):
        return Source(path, "")


def locate(source: Source, findings: Sequence[Finding], settings: Settings) -> list[Entry]:
    """Entries for the findings of one file, in their order."""
    shown = readable(source.path)
    stable = readable(settings.relative(source.path))
    seen: Counter[str] = Counter()
    entries: list[Entry] = []
    for finding in (_as_configured(each, settings) for each in findings):
        meta = registry.load()[finding.code].meta
        spot = place(source, finding.span, shown)
        key = "\0".join((finding.code, stable, " ".join(source.line(spot.line + spot.above).split())))
        seen[key] += 1
        related = tuple((place(source, other.span, shown), other.note) for other in finding.related)
        entries.append(Entry(finding, meta, spot, related, fingerprint(key, seen[key]), source))
    return entries


def _as_configured(finding: Finding, settings: Settings) -> Finding:
    """The finding with its fix counting as the user's `extend-safe-fixes` and `extend-unsafe-fixes` say."""
    if finding.fix is None or not (settings.extend_safe_fixes or settings.extend_unsafe_fixes):
        return finding
    from launchlint import fixes

    return replace(finding, fix=replace(finding.fix, applicability=fixes.applicability(finding, settings)))


def worst_first(entries: Iterable[Entry]) -> list[Entry]:
    """The surest first, of these the ones that are proven to run every step; then by place."""
    return sorted(entries, key=lambda entry: (-entry.finding.confidence, -len(entry.finding.hot.chain) if entry.finding.hot else 1))


def in_words(entry: Entry) -> str:
    """The message with why its line is hot and what to do, for outputs that show no code; of a notebook, first its cell."""
    finding = entry.finding
    cell = f"cell {entry.place.cell}, line {entry.place.line}: " if entry.place.cell else ""
    parts = [f"{cell}{finding.message}"]
    if finding.hot:
        chain = f" ({' -> '.join(finding.hot.chain)})" if len(finding.hot.chain) > 1 else ""
        parts.append(f"hot because {finding.hot.reason}{chain}")
    if finding.fix:
        parts.append(f"{'use instead' if finding.fix.applicability is Applicability.DISPLAY else 'fix'}: {finding.fix.title}")
    return "; ".join(parts)


def edits(entry: Entry) -> list[Edit]:
    """All edits of the fix of a finding, the imports that it needs included; none where it has none, only shows one, or is in
    the JSON of a notebook."""
    from launchlint.fixes import imports

    fix = entry.finding.fix
    if fix is None or not fix.edits or entry.place.cell:
        return []
    added = imports.add(entry.source, list(fix.imports))
    return sorted([*fix.edits, *([added] if added else [])])


@functools.lru_cache(maxsize=1024)
def _top(folder: str) -> str:
    """The top of the repository that holds `folder`; `folder` itself outside one."""
    place = folder
    while not os.path.exists(os.path.join(place, ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return folder
        place = parent
    return place


def from_top(path: str) -> str:
    """`path` from the top of the repository that the run stands in, with slashes, as servers want it; as it is outside."""
    if path == "-":
        return path
    top = _top(os.getcwd())
    full = os.path.abspath(path)
    inside = full.startswith(top.rstrip(os.sep) + os.sep)
    return (os.path.relpath(full, top) if inside else path).replace(os.sep, "/")


def fingerprint(key: str, occurrence: int) -> str:
    """A name for a finding that survives changes of other lines: code, path, the line's text, and which of its equals."""
    import hashlib

    return hashlib.sha256(f"{key}\0{occurrence}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


def place(source: Source, span: Span, path: str) -> Place:
    start, end = source.shown(span.start), source.shown(span.end)
    above = source.position(span.start).line - start.line
    return Place(path, start.line, start.column, end.line, end.column, start.cell, above)


def readable(path: str) -> str:
    """`path` as text that every encoding of Unicode takes: bytes that are none become backslash escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def plural(number: int, word: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"

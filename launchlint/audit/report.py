"""What a run spent: events, sums per line of source, and a table of them. Nothing here needs torch."""

from __future__ import annotations

import json
import linecache
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["launch", "wait", "upload", "download", "allocation", "pin"]
Mode = Literal["dry run", "measurement"]

COUNTS = ("launches", "waits", "pinned_uploads", "pageable_uploads", "downloads", "allocations")
HEADINGS = ("launches", "waits", "pinned up", "pageable up", "down", "alloc")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that the host asked of the device, at the line of user code that caused it.

    `count` is kernels for a launch (approximate for operations of several kernels), else how often. `pinned` says for a
    copy whether the host side is page-locked. `may_wait` marks a non-blocking copy of pageable memory: CUDA does not
    guarantee that it is asynchronous, nor that it waits, so it is no wait in the sums.
    """

    kind: Kind
    operation: str
    path: str
    line: int
    count: int = 1
    bytes: int = 0
    pinned: bool | None = None
    may_wait: bool = False
    note: str = ""


@dataclass(slots=True)
class Totals:
    """Sums of a run or of one line of source."""

    launches: int = 0
    waits: int = 0
    pinned_uploads: int = 0
    pageable_uploads: int = 0
    downloads: int = 0
    allocations: int = 0

    def add(self, event: Event) -> None:
        """Count one event."""
        match event.kind:
            case "launch":
                self.launches += event.count
            case "wait":
                self.waits += event.count
            case "upload" if event.pinned:
                self.pinned_uploads += event.count
            case "upload":
                self.pageable_uploads += event.count
            case "download":
                self.downloads += event.count
            case "allocation":
                self.allocations += event.count

    def cost(self) -> tuple[int, int, int]:
        """Order of lines: a wait outweighs a copy or a launch; an allocation from the cache is the least."""
        return (self.waits, self.launches + self.pinned_uploads + self.pageable_uploads + self.downloads, self.allocations)

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in COUNTS}


@dataclass(slots=True)
class Line(Totals):
    """What one line of user code spent, with the operations in order of their first use."""

    path: str = ""
    line: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    findings: tuple[str, ...] = ()  # codes of the rules that report this line, where the caller asked for them

    @property
    def source(self) -> str:
        """The line as written; empty where the file cannot be read."""
        return linecache.getline(self.path, self.line).strip()

    @property
    def place(self) -> str:
        """`file:line`, relative to the working directory where that is shorter."""
        return f"{short_path(self.path)}:{self.line}"


@dataclass(eq=False)
class Report:
    """What a run spent. `result` is what the function returned (None for a `with` block).

    `mode` says how the numbers came about: counted on a machine without a GPU, or measured on one. `assumed` are operators
    that the table of facts does not know and that were counted as one launch; `problems` are places where CUDA would have
    raised, such as a host tensor among device operands.
    """

    mode: Mode = "dry run"
    torch_version: str = ""
    events: list[Event] = field(default_factory=list)
    result: Any = None
    assumed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    sync_warnings: int | None = None  # of torch's sync debug mode, only measured
    findings: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)

    @property
    def totals(self) -> Totals:
        """Sums of the whole run."""
        totals = Totals()
        for event in self.events:
            totals.add(event)
        return totals

    @property
    def launches(self) -> int:
        """Kernels; approximate for operations that need several."""
        return self.totals.launches

    @property
    def waits(self) -> int:
        """How often the host waited for the device."""
        return self.totals.waits

    @property
    def pinned_uploads(self) -> int:
        """Copies to the device from page-locked memory."""
        return self.totals.pinned_uploads

    @property
    def pageable_uploads(self) -> int:
        """Copies to the device from ordinary memory."""
        return self.totals.pageable_uploads

    @property
    def downloads(self) -> int:
        """Copies back to the host, reads of single values included."""
        return self.totals.downloads

    @property
    def allocations(self) -> int:
        """New device buffers, which the caching allocator usually has at hand."""
        return self.totals.allocations

    @property
    def may_waits(self) -> int:
        """Non-blocking copies of pageable memory, which are not guaranteed to be asynchronous."""
        return sum(event.count for event in self.events if event.may_wait)

    @property
    def lines(self) -> list[Line]:
        """Sums for each line of user code, most expensive first."""
        return self.lines_by(Totals.cost)

    def lines_by(self, cost: Callable[[Totals], Any]) -> list[Line]:
        """Sums for each line of user code, in falling order of `cost`; equal lines stay in order of first use."""
        lines: dict[tuple[str, int], Line] = {}
        for event in self.events:
            key = (event.path, event.line)
            line = lines.get(key)
            if line is None:
                line = lines[key] = Line(path=event.path, line=event.line, findings=self.findings.get(key, ()))
            line.add(event)
            if event.kind != "allocation":
                line.operations[event.operation] += 1 if event.kind != "wait" else 0
                if event.note and event.note not in line.notes:
                    line.notes.append(event.note)
        return sorted(lines.values(), key=cost, reverse=True)

    def table(self, limit: int = 0) -> str:
        """A line of text for each line of source, most expensive first, and the sums; `limit` 0 shows all."""
        return table(self.lines, self.totals, self.footer(), limit)

    def footer(self) -> list[str]:
        """What a reader must know beside the numbers."""
        notes = [f"{self.mode}, torch {self.torch_version}"]
        if self.mode == "dry run":
            notes[0] += ": counted without a GPU, kernels of one operation are approximate"
        if self.sync_warnings is not None:
            notes.append(f"torch's sync debug mode warned {times(self.sync_warnings)}")
        if self.may_waits:
            notes.append(f"non-blocking copies of pageable memory, not guaranteed asynchronous: {self.may_waits}")
        if self.assumed:
            notes.append("not in the table of facts, counted as one launch each: " + ", ".join(sorted(self.assumed)))
        return notes + [f"would fail on CUDA: {problem}" for problem in self.problems]

    def as_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {
            "schema": 1,
            "mode": self.mode,
            "torch": self.torch_version,
            "totals": self.totals.as_dict(),
            "may_wait": self.may_waits,
            "sync_warnings": self.sync_warnings,
            "lines": [
                {"path": line.path, "line": line.line, "source": line.source, **line.as_dict()}
                | {"operations": dict(line.operations), "notes": line.notes, "findings": list(line.findings)}
                for line in self.lines
            ],
            "assumed": sorted(self.assumed),
            "problems": self.problems,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The report as JSON: schema, mode, totals and lines."""
        return json.dumps(self.as_dict(), indent=indent)

    def __str__(self) -> str:
        return self.table()


def table(lines: Sequence[Line], totals: Totals, footer: Iterable[str], limit: int = 0) -> str:
    """Columns of counts, the place and the source; rows after `limit` are summed up in words."""
    shown = list(lines[:limit] if limit else lines)
    rows: list[tuple[str, ...]] = [(*HEADINGS, "line", "source")]
    for line in shown:
        remarks = "; ".join(line.notes + ([", ".join(line.findings)] if line.findings else []))
        rows.append((*cells(line), line.place, clip(line.source, 80) + (f"  [{remarks}]" if remarks else "")))
    if len(lines) > len(shown):
        rows.append((*[""] * 6, f"and {len(lines) - len(shown)} more lines", ""))
    rows.append((*cells(totals), "total", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    text = []
    for row in rows:
        counts = "  ".join(cell.rjust(width) for cell, width in zip(row[:6], widths, strict=False))
        text.append(f"{counts}  {row[6].ljust(widths[6])}  {row[7]}".rstrip())
    return "\n".join(text + list(footer))


def cells(totals: Totals) -> tuple[str, ...]:
    """The counts as text; a zero is a dot, so that the eye finds the others."""
    return tuple(str(getattr(totals, name) or ".") for name in COUNTS)


def clip(text: str, width: int) -> str:
    """`text` on one line, not longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def times(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def short_path(path: str) -> str:
    """`path` relative to the working directory where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if len(relative) < len(path) else path

"""Findings and what was measured on their lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launchlint.model import FileReport, Finding
from launchlint.report import Entry, read
from launchlint.source import Source
from launchlint.trace.cost import Cost
from launchlint.trace.sweep import Line, Recording, record

if TYPE_CHECKING:
    from collections.abc import Mapping

HOW_TO = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True)"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a recording says of one finding.

    `reached`: something was recorded on its lines, or below what they call. `ran`: the function around it was called.
    `certain`: no other line of the function can be meant by any of it. `device`: kernels and copies were recorded.
    """

    cost: Cost
    reached: bool
    ran: bool
    certain: bool
    device: bool

    def as_dict(self) -> dict[str, object]:
        return {"reached": self.reached, "function_ran": self.ran, "certain": self.certain, **self.cost.as_dict()}


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line that launches, waits or copies, with what that cost there without what it calls in other checked functions."""

    path: str
    line: int
    text: str
    cost: Cost
    certain: bool
    silenced: str = ""  # what silenced a finding there


@dataclass(slots=True)
class Joined:
    """A recording joined with findings, the most expensive first."""

    recording: Recording
    entries: list[Entry]
    lines: list[HotLine]  # those on which no rule reports anything
    stackless: Cost  # where no Python function was running: everything in a recording without stacks
    elsewhere: Cost  # below Python functions none of which is checked
    between: Cost  # the interpreter's time in functions that are checked, between a call on one line and a call on another
    notes: list[str]


def measured(path: str, entries: Sequence[Entry], files: Sequence[str]) -> tuple[list[Entry], Recording]:
    """The entries with what the trace `path` says of each, the most expensive first; raise TraceError where it is none."""
    ranges: dict[str, list[tuple[int, int, int]]] = {}
    for number, entry in enumerate(entries):
        ranges.setdefault(entry.source.path, []).append((*lines_of(entry.source, entry.finding), number))
    recording = record(path, files, ranges)
    costs = _by_number(recording)
    with_cost = [_with_cost(entry, costs.get(number), recording) for number, entry in enumerate(entries)]
    return sorted(with_cost, key=_rank, reverse=True), recording


def _rank(entry: Entry) -> tuple[bool, bool, tuple[int, int, int]]:
    assert entry.measured is not None
    return (entry.measured.reached, entry.measured.ran, entry.measured.cost.rank())


def _by_number(recording: Recording) -> dict[int, tuple[Cost, bool]]:
    """Sums over everything inside each range, and whether the lines are certain."""
    costs: dict[int, tuple[Cost, bool]] = {}
    for context, part in recording.by_context.items():
        for number in context.inside if part else ():
            cost, certain = costs.get(number, (Cost(), True))
            cost.add(part)
            costs[number] = (cost, certain and context.certain)
    return costs


def _with_cost(entry: Entry, found: tuple[Cost, bool] | None, recording: Recording) -> Entry:
    from dataclasses import replace

    cost, certain = found or (Cost(), True)
    around = function_around(entry.source.tree, entry.place.line)
    ran = found is not None or (entry.source.path, around) in recording.reached
    return replace(entry, measured=Measured(cost, found is not None, ran, certain, recording.device))


def lines_of(source: Source, finding: Finding) -> tuple[int, int]:
    """First and last line of a finding; for one on the head of a loop, the whole loop."""
    first, last = source.position(finding.span.start).line, source.position(finding.span.end).line
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and source.span(node).start == finding.span.start:
            return first, max(last, node.end_lineno or last)
    return first, last


def function_around(tree: ast.Module, line: int) -> int:
    """The line on which the innermost function around `line` begins, its decorators included; 0 for none."""
    return max(
        (
            min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
        ),
        default=0,
    )


# ---------------------------------------------------------------- everything


def join(path: str, entries: Sequence[Entry], reports: Iterable[FileReport], files: Sequence[str]) -> Joined:
    """Findings with their costs, the expensive lines without one, and what the recording has elsewhere."""
    sorted_entries, recording = measured(path, entries, files)
    reported = {(entry.source.path, line) for entry in entries for line in _range(lines_of(entry.source, entry.finding))}
    return Joined(
        recording,
        sorted_entries,
        _hot_lines(recording, reported, _silenced(reports)),
        recording.sum(lambda context: not context.stacked),
        recording.sum(lambda context: context.stacked and not context.checked),
        recording.sum(lambda context: context.checked and context.line is None),
        notes(recording),
    )


def _range(lines: tuple[int, int]) -> range:
    return range(lines[0], lines[1] + 1)


def _silenced(reports: Iterable[FileReport]) -> dict[Line, str]:
    """Lines on which a finding was silenced, and by what."""
    found: dict[Line, str] = {}
    for report in reports:
        source = read(report.path) if report.silenced else None
        for finding, reason in report.silenced if source else ():
            assert source is not None
            for line in _range(lines_of(source, finding)):
                found.setdefault((report.path, line), f"{finding.code} silenced: {reason}")
    return found


def _hot_lines(recording: Recording, reported: set[Line], silenced: Mapping[Line, str]) -> list[HotLine]:
    """Lines that launch, wait or copy and that no finding stands on, the most expensive first."""
    costs: dict[Line, tuple[Cost, bool]] = {}
    for context, part in recording.by_context.items():
        if context.line is not None and context.line not in reported and part:
            cost, certain = costs.get(context.line, (Cost(), True))
            cost.add(part)
            costs[context.line] = (cost, certain and context.certain)
    sources: dict[str, Source] = {}
    found: list[HotLine] = []
    for (path, line), (cost, certain) in costs.items():
        if cost.launches or cost.waits or cost.copies:
            source = sources.setdefault(path, read(path)) if path not in sources else sources[path]
            found.append(HotLine(path, line, source.line(line).strip(), cost, certain, silenced.get((path, line), "")))
    return sorted(found, key=lambda hot: (hot.cost.rank(), hot.path, hot.line), reverse=True)


def notes(recording: Recording) -> list[str]:
    """What a reader has to know before believing the figures."""
    from launchlint.report import readable

    found: list[str] = []
    if not (recording.total.operations or recording.total.launches):
        found.append("the recording holds no operation: was it written before or after the steps that it is about?")
    if not recording.frames:
        found.append(f"the recording has no Python stacks, so nothing in it has a line: record with {HOW_TO}")
    elif not recording.reached:
        found.append("no function of the files that were checked runs in the recording: name the files that were recorded")
    if recording.frames and not recording.device:
        found.append(
            "no GPU was recorded: launches and waits are the operations that would launch or wait on one, times are those of a CPU"
        )
    for path in sorted(recording.changed):
        found.append(f"{readable(path)}: the recording names functions that are not there: changed since it was made, or another file")
    for path in sorted(recording.ambiguous):
        found.append(f"{path} in the recording can mean several of the files: what it spent has no line")
    return found

"""`launchlint trace FILE`: findings beside what a recording of PyTorch's profiler says they cost."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from launchlint.streams import Trouble, put

if TYPE_CHECKING:
    from launchlint.model import Problem
    from launchlint.report import Entry
    from launchlint.settings import Settings
    from launchlint.trace.join import HotLine, Joined

DESCRIPTION = """\
Join findings with a trace of PyTorch's profiler: the launches, host time, waits and copies that were really spent on the
lines of each, most expensive first, and the lines that cost most and that no rule reports. Files of gigabytes are streamed.

Record with stacks, on a GPU or without one:

  with torch.profiler.profile(activities=[...], with_stack=True) as profiler:
      step()
  profiler.export_chrome_trace("trace.json.gz")"""
SCHEMA = 1


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command to the parsers of the command line; the options of settings are the caller's to add."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "trace",
        help="join findings with a trace of PyTorch's profiler",
        usage="launchlint trace [OPTIONS] FILE [PATH ...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", metavar="FILE", help="a Chrome trace that the profiler has written, .json or .json.gz")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders to check (default: here)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="lines without a finding to show, 0 for all (default: 20)")
    return parser


def run(options: argparse.Namespace, settings_of: Callable[[Sequence[str]], Settings]) -> int:
    """Run the command; 0 if both the trace and the files could be read, 2 if not."""
    from launchlint import discover, registry, report
    from launchlint.check import Linter, _cores
    from launchlint.trace import join
    from launchlint.trace.events import TraceError

    paths = options.paths or [os.curdir]
    settings = settings_of(paths)
    found = discover.find(paths, settings)
    checked = Linter(settings, registry.select(settings), _cores(), None).files(found.files)
    result = report.gather(checked.files, settings)
    try:
        joined = join.join(options.trace, result.entries, checked.files, found.files)
    except TraceError as error:
        raise Trouble(report.readable(str(error))) from None
    problems = [*found.problems, *result.problems]
    limit = options.limit or None
    put((_json if options.format == "json" else _text)(joined, problems, limit))
    return 2 if problems else 0


def _text(joined: Joined, problems: Sequence[Problem], limit: int | None) -> str:
    from launchlint.report import plural, readable
    from launchlint.trace.words import cost_in_words

    recording = joined.recording
    lines = [
        f"{readable(recording.path)}: {plural(recording.events, 'event')}, {plural(recording.frames, 'Python call')}",
        f"all of it: {cost_in_words(recording.total, recording.device)}",
        *(f"note: {note}" for note in joined.notes),
        *(f"error: {readable(str(problem))}" for problem in problems),
    ]
    reached = [entry for entry in joined.entries if entry.measured and entry.measured.reached]
    lines += _findings(reached)
    lines += _hot(joined.lines, limit)
    lines += _rest(joined)
    return "\n".join(lines) + "\n"


def _findings(entries: Sequence[Entry]) -> list[str]:
    from launchlint.trace.words import table

    if not entries:
        return []
    rows = []
    for entry in entries:
        assert entry.measured is not None
        mark = "" if entry.measured.certain else "~ "
        text = entry.source.line(entry.place.line).strip()
        place = f"{entry.place.path}:{entry.place.line}:{entry.place.column}:"
        rows.append((entry.measured.cost, f"{mark}{place} {entry.finding.code} [{entry.meta.name}]  {text}"))
    return ["", "findings, most expensive first", *table(rows), *_legend(rows)]


def _hot(hot: Sequence[HotLine], limit: int | None) -> list[str]:
    from launchlint.report import readable
    from launchlint.trace.words import table

    if not hot:
        return []
    rows = []
    for line in hot[:limit]:
        mark = "" if line.certain else "~ "
        silenced = f"  ({line.silenced})" if line.silenced else ""
        rows.append((line.cost, f"{mark}{readable(line.path)}:{line.line}:  {line.text}{silenced}"))
    more = [f"and {len(hot) - len(rows):,} more: --limit 0 shows all"] if len(hot) > len(rows) else []
    return ["", "lines that launch, wait or copy and that no rule reports", *table(rows), *more, *_legend(rows)]


def _legend(rows: Sequence[tuple[object, str]]) -> list[str]:
    return ["~ another line of the same function may be meant by part of it"] if any(what.startswith("~ ") for _, what in rows) else []


def _rest(joined: Joined) -> list[str]:
    """What was measured where no line is known, and the findings without a figure."""
    from launchlint.trace.words import measured_in_words, table

    parts = (
        (joined.between, "in functions that are checked, between a line and another"),
        (joined.elsewhere, "below no function that is checked"),
        (joined.stackless, "below no Python function"),
    )
    rows = [(cost, what) for cost, what in parts if cost]
    lines = ["", "elsewhere", *table(rows)] if rows else []
    left = [entry for entry in joined.entries if entry.measured and not entry.measured.reached]
    if left:
        lines += ["", "findings without a figure"]
    for entry in left:
        assert entry.measured is not None
        place = f"{entry.place.path}:{entry.place.line}:{entry.place.column}:"
        lines.append(f"{place} {entry.finding.code} [{entry.meta.name}]  {measured_in_words(entry.measured)}")
    return lines


def _json(joined: Joined, problems: Sequence[Problem], limit: int | None) -> str:
    import json

    from launchlint.report import json as contract

    recording = joined.recording
    document = {
        "schema": SCHEMA,
        "trace": {
            "path": recording.path,
            "events": recording.events,
            "python_calls": recording.frames,
            "device": recording.device,
            "total": recording.total.as_dict(),
            "between_lines": joined.between.as_dict(),
            "elsewhere": joined.elsewhere.as_dict(),
            "without_stack": joined.stackless.as_dict(),
        },
        "findings": [contract.entry_object(entry) for entry in joined.entries],
        "lines": [_line_object(line) for line in joined.lines[:limit]],
        "notes": joined.notes,
        "errors": [contract.problem_object(problem) for problem in problems],
    }
    return json.dumps(document, indent=2) + "\n"


def _line_object(line: HotLine) -> dict[str, object]:
    from launchlint.report import readable

    figures = {"certain": line.certain, **line.cost.as_dict()}
    return {"path": readable(line.path), "line": line.line, "source": line.text, "silenced": line.silenced or None, "measured": figures}

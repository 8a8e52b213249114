"""Where the dry run and the rules meet: which of the lines that cost something does a rule report, and which does it not."""

from __future__ import annotations

import ast
from collections import defaultdict

from launchlint.audit.report import Report
from launchlint.model import Finding
from launchlint.settings import Settings
from launchlint.source import Source, SourceError

LOOPED = 4  # launches of one line from which on it is a loop worth a rule, if it stands in one


def mark(report: Report, settings: Settings) -> list[str]:
    """Write the codes of the rules that report a line into `report.findings`; return the launch loops that no rule reports.

    A rule reports a line if its finding, or a related place of it, stands on the line or on the header of a loop around it.
    """
    unseen: list[str] = []
    paths = {event.path for event in report.events}
    for path in sorted(paths):
        source = _read(path)
        if source is None:
            continue
        codes = _codes(source, settings)
        loops = _loops(source.tree)
        for line in (line for line in report.lines if line.path == path):
            around = [start for start, end in loops if start <= line.line <= end]
            found = sorted({code for place in (line.line, *around) for code in codes[place]})
            if found:
                report.findings[path, line.line] = tuple(found)
            elif around and line.launches >= LOOPED:
                unseen.append(f"{line.place}: {line.launches} launches in a loop: {line.source}")
    return unseen


def _read(path: str) -> Source | None:
    try:
        with open(path, "rb") as file:
            source = Source.from_bytes(path, file.read())
        source.tree  # noqa: B018 - raises if the file does not parse
    except (OSError, SourceError):
        return None
    return source


def _codes(source: Source, settings: Settings) -> defaultdict[int, set[str]]:
    from launchlint import engine, registry

    codes: defaultdict[int, set[str]] = defaultdict(set)
    checked = engine.check_source(source, registry.select(settings), settings)
    for finding in [*checked.findings, *(finding for finding, _ in checked.silenced)]:
        for number in _lines_of(source, finding):
            codes[number].add(finding.code)
    return codes


def _lines_of(source: Source, finding: Finding) -> set[int]:
    spans = [finding.span, *(related.span for related in finding.related)]
    return {number for span in spans for number in range(source.position(span.start).line, source.position(span.end).line + 1)}


def _loops(tree: ast.Module) -> list[tuple[int, int]]:
    loops = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
    return [(node.lineno, node.end_lineno or node.lineno) for node in ast.walk(tree) if isinstance(node, loops)]

"""`launchlint why FILE:LINE`: what is known about a line, and why each rule that looked at it did or did not report."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator

from launchlint import registry
from launchlint.engine import Decision, Project, check_source, read_source, summarize_file, summarize_source
from launchlint.hot import FileSummary, Verdict
from launchlint.model import Heat
from launchlint.modules import module_of
from launchlint.scan import Interest, Scope, scan
from launchlint.settings import Settings
from launchlint.source import Source
from launchlint.values.flow import Flow
from launchlint.values.value import NOTHING, Value

MANY = 400  # files of one package that are read to find callers; the nearest folders come first


def explain(path: str, line: int, settings: Settings, cell: int = 0) -> str:
    """The answer as text; raise SourceError where the file cannot be analysed or has no such line.

    In a notebook, `line` is a line of the cell with the number `cell`.
    """
    source = read_source(path)
    place = f"{path}:cell {cell}:{line}" if cell else f"{path}:{line}"
    line = source.number(line, cell)
    module, is_package = module_of(path)
    found = scan(source.tree, source.text, Interest([]), module, is_package)
    project = Project([*_neighbours(path), summarize_source(source, source.tree)], settings)
    scope = _scope_at(found.scopes, line)
    verdict = project.verdict(source.path, scope) if scope is not None else Verdict(Heat.NOTHING, "the line is not part of a function")
    trace: list[Decision] = []  # every rule that looked leaves its reason here
    report = check_source(source, registry.select(settings), settings, project, trace)
    flow = Flow(found, project.values)
    if scope is not None and scope.outermost.node is not None:
        flow.function(scope.outermost.node, scope.outermost.owner)
    parts = [
        f"{place}: {source.line(line).strip()}",
        "",
        *_heat(source, scope, verdict),
        "",
        *_values(source, flow, line),
        "",
        *_rules(source, trace, line),
    ]
    for finding, reason in report.silenced:
        if _touches(source, finding.span.start, finding.span.end, line):
            parts.append(f"  {finding.code}: silenced ({reason})")
    return "\n".join(parts) + "\n"


def _neighbours(path: str) -> list[FileSummary]:
    """Summaries of the files around `path`, its callers among them: the nearest folders of its package first."""
    summaries = []
    for other in itertools.islice(_around(path), MANY):
        if os.path.abspath(other) != os.path.abspath(path):
            summary, _, _ = summarize_file(other)
            if summary is not None:
                summaries.append(summary)
    return summaries


def _around(path: str) -> Iterator[str]:
    """Python files of the package that holds `path`: its own folder, then what lies below each folder above it."""
    folder = os.path.dirname(os.path.abspath(path))
    done: set[str] = set()
    while True:
        for where, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__" and os.path.join(where, name) not in done)
            yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(".py") and where not in done)
        done.add(folder)
        parent = os.path.dirname(folder)
        if parent == folder or not os.path.isfile(os.path.join(folder, "__init__.py")):
            return
        folder = parent


def _scope_at(scopes: list[Scope], line: int) -> Scope | None:
    """The innermost function that holds the line."""
    best: Scope | None = None
    for scope in scopes:
        node = scope.node
        holds = node is not None and node.lineno <= line <= (node.end_lineno or node.lineno)
        if node is not None and holds and (best is None or best.node is None or node.lineno >= best.node.lineno):
            best = scope
    return best


def _heat(source: Source, scope: Scope | None, verdict: Verdict) -> list[str]:
    if scope is None:
        return ["Function: none; rules look at functions only"]
    word = {
        Heat.ROLE: "hot, by its role",
        Heat.REACHED: "hot, reached",
        Heat.NAMED: "perhaps hot, by its name",
        Heat.NOTHING: "not known to be hot",
        Heat.COLD: "cold",
    }
    lines = [f"Function: {scope.qualname} is {word[verdict.heat]}: {verdict.reason}"]
    if len(verdict.chain) > 1:
        lines.append(f"  chain: {' -> '.join(verdict.chain)}")
    for first, last in verdict.lines:
        lines.append(f"  only its loop in lines {_shown(source, first)} to {_shown(source, last)}")
    return lines


def _values(source: Source, flow: Flow, line: int) -> list[str]:
    """Each named or computed value on the line, outermost first."""
    rows: list[str] = []
    seen: set[str] = set()
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.expr) or node.lineno != line or isinstance(node, (ast.Constant, ast.Slice)):
            continue
        value = flow.seen.get(id(node), NOTHING)
        text = " ".join(source.segment(node).split())
        if text in seen or len(text) > 90:
            continue
        seen.add(text)
        rows.append(f"  {text}: {_value(source, value)}")
    return ["Values on the line:", *(rows or ["  none"])]


def _value(source: Source, value: Value) -> str:
    if value is NOTHING:
        return "nothing known"
    where = f", from {value.origin.why}" if value.origin.why else ""
    where += f" (line {_shown(source, value.origin.line)})" if value.origin.line else ""
    return f"{value}{where}{', by its name only' if value.by_name else ''}"


def _shown(source: Source, line: int) -> str:
    """The number of a line as people know it."""
    place = source.shown(source.line_starts[min(line, len(source.line_starts)) - 1])
    return f"{place.line} of cell {place.cell}" if place.cell else str(place.line)


def _rules(source: Source, trace: list[Decision], line: int) -> list[str]:
    rows = []
    for decision in trace:
        if _touches(source, decision.span.start, decision.span.end, line):
            cell = f"value {decision.level}, heat {decision.heat}" if decision.level is not None else f"heat {decision.heat}"
            outcome = (
                f"{decision.confidence} confidence, {decision.reason}" if decision.confidence is not None else f"silent: {decision.reason}"
            )
            rows.append(f"  {decision.code} {decision.name} [{cell}]: {outcome}")
    return ["Rules that looked:", *(dict.fromkeys(rows) or ["  none: nothing on this line is of a shape that a rule asks for"])]


def _touches(source: Source, start: int, end: int, line: int) -> bool:
    first = source.position(start).line
    last = source.position(max(start, end - 1)).line
    return first <= line <= last

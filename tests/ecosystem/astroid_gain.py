"""What does the astroid tier add, and what does it cost? `python -m tests.ecosystem.astroid_gain ROOT [--files N] [--seed S] [--show N]`

ROOT is an unpacked wheel. Files that mention torch are drawn with a fixed seed and checked with every rule

* each alone, by itself (`alone`); then as flake8 and pre-commit do, with astroid asked only for functions with a finding, which
  are looked at a second time (`+ look`); with astroid asked for everything (`+ values`), and for base classes too (`+ bases`);
  and, to compare, with the summaries of the modules that the file imports, without astroid (`+ summaries`);
* with the call graph of the whole tree (`tree`, `tree + look`, `tree + values`).

Each way runs in a process of its own. A *question* is an expression whose value a rule asked for; it is open if the answer was
"unknown". Findings are compared with those of `tree`, which is the best that is known of a file. Seconds are CPU seconds of
checking, without reading and parsing the sample; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from launchlint import registry
from launchlint.context import SiteContext
from launchlint.engine import Project, check_source, read_source, summarize_file, summarize_source
from launchlint.hot import FileSummary, Graph
from launchlint.model import Confidence
from launchlint.scan import worth_parsing
from launchlint.settings import Settings
from launchlint.source import Source, SourceError
from launchlint.values import modules
from launchlint.values.astroid_session import Bounds, Session
from launchlint.values.modules import Package, bases_of, make_outside, package_of
from launchlint.values.value import Kind, Value

WAYS = ("alone", "+ look", "+ values", "+ bases", "+ summaries", "tree", "tree + look", "tree + values")
_COMPARED = (
    ("alone", "+ look"), ("alone", "+ values"), ("+ values", "+ bases"), ("alone", "+ summaries"),
    ("tree", "tree + look"), ("tree", "tree + values"),
)  # fmt: skip
SETTINGS = Settings(min_confidence=Confidence.LOW, preview=True)
Place = tuple[str, int, int]  # path, line, column


@dataclass(slots=True)
class Outcome:
    """What one way gave."""

    asked: set[Place] = field(default_factory=set)
    unanswered: dict[Place, str] = field(default_factory=dict)  # with the text of the expression
    findings: set[tuple[str, str, int]] = field(default_factory=set)  # path, code, offset
    confidences: dict[tuple[str, str, int], Confidence] = field(default_factory=dict)
    seconds: float = 0.0
    slowest: float = 0.0
    megabytes: float = 0.0
    opened: int = 0  # modules that astroid built
    astroid_seconds: float = 0.0


def measure(way: str, paths: list[Path], root: Path) -> Outcome:
    """Check every file in one way."""
    outcome = Outcome()
    session = Session(Bounds(run_seconds=1e9))  # each file alone would be a run of its own
    tree = _whole_tree(root) if way.startswith("tree") else None
    with contextlib.ExitStack() as changes:
        changes.enter_context(_recorded(outcome))
        if way == "+ bases":
            changes.enter_context(_bases(session))
        if way.endswith("+ look"):
            changes.enter_context(mock.patch.object(modules, "_run", session))
        for path in paths:
            try:
                source = read_source(str(path))
                _ = source.tree
                _check(way, source, tree, session, outcome)
            except SourceError:
                continue
    outcome.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcome.opened, outcome.astroid_seconds = session.built, session.spent
    return outcome


def _check(way: str, source: Source, tree: Project | None, session: Session, outcome: Outcome) -> None:
    started = time.process_time()
    if tree is not None:
        project = tree
    else:
        summaries = [summarize_source(source, source.tree)]
        if way == "+ summaries":
            summaries += _imported(source.path, summaries[0])
        project = Project(summaries, SETTINGS)
    project.looks_closer = way.endswith("+ look")  # what the engine does for a few files
    own = project.values
    if way.endswith(("+ values", "+ bases")):
        project.values = make_outside(own, source.path, SETTINGS, session)  # type: ignore[assignment]
    try:
        report = check_source(source, registry.select(SETTINGS), SETTINGS, project)
    finally:
        project.values = own
    seconds = time.process_time() - started
    outcome.seconds += seconds
    outcome.slowest = max(outcome.slowest, seconds)
    for finding in report.findings:
        key = (source.path, finding.code, finding.span.start)
        outcome.findings.add(key)
        outcome.confidences[key] = finding.confidence


@contextlib.contextmanager
def _recorded(outcome: Outcome) -> Iterator[None]:
    """Note what rules ask for."""
    plain = SiteContext.value

    def value(self: SiteContext, expr: ast.expr) -> Value:
        found = plain(self, expr)
        place = (self.source.path, expr.lineno, expr.col_offset)
        outcome.asked.add(place)
        if found.kind is Kind.UNKNOWN and not isinstance(expr, ast.Constant):
            outcome.unanswered[place] = self.source.segment(expr)[:60].replace("\n", " ")
        return found

    with mock.patch.object(SiteContext, "value", value):
        yield


@contextlib.contextmanager
def _bases(session: Session) -> Iterator[None]:
    """The graph learns base classes that lie in other modules."""
    plain = Graph.base_names

    def base_names(self: Graph, place: tuple[int, int]) -> Iterator[tuple[str, str]]:
        yield from plain(self, place)
        file = self.files[place[0]]
        for name in bases_of(file.path, self.class_at(place).name, session):
            yield name.rpartition(".")[2], name

    with mock.patch.object(Graph, "base_names", base_names):
        yield


def _whole_tree(root: Path) -> Project:
    summaries = [summary for path in sorted(root.rglob("*.py")) if (summary := summarize_file(str(path))[0]) is not None]
    return Project(summaries, SETTINGS)


def _imported(path: str, summary: FileSummary) -> list[FileSummary]:
    """Summaries of the modules that a file imports, and of those that they do."""
    package = package_of(path)
    if package is None:
        return []
    files: dict[str, FileSummary] = {}
    pending = [(summary, 0)]
    while pending:
        current, depth = pending.pop(0)
        for target in current.imports.values():
            file = _file_of(package, target)
            if file is None or file == path or file in files:
                continue
            found, _, _ = summarize_file(file)
            if found is not None:
                files[file] = found
                if depth < 1:
                    pending.append((found, depth + 1))
    return list(files.values())


def _file_of(package: Package, target: str) -> str | None:
    place = package.split(target + ".x")  # the name may be a module or something in one
    return package.file_of(place[0]) if place is not None else None


def sample(root: Path, count: int, seed: int) -> list[Path]:
    """Files that a rule may have something to say about, drawn at random."""
    paths = [path for path in sorted(root.rglob("*.py")) if worth_parsing(path.read_bytes())]
    return sorted(random.Random(seed).sample(paths, min(count, len(paths))))


def in_process(work: Callable[[str, list[Path], Path], Outcome], way: str, paths: list[Path], root: Path) -> Outcome:
    """Run one way in a fresh process, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (way, paths, root))


def main(arguments: list[str]) -> int:
    """Print a table, and if asked what the tier changes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print up to N changes of each kind")
    options = parser.parse_args(arguments)
    paths = sample(options.root, options.files, options.seed)
    outcomes = {way: in_process(measure, way, paths, options.root) for way in WAYS}
    print(f"{len(paths)} files of {options.root.name}, seed {options.seed}")
    heads = ("asked", "open", "findings", "as tree", "missed", "extra", "CPU s", "slowest", "astroid s", "modules", "MB")
    print(f"{'way':14}" + "".join(f"{head:>10}" for head in heads))
    best = outcomes["tree"].findings
    for way, outcome in outcomes.items():
        found = outcome.findings
        counts = (len(outcome.asked), len(outcome.unanswered), len(found), len(found & best), len(best - found), len(found - best))
        spent = f"{outcome.seconds:10.2f}{outcome.slowest:10.2f}{outcome.astroid_seconds:10.2f}{outcome.opened:10}{outcome.megabytes:10.0f}"
        print(f"{way:14}" + "".join(f"{count:10}" for count in counts) + spent)
    for before, after in _COMPARED:
        _compare(before, after, outcomes[before], outcomes[after], options.show, options.root)
    return 0


def _compare(before: str, after: str, one: Outcome, other: Outcome, show: int, root: Path) -> None:
    resolved = sorted(place for place in one.unanswered if place in other.asked and place not in other.unanswered)
    added, removed = sorted(other.findings - one.findings), sorted(one.findings - other.findings)
    firmer = sum(other.confidences[key] > one.confidences[key] for key in one.findings & other.findings)
    weaker = sum(other.confidences[key] < one.confidences[key] for key in one.findings & other.findings)
    print(f"\n{before} -> {after}: {len(resolved)} of {len(one.unanswered)} open questions answered", end="; ")
    print(f"findings {len(added)} added, {len(removed)} removed, {firmer} firmer, {weaker} weaker")
    for place in resolved[:show]:
        print(f"  answered {Path(place[0]).relative_to(root)}:{place[1]}  {one.unanswered[place]}")
    for title, keys in (("added", added), ("removed", removed)):
        for path, code, offset in keys[:show]:
            line = read_source(path).text.count("\n", 0, offset) + 1
            print(f"  {title} {Path(path).relative_to(root)}:{line} {code}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

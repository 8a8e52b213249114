"""The command `check`: find the files, check them, fix them if asked, and say what there is to say."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from launchlint.settings import Settings
from launchlint.streams import Trouble, complain, put, put_bytes, wants_colour, write

if TYPE_CHECKING:
    import argparse

    from launchlint.engine import Report
    from launchlint.model import FileReport, Finding, Problem
    from launchlint.report import Result
    from launchlint.rule import Rule
    from launchlint.source import Source

CLEAN, FINDINGS, TROUBLE = 0, 1, 2
ROUNDS = 10  # runs over all files until fixing has nothing left to do
MANY_FILES = 200  # from here on a terminal gets a progress bar


def run(options: argparse.Namespace, settings_of: Callable[[Sequence[str]], Settings]) -> int:
    """Carry the command out and return the exit code; `settings_of` reads the settings for what is checked."""
    from launchlint import registry

    if options.diff and options.fix:
        raise Trouble("--fix changes files and --diff does not: choose one")
    stdin = options.paths == ["-"] or (not options.paths and options.stdin_filename is not None)
    if "-" in options.paths and not stdin:
        raise Trouble("standard input (`-`) cannot be checked together with files")
    name = options.stdin_filename or "-"
    settings = settings_of(([name] if options.stdin_filename else []) if stdin else options.paths)
    rules = registry.select(settings)
    if options.verbose:
        complain(f"settings: {settings.file or 'none found, defaults'}")
        complain(f"rules: {', '.join(rule.meta.code for rule in rules)}")
    run = _Check(options, settings, rules)
    return run.stdin(name) if stdin else run.files(options.paths)


class _Check:
    """One run of `check`."""

    def __init__(self, options: argparse.Namespace, settings: Settings, rules: tuple[Rule, ...]) -> None:
        self.options = options
        self.settings = settings
        self.rules = rules

    def files(self, paths: Sequence[str]) -> int:
        from launchlint import discover, report

        found = discover.find(paths, self.settings)
        if self.options.verbose:
            for path, reason in found.skipped:
                complain(f"skipped: {report.readable(path)}: {reason}")
        with _progress(len(found.files), self.options) as progress:
            checked = self._check(found.files, progress)
        fixing = _Fixing(self.settings, self.rules, self.options.diff)
        for _ in range(ROUNDS if self.settings.fix or self.options.diff else 0):
            if not fixing.round(checked.files):
                break
            checked = self._check(found.files)  # what is left stands on other lines, and other files may have become hot or cold
        result = self._gather(checked.files, checked.stats)
        result.problems[:0] = [*found.problems, *fixing.problems]
        result.fixed = fixing.fixed
        if not found.files and not found.problems:
            result.notes.append("no file given" if not paths else "no Python file to check there")
        return self._finish(result)

    def _check(self, paths: Sequence[str], progress: Callable[[int], None] | None = None) -> Report:
        from launchlint import engine

        return engine.check_files(paths, self.rules, self.settings, jobs=self.options.jobs or _cores(), progress=progress)

    def stdin(self, name: str) -> int:
        from launchlint import discover, engine
        from launchlint.model import FileReport, Problem
        from launchlint.source import Source, SourceError

        data = sys.stdin.buffer.read()
        if self.settings.force_exclude and name != "-" and discover.is_excluded(name, self.settings):
            return self._finish(self._gather([], {}))
        try:
            source = Source.from_bytes(name, data)
            report = engine.check_source(source, self.rules, self.settings)
        except SourceError as error:
            source = Source(name, "")
            report = FileReport(name, problems=[Problem(name, error.reason, error.line)])
        if not self.settings.fix and not self.options.diff:
            return self._finish(self._gather([report], {}, {name: source}))
        return self._finish_fixed_stdin(source, report, data)

    def _finish_fixed_stdin(self, source: Source, report: FileReport, data: bytes) -> int:
        """Standard input cannot be changed: the fixed text goes to standard output and the report to standard error."""
        from launchlint import engine

        fixing = _Fixing(self.settings, self.rules, self.options.diff)
        fixed = fixing.fix(source, report)
        if self.settings.fix and not self.options.diff:
            put_bytes(fixed.encode(fixed.text) if fixed.text != source.text else data)
            if fixed.text != source.text:
                report = engine.check_source(fixed, self.rules, self.settings)
        result = self._gather([report], {}, {source.path: fixed})
        result.problems += fixing.problems
        result.fixed = fixing.fixed
        return self._finish(result, sys.stderr)

    def _gather(self, files: Sequence[FileReport], stats: dict[str, object], sources: dict[str, Source] | None = None) -> Result:
        from launchlint import report

        result = report.gather(files, self.settings, stats, sources)
        result.statistics = self.options.statistics
        result.quiet = self.options.quiet
        return result

    def _finish(self, result: Result, stream: TextIO | None = None) -> int:
        from launchlint import report

        stream = stream or (sys.stderr if self.options.diff else sys.stdout)  # with --diff, only the patch goes to standard output
        result.colour = self.options.output is None and wants_colour(self.options, stream)
        shape = "concise" if self.options.diff and self.options.format == "text" else self.options.format  # the patch says the rest
        text = report.render(shape, result)
        if self.options.output:
            write(self.options.output, text)
        else:
            put(text, stream)
        if result.problems:
            return TROUBLE
        fixed = bool(result.fixed) and self.options.exit_non_zero_on_fix
        return FINDINGS if (result.entries or fixed) and not self.options.exit_zero else CLEAN


class _Fixing:
    """Applies fixes, or with `diff` prints what they would change."""

    def __init__(self, settings: Settings, rules: tuple[Rule, ...], diff: bool) -> None:
        from launchlint.model import Applicability

        self.settings = settings
        self.rules = rules
        self.diff = diff
        self.floor = Applicability.UNSAFE if settings.unsafe_fixes else Applicability.SAFE
        self.problems: list[Problem] = []
        self.fixed: Counter[str] = Counter()
        self.failed: set[str] = set()

    def round(self, files: Sequence[FileReport]) -> bool:
        """Fix every file once; True if a file on disk has changed."""
        changed = [self._file(report) for report in files if any(finding.fix for finding in report.findings)]
        return any(changed)

    def _file(self, report: FileReport) -> bool:
        from launchlint import fixes
        from launchlint.model import Problem
        from launchlint.report import read

        if report.path in self.failed:
            return False
        source = read(report.path)
        already = self.fixed.copy()
        fixed = self.fix(source, report)
        if fixed.text == source.text:
            return False
        try:
            fixes.write(report.path, source, fixed.text)
        except fixes.WriteError as error:
            self.problems.append(Problem(report.path, str(error)))
            self.failed.add(report.path)
            self.fixed = already
            return False
        return True

    def fix(self, source: Source, report: FileReport) -> Source:
        """The source with its fixes; with `diff` the patch is printed, and the source returned is the one that came."""
        from dataclasses import replace

        from launchlint import fixes

        done = fixes.fix_source(source, lambda current: self._check(current, source, report), self.floor, self.settings)
        if done.problems:
            self.problems += done.problems
            self.failed.add(source.path)
        if self.diff:
            put_bytes(fixes.unified_diff(source, done.text))
            return source
        self.fixed.update(finding.code for finding in done.applied)
        return replace(source, text=done.text, given_tree=None)

    def _check(self, current: Source, source: Source, report: FileReport) -> Sequence[Finding]:
        """What is found in a round; the first round takes what the run has already found, which saw the whole tree."""
        from launchlint import engine

        if current.text == source.text:
            return report.findings
        return engine.check_source(current, self.rules, self.settings).findings


@contextmanager
def _progress(total: int, options: argparse.Namespace) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on standard error where a person waits for many files; otherwise nothing."""
    if total < MANY_FILES or options.quiet or not sys.stderr.isatty() or os.environ.get("CI"):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking", total=total)
        yield lambda done: bar.advance(task, done)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

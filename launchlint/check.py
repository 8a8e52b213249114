"""The command `check`: find the files, check them, fix them if asked, and say what there is to say."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from launchlint.baseline import FILE_NAME, Baseline, Key, keys_of, load
from launchlint.settings import Settings
from launchlint.streams import Trouble, complain, put, put_bytes, wants_colour, write

if TYPE_CHECKING:
    import argparse

    from launchlint.cache import Cache
    from launchlint.changes import Changes
    from launchlint.engine import Report
    from launchlint.model import FileReport, Finding, Problem
    from launchlint.report import Result
    from launchlint.rule import Rule
    from launchlint.source import Source
    from launchlint.spent import Spent

CLEAN, FINDINGS, TROUBLE = 0, 1, 2
ROUNDS = 10  # runs over all files until fixing has nothing left to do
MANY_FILES = 200  # from here on a terminal gets a progress bar


def run(options: argparse.Namespace, settings_of: Callable[[Sequence[str]], Settings]) -> int:
    """Carry the command out and return the exit code; `settings_of` reads the settings for what is checked."""
    from launchlint import registry

    if options.diff and options.fix:
        raise Trouble("--fix changes files and --diff does not: choose one")
    if options.since is not None and not options.paths:
        options.paths = [os.curdir]
    outputs = outputs_of(options)
    stdin = options.paths == ["-"] or (not options.paths and options.stdin_filename is not None)
    if "-" in options.paths and not stdin:
        raise Trouble("standard input (`-`) cannot be checked together with files")
    if stdin and (options.since is not None or options.diff_file is not None):
        raise Trouble("--since and --diff-file speak of files, not of standard input")
    name = options.stdin_filename or "-"
    settings = settings_of(([name] if options.stdin_filename else []) if stdin else options.paths)
    rules = registry.select(settings)
    if options.verbose:
        complain(f"settings: {settings.file or 'none found, defaults'}")
        complain(f"rules: {', '.join(rule.meta.code for rule in rules)}")
    if options.diff_file is not None and settings.fix:
        raise Trouble("--fix moves the lines that --diff-file speaks of: use --since, or --diff instead of --fix")
    if options.trace is not None and (stdin or settings.fix):
        raise Trouble("--trace speaks of lines of files as they are: neither of standard input nor of what --fix changes")
    run = _Check(options, settings, rules, outputs)
    return run.stdin(name) if stdin else run.files(options.paths)


class Linter:
    """Settings, rules, known findings and changed lines of a run: everything that both checking and fixing ask.

    `changes` is asked anew for each run over files, since fixing changes lines.
    """

    def __init__(
        self,
        settings: Settings,
        rules: tuple[Rule, ...],
        jobs: int,
        baseline: Baseline | None,
        changes: Callable[[], Changes] | None = None,
        cached: bool = False,
        timed: bool = False,
    ) -> None:
        self.settings = settings
        self.rules = rules
        self.jobs = jobs
        self.baseline = baseline
        self.changes = changes
        self.cached = cached
        self.timed = timed
        self.gone = 0  # entries of the baseline that the last run over files did not find any more

    def files(self, paths: Sequence[str], progress: Callable[[int], None] | None = None) -> Report:
        """Check files, each in the light of all."""
        from launchlint import engine
        from launchlint.report import read

        changes = self.changes() if self.changes else None
        kept = self._cache() if self.cached and len(paths) >= engine.FEW_FILES else None
        report = engine.check_files(paths, self.rules, self.settings, jobs=self.jobs, progress=progress, cache=kept, timed=self.timed)
        if self.baseline is None and changes is None:
            return report
        seen: Counter[Key] = Counter()
        for number, file in enumerate(report.files):
            if file.findings:
                source = read(file.path)
                seen.update(keys_of(file, source, self.settings))
                report.files[number] = self._new(file, source, changes)
        if self.baseline is not None:
            self.gone = self.baseline.gone(seen, paths, self.settings).total()
        return report

    def _cache(self) -> Cache | None:
        from launchlint.cache import open_cache

        return open_cache(self.settings, self.rules)

    def _new(self, file: FileReport, source: Source, changes: Changes | None) -> FileReport:
        """The report without what is known, and without what has not changed."""
        from dataclasses import replace

        if self.baseline is not None:
            file = self.baseline.apply(file, source, self.settings)
        if changes is None:
            return file
        kept, left = changes.split(source, file.findings)
        return replace(file, findings=kept, silenced=[*file.silenced, *((finding, changes.option) for finding in left)])

    def source(self, source: Source, spent: Spent | None = None) -> FileReport:
        """Check one text."""
        from launchlint import engine

        report = engine.check_source(source, self.rules, self.settings, spent=spent)
        return report if self.baseline is None else self.baseline.apply(report, source, self.settings)


class _Check:
    """One run of `check`."""

    def __init__(self, options: argparse.Namespace, settings: Settings, rules: tuple[Rule, ...], outputs: Sequence[Output]) -> None:
        self.options = options
        self.settings = settings
        self.outputs = outputs
        jobs, known = options.jobs or _cores(), _baseline(options, settings)
        self.linter = Linter(settings, rules, jobs, known, _changes(options), not options.no_cache, options.statistics)
        self.fixing = settings.fix or options.diff

    def files(self, paths: Sequence[str]) -> int:
        from launchlint import discover, report

        found = discover.find(paths, self.settings)
        if self.options.verbose:
            for path, reason in found.skipped:
                complain(f"skipped: {report.readable(path)}: {reason}")
        with _progress(len(found.files), self.options) as progress:
            checked = self.linter.files(found.files, progress)
        fixing = _Fixing(self.linter, self.options.diff)
        for _ in range(ROUNDS if self.fixing else 0):
            if not fixing.round(checked.files):
                break
            checked = self.linter.files(found.files)  # what is left stands on other lines, and other files may have become hot or cold
        result = self._gather(checked.files, checked.stats)
        if self.options.trace is not None:
            self._measure(result, found.files)
        result.problems[:0] = [*found.problems, *fixing.problems]
        result.fixed = fixing.fixed
        if self.linter.gone:
            result.notes.append(f"{report.plural(self.linter.gone, 'known finding')} gone: `launchlint baseline prune` takes them out")
        if not found.files and not found.problems:
            result.notes.append("no file given" if not paths else "no Python file to check there")
        return self._finish(result)

    def stdin(self, name: str) -> int:
        from launchlint import discover
        from launchlint.model import FileReport, Problem
        from launchlint.source import Source, SourceError
        from launchlint.spent import Spent

        data = sys.stdin.buffer.read()
        source = Source(name, "")
        spent = Spent() if self.options.statistics else None
        if self.settings.force_exclude and name != "-" and discover.is_excluded(name, self.settings):
            report = FileReport(name)
        else:
            try:
                source = Source.from_bytes(name, data)
                report = self.linter.source(source, spent)
            except SourceError as error:
                report = FileReport(name, problems=[Problem(name, error.reason, error.line)])
        if not self.fixing:
            return self._finish(self._gather([report], spent.stats() if spent is not None else {}, {name: source}))
        return self._finish_fixed_stdin(source, report, data, spent)

    def _finish_fixed_stdin(self, source: Source, report: FileReport, data: bytes, spent: Spent | None) -> int:
        """Standard input cannot be changed: the fixed text goes to standard output and the report to standard error."""
        fixing = _Fixing(self.linter, self.options.diff)
        fixed = fixing.fix(source, report)
        if not self.options.diff:
            changed = fixed.text != source.text
            put_bytes(fixed.encode(fixed.text) if changed else data)
            report = self.linter.source(fixed, spent) if changed else report
        result = self._gather([report], spent.stats() if spent is not None else {}, {source.path: fixed})
        result.problems += fixing.problems
        result.fixed = fixing.fixed
        return self._finish(result, sys.stderr)

    def _measure(self, result: Result, files: Sequence[str]) -> None:
        """Put what a recording says beside each finding, the most expensive first."""
        from launchlint.report import plural, readable
        from launchlint.trace import events, join

        try:
            result.entries, recording = join.measured(self.options.trace, result.entries, files)
        except events.TraceError as error:
            raise Trouble(readable(str(error))) from None
        result.notes += join.notes(recording)
        missed = sum(not entry.measured.ran for entry in result.entries if entry.measured)
        if missed:
            result.notes.append(f"the recording never reached {plural(missed, 'finding')}, shown last")

    def _gather(self, files: Sequence[FileReport], stats: dict[str, object], sources: dict[str, Source] | None = None) -> Result:
        from launchlint import report

        result = report.gather(files, self.settings, stats, sources)
        result.statistics = self.options.statistics
        result.quiet = self.options.quiet
        return result

    def _finish(self, result: Result, stream: TextIO | None = None) -> int:
        from launchlint import report

        stream = stream or (sys.stderr if self.options.diff else sys.stdout)  # with --diff, only the patch goes to standard output
        for output in self.outputs:
            result.colour = not output.path and wants_colour(self.options, stream)
            shape = "concise" if self.options.diff and output.format == "text" else output.format  # the patch says the rest
            text = report.render(shape, result)
            if output.path:
                write(output.path, text)
            else:
                put(text, stream)
        if result.problems:
            return TROUBLE
        fixed = bool(result.fixed) and self.options.exit_non_zero_on_fix
        return FINDINGS if (result.entries or fixed) and not self.options.exit_zero else CLEAN


class _Fixing:
    """Applies fixes, or with `diff` prints what they would change."""

    def __init__(self, linter: Linter, diff: bool) -> None:
        from launchlint.model import Applicability

        self.linter = linter
        self.diff = diff
        self.floor = Applicability.UNSAFE if linter.settings.unsafe_fixes else Applicability.SAFE
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

        done = fixes.fix_source(source, lambda current: self._check(current, source, report), self.floor, self.linter.settings)
        if done.problems:
            self.problems += done.problems
            self.failed.add(source.path)
        if self.diff:
            put_bytes(fixes.unified_diff(source, done.text))
            return source
        self.fixed.update(finding.code for finding in done.applied)
        return replace(source, text=done.text, given_tree=None)

    def _check(self, current: Source, source: Source, report: FileReport) -> Sequence[Finding]:
        """What is found in a round; the first round takes what the run has already found, which saw the whole tree.

        Where only changed lines count there is no second round: the lines have moved, and the next run over the files sees them.
        """
        if current.text == source.text:
            return report.findings
        return [] if self.linter.changes else self.linter.source(current).findings


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


@dataclass(frozen=True, slots=True)
class Output:
    """A format and the file it goes to; empty for standard output."""

    format: str
    path: str = ""


def outputs_of(options: argparse.Namespace) -> list[Output]:
    """What `--format NAME[=FILE]` and `--output FILE` ask for; raise Trouble where two outputs would end in one place."""
    from launchlint.report import LINES

    words = options.format or ["text"]
    outputs = [Output(name, path or options.output or "") for name, _, path in (word.partition("=") for word in words)]
    for output in outputs:
        others = [other for other in outputs if other.path == output.path and other is not output]
        mixed = [each.format for each in (output, *others) if each.path or each.format not in LINES]
        if others and mixed:
            where = output.path or "standard output"
            raise Trouble(f"{output.format} and {others[0].format} both go to {where}: name a file, as in --format {mixed[0]}=FILE")
    return outputs


def _changes(options: argparse.Namespace) -> Callable[[], Changes] | None:
    if options.since is None and options.diff_file is None:
        return None
    from launchlint import changes
    from launchlint.settings import start_of

    folder = start_of(options.paths)
    if not os.path.isdir(folder):
        folder = os.curdir  # what was named is not there, which discovery will tell
    if options.since is not None:
        return lambda: changes.since(options.since, folder)
    patch = changes.of_patch(options.diff_file, folder)
    return lambda: patch


def _baseline(options: argparse.Namespace, settings: Settings) -> Baseline | None:
    if options.no_baseline:
        return None
    if options.baseline:
        return load(options.baseline)
    return load(os.path.join(settings.root, settings.baseline)) if settings.baseline else None


def run_baseline(options: argparse.Namespace, settings_of: Callable[[Sequence[str]], Settings]) -> int:
    """Carry out `baseline write`, `update` or `prune` and return the exit code."""
    from launchlint import discover, registry
    from launchlint.report import plural, read, readable

    settings = settings_of(options.paths)
    path = options.baseline or os.path.join(settings.root, settings.baseline or FILE_NAME)
    if options.action == "write" and os.path.exists(path):
        raise Trouble(f"{path}: exists; `launchlint baseline update` takes what is new into it")
    old = Baseline(path) if options.action == "write" else load(path)
    found = discover.find(options.paths, settings)
    checked = Linter(settings, registry.select(settings), _cores(), None).files(found.files)
    seen: Counter[Key] = Counter()
    for file in checked.files:
        seen.update(keys_of(file, read(file.path), settings) if file.findings else ())
    gone = old.gone(seen, found.files, settings)
    new = Baseline(path, old.known - gone if options.action == "prune" else (old.known - gone) | seen)
    try:
        new.write()
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}") from error
    added = new.known - old.known
    put(f"{readable(path)}: {plural(new.known.total(), 'known finding')}, {added.total()} added, {gone.total()} gone\n")
    problems = [*found.problems, *(problem for file in checked.files for problem in file.problems)]
    for problem in problems:
        complain(f"error: {readable(str(problem))}")
    return TROUBLE if problems else CLEAN


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

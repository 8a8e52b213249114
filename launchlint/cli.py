"""The command line.

Exit codes: 0 nothing to report, 1 findings, 2 wrong usage or settings, a file that could not be checked, or a fault of
launchlint itself (2 also when there are findings). Only the standard library's cheapest modules are imported before it
is known what is asked for, since a hook pays for every import on every commit.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import argparse

    from launchlint.model import FileReport, Finding, Problem
    from launchlint.report import Result
    from launchlint.rule import Rule
    from launchlint.settings import Settings
    from launchlint.source import Source

CLEAN, FINDINGS, TROUBLE = 0, 1, 2
INTERRUPTED = 130
MANY_FILES = 200  # from here on a terminal gets a progress bar
COMMANDS = ("check", "rule", "explain", "rules", "why", "settings", "audit")


class Trouble(Exception):
    """A thing that ends the run with one line and exit code 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows ASCII only is no reason to die
    if arguments in (["--version"], ["-V"]):
        from launchlint import __version__

        return _print(f"launchlint {__version__}\n")
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Trouble as error:
        _complain(f"launchlint: {error}")
        return TROUBLE
    except Exception as error:  # a fault of ours must not look like a clean run, nor like findings
        _complain(f"launchlint: internal error: {type(error).__name__}: {error}; --verbose shows where, please report it")
        if "--verbose" in arguments:
            import traceback

            traceback.print_exc()
        return TROUBLE


def _run(arguments: list[str]) -> int:
    from launchlint.registry import RegistryError
    from launchlint.settings import SettingsError

    options = _parser(arguments).parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.run
    try:
        return command(options)
    except (SettingsError, RegistryError) as error:
        raise Trouble(str(error)) from error


# ---------------------------------------------------------------- options


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="launchlint",
        description="Find the Python that starves a GPU: loops of tiny launches, uploads and reads that make the host wait.",
        epilog="exit codes: 0 nothing to report, 1 findings, 2 usage, settings, a file that could not be checked",
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=argparse.ArgumentParser)
    _add_check(commands)
    for name in ("rule", "explain"):
        rule = commands.add_parser(name, help="print the page of a rule" if name == "rule" else "the same as rule")
        rule.add_argument("rule", metavar="CODE", help="code or name of a rule")
        _add_colour(rule)
        rule.set_defaults(run=_rule)
    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument("--format", choices=("text", "json"), default="text")
    rules.set_defaults(run=_rules)
    why = commands.add_parser("why", help="say why a line is reported or not")
    why.add_argument("place", metavar="FILE:LINE")
    _add_settings(why)
    why.set_defaults(run=_why)
    shown = commands.add_parser("settings", help="show the settings in force and where each comes from")
    shown.add_argument("paths", nargs="*", metavar="PATH", help="files or folders whose settings to show (default: here)")
    _add_settings(shown)
    shown.set_defaults(run=_settings)
    if next((word for word in arguments if not word.startswith("-")), "") == "audit":
        from launchlint.audit import command

        command.add_parser(commands)
    else:
        commands.add_parser("audit", help="count launches, waits and copies of a function without a GPU (needs torch)")
    _check_command(parser, arguments)
    parser.set_defaults(run=lambda options: _no_command(parser, options))
    return parser


def _check_command(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Say what was meant where the first word is no command."""
    word = next((word for word in arguments if not word.startswith("-")), None)
    if word is None or word in COMMANDS:
        return
    if os.path.exists(word) or word.endswith(".py"):
        parser.error(f"{word!r} is no command, did you mean `launchlint check {word}`?")
    from launchlint.settings import did_you_mean

    parser.error(f"unknown command {word!r}{did_you_mean(word, COMMANDS)} (there are: {', '.join(COMMANDS)})")


def _no_command(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.version:
        return main(["--version"])
    parser.print_help(sys.stderr)
    return TROUBLE


def _add_check(commands: Any) -> None:
    from argparse import BooleanOptionalAction as Switch

    from launchlint.report import formats

    check = commands.add_parser("check", help="check files and folders")
    check.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; `-` reads standard input")
    _add_settings(check)
    fixes = check.add_argument_group("fixing")
    fixes.add_argument("--fix", action=Switch, help="apply safe fixes")
    fixes.add_argument("--unsafe-fixes", action=Switch, help="with --fix or --diff: also those that may change timing, exceptions or memory")
    fixes.add_argument("--diff", action="store_true", help="print what --fix would change as a patch, and change nothing")
    fixes.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 if something was fixed, even if nothing is left")
    output = check.add_argument_group("output")
    output.add_argument("--format", choices=formats(), default="text", metavar="FORMAT", help=f"one of {', '.join(formats())} (default: text)")
    output.add_argument("--output", metavar="FILE", help="write the findings to FILE")
    output.add_argument("--statistics", action="store_true", help="count findings by rule and show what the run cost")
    output.add_argument("--exit-zero", action="store_true", help="exit 0 where it would be 1")
    output.add_argument("-q", "--quiet", action="store_true", help="print findings and errors only")
    output.add_argument("--verbose", action="store_true", help="say which settings and files are used")
    _add_colour(output)
    files = check.add_argument_group("files")
    files.add_argument("--force-exclude", action=Switch, help="leave out excluded files also where they are named")
    files.add_argument("--stdin-filename", metavar="NAME", help="the name that standard input is reported and configured under")
    files.add_argument("-j", "--jobs", type=_jobs, metavar="N", help="number of processes (default: one a core for many files)")
    files.add_argument("--no-cache", action="store_true", help="neither read nor write a cache")
    check.set_defaults(run=_check)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from argparse import BooleanOptionalAction as Switch

    group = parser.add_argument_group("rules and settings")
    for name, help_text in (
        ("select", "only these rules: codes, beginnings of codes, or names, separated by commas"),
        ("extend-select", "these rules too"),
        ("ignore", "not these rules"),
    ):
        group.add_argument(f"--{name}", action="append", metavar="RULES", help=help_text)
    group.add_argument("--preview", action=Switch, help="also rules that are still on trial")
    group.add_argument("--min-confidence", metavar="LEVEL", help="low, medium or high (default: medium)")
    group.add_argument("--config", metavar="FILE", help="read settings from FILE")
    group.add_argument("--isolated", action="store_true", help="read no settings file")


def _add_colour(parser: Any) -> None:
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: on a terminal)")


def _jobs(word: str) -> int:
    import argparse

    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"a number of processes from 1 on, not {word!r}")
    return int(word)


def _settings_of(options: argparse.Namespace, paths: Sequence[str]) -> Settings:
    """Settings from the file nearest to what is checked, with the options laid over them."""
    from launchlint import settings as module

    settings = module.load(module.start_of(paths), options.config, options.isolated)
    for name in ("select", "extend_select", "ignore"):
        if (given := getattr(options, name)) is not None:
            words = tuple(word for item in given for word in item.replace(",", " ").split())
            settings = settings.but(f"--{module.kebab(name)}", **{name: words})
    for name in ("preview", "fix", "unsafe_fixes", "force_exclude"):
        if (switch := getattr(options, name, None)) is not None:
            settings = settings.but(f"--{'' if switch else 'no-'}{module.kebab(name)}", **{name: switch})
    if options.min_confidence is not None:
        level = module.convert("min_confidence", options.min_confidence, "--min-confidence", "the level")
        settings = settings.but("--min-confidence", min_confidence=level)
    return settings


# ---------------------------------------------------------------- check


def _check(options: argparse.Namespace) -> int:
    from launchlint import registry

    if options.diff and options.fix:
        raise Trouble("--fix changes files and --diff does not: choose one")
    stdin = options.paths == ["-"] or (not options.paths and options.stdin_filename is not None)
    if "-" in options.paths and not stdin:
        raise Trouble("standard input (`-`) cannot be checked together with files")
    name = options.stdin_filename or "-"
    settings = _settings_of(options, ([name] if options.stdin_filename else []) if stdin else options.paths)
    rules = registry.select(settings)
    if options.verbose:
        _complain(f"settings: {settings.file or 'none found, defaults'}")
        _complain(f"rules: {', '.join(rule.meta.code for rule in rules)}")
    run = _Check(options, settings, rules)
    return run.stdin(name) if stdin else run.files(options.paths)


class _Check:
    """One run of `check`."""

    def __init__(self, options: argparse.Namespace, settings: Settings, rules: tuple[Rule, ...]) -> None:
        self.options = options
        self.settings = settings
        self.rules = rules

    def files(self, paths: Sequence[str]) -> int:
        from launchlint import discover, engine, report

        found = discover.find(paths, self.settings)
        if self.options.verbose:
            for path, reason in found.skipped:
                _complain(f"skipped: {report.readable(path)}: {reason}")
        with _progress(len(found.files), self.options) as progress:
            checked = engine.check_files(found.files, self.rules, self.settings, jobs=self.options.jobs or _cores(), progress=progress)
        fixing = self._fix(checked.files)
        if fixing.changed:  # what is left may stand on other lines, and a fix may have been of use to another finding
            checked = engine.check_files(found.files, self.rules, self.settings, jobs=self.options.jobs or _cores())
        result = self._gather(checked.files, checked.stats)
        result.problems[:0] = [*found.problems, *fixing.problems]
        result.fixed = fixing.fixed
        if not found.files and not found.problems:
            result.notes.append("no file given" if not paths else "no Python file to check there")
        return self._finish(result)

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
            _print_bytes(fixed.encode(fixed.text) if fixed.text != source.text else data)
            if fixed.text != source.text:
                report = engine.check_source(fixed, self.rules, self.settings)
        result = self._gather([report], {}, {source.path: fixed})
        result.problems += fixing.problems
        result.fixed = fixing.fixed
        return self._finish(result, sys.stderr)

    def _fix(self, files: Sequence[FileReport]) -> _Fixing:
        fixing = _Fixing(self.settings, self.rules, self.options.diff)
        if self.settings.fix or self.options.diff:
            for report in files:
                fixing.file(report)
        return fixing

    def _gather(self, files: Sequence[FileReport], stats: dict[str, object], sources: dict[str, Source] | None = None) -> Result:
        from launchlint import report

        result = report.gather(files, self.settings, stats, sources)
        result.statistics = self.options.statistics
        result.quiet = self.options.quiet
        return result

    def _finish(self, result: Result, stream: TextIO | None = None) -> int:
        from launchlint import report

        stream = stream or (sys.stderr if self.options.diff else sys.stdout)  # with --diff, only the patch goes to standard output
        result.colour = self.options.output is None and _colour(self.options, stream)
        text = report.render(self.options.format, result)
        if self.options.output:
            _write(self.options.output, text)
        else:
            _print(text, stream)
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
        self.changed = False

    def file(self, report: FileReport) -> None:
        """Fix one file on disk."""
        from launchlint import fixes
        from launchlint.model import Problem
        from launchlint.report import read

        if not any(finding.fix for finding in report.findings):
            return
        source = read(report.path)
        fixed = self.fix(source, report)
        if fixed.text == source.text or self.diff:
            return
        try:
            fixes.write(report.path, source, fixed.text)
            self.changed = True
        except fixes.WriteError as error:
            self.problems.append(Problem(report.path, str(error)))

    def fix(self, source: Source, report: FileReport) -> Source:
        """The source with its fixes; with `diff` the patch is printed, and the source returned is the one that came."""
        from dataclasses import replace

        from launchlint import fixes

        done = fixes.fix_source(source, lambda current: self._check(current, source, report), self.floor, self.settings)
        self.problems += done.problems
        if self.diff:
            _print_bytes(fixes.unified_diff(source, done.text))
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
        yield lambda done: bar.update(task, completed=done)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---------------------------------------------------------------- other commands


def _rule(options: argparse.Namespace) -> int:
    from launchlint import registry
    from launchlint.settings import did_you_mean

    rule = registry.find(options.rule)
    if rule is None:
        metas = [rule.meta for rule in registry.load().values()]
        near = did_you_mean(options.rule, [word for meta in metas for word in (meta.code.lower(), meta.name)])
        raise Trouble(f"no rule has the code or name {options.rule!r}{near}")
    page = registry.page(rule.meta) or f"# {rule.meta.code} {rule.meta.name}\n\n{rule.meta.summary}\n"
    if not _colour(options, sys.stdout):
        return _print(page)
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(force_terminal=True)
    with console.capture() as capture:
        console.print(Markdown(page))
    return _print(capture.get())


def _rules(options: argparse.Namespace) -> int:
    from launchlint import registry

    metas = [rule.meta for rule in registry.load().values()]
    if options.format == "json":
        import json

        listed = [
            {
                "code": meta.code,
                "name": meta.name,
                "summary": meta.summary,
                "group": meta.group,
                "since": meta.since,
                "fix": str(meta.fix) if meta.fix else None,
                "preview": meta.preview,
                "opt_in": meta.opt_in,
                "url": f"rules/{registry.folder(meta)}/README.md",
            }
            for meta in metas
        ]
        return _print(json.dumps(listed, indent=2) + "\n")
    width = max(len(meta.name) for meta in metas)
    lines = []
    for meta in metas:
        marks = [f"fix: {meta.fix}"] * (meta.fix is not None) + ["preview"] * meta.preview + ["opt-in"] * meta.opt_in
        tail = f" ({', '.join(marks)})" if marks else ""
        lines.append(f"{meta.code}  {meta.name:{width}}  {meta.summary}{tail}")
    return _print("\n".join(lines) + "\n")


def _why(options: argparse.Namespace) -> int:
    path, colon, line = options.place.rpartition(":")
    if not colon or not line.isdecimal() or int(line) < 1:
        raise Trouble(f"{options.place!r} is not FILE:LINE, for example model.py:12")
    if not os.path.isfile(path):
        raise Trouble(f"{path}: {'not an ordinary file' if os.path.exists(path) else 'no such file'}")
    from launchlint import why
    from launchlint.source import SourceError

    try:
        return _print(why.explain(path, int(line), _settings_of(options, [path])).rstrip("\n") + "\n")
    except (SourceError, OSError) as error:
        raise Trouble(f"{path}: {error}") from error


def _settings(options: argparse.Namespace) -> int:
    import dataclasses

    from launchlint import registry
    from launchlint.settings import INTERNAL, kebab

    settings = _settings_of(options, options.paths)
    registry.select(settings)  # complains about unknown codes
    given = dict(settings.given)
    lines = [f"# from {settings.file or 'no settings file'}; globs are relative to {settings.root}"]
    for field in dataclasses.fields(settings):
        if field.name not in INTERNAL:
            lines.append(f"{kebab(field.name)} = {_toml_value(getattr(settings, field.name))}  # {given.get(field.name, 'default')}")
    for override in settings.overrides:
        lines += ["", "[[overrides]]", f"files = {_toml_value(override.files)}"]
        lines += [f"{kebab(name)} = {_toml_value(value)}" for name, value in override.changes]
    return _print("\n".join(lines) + "\n")


def _toml_value(value: Any) -> str:
    import json
    from enum import IntEnum

    match value:
        case bool():
            return str(value).lower()
        case IntEnum():
            return json.dumps(str(value))
        case (tuple(), *_):
            return "{ " + ", ".join(f"{json.dumps(key)} = {_toml_value(items)}" for key, items in value) + " }"
        case tuple():
            return "[" + ", ".join(json.dumps(item, ensure_ascii=False) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- streams


def _print(text: str, stream: TextIO | None = None) -> int:
    """Write to standard output; a reader that has gone (`| head`) is no error and no traceback."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return CLEAN


def _print_bytes(data: bytes) -> None:
    """Write to standard output as it is: patches and fixed files keep their encoding and line ends."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(line: str) -> None:
    try:
        print(line, file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}") from error


def _colour(options: argparse.Namespace, stream: TextIO) -> bool:
    if options.color != "auto":
        return bool(options.color == "always")
    if os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"

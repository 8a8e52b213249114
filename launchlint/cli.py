"""The command line.

Exit codes: 0 nothing to report, 1 findings, 2 wrong usage or settings, a file that could not be checked, or a fault of
launchlint itself (2 also when there are findings). Only the standard library's cheapest modules are imported before it
is known what is asked for, since a hook pays for every import on every commit.
"""

from __future__ import annotations

import os
import sys

from launchlint.streams import Trouble, complain, put, wants_colour

TYPE_CHECKING = False  # `typing` alone costs as much as the rest of `launchlint --version`
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any

    from launchlint.settings import Settings

COMMANDS = ("check", "baseline", "rule", "explain", "rules", "why", "settings", "cache", "completion", "audit", "server", "trace")
EPILOG = """\
exit codes:
  0  nothing to report
  1  findings
  2  wrong usage or settings, a file that could not be checked, or a fault of launchlint

settings:
  [tool.launchlint] of the nearest pyproject.toml that has it, or launchlint.toml; `launchlint settings` shows what is in force

environment:
  NO_COLOR            no colours
  CI                  no progress bar
  PRE_COMMIT_FROM_REF, GITHUB_BASE_REF, CI_MERGE_REQUEST_DIFF_BASE_SHA
                      what `check --since auto` compares with, in this order, before the upstream branch and origin/HEAD

`launchlint COMMAND --help` says more about a command.
"""
CHECK_EPILOG = """\
examples:
  launchlint check src                                   all of a folder
  launchlint check src --diff | git apply                what --fix would do, as a patch
  launchlint check --since origin/main                   only what this branch changes
  git diff | launchlint check src --diff-file -          only what a patch adds
  launchlint check src --format github --format sarif=launchlint.sarif
  launchlint check --stdin-filename src/a.py - <src/a.py
"""
TROUBLE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows ASCII only is no reason to die
    if arguments in (["--version"], ["-V"]):
        from launchlint import __version__

        return put(f"launchlint {__version__}\n")
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Trouble as error:
        complain(f"launchlint: {error}")
        return TROUBLE
    except Exception as error:  # a fault of ours must not look like a clean run, nor like findings
        complain(f"launchlint: internal error: {type(error).__name__}: {error}; --verbose shows where, please report it")
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
        usage="launchlint COMMAND [OPTIONS]",
        description="Find the Python that starves a GPU: loops of tiny launches, uploads and reads that make the host wait.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    # Without `prog`, argparse makes it from the usage line, for which it asks the size of the terminal and imports half a dozen modules.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="launchlint", parser_class=argparse.ArgumentParser)
    word = next((word for word in arguments if not word.startswith("-")), "")
    for name in (word,) if word in COMMANDS and arguments[0] == word else COMMANDS:  # a hook asks for one and needs no others
        (_add_audit_in_full if name == word == "audit" else _ADD[name])(commands)
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
    from argparse import RawDescriptionHelpFormatter

    from launchlint.report import formats

    check = commands.add_parser(
        "check",
        help="check files and folders",
        usage="launchlint check [OPTIONS] [PATH ...]",
        description="Check Python files, and folders of them, each file in the light of all that are given.",
        epilog=CHECK_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    check.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; `-` reads standard input")
    _add_settings(check)
    new = check.add_argument_group("new findings only")
    new.add_argument("--baseline", metavar="FILE", help="leave out the known findings in FILE")
    new.add_argument("--no-baseline", action="store_true", help="also those that the baseline knows")
    lines = new.add_mutually_exclusive_group()
    lines.add_argument(
        "--since",
        metavar="REV",
        help="only on lines changed since REV of git, and in loops that hold one; `auto`: since what this push or pull request is for",
    )
    lines.add_argument("--diff-file", metavar="FILE", help="only on lines that a patch adds; `-` reads it from standard input")
    fixes = check.add_argument_group("fixing")
    fixes.add_argument("--fix", action=Switch, help="apply safe fixes")
    fixes.add_argument(
        "--unsafe-fixes", action=Switch, help="with --fix or --diff: also those that may change timing, exceptions or memory"
    )
    fixes.add_argument("--diff", action="store_true", help="print what --fix would change as a patch, and change nothing")
    fixes.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 if something was fixed, even if nothing is left")
    output = check.add_argument_group("output")
    output.add_argument(
        "--format",
        action="append",
        type=_format,
        metavar="FORMAT[=FILE]",
        help=f"one of {', '.join(formats())} (default: text); may be given several times, each with a file of its own",
    )
    output.add_argument("--output", metavar="FILE", help="write there what has no file of its own, instead of to standard output")
    output.add_argument("--trace", metavar="FILE", help="say what a trace of PyTorch's profiler has of each finding, dearest first")
    output.add_argument("--statistics", action="store_true", help="count findings by rule and show what each stage and rule cost")
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


def _add_rule(commands: Any) -> None:
    _add_page(commands, "rule", "print the page of a rule")


def _add_explain(commands: Any) -> None:
    _add_page(commands, "explain", "the same as rule")


def _add_page(commands: Any, name: str, help_text: str) -> None:
    rule = commands.add_parser(name, help=help_text)
    rule.add_argument("rule", metavar="CODE", help="code or name of a rule")
    _add_colour(rule)
    rule.set_defaults(run=_rule)


def _add_rules(commands: Any) -> None:
    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument("--format", choices=("text", "json"), default="text")
    rules.set_defaults(run=_rules)


def _add_why(commands: Any) -> None:
    why = commands.add_parser("why", help="say why a line is reported or not")
    why.add_argument("place", metavar="FILE:LINE", help="in a notebook FILE:CELL:LINE, with the number of the cell")
    _add_settings(why)
    why.set_defaults(run=_why)


def _add_shown(commands: Any) -> None:
    shown = commands.add_parser("settings", help="show the settings in force and where each comes from")
    shown.add_argument("paths", nargs="*", metavar="PATH", help="whose settings to show (default: here); of one file, with its overrides")
    _add_settings(shown)
    shown.set_defaults(run=_settings)


def _add_cache(commands: Any) -> None:
    cache = commands.add_parser("cache", help="delete the cache of the project here")
    cache.add_argument("action", choices=("clean",), help="clean: delete .launchlint_cache at the root of the project")
    _add_settings(cache)
    cache.set_defaults(run=_cache)


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=("bash", "fish", "zsh"))
    completion.set_defaults(run=_completion)


def _add_audit(commands: Any) -> None:
    commands.add_parser("audit", help="count launches, waits and copies of a function without a GPU (needs torch)")


def _add_audit_in_full(commands: Any) -> None:
    from launchlint.audit import command  # which imports torch

    command.add_parser(commands)


def _add_server(commands: Any) -> None:
    from launchlint.server.command import add_parser

    add_parser(commands)


def _add_baseline(commands: Any) -> None:
    text = "write: what is found now is known; update: also what is new, without what is gone; prune: without what is gone"
    baseline = commands.add_parser("baseline", help="keep a file of known findings", description=text)
    baseline.add_argument("action", choices=("write", "update", "prune"))
    baseline.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files and folders (default: here)")
    baseline.add_argument("--baseline", metavar="FILE", help="the file (default: as set, or launchlint-baseline.json)")
    _add_settings(baseline)
    baseline.set_defaults(run=_baseline)


def _add_trace(commands: Any) -> None:
    from launchlint.trace import command

    trace = command.add_parser(commands)
    _add_settings(trace)
    trace.set_defaults(run=lambda options: command.run(options, lambda paths: _settings_of(options, paths)))


_ADD: dict[str, Callable[[Any], None]] = dict(
    zip(
        COMMANDS,
        (
            _add_check, _add_baseline, _add_rule, _add_explain, _add_rules, _add_why, _add_shown, _add_cache, _add_completion,
            _add_audit, _add_server, _add_trace,
        ),
        strict=True,
    )
)  # fmt: skip


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from argparse import BooleanOptionalAction as Switch

    from launchlint.settings import presets

    group = parser.add_argument_group("rules and settings")
    for name, help_text in (
        ("select", "only these rules: codes, beginnings of codes, or names, separated by commas"),
        ("extend-select", "these rules too"),
        ("ignore", "not these rules"),
    ):
        group.add_argument(f"--{name}", action="append", metavar="RULES", help=help_text)
    group.add_argument("--preview", action=Switch, help="also rules that are still on trial")
    group.add_argument("--min-confidence", metavar="LEVEL", help="low, medium or high (default: medium)")
    group.add_argument("--preset", metavar="NAME", help=f"begin with the settings for a framework: {', '.join(presets())}")
    group.add_argument("--config", metavar="FILE", help="read settings from FILE")
    group.add_argument("--isolated", action="store_true", help="read no settings file")


def _add_colour(parser: Any) -> None:
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: on a terminal)")


def _format(word: str) -> str:
    import argparse

    from launchlint.report import formats
    from launchlint.settings import did_you_mean

    name, equals, path = word.partition("=")
    if name not in formats():
        raise argparse.ArgumentTypeError(f"no format is called {name!r}{did_you_mean(name, formats())} (there are: {', '.join(formats())})")
    if equals and not path:
        raise argparse.ArgumentTypeError(f"{word!r} names no file after the =")
    return word


def _jobs(word: str) -> int:
    import argparse

    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"a number of processes from 1 on, not {word!r}")
    return int(word)


def _settings_of(options: argparse.Namespace, paths: Sequence[str]) -> Settings:
    """Settings from the file nearest to what is checked, with the options laid over them."""
    from launchlint import settings as module

    settings = module.load(module.start_of(paths), options.config, options.isolated, options.preset)
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


# ---------------------------------------------------------------- commands


def _check(options: argparse.Namespace) -> int:
    from launchlint import check

    return check.run(options, lambda paths: _settings_of(options, paths))


def _baseline(options: argparse.Namespace) -> int:
    from launchlint import check

    return check.run_baseline(options, lambda paths: _settings_of(options, paths))


def _rule(options: argparse.Namespace) -> int:
    from launchlint import registry
    from launchlint.settings import did_you_mean

    rule = registry.find(options.rule)
    if rule is None:
        metas = [rule.meta for rule in registry.load().values()]
        near = did_you_mean(options.rule, [word for meta in metas for word in (meta.code.lower(), meta.name)])
        raise Trouble(f"no rule has the code or name {options.rule!r}{near}")
    page = registry.page(rule.meta) or f"# {rule.meta.code} {rule.meta.name}\n\n{rule.meta.summary}\n"
    if not wants_colour(options, sys.stdout):
        return put(page)
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(force_terminal=True)
    with console.capture() as capture:
        console.print(Markdown(page))
    return put(capture.get())


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
        return put(json.dumps(listed, indent=2) + "\n")
    width = max(len(meta.name) for meta in metas)
    lines = []
    for meta in metas:
        marks = [f"fix: {meta.fix}"] * (meta.fix is not None) + ["preview"] * meta.preview + ["opt-in"] * meta.opt_in
        tail = f" ({', '.join(marks)})" if marks else ""
        lines.append(f"{meta.code}  {meta.name:{width}}  {meta.summary}{tail}")
    return put("\n".join(lines) + "\n")


def _why(options: argparse.Namespace) -> int:
    path, colon, line = options.place.rpartition(":")
    if not colon or not line.isdecimal() or int(line) < 1:
        raise Trouble(f"{options.place!r} is not FILE:LINE, for example model.py:12")
    path, cell = _cell_of(path)
    if not os.path.isfile(path):
        raise Trouble(f"{path}: {'not an ordinary file' if os.path.exists(path) else 'no such file'}")
    from launchlint import why
    from launchlint.source import SourceError

    try:
        return put(why.explain(path, int(line), _settings_of(options, [path]), cell).rstrip("\n") + "\n")
    except (SourceError, OSError) as error:
        raise Trouble(f"{path}: {error}") from error


def _cache(options: argparse.Namespace) -> int:
    from launchlint.cache import FOLDER, clean

    root = _settings_of(options, []).root or os.getcwd()
    return put(f"{'deleted' if clean(root) else 'no cache to delete:'} {os.path.join(root, FOLDER)}\n")


def _cell_of(path: str) -> tuple[str, int]:
    """`a.ipynb:cell 3` and `a.ipynb:3` as file and cell; 0 for a path that names no cell."""
    file, _, cell = path.rpartition(":")
    number = cell.removeprefix("cell ")
    return (file, int(number)) if file.endswith(".ipynb") and number.isdecimal() else (path, 0)


def _settings(options: argparse.Namespace) -> int:
    import dataclasses

    from launchlint import registry
    from launchlint.settings import INTERNAL, kebab

    settings = _settings_of(options, options.paths)
    registry.select(settings)  # complains about unknown codes
    if len(options.paths) == 1 and os.path.isfile(options.paths[0]):
        settings = settings.explained_for(options.paths[0])
    given = dict(settings.given)
    lines = [f"# from {settings.file or 'no settings file'}; globs are relative to {settings.root}"]
    for field in dataclasses.fields(settings):
        if field.name not in INTERNAL:
            value = getattr(settings, field.name)
            shown = "{}" if field.name == "per_file_ignores" and not value else _toml_value(value)
            lines.append(f"{kebab(field.name)} = {shown}  # {given.get(field.name, 'default')}")
    for override in settings.overrides:
        lines += ["", "[[overrides]]", f"files = {_toml_value(override.files)}"]
        lines += [f"{kebab(name)} = {_toml_value(value)}" for name, value in override.changes]
    return put("\n".join(lines) + "\n")


def _completion(options: argparse.Namespace) -> int:
    from launchlint import completion
    from launchlint.model import Confidence
    from launchlint.report import formats
    from launchlint.settings import presets

    levels = tuple(str(level) for level in Confidence)
    values = {"--format": tuple(formats()), "--preset": tuple(presets()), "--min-confidence": levels, "--since": ("auto",)}
    return put(completion.script(options.shell, _parser([]), values))


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

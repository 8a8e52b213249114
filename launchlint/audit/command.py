"""`launchlint audit module:function`: what a function spends, line by line."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import runpy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchlint.audit.report import Report

DESCRIPTION = """\
Call a function and count the kernel launches, waits, copies and allocations that it asks of a GPU, line by line. Without a
CUDA device this is a dry run on CPU data; with one it is a measurement.

The script of --args is run first. It gives the arguments: `args` (a tuple) and `kwargs` (a dictionary), or a function
`arguments()` that returns them. Tensors belong to the device; `launchlint.audit.on_host(tensor)` says otherwise."""


class UsageError(Exception):
    """What was asked for is not there; the message says what."""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parsers of the command line."""
    parser = subparsers.add_parser(
        "audit",
        help="count launches, waits and copies of a function without a GPU (needs torch)",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="MODULE:FUNCTION", help="what to call; a path of a .py file may stand for the module")
    parser.add_argument("--args", dest="script", metavar="FILE", help="a Python script that gives the arguments")
    parser.add_argument("--compare", metavar="MODULE:FUNCTION", help="call this with the same arguments too, and show both")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="lines to show, 0 for all (default: 30)")
    parser.add_argument("--no-rules", action="store_true", help="do not say which lines a rule reports")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; 0 if the function was called, 2 if it could not be."""
    try:
        reports = [_audited(target, options) for target in (options.target, options.compare) if target]
    except UsageError as error:
        print(f"launchlint: {error}", file=sys.stderr)
        return 2
    if options.format == "json":
        print(
            json.dumps(
                [{"target": target, **report.as_dict(), "not_seen_by_a_rule": unseen} for target, report, unseen in reports], indent=2
            )
        )
        return 0
    for target, report, unseen in reports:
        print(f"{target}\n{report.table(options.limit)}")
        for line in unseen:
            print(f"not seen by a rule: {line}")
        print()
    if len(reports) == 2:
        print(comparison(*reports[0][:2], *reports[1][:2]))
    return 0


def _audited(target: str, options: argparse.Namespace) -> tuple[str, Report, list[str]]:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError("audit needs torch 2.5 or later: pip install 'launchlint[audit]'") from None
    from launchlint.audit.entry import audit
    from launchlint.audit.state import AuditError

    function = find(target)
    args, kwargs = arguments(options.script)
    try:
        report = audit(function, *args, **kwargs)
    except AuditError as error:
        raise UsageError(f"{target}: {error}") from None
    except Exception as error:
        raise UsageError(f"{target} raised {type(error).__name__}: {error}\n{_where(error)}") from None
    return target, report, [] if options.no_rules else _marked(report)


def _marked(report: Report) -> list[str]:
    from launchlint import settings
    from launchlint.audit import findings

    try:
        return findings.mark(report, settings.load(os.getcwd()))
    except settings.SettingsError as error:
        raise UsageError(str(error)) from None


def find(target: str) -> Callable[..., Any]:
    """The function of `package.module:name` or `path/to/file.py:name`; the name may be dotted."""
    module_name, _, name = target.rpartition(":")
    if not module_name or not name:
        raise UsageError(f"{target!r} is not of the form module:function")
    found: Any = _module(module_name)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{module_name} has no {name}") from None
    if not callable(found):
        raise UsageError(f"{target} is not callable")
    function: Callable[..., Any] = found
    return function


def _module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if not name.endswith(".py"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(f"no module named {error.name}") from None
    if not os.path.exists(name):
        raise UsageError(f"no such file: {name}")
    spec = importlib.util.spec_from_file_location(os.path.basename(name)[:-3], name)
    if spec is None or spec.loader is None:
        raise UsageError(f"{name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def arguments(script: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`args` and `kwargs` of the script; both empty without one. A fresh run of the script for every call."""
    if script is None:
        return (), {}
    if not os.path.exists(script):
        raise UsageError(f"no such file: {script}")
    names = runpy.run_path(script)
    if callable(names.get("arguments")):
        given = names["arguments"]()
        return _given(given, script)
    if "args" not in names and "kwargs" not in names:
        raise UsageError(f"{script} defines neither args, kwargs nor arguments()")
    return tuple(names.get("args", ())), dict(names.get("kwargs", {}))


def _given(given: Any, script: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    match given:
        case (tuple() | list() as args, dict() as kwargs):
            return tuple(args), {str(key): value for key, value in kwargs.items()}
        case dict() as kwargs:
            return (), {str(key): value for key, value in kwargs.items()}
        case tuple() | list() as args:
            return tuple(args), {}
    raise UsageError(f"arguments() of {script} returned {type(given).__name__}: a tuple, a dictionary or both in a tuple were expected")


def comparison(first_name: str, first: Report, second_name: str, second: Report) -> str:
    """The sums of two runs side by side, and whether both returned the same."""
    rows = [("", first_name, second_name)]
    for name, value in first.totals.as_dict().items():
        rows.append((name.replace("_", " "), str(value), str(getattr(second, name))))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0].ljust(widths[0])}  {row[1].rjust(widths[1])}  {row[2].rjust(widths[2])}" for row in rows]
    return "\n".join([*lines, f"results: {'equal' if same(first.result, second.result) else 'different'}"])


def same(first: Any, second: Any) -> bool:
    """True if two results are equal: tensors by dtype, shape and value, containers element by element."""
    import torch

    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.dtype == second.dtype and first.shape == second.shape and bool(torch.equal(first, second))
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    return bool(first == second)


def _where(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_tb(error.__traceback__)[-3:]).rstrip()

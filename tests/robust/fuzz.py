"""Thousands of made and damaged files through `check --fix --unsafe-fixes`: `python -m tests.robust.fuzz --count N --seed S`.

Each must be over within a limit of CPU time, without a traceback; what Python's parser takes is checked, and still parses when it
was fixed; what it refuses is one clear line and stays as it was, byte for byte. Of seven inputs two come from a grammar, two are code
that rules fire on, changed, two are damaged bytes, of files below `--root` where one is given, and one is a notebook, of which fixes may
change the text of cells and nothing else. Every input has a number and depends on nothing but the seed and that number: `--only NUMBER`
makes it again and shows it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import decode_source
from pathlib import Path
from types import FrameType
from typing import Any

from launchlint import __version__
from launchlint.cli import main as launchlint
from tests.cases.collect import pages
from tests.robust import notebooks
from tests.robust.grammar import Writer
from tests.robust.mutations import change_bytes, change_layout, change_tree

SECONDS = 10.0  # CPU time of one input; the slowest of ordinary files takes one
LARGEST = 60_000  # bytes of a real file that is damaged
NAME = "layer.py"
OPTIONS = ("check", "--isolated", "--no-cache", "--format", "json", "--color", "never", "--preview", "--min-confidence", "low")


class SlowError(BaseException):
    """An input takes too long. Not an `Exception`, which the linter turns into a report."""


class NoReportError(Exception):
    """A run ended without a report."""


@dataclass(slots=True)
class Tally:
    """What a run of the fuzzer met."""

    kinds: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    findings: int = 0
    fixed: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # number, kind, what is wrong
    slowest: float = 0.0


class Inputs:
    """Makes an input from its number."""

    def __init__(self, seed: int, root: Path | None = None) -> None:
        self.seed = seed
        self.codes = [case.code for page in pages() for case in page.cases]
        self.trees = [ast.parse(code) for code in self.codes]
        found = sorted(root.rglob("*.py")) if root is not None else []
        self.files = [path for path in found if 0 < path.stat().st_size <= LARGEST]

    def make(self, number: int) -> tuple[str, bytes]:
        """The kind of the input and its bytes."""
        chance = random.Random(f"{self.seed} {number}")
        match number % 7:
            case 6:
                notebook = notebooks.make(chance.choice(self.codes), chance)
                return ("damaged notebook", change_bytes(notebook, chance)) if chance.random() < 0.3 else ("notebook", notebook)
            case 0 | 3:
                return "grammar", change_layout(Writer(chance).module(), chance)
            case 1 | 4:
                try:
                    return "changed code", change_layout(change_tree(chance.choice(self.codes), self.trees, chance), chance)
                except (ValueError, RecursionError):  # a tree that cannot be written, which says nothing about the linter
                    return "grammar", Writer(chance).module().encode("utf-8", "replace")
            case 2 if self.files:
                return "damaged file", change_bytes(chance.choice(self.files).read_bytes(), chance)
        return "damaged code", change_bytes(change_layout(chance.choice(self.codes), chance), chance)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise SlowError where what runs inside takes more CPU time."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise SlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def parses(data: bytes) -> bool:
    """Whether Python takes these bytes for a module. They are decoded first: the parser lets bytes in comments pass that are no text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(decode_source(data))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def run(*options: str, name: str = NAME) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and standard error of a run over the file."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = launchlint([*OPTIONS, *options, name])
    out.flush()
    try:
        report: dict[str, Any] = json.loads(out.buffer.getvalue())
    except ValueError:
        raise NoReportError(f"exit code {code}, no report, and standard error says {err.getvalue()[:300]!r}") from None
    return code, report, err.getvalue()


def wrong(data: bytes, tally: Tally) -> str:
    """What is wrong with the answer to an input; empty where nothing is. The file lies in the working folder."""
    path = Path(NAME)
    path.write_bytes(data)
    sound = parses(data)
    tally.broken += not sound
    code, report, said = run("--fix", "--unsafe-fixes")
    after = path.read_bytes()
    errors = report["errors"]
    tally.findings += len(report["findings"])
    fixed = report["stats"].get("fixed", {})
    tally.fixed.update(fixed)
    if said:
        return f"standard error says {said[:300]!r}"
    if any("fault of launchlint" in error["reason"] for error in errors):
        return f"a rule failed: {errors[0]}"
    if not sound:
        return _wrong_of_broken(data, after, code, errors)
    if errors:
        return f"what parses is refused: {errors[0]}"
    if not parses(after):
        return f"the fixes of {fixed} break the file"
    if bool(fixed) is (after == data):
        return f"{fixed} fixed, and the file is {'as it was' if after == data else 'another'}"
    if code != (1 if report["findings"] else 0):
        return f"exit code {code} with {len(report['findings'])} findings"
    if fixed:
        run("--fix", "--unsafe-fixes")
        if path.read_bytes() != after:
            return f"fixing again changes the file again, after {fixed}"
    return ""


def wrong_of_notebook(data: bytes, tally: Tally) -> str:
    """The same for a notebook. Cells that do not parse are told in one line, and the others are checked."""
    path = Path(notebooks.NAME)
    path.write_bytes(data)
    sound = notebooks.is_sound(data)
    tally.broken += not sound
    code, report, said = run("--fix", "--unsafe-fixes", name=notebooks.NAME)
    after = path.read_bytes()
    errors, fixed = report["errors"], report["stats"].get("fixed", {})
    tally.findings += len(report["findings"])
    tally.fixed.update(fixed)
    if said or any("fault of launchlint" in error["reason"] for error in errors):
        return f"standard error says {said[:300]!r}, and the errors are {errors}"
    if errors and not fixed:
        said = _wrong_of_broken(data, after, code, errors)
        return f"a notebook is refused: {errors[0]}" if not said and sound and not errors[0]["reason"].startswith("cell ") else said
    if not errors and code != (1 if report["findings"] else 0):
        return f"exit code {code} with {len(report['findings'])} findings"
    if bool(fixed) is (after == data):
        return f"{fixed} fixed, and the file is {'as it was' if after == data else 'another'}"
    if not fixed:
        return ""
    if said := notebooks.wrong_of_fixed(data, after):
        return f"{said}, after {fixed}"
    run("--fix", "--unsafe-fixes", name=notebooks.NAME)
    return "" if path.read_bytes() == after else f"fixing again changes the file again, after {fixed}"


def _wrong_of_broken(data: bytes, after: bytes, code: int, errors: list[dict[str, Any]]) -> str:
    if after != data:
        return "a file that does not parse was changed"
    if code != 2 or len(errors) != 1:
        return f"exit code {code} and {len(errors)} errors for a file that does not parse"
    reason = errors[0]["reason"]
    return "" if reason.strip() and "\n" not in reason else f"not one clear line: {reason!r}"


def fuzz(inputs: Inputs, numbers: range, seconds: float = SECONDS, every: int = 0) -> Tally:
    """Put inputs through, in a folder of their own; with `every`, say now and then how far it is."""
    tally = Tally()
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number in numbers:
                kind, data = inputs.make(number)
                tally.kinds[kind] += 1
                began = time.process_time()
                said = _answer(data, tally, seconds, wrong_of_notebook if "notebook" in kind else wrong)
                tally.slowest = max(tally.slowest, time.process_time() - began)
                if said:
                    tally.failures.append((number, kind, said))
                    print(f"{number} ({kind}): {said}", flush=True)
                if every and number % every == 0:
                    print(f"... {number}", file=sys.stderr, flush=True)
        finally:
            os.chdir(home)
    return tally


def _answer(data: bytes, tally: Tally, seconds: float, judge: Callable[[bytes, Tally], str]) -> str:
    try:
        with limited(seconds):
            return judge(data, tally)
    except SlowError:
        return f"more than {seconds:g} seconds of CPU time: {traceback.format_exc(limit=-3)}"
    except NoReportError as error:
        return str(error)
    except Exception:  # whatever comes out is what this looks for
        return traceback.format_exc(limit=-6)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robust.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--root", type=Path, help="damage the files below this folder too")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time that one input may take")
    parser.add_argument("--only", type=int, help="make this input, show it and put it through")
    options = parser.parse_args()
    inputs = Inputs(options.seed, options.root)
    if options.only is not None:
        sys.stdout.buffer.write(inputs.make(options.only)[1] + b"\n")
        return bool(fuzz(inputs, range(options.only, options.only + 1), options.seconds).failures)
    began, cpu = time.perf_counter(), time.process_time()
    tally = fuzz(inputs, range(options.first, options.first + options.count), options.seconds, 5000)
    print(f"{options.count} inputs, seed {options.seed}: {dict(sorted(tally.kinds.items()))}, {tally.broken} do not parse")
    print(f"{tally.findings} findings left, fixed {dict(sorted(tally.fixed.items()))}")
    print(f"{len(tally.failures)} failures, slowest {tally.slowest:.2f} s of CPU time")
    spent = f"{time.perf_counter() - began:.0f} s, {time.process_time() - cpu:.0f} s of CPU time"
    print(f"{spent}, launchlint {__version__}, Python {platform.python_version()}")
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())

"""Whole processes, timed by the kernel: user CPU seconds, wall seconds and peak memory of a command and its children.

A machine that does other things makes every figure larger, so commands that are compared run in turn, and what is compared is
the ratio within a turn; the median over the turns is the figure.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
INSTALLED = "installed"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a command took."""

    user: float  # CPU seconds, children included
    wall: float  # seconds
    peak: float  # MB, of the largest process

    def figure(self, name: str) -> float:
        """One of the figures by its name."""
        return {"user": self.user, "wall": self.wall, "peak": self.peak}[name]


def install(folder: Path) -> None:
    """Lay our packages below a folder and compile them, as an installer does: a checkout may have no bytecode and may not write any."""
    for name in ("launchlint", "rules", "tests/benchmarks"):
        shutil.copytree(CHECKOUT / name, folder / INSTALLED / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / INSTALLED / "tests" / "__init__.py").touch()
    subprocess.run(python("-m", "compileall", "-q", INSTALLED), cwd=folder, env=_environment(), check=True)


def _environment() -> dict[str, str]:
    """Ours without what says where bytecode lies."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")}


def run(command: Sequence[str], folder: Path, limit: float | None = None) -> Cost:
    """Run a command to its end, in a folder that `install` has prepared; raise RuntimeError if it breaks (0 and 1 are answers).

    Raise subprocess.TimeoutExpired where it takes longer than `limit` seconds.
    """
    environment = {**_environment(), "PYTHONPATH": str(folder / INSTALLED), "PYTHONHASHSEED": "0", "CI": "1", "RAYON_NUM_THREADS": "1"}
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        clock = threading.Timer(limit, process.kill) if limit is not None else None
        if clock is not None:
            clock.start()
        _, status, used = os.wait4(process.pid, 0)
        if clock is not None:
            clock.cancel()
        said.seek(0)
        complaint = said.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if limit is not None and wall >= limit:
        raise subprocess.TimeoutExpired(command, limit)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}: {complaint.decode(errors='replace')[-800:]}")
    return Cost(used.ru_utime, wall, used.ru_maxrss / 1024)


def in_turn(commands: Mapping[str, Sequence[str]], turns: int, folder: Path, limit: float | None = None) -> dict[str, list[Cost]]:
    """Run all commands one after the other, `turns` times; the costs of each, turn by turn."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            costs[name].append(run(command, folder, limit))
    return costs


def ratio(these: Sequence[Cost], those: Sequence[Cost], what: str = "user", over: str = "user") -> float:
    """The median of `what` of one command over `over` of another, turn by turn."""
    return statistics.median([one.figure(what) / other.figure(over) for one, other in zip(these, those, strict=True)])


def median(costs: Sequence[Cost], what: str) -> float:
    """The median of one figure."""
    return statistics.median([cost.figure(what) for cost in costs])


def python(*arguments: str) -> list[str]:
    """A command of the interpreter that runs this."""
    return [sys.executable, *arguments]

"""Print a table of ratios for one tree, all measured in one go.

    python -m tests.benchmarks ROOT [--turns N] [--flake8-files N] [--growth-files N]
    python -m tests.benchmarks ROOT --others [--tools FOLDER] [--other-files N] [--limit SECONDS]

ROOT is an unpacked package, for example `pip download vllm==0.28.0 --no-deps` and `unzip`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
from importlib.metadata import entry_points, version
from pathlib import Path

from launchlint import __version__
from launchlint.cache import FOLDER
from tests.benchmarks.measurement import Cost, in_turn, install, median, python, ratio
from tests.benchmarks.others import compare

SMALL = """\
import torch


class Layer(torch.nn.Module):
    def forward(self, x):
        return x + torch.tensor([1.0, 2.0], device="cuda")
"""
PLUGIN = "[flake8:local-plugins]\nextension =\n    LCH = launchlint.flake8:Plugin\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--flake8-files", type=int, default=150, help="flake8 is slow, so it gets a sample (0: none)")
    parser.add_argument("--growth-files", type=int, default=150, help="files of the tree that is grown eightfold (0: none)")
    parser.add_argument("--others", action="store_true", help="compare with other linters, and measure nothing else")
    parser.add_argument("--tools", type=Path, action="append", default=[], metavar="FOLDER", help="a folder with commands of other linters")
    parser.add_argument("--other-files", type=int, default=100, help="some of them are slow, so they get a sample")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run of another linter may take")
    options = parser.parse_args()
    root = options.root.resolve()
    files = sorted(root.rglob("*.py"))
    machine = f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}"
    busy = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the start" if hasattr(os, "getloadavg") else ""
    print(f"{root.name}: {len(files)} files, launchlint {__version__}, {machine}, {busy}\n")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        install(here)
        if options.others:
            _others(files, here, options)
            return
        print("| what | figure |\n| --- | --- |")
        _tree(root, here, options.turns)
        _start(here, options.turns)
        if options.flake8_files:
            _flake8(files, here, options.turns, options.flake8_files)
        if options.growth_files:
            _growth(files, here, options.turns, options.growth_files)


def _row(what: str, figure: str) -> None:
    print(f"| {what} | {figure} |", flush=True)


def _check(*arguments: str) -> list[str]:
    return python("-m", "launchlint", "check", "--isolated", "--exit-zero", "--quiet", *arguments)


def _tree(root: Path, here: Path, turns: int) -> None:
    """The whole tree, cold and warm, against the floor. The cache lies at `here`, the working folder."""
    (here / FOLDER).mkdir()
    floor = python("-m", "tests.benchmarks.floor", str(root))
    cold = {
        "floor": floor,
        "cold": _check("-j1", "--no-cache", str(root)),
        "two": _check("-j2", "--no-cache", str(root)),
        "clean": python("-m", "launchlint", "cache", "clean", "--isolated"),
        "keeping": _check("-j1", str(root)),
        "warm": _check("-j1", str(root)),
    }
    costs = in_turn(cold, turns, here)
    parse = costs["floor"]
    _row("parsing every file (floor), user CPU seconds", f"{median(parse, 'user'):.2f}")
    _row("cold, one process, user CPU over floor", f"{ratio(costs['cold'], parse):.2f}")
    _row("cold, one process, peak memory", f"{median(costs['cold'], 'peak'):.0f} MB")
    _row("cold, two processes, wall time over the floor's wall time", f"{ratio(costs['two'], parse, 'wall', 'wall'):.2f}")
    _row("cold, two processes, wall time over that of one process", f"{ratio(costs['two'], costs['cold'], 'wall', 'wall'):.2f}")
    _row("cold, two processes, peak memory of the larger", f"{median(costs['two'], 'peak'):.0f} MB")
    _row("cold and writing the cache, one process, user CPU over floor", f"{ratio(costs['keeping'], parse):.2f}")
    _row("warm, user CPU over floor", f"{ratio(costs['warm'], parse):.2f}")


def _start(here: Path, turns: int) -> None:
    """What a hook feels: one small file, against the bare interpreter."""
    small = here / "small.py"
    small.write_text(SMALL)
    commands = {"bare": python("-c", "pass"), "version": python("-m", "launchlint", "--version"), "small": _check(str(small))}
    costs = in_turn(commands, max(turns, 7), here)
    _row("bare interpreter, wall", f"{1000 * median(costs['bare'], 'wall'):.0f} ms")
    for name, what in (("version", "`launchlint --version`"), ("small", "one small file")):
        _row(f"{what}, wall time above the bare interpreter", f"{1000 * _above(costs[name], costs['bare'], 'wall'):.0f} ms")
        _row(f"{what}, user CPU above the bare interpreter", f"{1000 * _above(costs[name], costs['bare'], 'user'):.0f} ms")


def _above(these: list[Cost], those: list[Cost], what: str) -> float:
    return median(these, what) - median(those, what)


def _flake8(files: list[Path], here: Path, turns: int, count: int) -> None:
    """What the plugin adds to flake8 on a sample of the tree, spread evenly: as copies, and where they lie, with modules to ask."""
    if any(entry.name == "LCH" for entry in entry_points(group="flake8.extension")):
        _row("flake8 with the plugin over flake8 alone", "not measured: an installed plugin cannot be switched off")
        return
    sample = here / "sample"
    _copy(files[:: max(1, len(files) // count)], sample)
    alone, both = here / "alone.ini", here / "both.ini"
    alone.write_text("[flake8]\n")
    both.write_text("[flake8]\n" + PLUGIN)
    for paths, where in (([sample], "copied into one folder"), (files[:: max(1, len(files) // count)], "where they lie in their package")):
        command = python("-m", "flake8", "-j1", "--exit-zero", *map(str, paths))
        costs = in_turn({"alone": [*command, "--config", str(alone)], "both": [*command, "--config", str(both)]}, turns, here)
        added = 100 * (ratio(costs["both"], costs["alone"]) - 1)
        _row(f"as plugin of flake8 {version('flake8')}, about {count} files {where}, user CPU added", f"{added:.1f} %")


def _others(files: list[Path], here: Path, options: argparse.Namespace) -> None:
    sample = here / "sample"
    _copy(files[:: max(1, len(files) // options.other_files)], sample)
    print(f"{len(list(sample.iterdir()))} files spread over the tree\n")
    print("| linter | version | user CPU over floor | what it did |\n| --- | --- | --- | --- |")
    for row in compare(sample, here, options.turns, [path.resolve() for path in options.tools], options.limit):
        print(f"| {row.name} | {row.version} | {row.over_floor} | {row.does} |", flush=True)
    if hasattr(os, "getloadavg"):
        print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def _growth(files: list[Path], here: Path, turns: int, count: int) -> None:
    """The cost of a file as the tree grows: copies of one sample beside each other."""
    sample = files[:: max(1, len(files) // count)]
    commands: dict[str, list[str]] = {}
    for times in (1, 2, 4, 8):
        tree = here / f"tree{times}"
        for copy in range(times):
            _copy(sample, tree / f"package{copy}")
        commands[str(times)] = _check("-j1", "--no-cache", str(tree))
    costs = in_turn(commands, turns, here)
    base = costs["1"]
    figures = ", ".join(f"{times}x: {ratio(costs[str(times)], base) / times:.2f}" for times in (1, 2, 4, 8))
    _row(f"user CPU for each file as {len(sample)} files grow", figures)


def _copy(files: list[Path], target: Path) -> None:
    target.mkdir(parents=True)
    (target / "__init__.py").write_text("")
    for number, path in enumerate(files):
        shutil.copy(path, target / f"{path.stem}_{number}.py")


if __name__ == "__main__":
    main()

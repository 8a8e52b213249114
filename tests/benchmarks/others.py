"""Other linters over the same files: whole processes, user CPU as a multiple of parsing every file.

They look for other things, so the figures say what a run costs and not which one is better. A tool counts where its command lies on
the PATH or in one of the folders that are named; each may live in an environment of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launchlint import __version__
from tests.benchmarks.measurement import Cost, in_turn, python, ratio

RULE = """\
rules:
  - id: scalar-read
    languages: [python]
    severity: WARNING
    message: one number is read back from the device
    pattern: $X.item()
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A linter and how to start it; `{root}` and `{here}` stand for what is checked and for a folder with our files."""

    name: str  # of its distribution
    command: tuple[str, ...]
    does: str
    version: tuple[str, ...] = ("--version",)


TOOLS = (
    Tool("ruff", ("ruff", "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "{root}"), "its default rules, one thread"),
    Tool("flake8", ("flake8", "--isolated", "-j1", "--exit-zero", "{root}"), "its default rules"),
    Tool("torchfix", ("torchfix", "-j1", "{root}"), "its default rules"),
    Tool("hotpath-ai", ("hotpath", "analyze", "{root}"), "its default rules"),
    Tool("torch-preflight", ("torch-preflight", "check", "-j", "1", "--quiet", "{root}"), "its default rules"),
    Tool(
        "semgrep",
        ("semgrep", "scan", "--config", "{here}/rule.yml", "--metrics=off", "--disable-version-check", "--no-git-ignore", "-j1", "--quiet",
         "{root}"),
        "one pattern, `$X.item()`",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    version: str
    over_floor: str
    does: str


def compare(root: Path, here: Path, turns: int, folders: Sequence[Path], limit: float) -> list[Row]:
    """A row for each tool, launchlint first; `here` is a folder that `install` has prepared."""
    (here / "rule.yml").write_text(RULE, encoding="utf-8")
    found = {tool: path for tool in TOOLS if (path := find(tool, folders)) is not None}
    floor = python("-m", "tests.benchmarks.floor", str(root))
    ours = python("-m", "launchlint", "check", "--isolated", "--exit-zero", "--quiet", "--no-cache", "-j1", str(root))
    costs = in_turn({"floor": floor, "ours": ours}, turns, here)
    rows = [Row("launchlint", __version__, _times(costs["ours"], costs["floor"]), "its default rules")]
    for tool in TOOLS:
        if tool not in found:
            rows.append(Row(tool.name, "", "not installed", tool.does))
            continue
        command = [found[tool], *(word.format(root=root, here=here) for word in tool.command[1:])]
        version = version_of([found[tool], *tool.version]) or installed_version(found[tool], tool.name)
        rows.append(Row(tool.name, version, _measured(command, floor, turns, here, limit), tool.does))
    return rows


def _measured(command: Sequence[str], floor: Sequence[str], turns: int, here: Path, limit: float) -> str:
    try:
        costs = in_turn({"floor": floor, "tool": command}, turns, here, limit)
    except subprocess.TimeoutExpired:
        return f"not measured: more than {limit:.0f} s"
    except RuntimeError as error:
        return f"not measured: {' '.join(str(error).split())[-160:]}"
    return _times(costs["tool"], costs["floor"])


def _times(these: Sequence[Cost], those: Sequence[Cost]) -> str:
    return f"{ratio(these, those):.2f}"


def find(tool: Tool, folders: Sequence[Path]) -> str | None:
    """The command of a tool, in the folders that are named before the PATH."""
    places = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    return shutil.which(tool.command[0], path=places)


def version_of(command: Sequence[str]) -> str:
    """The version that a command says it has; empty where it says none."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""}, timeout=120)
    match = re.search(r"\d+\.\d+(\.\d+)*", done.stdout)
    return match.group() if done.returncode == 0 and match is not None else ""


def installed_version(command: str, name: str) -> str:
    """The version by the metadata of the environment that a command lies in."""
    interpreter = Path(command).parent / "python"
    if not interpreter.exists():
        return ""
    return version_of([str(interpreter), "-c", f"import importlib.metadata as m; print(m.version({name!r}))"])

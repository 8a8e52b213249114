"""Comparing with other linters: who is found is measured, who is not there or takes too long is said so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launchlint import __version__
from tests.benchmarks import others
from tests.benchmarks.measurement import INSTALLED, install
from tests.robust.inputs import LOOP


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmarks")
    install(folder)
    (folder / "sample").mkdir()
    (folder / "sample" / "layer.py").write_text(LOOP, encoding="utf-8")
    return folder


def made(folder: Path, name: str, body: str) -> others.Tool:
    """A tool whose command lies in a folder of its own."""
    folder.mkdir(exist_ok=True)
    command = folder / name
    command.write_text(f"#!{sys.executable}\nimport sys\nif '--version' in sys.argv:\n    sys.exit(print('{name} 3.2.1'))\n{body}\n")
    command.chmod(0o755)
    return others.Tool(name, (name, "{root}", "{here}/rule.yml"), "something")


@pytest.mark.skipif(sys.platform == "win32", reason="commands with a first line that names their interpreter")
def test_every_tool_has_a_row(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = (
        made(tmp_path / "bin", "works", "import os\nassert os.path.isdir(sys.argv[1]) and os.path.isfile(sys.argv[2])\nsum(range(10**6))"),
        made(tmp_path / "bin", "sleeps", "import time\ntime.sleep(60)"),
        made(tmp_path / "bin", "breaks", "print('broken', file=sys.stderr)\nsys.exit(3)"),
        others.Tool("absent", ("absent-for-sure", "{root}"), "nothing"),
    )
    monkeypatch.setattr(others, "TOOLS", tools)
    rows = others.compare(here / "sample", here, 1, [tmp_path / "bin"], 5)
    assert [row.name for row in rows] == ["launchlint", "works", "sleeps", "breaks", "absent"]
    ours, works, sleeps, breaks, absent = rows
    assert (ours.version, works.version, absent.version) == (__version__, "3.2.1", "")
    assert float(ours.over_floor) > 1
    assert float(works.over_floor) > 0
    assert sleeps.over_floor == "not measured: more than 5 s"
    assert breaks.over_floor.startswith("not measured: ")
    assert "broken" in breaks.over_floor
    assert absent.over_floor == "not installed"


def test_what_is_measured_is_compiled(here: Path) -> None:
    """Else the first of several commands would pay for all."""
    assert list((here / INSTALLED / "launchlint" / "__pycache__").glob("engine.*.pyc"))
    assert list((here / INSTALLED / "rules" / "lch101_slice_fill_loop" / "__pycache__").glob("fix.*.pyc"))

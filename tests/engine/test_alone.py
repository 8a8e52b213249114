"""A file by itself, as flake8 gives it: what by its path is never reported costs no summary, and the answer stays the same."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from launchlint import engine, registry
from launchlint.flake8 import Plugin
from launchlint.model import FileReport
from launchlint.settings import Settings
from launchlint.source import Source
from tests.doors.environment import ROOT
from tests.robust.inputs import LOOP

COLD = ["tests/test_layer.py", "model_loader/layer.py", "kernels/cutlass/layer.py"]
WARM = ["layer.py", "layers/norm.py"]
SETTLED = """\
import ast, gc, sys
from launchlint.flake8 import Plugin
code = open(sys.argv[1]).read()
found = list(Plugin(ast.parse(code), code.splitlines(keepends=True), sys.argv[1]).run())
print(len(found), gc.isenabled(), "astroid" in sys.modules, gc.get_freeze_count() > 0)
"""


def package(root: Path, name: str) -> Path:
    """A file of a package, with the package files that its path needs."""
    path = root / "pkg" / name
    path.parent.mkdir(parents=True)
    for folder in (path.parent, *path.parent.parents):
        if folder == root:
            break
        (folder / "__init__.py").touch()
    path.write_text(LOOP, encoding="utf-8")
    return path


def alone(path: Path, settings: Settings) -> FileReport:
    """What the file by itself gives."""
    return engine.check_source(engine.read_source(str(path)), registry.select(settings), settings)


@pytest.mark.parametrize("name", COLD + WARM)
@pytest.mark.parametrize("settings", [Settings(), Settings(hot=("pkg.*",)), Settings(cold=("pkg.*",))], ids=["plain", "hot", "cold"])
def test_a_file_alone_is_a_run_of_one_file(tmp_path: Path, name: str, settings: Settings) -> None:
    path = package(tmp_path, name)
    (checked,) = engine.check_files([str(path)], registry.select(settings), settings).files
    assert alone(path, settings) == checked
    assert bool(checked.findings) is (not settings.cold and (name in WARM or (bool(settings.hot) and "cutlass" not in name)))


@pytest.mark.parametrize("name", COLD)
def test_a_cold_path_costs_no_summary(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = package(tmp_path, name)

    def refuse(*_: object) -> None:
        raise AssertionError("a summary was made")

    monkeypatch.setattr(engine, "summarize_source", refuse)
    assert alone(path, Settings()).findings == []
    with pytest.raises(AssertionError):
        alone(path, Settings(hot=("pkg.*",)))


def test_the_collector_rests_in_the_plugin_and_wakes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.check_source
    seen: list[bool] = []

    def note(source: Source, *rest: object, **options: object) -> FileReport:
        seen.append(gc.isenabled())
        return real(source, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "check_source", note)
    assert gc.isenabled()
    assert list(Plugin(ast.parse(LOOP), LOOP.splitlines(keepends=True), "layer.py").run())
    assert seen == [False]
    assert gc.isenabled()


def test_only_what_astroid_leaves_is_hidden_from_the_collector(tmp_path: Path) -> None:
    """flake8's own heap is left to the collector until a question to other modules was asked."""
    asking = LOOP.replace("import torch", "import torch\nfrom pkg.sizes import count_of", 1).replace("(sizes)", "(count_of(sizes))", 1)
    for text, expected in ((LOOP, "1 True False False"), (asking, "1 True True True")):
        path = package(tmp_path / expected.replace(" ", ""), "layer.py")
        (path.parent / "sizes.py").write_text("def count_of(counts):\n    return sum(counts)\n", encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, "-c", SETTLED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected

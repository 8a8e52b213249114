"""A function with a finding is looked at again with what other modules of its package say, where few files are checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launchlint import engine, registry
from launchlint.engine import Decision, Project
from launchlint.model import Confidence
from launchlint.settings import Settings

SETTINGS = Settings(min_confidence=Confidence.LOW)
LINTED = """
import torch
from torch import nn
from shop.batch import Batch

class Layer(nn.Module):
    def forward(self, x: torch.Tensor, batch: Batch):
        return x[: batch.lengths.max().item()]
"""
ARRAY = "import torch\nclass Batch:\n    def __init__(self):\n        self.lengths = torch.zeros(3).numpy()\n"
TENSOR = "import torch\nclass Batch:\n    def __init__(self, device):\n        self.lengths = torch.zeros(3, device=device)\n"


def write(folder: Path, batch: str) -> str:
    """A package of two modules; the path of the one that is checked."""
    package = folder / "shop"
    package.mkdir()
    for name, text in (("__init__.py", ""), ("batch.py", batch), ("layer.py", LINTED)):
        (package / name).write_text(text, encoding="utf-8")
    return str(package / "layer.py")


def codes(path: str) -> list[str]:
    """What is reported of one file."""
    report = engine.check_files([path], registry.select(SETTINGS), SETTINGS)
    assert not report.files[0].problems
    return [finding.code for finding in report.files[0].findings]


def test_what_turns_out_to_be_an_array_is_not_reported(tmp_path: Path) -> None:
    assert codes(write(tmp_path, ARRAY)) == []


def test_what_turns_out_to_be_a_tensor_is_reported_all_the_same(tmp_path: Path) -> None:
    assert codes(write(tmp_path, TENSOR)) == ["LCH301"]


def test_the_module_is_not_part_of_the_package(tmp_path: Path) -> None:
    path = write(tmp_path, ARRAY)
    (tmp_path / "shop/batch.py").unlink()
    assert codes(path) == ["LCH301"]


def test_many_files_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CLOSER_FILES", 0)
    assert codes(write(tmp_path, ARRAY)) == ["LCH301"]


def test_one_source_by_itself(tmp_path: Path) -> None:
    source = engine.read_source(write(tmp_path, ARRAY))
    assert engine.check_source(source, registry.select(SETTINGS), SETTINGS).findings == []


def test_each_decision_is_noted_once(tmp_path: Path) -> None:
    source = engine.read_source(write(tmp_path, TENSOR))
    project = Project([engine.summarize_source(source, source.tree)], SETTINGS)
    trace: list[Decision] = []
    engine.check_source(source, registry.select(SETTINGS), SETTINGS, project, trace)
    assert len({(decision.code, decision.span) for decision in trace}) == len(trace)


def test_astroid_is_not_imported_without_a_finding(tmp_path: Path) -> None:
    path = write(tmp_path, TENSOR)
    Path(path).write_text(LINTED.replace(".max().item()", ".shape[0]"), encoding="utf-8")
    program = (
        "import sys\n"
        "from launchlint import engine, registry\n"
        "from launchlint.settings import Settings\n"
        "import launchlint.values.modules\n"
        f"engine.check_files([{path!r}], registry.select(Settings()), Settings())\n"
        "sys.exit('astroid' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

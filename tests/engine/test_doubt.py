"""Functions that sound like a step: in a whole package, one that nothing calls by its name is doubted; alone, or handed on, it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.test_rarely import check, reported

MANY = 60
BODY = """
    return torch.tensor(lengths, device="cuda")
"""
FORGOTTEN = f"import torch\n\n\ndef gather_lengths(lengths: list[int]):{BODY}"


def package(files: dict[str, str], many: int) -> dict[str, str]:
    return {"pkg/rows.py": FORGOTTEN, **{f"pkg/filler{number}.py": "import torch\n" for number in range(many)}, **files}


@pytest.mark.parametrize(
    ("files", "is_reported"),
    [
        pytest.param({}, False, id="nothing calls it"),
        pytest.param({"pkg/sub/__init__.py": "from pkg.rows import gather_lengths\n"}, False, id="only handed on by a package"),
        pytest.param({"pkg/user.py": "from pkg.rows import gather_lengths\n"}, True, id="imported"),
        pytest.param({"pkg/user.py": "from pkg import rows\n\n\ndef use(x):\n    return rows.gather_lengths(x)\n"}, True, id="called"),
        pytest.param({"pkg/rows.py": FORGOTTEN + "\n\nTABLE = {'rows': gather_lengths}\n"}, True, id="in a table"),
        pytest.param({"pkg/rows.py": FORGOTTEN.replace("def ", "@register\ndef ")}, True, id="behind a decorator"),
    ],
)
def test_a_name_that_a_package_never_mentions(tmp_path: Path, files: dict[str, str], is_reported: bool) -> None:
    assert ("pkg/rows.py" in reported(tmp_path, package(files, MANY))) is is_reported


def test_a_few_files_are_no_package(tmp_path: Path) -> None:
    assert "pkg/rows.py" in reported(tmp_path, package({}, 3))


def test_a_method_that_every_container_has(tmp_path: Path) -> None:
    method = "import torch\n\n\nclass Lengths:\n    def {}(self, lengths: list[int]):" + BODY.replace("\n    ", "\n        ")
    assert reported(tmp_path / "update", {"rows.py": method.format("update")}) == {}
    assert reported(tmp_path / "rows", {"rows.py": method.format("update_rows")}) == {"rows.py": [6]}


def test_a_method_that_a_base_from_elsewhere_may_call(tmp_path: Path) -> None:
    method = "import torch\nfrom other import Base\n\n\nclass Lengths({}):\n    def gather_lengths(self, lengths: list[int]):{}"
    body = BODY.replace("\n    ", "\n        ")
    assert "pkg/rows.py" not in reported(tmp_path / "none", package({"pkg/rows.py": method.format("", body)}, MANY))
    assert "pkg/rows.py" in reported(tmp_path / "base", package({"pkg/rows.py": method.format("Base", body)}, MANY))


SERVED = """
import threading

from pkg.rows import gather_lengths


class Store:
    def __init__(self):
        self.thread = threading.Thread(target=self.{name})

    def {name}(self):
        while True:
            self._serve(self.queue.get())

    def _serve(self, task):
        self.keep(gather_lengths(task))
"""


@pytest.mark.parametrize(("name", "is_reported"), [("_save_worker", True), ("_save_thread", True), ("_save_rows", False)])
def test_the_body_of_a_thread_that_saves_runs_for_every_task(tmp_path: Path, name: str, is_reported: bool) -> None:
    found = reported(tmp_path, {"pkg/rows.py": FORGOTTEN, "pkg/store.py": SERVED.replace("{name}", name)})
    assert ("pkg/rows.py" in found) is is_reported


EVALUATOR = """\
import torch


class AccuracyEvaluator:
    def __call__(self, model):
        right = 0
        for batch in self.dataloader:
            right += model(batch.cuda()).sum().item()
        return right


    def gather_counts(self, rows: list[int], device: torch.device):
        return torch.tensor(rows, device=device)


class AccuracyTrainer:
    def __call__(self, model):
        right = 0
        for batch in self.dataloader:
            right += model(batch.cuda()).relu().sum().item()  #>
        return right
"""

TRANSFORM = """\
import torch
from torch import nn


class Wrap:
    def forward(self, rows: list[int], device: torch.device):
        return torch.tensor(rows, device=device)


class Scale(nn.Module):
    def forward(self, rows: list[int], device: torch.device):
        return torch.tensor(rows, device=device)  #>
"""


def test_an_evaluator_walks_a_loader_but_trains_nothing(tmp_path: Path) -> None:
    check(tmp_path, {"evaluator.py": EVALUATOR})


def test_a_transform_that_is_no_module_changes_samples(tmp_path: Path) -> None:
    elsewhere = TRANSFORM.replace("device=device)\n\n\nclass", "device=device)  #>\n\n\nclass")
    check(tmp_path, {"project/transforms/wrap.py": TRANSFORM, "project/layers/wrap.py": elsewhere})

"""What a class of another file keeps on the host: by what it stores, or by the comment at a field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.test_rarely import reported

MODEL = """\
import torch
from pkg.pool import Pool


class Head(torch.nn.Module):
    def forward(self, x: torch.Tensor, pool: Pool) -> torch.Tensor:
        return x[: int(pool.counts.sum())]
"""
FIELD = """\
import torch
from dataclasses import dataclass


@dataclass
class Pool:
    counts: torch.Tensor{}
"""
STORED = """\
import torch


class Pool:
    def __init__(self, n: int, source):
        self.counts = None
        self.counts = torch.zeros(n, device={})

    def reset(self, source):
        {}
"""


@pytest.mark.parametrize(
    ("pool", "on_host"),
    [
        pytest.param(FIELD.format("  # CPU tensor"), True, id="a comment says so"),
        pytest.param(FIELD.format("  # kept on the host"), True, id="in other words"),
        pytest.param(FIELD.format("  # copied to the CPU later"), False, id="a comment about something else"),
        pytest.param(FIELD.format(""), False, id="nothing says so"),
        pytest.param(STORED.format("'cpu'", "pass"), True, id="made on the host"),
        pytest.param(STORED.format("'cpu'", "self.counts = source.counts.cpu()"), True, id="filled from a copy to the host"),
        pytest.param(STORED.format("'cuda'", "pass").replace("torch.zeros", "torch.zeros_like"), False, id="made on the device"),
        pytest.param(STORED.format("'cpu'", "self.counts = source.counts"), False, id="given something else too"),
        pytest.param(STORED.format("'cpu'", "self.counts, self.n = source"), False, id="given something else in a tuple"),
    ],
)
def test_an_attribute_of_another_file(tmp_path: Path, pool: str, on_host: bool) -> None:
    field = pool if "@dataclass" in pool or on_host else pool.replace("class Pool:", "class Pool:\n    counts: torch.Tensor\n")
    assert ("pkg/model.py" not in reported(tmp_path, {"pkg/pool.py": field, "pkg/model.py": MODEL})) is on_host

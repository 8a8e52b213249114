"""The setting `devices`: files that are written for other accelerators are left alone, if a project says which ones count."""

from __future__ import annotations

import pytest

from launchlint import engine, registry
from launchlint.settings import Settings
from launchlint.source import Source

CODE = b"""import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, rows: list[int]) -> torch.Tensor:
        return torch.tensor(rows, device=x.device)
"""


@pytest.mark.parametrize(
    ("path", "devices", "count"),
    [
        ("pack/ascend/net.py", (), 1),
        ("pack/ascend/net.py", ("cuda",), 0),
        ("pack/ascend/net.py", ("cuda", "npu"), 1),
        ("pack/net_xpu.py", ("cuda",), 0),
        ("pack/input_output.py", ("cuda",), 1),
    ],
)
def test_only_the_accelerators_asked_for(path: str, devices: tuple[str, ...], count: int) -> None:
    settings = Settings(devices=devices)
    report = engine.check_source(Source.from_bytes(path, CODE), registry.select(settings), settings)
    assert len(report.findings) == count

"""A made project of many files: a runner that calls helpers in other files, and files with nothing to say."""

from __future__ import annotations

from pathlib import Path

from launchlint import registry
from launchlint.rule import Rule
from launchlint.settings import Settings

RUNNER = """\
from pkg.helper import {called}


class ModelRunner:
    def execute_model(self, lengths):
        return {called}(lengths)
"""
HELPER = """\
import torch


def work(lengths: list[int]):
    return torch.tensor(lengths, device="cuda")


def rest(lengths: list[int]):
    return torch.tensor(lengths, device="cuda")
"""
LAYER = """\
import torch


class Layer{number}(torch.nn.Module):
    def forward(self, lengths: list[int]):
        counts = torch.tensor(lengths, device="cuda")
        total = 0
        for length in lengths:
            total += counts[length].item()
        return total, counts.max().item(), torch.repeat_interleave(counts, counts)
"""


def make(root: Path, layers: int = 60) -> list[str]:
    """Write the project; the paths of its files in order."""
    package = root / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text(HELPER)
    (package / "runner.py").write_text(RUNNER.format(called="work"))
    (package / "broken.py").write_text("def f(:\n")
    for number in range(layers):
        (package / f"layer{number:03}.py").write_text(LAYER.format(number=number))
        (package / f"plain{number:03}.py").write_text(f"LIMIT = {number}\n\n\ndef limit():\n    return LIMIT\n")
    return sorted(str(path) for path in package.iterdir())


def settings_of(root: Path) -> Settings:
    return Settings(root=str(root))


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    return registry.select(settings)

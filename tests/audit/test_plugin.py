"""The fixture `launch_budget` as a user meets it: budgets that hold, budgets that break, the report file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="a launch budget needs torch")

ROOT = Path(__file__).parents[2]

RECEIVER = """
import torch

def looped(x, counts, first):
    out = torch.empty(sum(counts), dtype=torch.int64, device=x.device)
    start = 0
    for expert, count in enumerate(counts):
        if count > 0:
            out[start : start + count].fill_(first + expert)
            start += count
    return out

def fixed(ids, counts):
    counts_device = torch.tensor(counts, pin_memory=True).to(ids.device, non_blocking=True)
    return torch.repeat_interleave(ids, counts_device, output_size=sum(counts))
"""

TESTS = """
import torch
from receiver import looped, fixed

COUNTS = [3, 0, 5, 1]

def test_fixed(launch_budget):
    ids = torch.arange(4)
    report = launch_budget(launches=4, waits=0, pageable=0, pinned=1).run(fixed, ids, COUNTS)
    assert report.result.tolist() == [0] * 3 + [2] * 5 + [3]

def test_looped(launch_budget):
    with launch_budget(launches=1, waits=0):
        looped(torch.empty(0, device="cuda"), COUNTS, 0)

def test_waits(launch_budget):
    with launch_budget(waits=0):
        torch.zeros(3, device="cuda").sum().item()

def test_exception_comes_first(launch_budget):
    with launch_budget(waits=0):
        torch.zeros(3, device="cuda").sum().item()
        raise KeyError("mine")
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What pytest prints for a user's tests, and the folder it ran in."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "receiver.py").write_text(RECEIVER)
    (folder / "test_receiver.py").write_text(TESTS)
    return run_pytest(folder, "--launch-budget-report", "spent.json"), folder


def run_pytest(folder: Path, *options: str) -> str:
    """The output of pytest in `folder`, with the plugin of this checkout and no other configuration."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "launchlint.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        *options,
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_outcomes(outcome: tuple[str, Path]) -> None:
    text, _ = outcome
    assert "3 failed, 1 passed" in text


def test_message_names_what_was_too_much_and_where(outcome: tuple[str, Path]) -> None:
    text, _ = outcome
    assert "launch budget exceeded: 3 launches, 1 allowed" in text
    loop = next(line for line in text.splitlines() if "fill_(first + expert)" in line)
    assert loop.split()[0] == "3" and "receiver.py:9" in loop
    assert "launch budget exceeded: 1 wait for the device, 0 allowed" in text


def test_exception_is_not_hidden(outcome: tuple[str, Path]) -> None:
    text, _ = outcome
    assert "KeyError: 'mine'" in text and text.count("launch budget exceeded") <= 4  # twice each in the text and in the summary


def test_report_file(outcome: tuple[str, Path]) -> None:
    _, folder = outcome
    written = json.loads((folder / "spent.json").read_text())
    assert written["schema"] == 1
    entries = {entry["test"].rpartition("::")[2]: entry for entry in written["tests"]}
    assert set(entries) == {"test_fixed", "test_looped", "test_waits"}
    assert entries["test_fixed"]["passed"] and entries["test_fixed"]["budget"] == {"launches": 4, "waits": 0, "pageable": 0, "pinned": 1}
    assert not entries["test_looped"]["passed"] and entries["test_looped"]["report"]["totals"]["launches"] == 3
    assert entries["test_looped"]["report"]["lines"][0]["source"] == "out[start : start + count].fill_(first + expert)"


def test_torch_is_not_imported_before_a_budget_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("import sys\ndef test_plain():\n    assert 'torch' not in sys.modules\n")
    assert "1 passed" in run_pytest(tmp_path)

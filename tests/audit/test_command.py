"""`launchlint audit` on the command line."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the dry run needs torch")

from launchlint.audit import command
from tests.audit.test_plugin import RECEIVER

ARGUMENTS = """
import torch
def arguments():
    return torch.zeros(4), [3, 0, 5, 1], 7
"""
OTHER = """
import torch
def filled(x, counts, first):
    ids = torch.arange(len(counts), device=x.device) + first
    return torch.repeat_interleave(ids, torch.tensor(counts, device=x.device), output_size=sum(counts))
def wrong(x, counts, first):
    return torch.zeros(sum(counts), device=x.device)
def fails(x, counts, first):
    return x.view(99)
"""
LAYER = """
import torch

class Layer(torch.nn.Module):
    @staticmethod
    def forward(x: torch.Tensor, counts: list[int], first: int):
        out = torch.empty(sum(counts), dtype=torch.int64, device=x.device)
        start = 0
        for expert, count in enumerate(counts):
            if count > 0:
                out[start : start + count].fill_(first + expert)
                start += count
        return out
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("receiver_a.py", RECEIVER), ("receiver_b.py", OTHER), ("given.py", ARGUMENTS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def launchlint(*words: str) -> int:
    """Run the command as the command line does."""
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["audit", *words])
    code: int = options.run(options)
    return code


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert launchlint("receiver_a.py:looped", "--args", "given.py") == 0
    text = capsys.readouterr().out
    loop = next(line for line in text.splitlines() if "fill_(first + expert)" in line)
    assert loop.split()[0] == "3" and "receiver_a.py:9" in loop
    assert "dry run, torch" in text


def test_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert launchlint("receiver_a.py:looped", "--args", "given.py", "--compare", "receiver_b.py:filled") == 0
    text = capsys.readouterr().out
    assert "results: equal" in text
    waits = next(line for line in text.splitlines() if line.startswith("waits"))
    assert waits.split() == ["waits", "0", "1"]


def test_comparison_sees_another_result(capsys: pytest.CaptureFixture[str]) -> None:
    launchlint("receiver_a.py:looped", "--args", "given.py", "--compare", "receiver_b.py:wrong")
    assert "results: different" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert launchlint("receiver_a.py:looped", "--args", "given.py", "--format", "json", "--no-rules") == 0
    (written,) = json.loads(capsys.readouterr().out)
    assert written["schema"] == 1 and written["mode"] == "dry run" and written["totals"]["launches"] == 3
    assert written["lines"][0]["line"] == 9


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("looped",), "not of the form module:function"),
        (("no_such_module:f",), "no module named no_such_module"),
        (("nothing.py:f",), "no such file: nothing.py"),
        (("receiver_a.py:nothing",), "receiver_a.py has no nothing"),
        (("receiver_a.py:torch",), "not callable"),
        (("receiver_a.py:looped", "--args", "nothing.py"), "no such file: nothing.py"),
        (("receiver_a.py:looped", "--args", "receiver_b.py"), "neither args, kwargs nor arguments()"),
        (("receiver_b.py:fails", "--args", "given.py"), "raised RuntimeError"),
    ],
)
def test_wrong_use_is_one_clear_message(words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert launchlint(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith("launchlint: ") and part in error


def test_lines_that_a_rule_reports_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("layer.py").write_text(LAYER)
    launchlint("layer.py:Layer.forward", "--args", "given.py")
    loop = next(line for line in capsys.readouterr().out.splitlines() if "fill_(first + expert)" in line)
    assert "LCH101" in loop


def test_a_loop_of_launches_that_no_rule_reports_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd.py").write_text("def odd(x, counts, first):\n    for _ in range(9):\n        x = x * 2\n    return x\n")
    launchlint("odd.py:odd", "--args", "given.py")
    assert "not seen by a rule: odd.py:3: 9 launches in a loop" in capsys.readouterr().out

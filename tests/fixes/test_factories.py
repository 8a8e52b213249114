"""A tensor that is made and then moved, made where it is needed."""

from __future__ import annotations

import ast

import pytest

from launchlint.fixes import fix_source
from launchlint.fixes.factories import make_on_device
from launchlint.model import Applicability
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.context import checker
from tests.fixes.execution import assert_same, define, run

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
MODULE = "import torch\n\ndef f(n: int, device, x: list):\n    return {}\n"


def fixed(expression: str, floor: Applicability = SAFE) -> str:
    options = Settings()
    text = MODULE.format(expression)
    done = fix_source(Source.from_bytes("some.py", text.encode()), checker("LCH204", make_on_device, ast.Call, options), floor, options)
    assert not done.problems
    return done.text.split("return ")[1].rstrip("\n")


MADE = {
    "torch.zeros(n).to(device)": "torch.zeros(n, device=device)",
    "torch.zeros((n)).to(device)": "torch.zeros((n), device=device)",
    "torch.empty(0, 3).to(device=device)": "torch.empty(0, 3, device=device)",
    "torch.full((n,), 7, dtype=torch.int32).to(device, non_blocking=True)": "torch.full((n,), 7, dtype=torch.int32, device=device)",
    "torch.ones(n,).to('cpu')": "torch.ones(n, device='cpu',)",
    "torch.eye(n).to(device).sum(0)": "torch.eye(n, device=device).sum(0)",
    "torch.arange(4).to(device)": "torch.arange(4, device=device)",
    "torch.arange(1, len(x)).to(device)": "torch.arange(1, len(x), device=device)",
    "torch.zeros(\n        n,\n        2,\n    ).to(device)": "torch.zeros(\n        n,\n        2,\n        device=device,\n    )",
}


@pytest.mark.parametrize("expression", MADE)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_it_is_made_on_the_device(expression: str, n: int) -> None:
    assert fixed(expression) == MADE[expression]
    before, operators_before = run(define(MODULE.format(expression), "f"), n, "cpu", [1, 2])
    after, operators_after = run(define(MODULE.format(MADE[expression]), "f"), n, "cpu", [1, 2])
    assert_same(before, after)
    assert operators_after <= operators_before  # a copy from the host to the host is no operator


@pytest.mark.parametrize("expression", ["torch.rand(n).to(device)", "torch.arange(n).to(device)", "torch.linspace(0, 1, n).to(device)"])
def test_what_a_device_makes_differently_is_unsafe(expression: str) -> None:
    assert fixed(expression) == expression
    assert fixed(expression, UNSAFE) == expression.replace(").to(device)", ", device=device)")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(n).to(torch.int32)",
        "torch.zeros(n).to(device, torch.int32)",
        "torch.zeros(n).to(device, copy=True)",
        "torch.zeros(n).to(n)",
        "torch.zeros(n, pin_memory=True).to(device)",
        "torch.zeros(n, requires_grad=True).to(device)",
        "torch.zeros(n, **x).to(device)",
        "torch.zeros(n, device='cpu').to(device)",
        "torch.tensor(x).to(device)",
        "(torch.zeros(n)).to(device)",
        "torch.zeros(n).cpu()",
        "torch.zeros(n  # why\n    ).to(device)",
        "(torch.zeros(n)  # why\n    .to(device))",
        "torch.zeros(*x).to(device, device)",
    ],
)
def test_other_moves_are_left_alone(expression: str) -> None:
    assert fixed(expression, UNSAFE) == expression


def test_cuda_names_its_device() -> None:
    assert fixed("torch.zeros(n).cuda()") == 'torch.zeros(n, device="cuda")'

"""Loops: what iterating gives, and what is known after the loop."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function

DEVICE = "tensor on the device"
MADE = "d = torch.zeros(4, 4, device='cuda')\n"


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for v in d:", DEVICE),
        ("for v in [d, d]:", DEVICE),
        ("for v in range(n):", "host scalar"),
        ("for v in np.zeros(3):", "numpy array"),
        ("for v in d.tolist():", "host scalar"),
        ("for i, v in enumerate(d):", DEVICE),
        ("for v, _ in enumerate(d):", "host scalar"),
        ("for n, v in zip(range(n), d):", DEVICE),
        ("for v in reversed([d]):", DEVICE),
        ("for v in d.split(2):", DEVICE),
        ("for k, v in {'a': d}.items():", DEVICE),
        ("for v in {'a': d}.values():", DEVICE),
        ("for k, (v, m) in enumerate([(d, n)]):", DEVICE),
        ("async for v in d:", DEVICE),
    ],
)
def test_the_target_of_a_loop(loop: str, expected: str) -> None:
    body = f"{MADE}{loop}\n    probe(v)"
    if loop.startswith("async"):
        body = "async def inner():\n    " + body.replace("\n", "\n    ")
    assert in_function(body) == expected


def test_a_value_that_changes_in_a_loop() -> None:
    assert in_function("v = None\nfor i in range(n):\n    v = torch.zeros(3, device='cuda')\nprobe(v)") == DEVICE


def test_a_value_that_moves_in_a_loop_may_be_on_either_side_after_it() -> None:
    assert in_function("v = torch.zeros(3)\nfor i in range(n):\n    v = v.cuda()\nprobe(v)") == "tensor of unknown device"


def test_a_while_loop() -> None:
    assert in_function("v = None\nwhile n > 0:\n    v = torch.zeros(3, device='cuda')\nprobe(v)") == DEVICE


def test_an_else_of_a_loop() -> None:
    assert in_function("for i in range(n):\n    pass\nelse:\n    v = torch.zeros(3, device='cuda')\nprobe(v)") == DEVICE


def test_after_a_try() -> None:
    code = """
    def f():
        try:
            v = torch.zeros(3, device="cuda")
        except ValueError:
            probe(1)
        finally:
            probe(v)
    """
    assert described(code) == ["host scalar", DEVICE]


def test_both_ways_of_a_match() -> None:
    body = """
    match n:
        case 1:
            v = torch.zeros(3, device="cuda")
        case _:
            v = torch.ones(3, device="cuda")
    probe(v)
    """
    assert in_function(body) == DEVICE

"""Code that a naive evaluation would not finish, or on which it would overflow the stack."""

from __future__ import annotations

import time

import pytest

from tests.values.probe import described, in_function

LIMIT = 20.0  # seconds, far above what any of these needs: a shared machine may be slow, an endless loop is endless


def _chain(length: int) -> str:
    lines = ["if n == 0:\n    v = torch.zeros(3, device='cuda')"]
    lines += [f"elif n == {number}:\n    v = torch.zeros({number}, device='cuda')" for number in range(1, length)]
    return "\n".join(lines) + "\nprobe(v)"


def _steps(depth: int) -> str:
    lines = [f"{'    ' * step}if n > {step}:" for step in range(depth)]
    return "\n".join(lines) + "\n" + "    " * depth + "pass\nprobe(x)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(n):\n    x = x\n    x = x + x\nprobe(x)", "tensor of unknown device"),
        ("v = v + 1\nprobe(v)", "unknown"),
        ("v = [v]\nv.append(v)\nprobe(v)", "host list"),
        ("v = (v,)\nv = (v, v)\nprobe(v)", "tuple"),
        ("probe(" + " + ".join(["x"] * 2000) + ")", "tensor of unknown device"),
        ("probe(" + " + ".join(["n"] * 2000) + ")", "host scalar"),
        ("probe([" + ", ".join(["1"] * 50_000) + "])", "host list"),
        ("probe({" + ", ".join(f"{number}: x" for number in range(5000)) + "})", "dict"),
        ("v = x" + ".view(-1)" * 80 + "\nprobe(v)", "unknown"),  # deeper than code that people write
        ("v = x\n" + "v = v.view(-1)\n" * 3000 + "probe(v)", "tensor of unknown device"),
        (_chain(800), "tensor on the device"),
        (_steps(60), "tensor of unknown device"),
        ("v = None\n" + "v = (v, v)\n" * 40 + "probe(v)", "tuple"),
        ("v = x\n" + "v = v if n else v\n" * 2000 + "probe(v)", "tensor of unknown device"),
    ],
    ids=[
        "names that depend on themselves", "a name not there yet", "a list of itself", "a tuple of itself", "a sum of 2,000 tensors",
        "a sum of 2,000 numbers", "50,000 numbers", "5,000 entries", "80 calls in a chain", "3,000 lines", "800 elifs", "60 levels",
        "a tuple that doubles", "2,000 conditions",
    ],
)  # fmt: skip
def test_it_ends(body: str, expected: str) -> None:
    started = time.perf_counter()
    assert in_function(body, "x: torch.Tensor, n: int, v") == expected
    assert time.perf_counter() - started < LIMIT


def test_helpers_that_call_each_other_in_all_ways() -> None:
    functions = "".join(f"def f{one}():\n    return " + " + ".join(f"f{other}()" for other in range(12)) + "\n" for one in range(12))
    started = time.perf_counter()
    assert len(described(functions + "def g():\n    probe(f0())\n")) == 1
    assert time.perf_counter() - started < LIMIT


def test_many_classes_that_derive_from_each_other() -> None:
    classes = "".join(f"class C{number}(C{(number + 1) % 200}):\n    def m(self):\n        return self.m2()\n" for number in range(200))
    started = time.perf_counter()
    assert described(classes + "def g(c: C0):\n    probe(c.rows)\n") == ["unknown"]
    assert time.perf_counter() - started < LIMIT

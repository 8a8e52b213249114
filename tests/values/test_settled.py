"""Branches that no caller in sight lets run, beside branches that one of them does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from launchlint.rule import FunctionNode
from launchlint.values.settled import NOTHING_SETTLED, Settled, settle
from tests.engine.test_rarely import check

HELPER = """\
import torch


def attend(x: torch.Tensor, lengths: list[int], scale=None, packed=False, *, rows=None):
    if scale is None:
        scale = torch.tensor(lengths, device=x.device){scale}
    if packed:
        x = x + torch.tensor(lengths, device=x.device){packed}
    if rows is not None and x.ndim == 3:
        x = x + torch.tensor(lengths, device=x.device){rows}
    if not packed:
        x = x + torch.tensor(lengths, device=x.device)  #>
    return x * scale
"""

LAYER = """\
import torch
from helper import attend


class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor, lengths: list[int], scale: torch.Tensor, maybe=None):
        return attend({call})
"""


@pytest.mark.parametrize(
    ("call", "running"),
    [
        ("x, lengths, scale", ""),
        ("x, lengths, scale=self.scale, packed=False, rows=None", ""),
        ("x, lengths", "scale"),
        ("x, lengths, None", "scale"),
        ("x, lengths, maybe", "scale"),
        ("x, lengths, getattr(self, 'scale', None)", "scale"),
        ("x, lengths, scale, packed=x.ndim == 2", "packed"),
        ("x, lengths, scale, rows=lengths", "rows"),
        ("x, lengths, scale, rows=maybe", "rows"),
        ("x, *self.rest", "scale packed rows"),
        ("x, lengths, **self.options", "scale packed rows"),
    ],
)
def test_one_caller(tmp_path: Path, call: str, running: str) -> None:
    marks = {name: "  #>" if name in running.split() else "" for name in ("scale", "packed", "rows")}
    check(tmp_path, {"helper.py": HELPER.format(**marks), "layer.py": LAYER.format(call=call)})


def test_a_second_caller_that_is_not_hot_counts(tmp_path: Path) -> None:
    """Whatever calls a function of that name may be meant, except in tests."""
    other = "from helper import attend\n\n\ndef serve(x, lengths):\n    return attend(x, lengths, packed=True)\n"
    running = HELPER.format(scale="  #>", packed="  #>", rows="")
    layer = LAYER.format(call="x, lengths, scale")
    check(tmp_path / "served", {"helper.py": running, "layer.py": layer, "serving.py": other})
    check(tmp_path / "tested", {"helper.py": HELPER.format(scale="", packed="", rows=""), "layer.py": layer, "tests/attention.py": other})


COMPARING = """\
import torch


def rows(x: torch.Tensor, lengths: list[int], mode="sum", most=0):
    if most > 0:
        x = x + torch.tensor(lengths, device=x.device){most}
    if mode == "mean":
        x = x + torch.tensor(lengths, device=x.device){mean}
    if mode != "mean" and x.ndim == 2:
        x = x + torch.tensor(lengths, device=x.device)  #>
    return x
"""


@pytest.mark.parametrize(
    ("call", "running"),
    [("x, lengths", ""), ("x, lengths, most=4", "most"), ("x, lengths, most='many'", "most"), ("x, lengths, kind", "mean")],
)
def test_a_parameter_that_is_compared(tmp_path: Path, call: str, running: str) -> None:
    """With a constant, where each caller gives one, or leaves it as it is."""
    marks = {name: "  #>" if name in running.split() else "" for name in ("most", "mean")}
    layer = LAYER.replace("attend", "rows").replace("maybe=None", "kind='sum'").format(call=call)
    check(tmp_path, {"helper.py": COMPARING.format(**marks), "layer.py": layer})


def test_a_caller_that_runs_rarely_does_not_count(tmp_path: Path) -> None:
    """What only an export lets run is no part of a step."""
    example = "from helper import rows\n\n\ndef {name}(x, lengths, many):\n    return rows(x, lengths, most=many)\n"
    layer = LAYER.replace("attend", "rows").format(call="x, lengths")
    quiet, running = COMPARING.format(most="", mean=""), COMPARING.format(most="  #>", mean="")
    check(tmp_path / "exported", {"helper.py": quiet, "layer.py": layer, "shapes.py": example.format(name="input_example")})
    check(tmp_path / "served", {"helper.py": running, "layer.py": layer, "shapes.py": example.format(name="serve")})


def test_a_parameter_that_is_bound_again(tmp_path: Path) -> None:
    """What a caller gives is not what is asked about."""
    helper = HELPER.format(scale="  #>", packed="", rows="").replace("    if scale is None:", "    scale = x.scale\n    if scale is None:")
    check(tmp_path, {"helper.py": helper, "layer.py": LAYER.format(call="x, lengths, scale")})


def test_a_function_without_a_caller(tmp_path: Path) -> None:
    """A root may be called by anybody."""
    text = HELPER.replace("def attend(x", "def forward(self, x").replace("\ndef", "\nclass Layer(torch.nn.Module):\ndef")
    body = "".join(f"    {line}\n" if line and not line.startswith(("import", "class")) else f"{line}\n" for line in text.splitlines())
    check(tmp_path, {"layer.py": body.format(scale="  #>", packed="  #>", rows="  #>")})


def parsed(text: str) -> FunctionNode:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def test_what_calls_settle() -> None:
    function = parsed("def f(self, a, b=None, c=False): ...")
    caller = parsed("def g(p, q=None):\n    local = None\n    self.f(p, q)\n    self.f(1, local, True)\n    self.f(p, c=True)\n")
    calls = [(node, caller) for node in ast.walk(caller) if isinstance(node, ast.Call)]
    assert settle(function, 1, calls) == Settled(frozenset({"a", "c"}), {})
    assert settle(function, 1, calls[:1]) == Settled(frozenset({"a", "c"}), {"c": False})
    assert settle(function, 1, calls[2:]) == Settled(frozenset({"a", "c"}), {"b": None, "c": True})
    assert settle(function, 1, []) is NOTHING_SETTLED


def test_names_that_are_bound_to_themselves() -> None:
    """They end, and a long chain of names is not followed to its end."""
    chain = "".join(f"    a{number + 1} = a{number}\n" for number in range(3000))
    function = parsed("def f(x): ...")
    loops, long = "    a = a if a else b\n    b = a if b else b\n    f(a)\n", f"    a0 = c\n{chain}    f(a3000)\n"
    for body, given in ((loops, {"x"}), (long, set[str]())):
        caller = parsed(f"def g(c):\n{body}")
        calls = [(node, caller) for node in ast.walk(caller) if isinstance(node, ast.Call)]
        assert settle(function, 0, calls) == Settled(frozenset(given), {})

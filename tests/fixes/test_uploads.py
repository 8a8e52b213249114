"""The rewrites of uploads, executed: constants made on the device, pinned construction, the project's own helper."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from launchlint.rules.lch201_list_to_device import fix as list_to_device
from launchlint.rules.lch202_unpinned_non_blocking import fix as unpinned

from launchlint.fixes import fix_source
from launchlint.fixes.pinning import blocking_to_pinned
from launchlint.model import Applicability, Fix
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.context import checker
from tests.fixes.execution import assert_same, define, run

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
Rewrite = Callable[..., Fix | None]


def fixed(text: str, rewrite: Rewrite, floor: Applicability = UNSAFE, options: Settings | None = None) -> str:
    options = options or Settings()
    done = fix_source(Source.from_bytes("some.py", text.encode()), checker("LCH201", rewrite, ast.Call, options), floor, options)
    assert not done.problems
    return done.text


def upload(expression: str, parameters: str = "x: list, n: int, d") -> str:
    return f"import torch\n\ndef f({parameters}):\n    return {expression}\n"


def body(text: str) -> str:
    return text[text.index("return ") + 7 :].rstrip("\n")


def helper(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """What a project's own upload function does, as far as values go."""
    host = data if isinstance(data, torch.Tensor) else torch.as_tensor(data)
    return host.to(device=device, dtype=dtype)


# -------------------------------------------------------------------- constants


CONSTANTS = {
    "torch.tensor([-1], dtype=torch.int64, device=d)": "torch.full((1,), -1, dtype=torch.int64, device=d)",
    "torch.tensor([0, 0, 0], device=d)": "torch.full((3,), 0, device=d)",
    "torch.tensor((1.5,), device=d)": "torch.full((1,), 1.5, device=d)",
    "torch.tensor([True], device=d)": "torch.full((1,), True, device=d)",
    "torch.tensor(3, device=d)": "torch.full((), 3, device=d)",
    "torch.tensor(-0.0, device=d)": "torch.full((), -0.0, device=d)",
    "torch.tensor([[0, 0], (0, 0)], device=d)": "torch.full((2, 2), 0, device=d)",
    "torch.tensor([[[1]]], dtype=torch.bool, device=d)": "torch.full((1, 1, 1), 1, dtype=torch.bool, device=d)",
    "torch.tensor([2] * 4, device=d)": "torch.full((4,), 2, device=d)",
    "torch.tensor([2] * 0, dtype=torch.int32, device=d)": "torch.full((0,), 2, dtype=torch.int32, device=d)",
    "torch.tensor([2] * len(x), dtype=torch.int32, device=d)": "torch.full((len(x),), 2, dtype=torch.int32, device=d)",
    "torch.as_tensor([7], dtype=torch.float16, device=d)": "torch.full((1,), 7, dtype=torch.float16, device=d)",
    "torch.asarray([7], device=d)": "torch.full((1,), 7, device=d)",
    "torch.tensor([1.7], dtype=torch.int64, device=d)": "torch.full((1,), 1.7, dtype=torch.int64, device=d)",
    "torch.tensor([], device=d)": "torch.empty(0, device=d)",
    "torch.tensor((), dtype=torch.int64, device=d)": "torch.empty(0, dtype=torch.int64, device=d)",
    "torch.tensor([0],device=d,)": "torch.full((1,), 0,device=d,)",
    "torch.tensor( [0] , device = (d) )": "torch.full( (1,), 0 , device = (d) )",
}


@pytest.mark.parametrize("expression", CONSTANTS)
@pytest.mark.parametrize("x", [[], [4, 5]])
def test_a_constant_is_made_on_the_device(expression: str, x: list[int]) -> None:
    text = upload(expression)
    after = fixed(text, list_to_device.rewrite, SAFE)
    assert body(after) == CONSTANTS[expression]
    assert_same(run(define(text, "f"), x, 1, "cpu")[0], run(define(after, "f"), x, 1, "cpu")[0])


@settings(max_examples=200, deadline=None)
@given(
    value=st.one_of(st.integers(-(2**70), 2**70), st.integers(-300, 300), st.floats(), st.booleans()),
    dtype=st.sampled_from(["", "int64", "int32", "int8", "uint8", "float32", "float16", "bfloat16", "float64", "bool"]),
    form=st.sampled_from(["[{}]", "[{0}, {0}]", "{}", "({},)", "[{}] * 3", "[{}] * 0"]),
)
def test_a_constant_is_equal_for_every_literal_and_dtype(value: float, dtype: str, form: str) -> None:
    named = f", dtype=torch.{dtype}" if dtype else ""
    text = upload(f"torch.tensor({form.format(repr(value))}{named}, device=d)")
    after = fixed(text, list_to_device.rewrite, SAFE)
    extremes = {"inf": float("inf"), "nan": float("nan")}  # written as names, which are no literals
    if not math.isfinite(value):
        assert after == text
        return
    try:
        before = run(define(text, "f", **extremes), [], 1, "cpu")[0]
    except (RuntimeError, ValueError):  # a value that the dtype does not hold is refused either way
        with pytest.raises((RuntimeError, ValueError)):
            run(define(after, "f"), [], 1, "cpu")
        return
    assert_same(before, run(define(after, "f", **extremes), [], 1, "cpu")[0])


@pytest.mark.parametrize(
    "expression",
    [
        "torch.tensor([0, 1], device=d)",
        "torch.tensor([0, 0.0], device=d)",
        "torch.tensor([n], device=d)",
        "torch.tensor([*x], device=d)",
        "torch.tensor([0] * n, dtype=torch.int64, device=d)",
        "torch.tensor([0] * len(x), device=d)",
        "torch.tensor([0] * 0, device=d)",
        "torch.tensor([[0], [0, 0]], device=d)",
        "torch.tensor([[0], 0], device=d)",
        "torch.tensor([[], []], device=d)",
        "torch.tensor([0], device=d, requires_grad=True)",
        "torch.tensor([0], device=d, pin_memory=False)",
        "torch.tensor([0])",
        'torch.tensor([0], device="cpu")',
        "torch.tensor(([0]), device=d)",
        "(torch.tensor)([0], device=d)",
        "torch.tensor([1j], device=d)",
        "torch.tensor([1e400], device=d)",
        "torch.tensor([0], **n)",
        "n.tensor([0], device=d)",
    ],
)
def test_what_may_differ_is_not_safe(expression: str) -> None:
    text = upload(expression)
    assert fixed(text, list_to_device.rewrite, SAFE) == text


def test_a_comment_inside_the_call_stays() -> None:
    text = upload("torch.tensor(\n        [-1],  # no slot\n        device=d,\n    )")
    assert body(fixed(text, list_to_device.rewrite, SAFE)) == "torch.full(\n        (1,), -1,  # no slot\n        device=d,\n    )"


# -------------------------------------------------------------------- lists


LISTS = {
    "torch.tensor(x, device=d)": "torch.tensor(x, pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor(x, dtype=torch.int32, device=d)": "torch.tensor(x, dtype=torch.int32, pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor(x, device=d, dtype=torch.int32)": "torch.tensor(x, pin_memory=True, dtype=torch.int32).to(d, non_blocking=True)",
    "torch.as_tensor(x, device=d)": "torch.tensor(x, pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor([i + 1 for i in x], device=(d))": "torch.tensor([i + 1 for i in x], pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor(n, device=d)": "torch.tensor(n, pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor([[n, 2]], device=d).sum(0)": "torch.tensor([[n, 2]], pin_memory=True).to(d, non_blocking=True).sum(0)",
}


@pytest.mark.parametrize("expression", LISTS)
@pytest.mark.parametrize("x", [[], [0], [3, -4, 5]])
def test_a_list_is_built_pinned_and_copied_without_waiting(expression: str, x: list[int]) -> None:
    text = upload(expression)
    after = fixed(text, list_to_device.rewrite)
    assert body(after) == LISTS[expression]
    assert fixed(text, list_to_device.rewrite, SAFE) == text
    assert_same(run(define(text, "f"), x, 1, "cpu")[0], run(define(after, "f"), x, 1, "cpu")[0])


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "bool"])
@pytest.mark.parametrize("form", ["[n]", "(n,)", "n"])
def test_a_number_with_a_dtype_is_made_on_the_device(form: str, dtype: str) -> None:
    text = upload(f"torch.tensor({form}, dtype=torch.{dtype}, device=d)")
    after = fixed(text, list_to_device.rewrite)
    assert body(after) == f"torch.full({'()' if form == 'n' else '(1,)'}, n, dtype=torch.{dtype}, device=d)"
    assert fixed(text, list_to_device.rewrite, SAFE) == text
    for number in (0, 1, -5, 2**30):
        assert_same(run(define(text, "f"), [], number, "cpu")[0], run(define(after, "f"), [], number, "cpu")[0])


@pytest.mark.parametrize("dtype", ["", ", dtype=torch.int32"])
@pytest.mark.parametrize("x", [[], [0], [3, -4, 5]])
def test_a_list_goes_through_the_projects_helper(dtype: str, x: list[int]) -> None:
    options = Settings(h2d_helper="project.upload")
    text = upload(f"torch.tensor(x{dtype}, device=d)")
    after = fixed(text, list_to_device.rewrite, options=options)
    assert after == text.replace("torch.tensor", "upload").replace("import torch\n", "import torch\nfrom project import upload\n")
    runnable = after.replace("from project import upload\n", "")
    assert_same(run(define(text, "f"), x, 1, "cpu")[0], run(define(runnable, "f", upload=helper), x, 1, "cpu")[0])


@pytest.mark.parametrize("annotation", ["np.ndarray", "torch.Tensor", "object"])
def test_what_torch_refuses_to_pin_is_not_pinned(annotation: str) -> None:
    text = upload("torch.tensor(x, device=d)", f"x: {annotation}, d")
    assert fixed(text, list_to_device.rewrite) == text


def test_torch_refuses_to_pin_what_it_makes_from_an_array() -> None:
    """Why lists only: with or without an accelerator this raises, so such a fix would break the program."""
    with pytest.raises((TypeError, ValueError, RuntimeError), match="numpy"):
        torch.tensor(torch.zeros(2).numpy(), pin_memory=True)


@pytest.mark.parametrize("expression", ["torch.tensor(x, device=d)", "torch.tensor(x).to(d, non_blocking=True)"])
def test_nothing_is_pinned_turn_by_turn(expression: str) -> None:
    text = f"import torch\n\ndef f(x: list, d):\n    for _ in range(3):\n        y = {expression}\n    return y\n"
    rewrite = list_to_device.rewrite if "device" in expression else unpinned.rewrite
    assert fixed(text, rewrite) == text
    assert "upload(x, device=d)" in fixed(text, rewrite, options=Settings(h2d_helper="project.upload"))


@pytest.mark.parametrize("pin", ["off", "", "PIN_MEMORY", "not python"])
def test_without_a_usable_pin_expression_nothing_is_written(pin: str) -> None:
    text = upload("torch.tensor(x, device=d)")
    assert fixed(text, list_to_device.rewrite, options=Settings(pin_memory=pin)) == text


# -------------------------------------------------------------------- copies that claim not to wait


class Named(str):
    """A device name with an attribute."""

    x = ""


PINNED = {
    "torch.tensor(x).to(d, non_blocking=True)": "torch.tensor(x, pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor((x)).to(d, non_blocking=True)": "torch.tensor((x), pin_memory=True).to(d, non_blocking=True)",
    "torch.tensor(x,).to(d, non_blocking=True)": "torch.tensor(x, pin_memory=True,).to(d, non_blocking=True)",
    'torch.arange((n), device="cpu").to(d, non_blocking=True)': 'torch.arange((n), device="cpu", pin_memory=True).to(d, non_blocking=True)',
    "torch.zeros(4,).to(d.x or d, non_blocking=True)": "torch.zeros(4, pin_memory=True,).to(d.x or d, non_blocking=True)",
    "torch.tensor(\n        x,\n        dtype=torch.int32,\n    ).to(d, non_blocking=True)": (
        "torch.tensor(\n        x,\n        dtype=torch.int32,\n        pin_memory=True,\n    ).to(d, non_blocking=True)"
    ),
}


@pytest.mark.parametrize("expression", PINNED)
def test_host_memory_is_pinned_where_it_is_made(expression: str) -> None:
    text = upload(expression)
    after = fixed(text, unpinned.rewrite)
    assert body(after) == PINNED[expression]
    arguments = ([1, 2], 3, Named("cpu"))
    assert_same(run(define(text, "f"), *arguments)[0], run(define(after, "f"), *arguments)[0])


def test_the_place_where_a_name_is_made_is_found() -> None:
    text = "import torch\n\ndef f(x: list, d):\n    host = torch.tensor(x, dtype=torch.int32)\n    return host.to(d, non_blocking=True)\n"
    after = fixed(text, unpinned.rewrite)
    assert after == text.replace("int32)", "int32, pin_memory=True)")
    assert_same(run(define(text, "f"), [1, 2], "cpu")[0], run(define(after, "f"), [1, 2], "cpu")[0])


@pytest.mark.parametrize("expression", ["torch.zeros(n).to(device, non_blocking=True)", "torch.full((2,), n).cuda(non_blocking=True)"])
def test_what_can_be_made_on_the_device_is_not_copied(expression: str) -> None:
    after = fixed(upload(expression, "n, device"), unpinned.rewrite)
    assert ".to(" not in after
    assert ".cuda(" not in after
    assert ("device=device)" in after) != ('device="cuda")' in after)


@pytest.mark.parametrize(
    "later",
    ["h[0] = 1", "h[0][1] = 2", "h.zero_()", "h[:1].fill_(2)", "h[0] += 1", "h.data.add_(1)", "a = h.numpy()"],
)
def test_memory_that_is_written_after_the_copy_started_is_not_pinned(later: str) -> None:
    text = f"import torch\n\ndef f(x: list, d):\n    h = torch.tensor(x)\n    y = h.to(d, non_blocking=True)\n    {later}\n    return y\n"
    assert fixed(text, unpinned.rewrite) == text
    before = text.replace(f"    {later}\n", "").replace("    y = ", f"    {later}\n    y = ")
    assert ("pin_memory=True" in fixed(before, unpinned.rewrite)) == ("numpy" not in later)  # a view may be written any time


def test_a_blocking_copy_of_a_list_waits_no_more() -> None:
    text = "import torch\n\ndef f(x: list, d):\n    h = torch.tensor(x)\n    return h.to(d), h.cuda()\n"
    after = fixed(text, blocking_to_pinned)
    assert "h = torch.tensor(x, pin_memory=True)\n    return h.to(d, non_blocking=True), h.cuda()" in after


def test_a_name_that_is_made_twice_is_left_alone() -> None:
    text = "import torch\n\ndef f(x: list, d):\n    h = torch.tensor(x)\n    h = torch.tensor(x)\n    return h.to(d, non_blocking=True)\n"
    assert fixed(text, unpinned.rewrite) == text


@pytest.mark.parametrize(
    "expression",
    [
        "torch.from_numpy(x).to(d, non_blocking=True)",
        "torch.tensor(x, pin_memory=False).to(d, non_blocking=True)",
        'torch.zeros(4, device="cuda").to(d, non_blocking=True)',
        "torch.zeros(4, **n).to(d, non_blocking=True)",
        "torch.zeros(4, out=n).to(d, non_blocking=True)",
        "torch.cat([n, n]).to(d, non_blocking=True)",
        "torch.zeros(4  # why\n    ).to(d, non_blocking=True)",
    ],
)
def test_what_cannot_be_pinned_there_is_left_alone(expression: str) -> None:
    text = upload(expression)
    assert fixed(text, unpinned.rewrite) == text


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.from_numpy(x).to(d, non_blocking=True)", "upload(x, device=d)"),
        ("torch.tensor(x, dtype=torch.int32).to(d, non_blocking=True)", "upload(x, dtype=torch.int32, device=d)"),
    ],
)
def test_a_copy_goes_through_the_projects_helper(expression: str, expected: str) -> None:
    after = fixed(upload(expression), unpinned.rewrite, options=Settings(h2d_helper="project.upload"))
    assert body(after) == expected
    assert "from project import upload\n" in after

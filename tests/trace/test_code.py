"""Which line a recorded call stands on."""

from __future__ import annotations

import ast
import textwrap

import pytest

from launchlint.trace.code import Frame, Module, frame_of, keys_of, may_repeat, without_address

SOURCE = textwrap.dedent(
    """\
    import torch
    from torch import zeros as empty_page

    class Layer:
        def __init__(self):
            self.inner = Linear(8, 8)

        @decorated
        @twice
        def forward(self, x):
            y = self.inner(x)
            for t in x:
                y[0, :2] = 1.0
                y.add_(t.item())
            z = (
                y
                .mul(2)
                .sum()
            )
            return z + float(y[1]) if y.any() else y.sum()

    def numbers(n):
        for i in range(n):
            yield i

    def walk(n):
        source = numbers(n)
        page = empty_page(3)
        total = 0
        for i in source:
            total = total + page
        return sum(p.item() for p in page) @ total
    """
)
TENSOR = "<built-in method {} of Tensor object>"


def lines(function: str, first: int, names: list[str]) -> list[tuple[int | None, bool]]:
    """The line of each event in turn, and whether it is certain."""
    found = Module(ast.parse(SOURCE)).function(Frame("a.py", first, function))
    assert found is not None
    at = -1
    result: list[tuple[int | None, bool]] = []
    for name in names:
        place = found.find(keys_of(name), may_repeat(name), at)
        at = place[0] if place else at
        result.append((found.lines[place[0]], place[1]) if place else (None, False))
    return result


def test_calls_operators_and_subscripts_of_one_run() -> None:
    step = ["aten::lift_fresh", "aten::select", "aten::slice", "aten::fill_", TENSOR.format("item"), TENSOR.format("add_")]
    names = ["nn.Module: Linear_0", "torch/_tensor.py(1195): __iter__", *step, *step, TENSOR.format("mul"), TENSOR.format("sum")]
    loop = [(13, True), (13, False), (13, False), (13, True), (14, True), (14, True)]
    assert lines("forward", 8, names) == [(11, True), (12, True), *loop, *loop, (17, True), (18, False)]


def test_what_python_asks_without_a_call_in_the_source() -> None:
    names = [TENSOR.format("any"), "aten::is_nonzero", "aten::select", "aten::item", "aten::add"]
    assert [line for line, _ in lines("forward", 8, names)] == [20] * 5, "the subscript of line 13 was before the condition"
    assert lines("forward", 8, ["aten::add"]) == [(20, True)]


def test_imported_names_and_comprehensions() -> None:
    names = ["<built-in method zeros of type object>", "aten::add", "<built-in function sum>", "a.py(32): <genexpr>", "aten::matmul"]
    assert lines("walk", 26, names) == [(28, True), (31, True), (32, True), (32, True), (32, True)]
    assert lines("<genexpr>", 32, [TENSOR.format("item")] * 3) == [(32, True)] * 3


def test_what_no_place_can_make_has_no_line() -> None:
    assert lines("walk", 26, [TENSOR.format("cos"), "aten::sin", "other.py(1): helper"]) == [(None, False)] * 3


def test_functions_are_found_where_they_begin_or_by_a_line_inside() -> None:
    module = Module(ast.parse(SOURCE))
    at = {(name, line): module.function(Frame("a.py", line, name)) for name, line in [("forward", 8), ("forward", 14), ("<module>", 27)]}
    assert [(found.first, found.last) for found in at.values() if found] == [(8, 20), (8, 20), (0, 32)]
    assert module.function(Frame("a.py", 23, "forward")) is None, "no function of the name is there"
    generators = {name: found[0].generator for name, found in module.functions.items()}
    assert generators["numbers"] and not generators["walk"] and not generators["forward"]


def test_the_line_at_which_a_recording_began_is_where_a_function_goes_on() -> None:
    function = Module(ast.parse(SOURCE)).function(Frame("a.py", 18, "forward"))
    assert function is not None
    place = function.find(keys_of(TENSOR.format("sum")), False, function.before(18))
    assert place is not None and function.lines[place[0]] == 18
    later = function.find(keys_of(TENSOR.format("sum")), False, function.before(19))
    assert later is not None and function.lines[later[0]] == 20


@pytest.mark.parametrize("terms", [5, 2_500])
def test_a_sum_of_thousands_of_terms_is_no_trouble(terms: int) -> None:
    module = Module(ast.parse("def f(x):\n    return " + "+".join(["x"] * terms)))
    found = module.function(Frame("a.py", 1, "f"))
    assert found is not None and found.lines == [2] * (terms - 1)


def test_names() -> None:
    assert without_address("<built-in method item of Tensor object at 0x7f4f31628460>") == TENSOR.format("item")
    assert frame_of(r"C:\code\a (1).py(12): <lambda>") == Frame("C:/code/a (1).py", 12, "<lambda>")
    assert frame_of("nn.Module: Linear_0") is None and frame_of("aten::add") is None


def test_a_module_is_not_called_by_the_name_of_a_function() -> None:
    source = "from torch.profiler import profile\n\n\ndef step(model, x):\n    profile(x)\n    step(x)\n    print(x)\n    return model(x)\n"
    found = Module(ast.parse(source)).function(Frame("a.py", 4, "step"))
    assert found is not None
    place = found.find(keys_of("nn.Module: Net_0"), False, -1)
    assert place is not None and (found.lines[place[0]], place[1]) == (8, True)

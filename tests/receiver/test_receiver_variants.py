"""Every variant gives the ids that plain lists give, bit for bit, or says why it may not be used."""

from __future__ import annotations

import ast
import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_receiver import ids, kernels
from fixed_receiver.cache import IdCache
from fixed_receiver.layouts import SHAPES, Layout, spread
from fixed_receiver.spec import SpecError
from fixed_receiver.variants import CODES, choose, expand, refusal

CPU = torch.device("cpu")
CACHE = IdCache()
HERE = tuple(code for code in CODES if code != "V6")  # V6 needs Triton: see test_receiver_kernels

experts = st.one_of(st.integers(1, 12), st.sampled_from([28, 64, 256]))
alignments = st.sampled_from([1, 1, 2, 8, 32, 128])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Counts with zeros, all zero, one-hot, Zipf; any alignment; the first expert of any rank."""
    number = draw(experts)
    if draw(st.booleans()):
        counts = tuple(draw(st.lists(st.integers(0, 9), min_size=number, max_size=number)))
    else:
        counts = spread(draw(st.sampled_from(SHAPES)), number, draw(st.integers(0, 600)), draw(st.integers(0, 9)))
    return Layout(counts, draw(alignments), draw(st.integers(0, 7)) * number)


def check_equal(actual: torch.Tensor, expected: list[int]) -> None:
    assert actual.dtype == torch.int64
    assert actual.shape == (len(expected), 1)
    assert actual.is_contiguous()
    assert actual.flatten().tolist() == expected


@given(layouts())
@settings(max_examples=60, deadline=None)
def test_variants_agree_with_lists(layout: Layout) -> None:
    view = layout.view(CPU)
    for code in HERE:
        if refusal(code, view):
            with pytest.raises(SpecError, match=f"^{code}: "):
                expand(code, view, CACHE)
        else:
            check_equal(expand(code, view, CACHE), layout.ids())
    check_equal(expand(choose(view), view, CACHE), layout.ids())


@given(layouts(), st.integers(0, 40), st.booleans())
@settings(max_examples=60, deadline=None)
def test_rows_behind_the_last_expert_and_padding_are_marked(layout: Layout, surplus: int, mark: bool) -> None:
    layout = Layout(layout.real, layout.alignment, layout.first, surplus, synced=False)
    view = layout.view(CPU)
    check_equal(expand("V5b", view, CACHE, mark), layout.ids(mark))
    assert choose(view, mark) == "V5b"
    for code in set(HERE) - {"V5b"}:
        with pytest.raises(SpecError):
            expand(code, view, CACHE, mark)


@given(layouts())
@settings(max_examples=50, deadline=None)
def test_handle_without_real_counts(layout: Layout) -> None:
    view = Layout(layout.real, 1, layout.first, surplus=3, synced=False).view(CPU, with_real=False)
    check_equal(expand("V5b", view, CACHE), layout_of(view.first, layout.real, 3))
    torch.testing.assert_close(ids.counts_from_sums(view.prefix_sums()), torch.tensor(layout.real, dtype=torch.int32))


def layout_of(first: int, real: tuple[int, ...], surplus: int) -> list[int]:
    return Layout(real, 1, first, surplus).ids()


def test_host_sums_return_the_counts_too() -> None:
    made, counts = ids.expand_from_host_sums([3, 0, 2], torch.arange(5, dtype=torch.int32), 6)
    assert made.flatten().tolist() == [6, 6, 6, 8, 8]
    assert counts.dtype == torch.int32
    assert counts.tolist() == [3, 0, 2]


def test_search_by_sums_is_refused_where_rows_are_padded() -> None:
    """The reason for the refusal: without it padding rows would go to the next expert."""
    layout = Layout((3, 2), alignment=4)
    view = layout.view(CPU)
    wrong = ids.expand_by_search(view.prefix_sums(), torch.arange(view.rows, dtype=torch.int32), 0)
    assert wrong.flatten().tolist() != layout.ids()
    assert "padding rows would go to the next expert" in refusal("V5", view)


@pytest.mark.parametrize(
    ("layout", "with_real", "mark", "expected"),
    [
        (Layout((2, 1)), True, False, "V5"),
        (Layout((2, 1)), False, False, "V5"),
        (Layout((2, 1)), True, True, "V5"),
        (Layout((2, 1), alignment=8), True, False, "V5a"),
        (Layout((2, 1), alignment=8), True, True, "V5b"),
        (Layout((2, 1), alignment=8), False, False, "V7"),
        (Layout((2, 1), synced=False, surplus=4), True, False, "V5b"),
        (Layout((2, 1), synced=False, surplus=4), False, False, "V5b"),
    ],
)
def test_choice_follows_what_the_handle_offers(layout: Layout, with_real: bool, mark: bool, expected: str) -> None:
    view = layout.view(CPU, with_real)
    assert choose(view, mark) == expected
    check_equal(expand(expected, view, CACHE, mark), layout.ids(mark))


@pytest.mark.parametrize(("alignment", "synced", "mark"), [(8, False, False), (8, True, True)])
def test_choice_says_when_nothing_tells_who_owns_a_row(alignment: int, synced: bool, mark: bool) -> None:
    view = Layout((2, 1), alignment, synced=synced).view(CPU, with_real=False)
    with pytest.raises(SpecError, match="nothing says who owns a row"):
        choose(view, mark)


def test_unknown_variant_is_named() -> None:
    with pytest.raises(ValueError, match="unknown variant 'V9'"):
        expand("V9", Layout((1,)).view(CPU), CACHE)


@pytest.mark.skipif(not kernels.MISSING, reason="Triton is installed here")
def test_one_kernel_says_what_it_lacks() -> None:
    with pytest.raises(SpecError, match="Triton is not installed"):
        expand("V6", Layout((1,)).view(CPU), CACHE)


def test_looped_and_fixed_form_differ_in_one_statement() -> None:
    """What the autofix may touch: inside `if total > 0`, the allocation and the loop; all else is equal."""
    looped, fixed = body_of(ids.expand_by_fill_loop), body_of(ids.expand_by_repeat)
    guard, other = looped[1], fixed[1]
    assert isinstance(guard, ast.If)
    assert isinstance(other, ast.If)
    assert [ast.dump(statement) for statement in (looped[0], *guard.orelse, *looped[2:])] == [
        ast.dump(statement) for statement in (fixed[0], *other.orelse, *fixed[2:])
    ]
    assert [type(statement).__name__ for statement in guard.body] == ["Assign", "Assign", "For"]
    assert [type(statement).__name__ for statement in other.body] == ["Assign"]


def body_of(function: object) -> list[ast.stmt]:
    """Statements of a function without its docstring."""
    definition = ast.parse(inspect.getsource(function)).body[0]  # type: ignore[arg-type]
    assert isinstance(definition, ast.FunctionDef)
    return definition.body[1:]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", [1, 2, 5, 28, 256])
def test_spread_keeps_the_rows(shape: str, number: int) -> None:
    for rows in (0, 1, number, 777):
        counts = spread(shape, number, rows)
        assert len(counts) == number
        assert sum(counts) == rows
        assert min(counts) >= 0

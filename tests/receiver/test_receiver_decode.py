"""A decode step: the torch form against plain loops, with poison behind the received rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_receiver.decode import decode_by_loops, decode_ids


@st.composite
def steps(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int, int]:
    """(local ids with poison, prefix sums per rank, first, experts of all ranks)."""
    ranks = draw(st.integers(1, 4))
    experts = draw(st.integers(1, 16))
    first = draw(st.integers(0, ranks - 1)) * experts
    topk = draw(st.integers(1, 4))
    per_rank = draw(st.lists(st.integers(0, 4), min_size=ranks, max_size=ranks))
    sums = [sum(per_rank[: rank + 1]) for rank in range(ranks)]
    poison = draw(st.integers(0, 6))
    junk = st.one_of(st.integers(-1, experts), st.sampled_from([-(2**31), 2**31 - 1, 10**6]))
    known = draw(st.lists(st.lists(st.integers(-1, experts - 1), min_size=topk, max_size=topk), min_size=sums[-1], max_size=sums[-1]))
    unknown = draw(st.lists(st.lists(junk, min_size=topk, max_size=topk), min_size=poison, max_size=poison))
    return known + unknown, sums, first, experts * ranks


@given(steps(), st.sampled_from([torch.int64, torch.int32]))
@settings(max_examples=150, deadline=None)
def test_torch_form_is_the_definition(step: tuple[list[list[int]], list[int], int, int], dtype: torch.dtype) -> None:
    rows, sums, first, num_experts = step
    topk = len(rows[0]) if rows else 2
    local = torch.tensor(rows, dtype=dtype).reshape(len(rows), topk)
    before = local.clone()
    received = torch.tensor(sums, dtype=torch.int32)
    numbers = torch.arange(len(rows), dtype=torch.int32)
    ids = decode_ids(local, received, numbers, first, num_experts)
    assert ids.dtype == dtype
    assert ids.tolist() == decode_by_loops(rows, sums[-1], first, num_experts)
    assert torch.equal(local, before)


def test_poison_that_looks_valid_is_dropped() -> None:
    local = torch.tensor([[0, -1], [1, 0], [1, 1]])
    ids = decode_ids(local, torch.tensor([1, 2], dtype=torch.int32), torch.arange(3, dtype=torch.int32), 2, 4)
    assert ids.tolist() == [[2, -1], [3, 2], [-1, -1]]


def test_ids_beyond_the_last_expert_are_dropped() -> None:
    ids = decode_ids(torch.tensor([[1, 2]]), torch.tensor([1], dtype=torch.int32), torch.arange(1, dtype=torch.int32), 2, 4)
    assert ids.tolist() == [[3, -1]]


def test_decode_needs_shapes_alone() -> None:
    """Nothing is read on the host, so a graph replays with another number of rows."""
    local = torch.empty(6, 2, dtype=torch.int64, device="meta")
    received = torch.empty(2, dtype=torch.int32, device="meta")
    ids = decode_ids(local, received, torch.empty(6, dtype=torch.int32, device="meta"), 2, 4)
    assert ids.shape == (6, 2)
    with pytest.raises((RuntimeError, NotImplementedError)):
        received[-1].item()

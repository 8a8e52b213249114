"""The receiver on what the fake buffer dispatches: both modes, the edges, and what a broken dispatch is told."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_receiver import Received, Receiver, SpecError, read_dispatch
from fixed_receiver.decode import decode_by_loops
from fixed_receiver.fake_buffer import EventOverlap, FakeElasticBuffer, FakeGroup
from fixed_receiver.receiver import Dispatched

HIDDEN = 8


@dataclasses.dataclass(frozen=True)
class Batch:
    """Tokens of all ranks: `x` holds the token's number, so that a row says where it came from."""

    x: torch.Tensor
    topk_idx: torch.Tensor
    weights: torch.Tensor
    num_experts: int
    group: FakeGroup


def make_batch(tokens: int, topk: int, num_experts: int, rank: int = 0, ranks: int = 1, seed: int = 0, older: bool = False) -> Batch:
    chance = random.Random(seed)
    chosen = [chance.sample(range(num_experts), topk) for _ in range(tokens)]
    for row in chosen:
        if chance.random() < 0.2:
            row[chance.randrange(topk)] = -1
    numbers = torch.arange(1, tokens + 1, dtype=torch.bfloat16).unsqueeze(1).expand(tokens, HIDDEN).contiguous()
    weights = torch.arange(tokens * topk, dtype=torch.float32).reshape(tokens, topk)
    return Batch(numbers, torch.tensor(chosen).reshape(tokens, topk), weights, num_experts, FakeGroup(rank, ranks, seed, older))


def dispatch(batch: Batch, **options: Any) -> Any:
    buffer = FakeElasticBuffer(batch.group, num_max_tokens_per_rank=64)
    return buffer.dispatch(batch.x, batch.topk_idx, batch.weights, num_experts=batch.num_experts, **options)


def receive(batch: Batch, returned: Any, **options: Any) -> Received:
    return Receiver(batch.num_experts, batch.group.rank, batch.group.size, **options)(read_dispatch(returned))


def check_rows(batch: Batch, received: Received, padding_marked: bool) -> None:
    """Every row that holds a token names an expert which that token chose, and every choice has its row."""
    wanted = sorted(
        (token, expert)
        for token, row in enumerate(batch.topk_idx.tolist())
        for expert in row
        if batch.group.rank * (experts := batch.num_experts // batch.group.size) <= expert < (batch.group.rank + 1) * experts
    )
    found = []
    for value, expert in zip(received.x[:, 0].tolist(), received.topk_ids.flatten().tolist(), strict=True):
        if value == value and value != 0:  # not NaN, not zeroed padding
            found.append((int(value) - 1, expert))
        elif padding_marked:
            assert expert == -1
    assert sorted(found) == wanted


batches = st.builds(
    make_batch,
    tokens=st.integers(0, 24),
    topk=st.integers(1, 4),
    num_experts=st.sampled_from([4, 8, 16]),
    rank=st.just(0),
    ranks=st.just(1),
    seed=st.integers(0, 999),
    older=st.booleans(),
)


@given(batches, st.sampled_from([1, 4, 16]), st.booleans(), st.booleans(), st.sampled_from([(0, 1), (1, 2), (3, 4)]))
@settings(max_examples=80, deadline=None)
def test_expanded_rows_name_the_expert_that_was_chosen(
    batch: Batch, alignment: int, zeroed: bool, late: bool, place: tuple[int, int]
) -> None:
    batch = dataclasses.replace(batch, group=dataclasses.replace(batch.group, rank=place[0], size=place[1]))
    returned = dispatch(batch, do_expand=True, expert_alignment=alignment, do_zero_padding=zeroed, async_with_compute_stream=late)
    received = receive(batch, returned)
    check_rows(batch, received, padding_marked=False)
    assert received.topk_ids.dtype == torch.int64
    assert received.topk_weights is not None
    assert received.topk_weights.shape == received.topk_ids.shape == (received.x.shape[0], 1)
    assert received.rows.aligned is not None
    assert sum(received.rows.aligned) == received.x.shape[0]


@given(batches, st.sampled_from([1, 16]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_without_cpu_sync_the_device_decides(batch: Batch, alignment: int, late: bool) -> None:
    batch = dataclasses.replace(batch, group=dataclasses.replace(batch.group, older=False))
    returned = dispatch(batch, do_expand=True, expert_alignment=alignment, do_cpu_sync=False, async_with_compute_stream=late)
    received = receive(batch, returned, mark_padding=True)
    check_rows(batch, received, padding_marked=True)
    assert received.rows.aligned is None
    assert received.rows.real is not None


@given(batches, st.sampled_from([(0, 1), (1, 2), (3, 4)]), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_decode_keeps_what_was_received(batch: Batch, place: tuple[int, int], synced: bool, late: bool) -> None:
    group = dataclasses.replace(batch.group, rank=place[0], size=place[1])
    batch = dataclasses.replace(batch, group=group)
    returned = dispatch(batch, do_cpu_sync=synced, async_with_compute_stream=late)
    received = receive(batch, returned)
    handle = returned[3]
    tokens = int(handle.psum_num_recv_tokens_per_scaleup_rank[-1])
    first = group.rank * batch.num_experts // group.size
    assert received.topk_ids.tolist() == decode_by_loops(returned[1].tolist(), tokens, first, batch.num_experts)
    assert received.topk_ids[tokens:].eq(-1).all()
    sent = [int(value) - 1 for value in received.x[:tokens, 0].tolist()]
    for token, row in zip(sent, received.topk_ids.tolist(), strict=False):
        assert {expert for expert in row if expert >= 0} <= set(batch.topk_idx[token].tolist())


def test_asking_twice_gives_the_same() -> None:
    """In place, a second call would add the offset again."""
    batch = make_batch(9, 2, 8, rank=1, ranks=2)
    returned = dispatch(batch, do_cpu_sync=False)
    receiver = Receiver(8, 1, 2)
    once, twice = receiver(read_dispatch(returned)), receiver(read_dispatch(returned))
    assert once.topk_ids.max() >= 4
    assert torch.equal(once.topk_ids, twice.topk_ids)


def test_microbatches_do_not_share() -> None:
    """Both dispatches are under way before either is received."""
    batches = [make_batch(7, 2, 8, seed=1), make_batch(11, 2, 8, seed=2)]
    receiver = Receiver(8)
    pending = [receiver.pending(read_dispatch(dispatch(batch, do_expand=True, async_with_compute_stream=True))) for batch in batches]
    second, first = pending[1](), pending[0]()
    check_rows(batches[0], first, padding_marked=False)
    check_rows(batches[1], second, padding_marked=False)


@pytest.mark.parametrize("expanded", [True, False])
def test_the_event_is_waited_for_once_and_only_where_there_is_one(expanded: bool) -> None:
    batch = make_batch(5, 2, 8)
    for late in (True, False):
        returned = dispatch(batch, do_expand=expanded, async_with_compute_stream=late)
        receive(batch, returned)  # waiting without an event raises
        assert returned[4].waits == int(late)


def test_nothing_received() -> None:
    batch = make_batch(0, 2, 8)
    received = receive(batch, dispatch(batch, do_expand=True))
    assert received.topk_ids.shape == (0, 1)
    assert received.topk_ids.dtype == torch.int64
    assert received.topk_weights is not None
    assert received.topk_weights.shape == (0, 1)
    assert received.rows.aligned == [0] * 8
    assert received.rows.real is not None
    assert received.rows.real.tolist() == [0] * 8


def test_no_weights_stay_none() -> None:
    batch = make_batch(5, 2, 8)
    buffer = FakeElasticBuffer(batch.group)
    returned = buffer.dispatch(batch.x, batch.topk_idx, num_experts=8, do_expand=True)
    assert receive(batch, returned).topk_weights is None


def test_counts_that_are_not_there_are_none() -> None:
    """An empty list or tensor would read as "no experts"."""
    batch = make_batch(5, 2, 8)
    received = receive(batch, dispatch(batch, do_cpu_sync=False))
    assert received.rows.aligned is None
    assert received.rows.real is None
    assert received.rows.received is not None


def test_older_handle_gets_its_counts_from_the_list() -> None:
    batch = make_batch(6, 2, 8, older=True)
    returned = dispatch(batch, do_expand=True)
    received = receive(batch, returned, variant="V7")
    assert received.rows.real is not None
    assert received.rows.real.tolist() == received.rows.aligned
    assert torch.equal(received.topk_ids, receive(batch, returned, variant="V0").topk_ids)


def test_layout_can_be_used_again_by_handle() -> None:
    batch = make_batch(6, 2, 8)
    buffer = FakeElasticBuffer(batch.group)
    first = buffer.dispatch(batch.x, batch.topk_idx, batch.weights, num_experts=8, do_expand=True, expert_alignment=4)
    again = buffer.dispatch(batch.x, handle=first[3])
    assert again[3] is first[3]
    assert torch.equal(receive(batch, again).topk_ids, receive(batch, first).topk_ids)


def test_ids_can_stay_local_for_kernels_that_add_the_offset() -> None:
    batch = make_batch(6, 2, 8, rank=1, ranks=2)
    returned = dispatch(batch)
    received = receive(batch, returned, defer=True)
    assert received.topk_ids is returned[1]
    assert received.first_expert == 4


def test_scales_travel_along_and_quantisation_is_left_to_the_caller() -> None:
    batch = make_batch(6, 2, 8)
    calls = []

    def halve(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        calls.append(x.shape)
        return x / 2, torch.ones(x.shape[0], 1)

    buffer = FakeElasticBuffer(batch.group)
    scales = torch.ones(6, 2)
    with_scale = buffer.dispatch((batch.x, scales), batch.topk_idx, num_experts=8, do_expand=True)
    received = receive(batch, with_scale, quantize=halve)
    assert received.scale is not None
    assert received.scale.shape == (received.x.shape[0], 2)
    assert calls == []
    plain = receive(batch, dispatch(batch, do_expand=True), quantize=halve)
    assert plain.scale is not None
    assert len(calls) == 1
    empty = make_batch(0, 2, 8)
    assert receive(empty, dispatch(empty, do_expand=True), quantize=halve).scale is None
    assert len(calls) == 1


def test_experts_must_divide() -> None:
    with pytest.raises(ValueError, match="10 experts on 4 ranks"):
        Receiver(10, 0, 4)
    with pytest.raises(ValueError, match="rank 4"):
        Receiver(8, 4, 4)


def contract(**changes: Any) -> Dispatched:
    """A dispatch of 3 rows to 2 experts, and what is to be wrong with it."""
    correct = Dispatched(
        event=EventOverlap(),
        x=torch.zeros(3, 8),
        scale=None,
        topk_idx=None,
        weights=torch.zeros(3),
        expanded=True,
        alignment=1,
        counts=[1, 2],
        psum=torch.tensor([1, 3], dtype=torch.int32),
        real=torch.tensor([1, 2], dtype=torch.int32),
        received=torch.tensor([3], dtype=torch.int32),
    )
    return dataclasses.replace(correct, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": [1, 2, 0]}, "I1: 3 counts for 2 local experts"),
        ({"counts": [3]}, "I1: 1 counts for 2 local experts"),
        ({"counts": [1, 1]}, "I2: the counts sum to 2, but 3 rows were received"),
        ({"counts": [-1, 4]}, "I3: negative count -1"),
        ({"alignment": 2}, "I2: the counts are not padded to the alignment of 2"),
        ({"topk_idx": torch.zeros(3, 1)}, "I5"),
        ({"expanded": False}, "I5"),
        ({"weights": torch.zeros(3, 1)}, "I6: weights of 2 dimensions from a dispatch that expands"),
        ({"psum": torch.tensor([1, 3])}, "psum must be int32"),
        ({"psum": torch.tensor([1, 3, 3], dtype=torch.int32)}, "I1: psum has shape"),
        ({"real": torch.zeros(4, dtype=torch.int32)[::2]}, "real must be contiguous"),
        ({"psum": torch.zeros(2, dtype=torch.int32, device="meta")}, "psum is on meta"),
        ({"alignment": 0}, "must be at least 1"),
        (
            {"expanded": False, "topk_idx": torch.zeros(3, 1), "weights": None, "received": None},
            "says in its handle how many tokens arrived",
        ),
        ({"expanded": False, "topk_idx": torch.zeros(2, 1), "weights": None}, r"topk ids of shape \(2, 1\) for 3 rows"),
        (
            {"expanded": False, "topk_idx": torch.zeros(3, 1), "weights": torch.zeros(3)},
            "I6: weights of 1 dimensions from a dispatch that does not expand",
        ),
    ],
)
def test_a_broken_contract_is_named_before_a_kernel_sees_it(changes: dict[str, Any], message: str) -> None:
    Receiver(2)(contract())
    with pytest.raises(SpecError, match=message):
        Receiver(2)(contract(**changes))


def test_more_rows_than_the_sums_can_count() -> None:
    rows = torch.zeros(1, 8).expand(2**31, 8)
    with pytest.raises(SpecError, match="I7: 2147483648 rows"):
        Receiver(2)(contract(x=rows))

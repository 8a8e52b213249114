"""The fake buffer keeps DeepEP's contract: names, tuple, sums, padding, and what it asserts."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from fixed_receiver import read_dispatch
from fixed_receiver.deepep_adapter import find_deepep
from fixed_receiver.fake_buffer import FakeElasticBuffer, FakeGroup

X = torch.arange(1, 5, dtype=torch.bfloat16).unsqueeze(1).expand(4, 8).contiguous()
CHOICES = torch.tensor([[0, 2], [2, 3], [-1, 0], [3, 2]])
WEIGHTS = torch.arange(8, dtype=torch.float32).reshape(4, 2)


def expanded(alignment: int = 1, **options: Any) -> Any:
    buffer = FakeElasticBuffer(deterministic=True, num_max_tokens_per_rank=8)
    return buffer.dispatch(
        X,
        CHOICES,
        WEIGHTS,
        num_experts=4,
        do_expand=True,
        expert_alignment=alignment,
        **options,
    )


def test_sums_without_alignment_are_inclusive() -> None:
    x, topk_idx, weights, handle, event = expanded()
    assert handle.num_recv_tokens_per_expert_list == [2, 0, 3, 2]
    assert handle.psum_num_recv_tokens_per_expert.tolist() == [2, 2, 5, 7]
    assert handle.num_unaligned_recv_tokens_per_expert.tolist() == [2, 0, 3, 2]
    assert (handle.num_recv_tokens, handle.num_expanded_tokens) == (4, 7)
    assert x[:, 0].tolist() == [1, 3, 1, 2, 4, 2, 4]
    assert weights.tolist() == [0, 5, 1, 2, 7, 3, 6]
    assert topk_idx is None
    assert event.event is None


def test_sums_with_alignment_are_aligned_start_plus_real_count() -> None:
    x, _, weights, handle, _ = expanded(alignment=4)
    assert handle.num_recv_tokens_per_expert_list == [4, 0, 4, 4]
    assert handle.psum_num_recv_tokens_per_expert.tolist() == [2, 4, 7, 10]
    assert x.shape[0] == 12
    assert x[:, 0].isnan().nonzero().flatten().tolist() == [2, 3, 7, 10, 11]
    assert weights.isnan().nonzero().flatten().tolist() == [2, 3, 7, 10, 11]


def test_padding_is_zero_where_asked() -> None:
    x, _, weights, _, _ = expanded(alignment=4, do_zero_padding=True)
    assert x[:, 0].tolist() == [1, 3, 0, 0, 1, 2, 4, 0, 2, 4, 0, 0]
    assert weights[2].item() == 0


def test_worst_case_without_cpu_sync() -> None:
    x, _, _, handle, _ = expanded(alignment=4, do_cpu_sync=False, do_zero_padding=True)
    assert handle.num_recv_tokens_per_expert_list == []
    assert x.shape[0] == handle.num_expanded_tokens == 8 * 2 + 4 * 3
    assert x[12:].isnan().all()
    assert not x[:12].isnan().any()


def test_tokens_keep_their_choices_where_not_expanded() -> None:
    buffer = FakeElasticBuffer(FakeGroup(rank=1, size=2))
    x, topk_idx, weights, handle, _ = buffer.dispatch(X, CHOICES, WEIGHTS, num_experts=4, expert_alignment=4)
    assert isinstance(x, torch.Tensor)
    assert x[:, 0].tolist() == [1, 2, 4]  # the third token has no expert on this rank
    assert topk_idx is not None
    assert topk_idx.tolist() == [[-1, 0], [0, 1], [1, 0]]
    assert weights is not None
    assert weights.tolist() == [[0, 1], [2, 3], [6, 7]]
    assert handle.psum_num_recv_tokens_per_scaleup_rank.tolist() == [2, 3]
    assert handle.num_recv_tokens_per_expert_list == [4, 4]
    assert handle.psum_num_recv_tokens_per_expert.tolist() == [4, 8]  # over padded counts, not advanced
    assert read_dispatch((x, topk_idx, weights, handle, buffer.capture())).psum is None


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("alignment", [1, 8])
def test_combine_adds_up_what_dispatch_spread(expand: bool, alignment: int) -> None:
    buffer = FakeElasticBuffer(FakeGroup(seed=3))
    x, _, weights, handle, _ = buffer.dispatch(X, CHOICES, WEIGHTS, num_experts=4, do_expand=expand, expert_alignment=alignment)
    assert isinstance(x, torch.Tensor)
    combined, returned, event = buffer.combine(x, handle, weights, bias=torch.ones(8))
    copies = (CHOICES >= 0).sum(1) if expand else torch.ones(4, dtype=torch.int64)
    assert combined[:, 0].tolist() == [number * int(times) + 1 for number, times in zip((1, 2, 3, 4), copies, strict=True)]
    assert returned is not None
    assert torch.equal(returned[CHOICES >= 0], WEIGHTS[CHOICES >= 0])
    assert event.event is None


def test_nothing_is_there_before_the_event() -> None:
    buffer = FakeElasticBuffer()
    x, _, _, handle, event = buffer.dispatch(X, CHOICES, num_experts=4, do_expand=True, async_with_compute_stream=True)
    assert isinstance(x, torch.Tensor)
    assert x.isnan().all()
    assert handle.psum_num_recv_tokens_per_expert.tolist() == [-7] * 4
    event.current_stream_wait()
    assert not x.isnan().any()
    assert handle.psum_num_recv_tokens_per_expert.tolist() == [2, 2, 5, 7]


def test_hooks_run_behind_the_wait() -> None:
    buffer = FakeElasticBuffer()
    event = buffer.capture()
    calls: list[int] = []
    event.register_hook_after_wait(lambda: calls.append(1))
    event.current_stream_wait()
    event.current_stream_wait()
    assert calls == [1]


def test_statistics_grow() -> None:
    stats = torch.zeros(4, dtype=torch.int64)
    for _ in range(2):
        FakeElasticBuffer().dispatch(X, CHOICES, num_experts=4, cumulative_local_expert_recv_stats=stats)
    assert stats.tolist() == [4, 0, 6, 4]


def test_the_contract_is_asserted() -> None:
    buffer = FakeElasticBuffer(FakeGroup(size=2))
    with pytest.raises(AssertionError, match="multiple of the ranks"):
        buffer.dispatch(X, CHOICES, num_experts=5)
    with pytest.raises(AssertionError, match="16 bytes"):
        buffer.dispatch(X[:, :4].contiguous(), CHOICES, num_experts=4)
    with pytest.raises(AssertionError, match="contiguous"):
        buffer.dispatch(X.t().contiguous().t(), CHOICES, num_experts=4)
    with pytest.raises(AssertionError, match="float32"):
        buffer.dispatch(X, CHOICES, WEIGHTS.double(), num_experts=4)
    with pytest.raises(AssertionError, match="num_max_tokens_per_rank"):
        buffer.dispatch(X, CHOICES, num_experts=4, num_max_tokens_per_rank=1)
    with pytest.raises(AssertionError, match="needed without a handle"):
        buffer.dispatch(X)
    with pytest.raises(AssertionError, match="allocate_on_comm_stream"):
        buffer.dispatch(X, CHOICES, num_experts=4, previous_event=buffer.capture())
    handle = buffer.dispatch(X, CHOICES, num_experts=4)[3]
    with pytest.raises(AssertionError, match="no CPU sync"):
        buffer.dispatch(X, handle=handle, do_cpu_sync=True)
    with pytest.raises(AssertionError, match="no event"):
        buffer.dispatch(X, CHOICES, num_experts=4)[4].current_stream_wait()


def test_older_handles_lack_the_real_counts() -> None:
    handle = FakeElasticBuffer(FakeGroup(older=True)).dispatch(X, CHOICES, num_experts=4, do_expand=True)[3]
    assert not hasattr(handle, "num_unaligned_recv_tokens_per_expert")


def test_signatures_are_those_of_the_installed_buffer() -> None:
    module, reason = find_deepep()
    if module is None:
        pytest.skip(f"nothing to compare with: {reason}")
    for name in ("dispatch", "combine"):
        ours = inspect.signature(getattr(FakeElasticBuffer, name)).parameters
        theirs = inspect.signature(getattr(module.ElasticBuffer, name)).parameters
        assert list(ours) == list(theirs)

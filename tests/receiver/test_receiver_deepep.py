"""The receiver on a real ElasticBuffer at one rank. Opt-in by what is installed: a CUDA device and your own build of DeepEP V2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fixed_receiver import IdCache, Receiver, read_dispatch
from fixed_receiver.deepep_adapter import find_deepep
from fixed_receiver.variants import CODES

MODULE, REASON = find_deepep()
pytestmark = pytest.mark.skipif(MODULE is None or not torch.cuda.is_available(), reason=REASON or "torch sees no CUDA device")

EXPERTS, TOPK, TOKENS, HIDDEN = 16, 4, 256, 1024


@pytest.fixture(scope="module")
def buffer() -> Iterator[Any]:
    """One rank needs no network; older builds ask for it unless they are told."""
    assert MODULE is not None
    os.environ.setdefault("EP_DISABLE_GIN", "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29531")
    device = torch.device("cuda", torch.cuda.current_device())
    torch.distributed.init_process_group("nccl", rank=0, world_size=1, device_id=device)
    made = MODULE.ElasticBuffer(
        torch.distributed.group.WORLD, num_max_tokens_per_rank=TOKENS, hidden=HIDDEN, num_topk=TOPK, explicitly_destroy=True
    )
    yield made
    made.destroy()
    torch.distributed.destroy_process_group()


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens that hold their number, their choices with some masked, and weights."""
    numbers = torch.arange(1, TOKENS + 1, dtype=torch.bfloat16, device="cuda").unsqueeze(1).expand(TOKENS, HIDDEN).contiguous()
    scores = torch.rand(TOKENS, EXPERTS, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    weights, chosen = scores.topk(TOPK)
    dtype = getattr(MODULE, "topk_idx_t", torch.int64)
    chosen = chosen.masked_fill(weights < 0.7, -1).to(dtype)
    return numbers, chosen, weights.float()


@pytest.mark.parametrize("alignment", [1, 128])
def test_expanded(buffer: Any, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor], alignment: int) -> None:
    x, chosen, weights = batch
    returned = buffer.dispatch(x, chosen, weights, num_experts=EXPERTS, expert_alignment=alignment, do_expand=True, do_zero_padding=True)
    dispatched = read_dispatch(returned)
    assert dispatched.psum is not None
    expected = Receiver(EXPERTS, variant="V0")(dispatched).topk_ids
    for code in CODES:
        receiver = Receiver(EXPERTS, variant=code, cache=IdCache())
        try:
            made = receiver(dispatched).topk_ids
        except ValueError:
            assert alignment > 1 or dispatched.real is None or code == "V6", code
            continue
        assert torch.equal(made, expected), code
    tokens = dispatched.x[:, 0].tolist()
    for token, expert in zip(tokens, expected.flatten().tolist(), strict=True):
        if token:  # padding is zero
            assert expert in chosen[int(token) - 1].tolist()
    assert sum(1 for token in tokens if token) == int((chosen >= 0).sum())


def test_decode(buffer: Any, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    x, chosen, weights = batch
    returned = buffer.dispatch(x, chosen, weights, num_experts=EXPERTS, do_cpu_sync=False)
    dispatched = read_dispatch(returned)
    received = Receiver(EXPERTS)(dispatched)
    assert dispatched.received is not None
    rows = int(dispatched.received[-1])
    assert (received.topk_ids[rows:] == -1).all()
    sent = [int(token) - 1 for token in received.x[:rows, 0].tolist()]
    assert [received.topk_ids[row].tolist() for row in range(rows)] == [chosen[token].tolist() for token in sent]

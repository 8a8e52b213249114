"""The receiver: from what a dispatch returned to what the expert kernels take.

Two modes, told apart by what came back. Expanded (prefill): one row per token and expert, grouped by expert; the ids
are made here. Not expanded (decode): one row per token with its local ids; these become global and what is behind the
received rows becomes -1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from fixed_receiver import decode, ids, kernels
from fixed_receiver.cache import IdCache
from fixed_receiver.spec import DispatchView, SpecError, check_mode, check_view
from fixed_receiver.variants import choose, expand


class Event(Protocol):
    """DeepEP's EventOverlap: `event` is None where the dispatch was synchronous."""

    event: object | None

    def current_stream_wait(self) -> None:
        """Make the current stream wait for the dispatch; raises where `event` is None."""
        ...


@dataclass(frozen=True)
class Dispatched:
    """What a dispatch returned, with the handle's fields under DeepEP's meaning but not its names.

    x            `[rows, hidden]`
    scale        `[rows, blocks]` of a block-quantised x, else None
    topk_idx     None where expanded, else local ids `[rows, topk]`, -1 for an expert of another rank
    weights      float32 `[rows]` where expanded, else `[rows, topk]`; None if dispatch got none
    counts       rows per expert with padding, on the host; None without CPU sync
    psum, real   see `DispatchView`; None where the handle has none
    received     int32 `[ranks]`: inclusive prefix sums of received tokens per rank
    """

    event: Event
    x: torch.Tensor
    scale: torch.Tensor | None
    topk_idx: torch.Tensor | None
    weights: torch.Tensor | None
    expanded: bool
    alignment: int
    counts: list[int] | None
    psum: torch.Tensor | None
    real: torch.Tensor | None
    received: torch.Tensor | None


@dataclass(frozen=True)
class ExpertRows:
    """How many rows each local expert has; a field is None where that is not known, never an empty tensor or list.

    aligned   host list, with padding
    real      int32 `[experts]` on the device, without padding
    received  int32 `[ranks]` on the device (decode): prefix sums of received tokens
    """

    aligned: list[int] | None
    real: torch.Tensor | None
    received: torch.Tensor | None


@dataclass(frozen=True)
class Received:
    """What the expert kernels take. `topk_ids` is `[rows, 1]` int64 where expanded, else `[rows, topk]`.

    Rows whose id is -1 hold nothing: neither `x` nor `weights` is initialised there. `first_expert` is what is still to
    be added to the ids: 0, or the global id of local expert 0 where the addition was deferred.
    """

    x: torch.Tensor
    scale: torch.Tensor | None
    rows: ExpertRows
    topk_ids: torch.Tensor
    topk_weights: torch.Tensor | None
    first_expert: int = 0


Quantize = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor | None]]


class Receiver(torch.nn.Module):
    """One per rank and process, for all layers and microbatches: it keeps nothing of a dispatch.

    num_experts   experts of all ranks together, a multiple of `ranks`
    rank, ranks   this rank and how many there are
    variant       a code of `variants.CODES`; "" takes the cheapest that is valid
    mark_padding  write -1 on padding rows, for kernels that count tokens or average over them
    defer         leave the ids of a decode step local, for expert kernels that add `first_expert` themselves
    quantize      called on x where it has elements and carries no scale
    """

    if TYPE_CHECKING:  # torch leaves it untyped

        def __call__(self, dispatched: Dispatched) -> Received: ...

    def __init__(
        self,
        num_experts: int,
        rank: int = 0,
        ranks: int = 1,
        *,
        variant: str = "",
        mark_padding: bool = False,
        defer: bool = False,
        quantize: Quantize | None = None,
        cache: IdCache | None = None,
    ) -> None:
        super().__init__()
        if num_experts < 1 or num_experts % ranks or not 0 <= rank < ranks:
            raise ValueError(f"{num_experts} experts on {ranks} ranks, rank {rank}: every rank has the same number of experts")
        self.num_experts = num_experts
        self.experts = num_experts // ranks
        self.first = rank * self.experts
        self.variant = variant
        self.mark_padding = mark_padding
        self.defer = defer
        self.quantize = quantize
        self.cache = cache or IdCache()

    def forward(self, dispatched: Dispatched) -> Received:
        """Wait, check, and make the ids; SpecError where the dispatch breaks the contract."""
        if dispatched.event.event is not None:
            dispatched.event.current_stream_wait()  # first: what follows reads what the dispatch writes
        check_mode(dispatched.expanded, dispatched.topk_idx, dispatched.weights)
        if dispatched.topk_idx is None:
            return self.receive_expanded(dispatched)
        return self.receive_tokens(dispatched, dispatched.topk_idx)

    def pending(self, dispatched: Dispatched) -> Callable[[], Received]:
        """The same, to be called later. It holds this dispatch, so another microbatch cannot take its place."""
        return lambda: self.forward(dispatched)

    def receive_expanded(self, dispatched: Dispatched) -> Received:
        """Ids of rows that are grouped by expert."""
        view = DispatchView(
            rows=dispatched.x.shape[0],
            experts=self.experts,
            first=self.first,
            device=dispatched.x.device,
            alignment=dispatched.alignment,
            counts=dispatched.counts,
            psum=dispatched.psum,
            real=dispatched.real,
        )
        check_view(view)
        topk_ids, real = self.expand_rows(view)
        weights = None if dispatched.weights is None else dispatched.weights.unsqueeze(1)
        x, scale = self.quantize_rows(dispatched)
        return Received(x, scale, ExpertRows(view.counts, real, None), topk_ids, weights)

    def expand_rows(self, view: DispatchView) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Ids of the rows, and the counts without padding where the device has them or they came along."""
        code = self.variant or choose(view, self.mark_padding)
        if code == "V7" and view.alignment == 1 and view.real is None:
            return ids.expand_from_host_sums(view.host_counts(), self.cache.row_numbers(view.device, view.rows), view.first)
        return expand(code, view, self.cache, self.mark_padding), view.real

    def receive_tokens(self, dispatched: Dispatched, local: torch.Tensor) -> Received:
        """Ids of rows that carry their own; depends on shapes alone, so a CUDA graph can hold it."""
        received = dispatched.received
        if received is None:
            raise SpecError("a dispatch that does not expand says in its handle how many tokens arrived")
        if local.dim() != 2 or local.shape[0] != dispatched.x.shape[0]:
            raise SpecError(f"topk ids of shape {tuple(local.shape)} for {dispatched.x.shape[0]} rows")
        if self.defer:
            topk_ids, first = local, self.first
        else:
            topk_ids, first = self.globalize(local, received), 0
        x, scale = self.quantize_rows(dispatched)
        rows = ExpertRows(dispatched.counts, None, received)
        return Received(x, scale, rows, topk_ids, dispatched.weights, first)

    def globalize(self, local: torch.Tensor, received: torch.Tensor) -> torch.Tensor:
        """Global ids of a decode step, in one launch where Triton can run."""
        if not kernels.lacking(local.device):
            return decode.decode_in_one_launch(local, received, self.first, self.num_experts)
        numbers = self.cache.row_numbers(local.device, local.shape[0])
        return decode.decode_ids(local, received, numbers, self.first, self.num_experts)

    def quantize_rows(self, dispatched: Dispatched) -> tuple[torch.Tensor, torch.Tensor | None]:
        """x and its scale, quantised here if that was left to the receiver and there is a row to quantise."""
        if self.quantize is None or dispatched.scale is not None or dispatched.x.numel() == 0:
            return dispatched.x, dispatched.scale
        return self.quantize(dispatched.x)

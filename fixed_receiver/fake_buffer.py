"""A DeepEP V2 `ElasticBuffer` for tests: one process, host tensors, no communication.

It keeps to the contract of the real one in names, in the tuple that `dispatch` returns, in the padding of an expanded
layout and in what the prefix sums mean, and it is nastier where the contract leaves freedom: what DeepEP leaves
uninitialised is poisoned here (NaN rows, ids that look valid), rows come in no order inside an expert unless
`deterministic`, and after an asynchronous dispatch nothing has arrived until the event is waited for.

It stands for one rank of `FakeGroup.size`: `x` holds the tokens of all ranks, in equal blocks, and what is received is
what this rank's experts get of them.

Source of the contract: the README, `elastic.py` and the kernels of DeepEP 2.1.0, https://github.com/deepseek-ai/DeepEP.
Only what a receiver touches is here; streams, sizing of SMs and queue pairs are not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch

Activations: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class FakeGroup:
    """Stands for a process group. `older` gives handles without `num_unaligned_recv_tokens_per_expert`."""

    rank: int = 0
    size: int = 1
    seed: int = 0
    older: bool = False


@dataclass
class EventOverlap:
    """`event` is None after a synchronous call; otherwise waiting makes the data arrive."""

    event: object | None = None
    arrivals: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    hooks: list[Callable[[], None]] = field(default_factory=list)
    waits: int = 0

    def current_stream_wait(self, release_handle: bool = False) -> None:
        """Let the data arrive; AssertionError where there is no event."""
        if self.event is None:
            raise AssertionError("waited for a synchronous call, which has no event")
        self.waits += 1
        for target, arrived in self.arrivals:
            target.copy_(arrived)
        self.arrivals.clear()
        for hook in self.hooks:
            hook()
        self.hooks.clear()

    def register_hook_after_wait(self, hook: Callable[[], None]) -> None:
        """Call `hook` behind the next wait."""
        self.hooks.append(hook)


@dataclass
class EPHandle:
    """What a dispatch leaves for the expert kernels and for combine. Fields as in DeepEP."""

    do_expand: bool
    num_experts: int
    expert_alignment: int
    num_max_tokens_per_rank: int
    num_sms: int
    topk_idx: torch.Tensor
    num_recv_tokens: int
    num_expanded_tokens: int
    num_recv_tokens_per_expert_list: list[int]
    psum_num_recv_tokens_per_scaleup_rank: torch.Tensor
    psum_num_recv_tokens_per_expert: torch.Tensor
    recv_src_metadata: torch.Tensor


@dataclass
class NewerEPHandle(EPHandle):
    """The handle since DeepEP counts real rows on the device."""

    num_unaligned_recv_tokens_per_expert: torch.Tensor


@dataclass(frozen=True)
class Route:
    """Who goes where, on the host.

    tokens  for each received token its number in `x`
    slots   for each received token and choice the row it expands to, -1 for an expert of another rank
    local   their local ids
    counts  real rows per local expert
    starts  the first row of each; end is the row behind the last padding
    """

    tokens: list[int]
    local: list[list[int]]
    slots: list[list[int]]
    counts: list[int]
    starts: list[int]
    end: int
    per_rank: list[int]


class FakeElasticBuffer:
    """See the module. Arguments that only size or tune the real buffer are taken and ignored."""

    def __init__(
        self,
        group: FakeGroup | None = None,
        num_bytes: int | None = None,
        num_cpu_bytes: int = 0,
        num_max_tokens_per_rank: int = 0,
        hidden: int = 0,
        num_topk: int = 0,
        use_fp8_dispatch: bool = False,
        deterministic: bool = False,
        allow_hybrid_mode: bool = True,
        allow_multiple_reduction: bool = True,
        prefer_overlap_with_compute: bool = True,
        sl_idx: int = 3,
        num_allocated_qps: int = 0,
        num_cpu_timeout_secs: int = 300,
        num_gpu_timeout_secs: int = 100,
        explicitly_destroy: bool = False,
    ) -> None:
        self.group = group or FakeGroup()
        self.num_max_tokens_per_rank = num_max_tokens_per_rank
        self.deterministic = deterministic
        self.random = random.Random(self.group.seed)

    def dispatch(
        self,
        x: Activations,
        topk_idx: torch.Tensor | None = None,
        topk_weights: torch.Tensor | None = None,
        cumulative_local_expert_recv_stats: torch.Tensor | None = None,
        num_experts: int | None = None,
        num_max_tokens_per_rank: int | None = None,
        expert_alignment: int | None = None,
        num_sms: int = 0,
        num_qps: int = 0,
        previous_event: EventOverlap | None = None,
        previous_event_before_epilogue: EventOverlap | None = None,
        async_with_compute_stream: bool = False,
        allocate_on_comm_stream: bool = False,
        handle: EPHandle | None = None,
        do_handle_copy: bool = True,
        do_cpu_sync: bool | None = None,
        do_expand: bool = False,
        do_zero_padding: bool = False,
        use_tma_aligned_col_major_sf: bool = False,
    ) -> tuple[Activations, torch.Tensor | None, torch.Tensor | None, EPHandle, EventOverlap]:
        """Send tokens to their experts: (recv_x or (recv_x, recv_sf), recv_topk_idx, recv_topk_weights, handle, event).

        x             `[tokens, hidden]`, or with its scales `[tokens, blocks]`; contiguous
        topk_idx      `[tokens, topk]` global expert ids, -1 for none; not with a handle
        topk_weights  float32 `[tokens, topk]`
        handle        of an earlier dispatch, to use its layout again; then without CPU sync
        """
        if handle is not None:
            require(topk_idx is None and not do_cpu_sync, "a dispatch by handle takes no topk_idx and allows no CPU sync")
            topk_idx, num_experts, expert_alignment, do_expand = (
                handle.topk_idx,
                handle.num_experts,
                handle.expert_alignment,
                handle.do_expand,
            )
        require(topk_idx is not None and num_experts is not None, "topk_idx and num_experts are needed without a handle")
        assert topk_idx is not None and num_experts is not None
        synced = handle is None if do_cpu_sync is None else do_cpu_sync
        alignment = expert_alignment or 1
        limit = num_max_tokens_per_rank or self.num_max_tokens_per_rank or -(-topk_idx.shape[0] // self.group.size)
        check_arguments(x, topk_idx, topk_weights, num_experts, self.group, limit)
        require(previous_event is None or allocate_on_comm_stream, "previous_event requires allocate_on_comm_stream")

        route = self.route(topk_idx, num_experts, alignment, do_expand)
        exact = synced or (handle is not None and bool(handle.num_recv_tokens_per_expert_list))
        made = self.make_handle(route, topk_idx, num_experts, alignment, do_expand, exact, limit) if handle is None else handle
        rows = made.num_expanded_tokens if do_expand else made.num_recv_tokens
        sent = (x, None) if isinstance(x, torch.Tensor) else x
        event = EventOverlap(object() if async_with_compute_stream else None)
        received = [None if part is None else self.place(part, route, rows, do_expand, do_zero_padding, event) for part in sent]
        assert received[0] is not None
        recv_x: Activations = received[0] if received[1] is None else (received[0], received[1])
        recv_idx = None if do_expand else self.place_ids(route, rows, topk_idx, num_experts, event)
        recv_weights = None
        if topk_weights is not None:
            recv_weights = self.place_weights(topk_weights, route, rows, do_expand, do_zero_padding, event)
        if cumulative_local_expert_recv_stats is not None:
            cumulative_local_expert_recv_stats += torch.tensor(route.counts)
        if handle is None:
            self.delay_sums(made, event)
        return recv_x, recv_idx, recv_weights, made, event

    def combine(
        self,
        x: torch.Tensor,
        handle: EPHandle,
        topk_weights: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        num_sms: int = 0,
        num_qps: int = 0,
        previous_event: EventOverlap | None = None,
        previous_event_before_epilogue: EventOverlap | None = None,
        async_with_compute_stream: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None, EventOverlap]:
        """Bring rows back to their tokens and add them up: (combined_x, combined_topk_weights, event). Padding is not read."""
        tokens, topk = handle.topk_idx.shape
        sources, slots = handle.recv_src_metadata[:, 0].long(), handle.recv_src_metadata[:, 2:].long()
        combined = torch.zeros(tokens, x.shape[1], dtype=torch.float32)
        weights = None if topk_weights is None else torch.zeros(tokens, topk, dtype=torch.float32)
        if handle.do_expand:
            rows, choices = (slots >= 0).nonzero(as_tuple=True)
            combined.index_add_(0, sources[rows], x[slots[rows, choices]].float())
            if weights is not None and topk_weights is not None:
                weights[sources[rows], choices] = topk_weights[slots[rows, choices]]
        else:
            combined[sources] = x[: len(sources)].float()
            if weights is not None and topk_weights is not None:
                weights[sources] = topk_weights[: len(sources)]
        if bias is not None:
            combined += bias.float()
        return combined.to(x.dtype), weights, EventOverlap(object() if async_with_compute_stream else None)

    @staticmethod
    def get_buffer_size_hint(group: FakeGroup, num_max_tokens_per_rank: int, hidden: int) -> int:
        """Bytes for bfloat16 tokens of every rank; the fake allocates none of them."""
        return group.size * num_max_tokens_per_rank * hidden * 2

    def barrier(self) -> None:
        """Wait for the other ranks, of which there are none."""

    def destroy(self) -> None:
        """Give back the buffer."""

    def capture(self) -> EventOverlap:
        """An event of the current stream."""
        return EventOverlap(object())

    # ---------------------------------------------------------------- layout

    def route(self, topk_idx: torch.Tensor, num_experts: int, alignment: int, expand: bool) -> Route:
        """Decide on the host which token goes to which row."""
        experts = num_experts // self.group.size
        first = self.group.rank * experts
        chosen = topk_idx.tolist()
        local = [[e - first if first <= e < first + experts else -1 for e in row] for row in chosen]
        tokens = [token for token, row in enumerate(local) if max(row) >= 0]
        block = -(-len(chosen) // self.group.size) or 1
        per_rank = [sum(token // block == rank for token in tokens) for rank in range(self.group.size)]
        owners: list[list[tuple[int, int]]] = [[] for _ in range(experts)]
        for row, token in enumerate(tokens):
            for choice, expert in enumerate(local[token]):
                if expert >= 0:
                    owners[expert].append((row, choice))
        counts = [len(rows) for rows in owners]
        starts = [0]
        for count in counts[:-1]:
            starts.append(starts[-1] + align(count, alignment))
        slots = [[-1] * topk_idx.shape[1] for _ in tokens]
        for start, rows in zip(starts, owners, strict=True):
            if not self.deterministic:
                self.random.shuffle(rows)
            for place, (row, choice) in enumerate(rows):
                slots[row][choice] = start + place if expand else -1
        end = starts[-1] + align(counts[-1], alignment)
        return Route(tokens, [local[token] for token in tokens], slots, counts, starts, end, per_rank)

    def make_handle(
        self, route: Route, topk_idx: torch.Tensor, num_experts: int, alignment: int, expand: bool, exact: bool, limit: int
    ) -> EPHandle:
        """The handle, its sums as the epilogue leaves them: advanced by the real counts where expanded, plain where not."""
        padded = [align(count, alignment) for count in route.counts]
        if expand:
            sums = [start + count for start, count in zip(route.starts, route.counts, strict=True)]
        else:
            sums = [start + count for start, count in zip(route.starts, padded, strict=True)]
        capacity = self.group.size * limit
        most = align(capacity * min(topk_idx.shape[1], len(padded)) + len(padded) * (alignment - 1), alignment)
        per_rank = torch.tensor(route.per_rank, dtype=torch.int32)
        block = -(-topk_idx.shape[0] // self.group.size) or 1
        metadata = [[token, token // block, *slots] for token, slots in zip(route.tokens, route.slots, strict=True)]
        common = EPHandle(
            do_expand=expand,
            num_experts=num_experts,
            expert_alignment=alignment,
            num_max_tokens_per_rank=limit,
            num_sms=0,
            topk_idx=topk_idx,
            num_recv_tokens=len(route.tokens) if exact else capacity,
            num_expanded_tokens=sum(padded) if exact else most,
            num_recv_tokens_per_expert_list=padded if exact else [],
            psum_num_recv_tokens_per_scaleup_rank=per_rank.cumsum(0, dtype=torch.int32),
            psum_num_recv_tokens_per_expert=torch.tensor(sums, dtype=torch.int32),
            recv_src_metadata=torch.tensor(metadata, dtype=torch.int32).reshape(-1, topk_idx.shape[1] + 2),
        )
        if self.group.older:
            return common
        return NewerEPHandle(**vars(common), num_unaligned_recv_tokens_per_expert=torch.tensor(route.counts, dtype=torch.int32))

    # ---------------------------------------------------------------- data

    def place(self, sent: torch.Tensor, route: Route, rows: int, expand: bool, zero_padding: bool, event: EventOverlap) -> torch.Tensor:
        """Rows of `sent` at their slots; everything else NaN, or zero on padding if asked."""
        filled = torch.full((rows, sent.shape[1]), float("nan")).to(sent.dtype)
        if not expand:
            filled[: len(route.tokens)] = sent[route.tokens]
        else:
            if zero_padding:
                filled[: route.end] = 0
            for token, slots in zip(route.tokens, route.slots, strict=True):
                filled[[slot for slot in slots if slot >= 0]] = sent[token]
        return arriving(filled, float("nan"), event)

    def place_weights(
        self, sent: torch.Tensor, route: Route, rows: int, expand: bool, zero_padding: bool, event: EventOverlap
    ) -> torch.Tensor:
        """float32 `[rows]` where expanded, else `[rows, topk]`; NaN where nothing was written."""
        if not expand:
            return self.place(sent, route, rows, expand, zero_padding, event)
        filled = torch.full((rows,), float("nan"))
        if zero_padding:
            filled[: route.end] = 0
        for token, slots in zip(route.tokens, route.slots, strict=True):
            for choice, slot in enumerate(slots):
                if slot >= 0:
                    filled[slot] = sent[token, choice]
        return arriving(filled, float("nan"), event)

    def place_ids(self, route: Route, rows: int, topk_idx: torch.Tensor, num_experts: int, event: EventOverlap) -> torch.Tensor:
        """Local ids `[rows, topk]`; behind the received tokens something that looks valid."""
        experts = num_experts // self.group.size
        junk = [[self.random.randrange(experts) for _ in range(topk_idx.shape[1])] for _ in range(rows)]
        junk[: len(route.local)] = route.local
        return arriving(torch.tensor(junk, dtype=topk_idx.dtype).reshape(rows, topk_idx.shape[1]), 0, event)

    def delay_sums(self, handle: EPHandle, event: EventOverlap) -> None:
        """Hide the prefix sums until the event, as the epilogue is what writes them."""
        if event.event is None:
            return
        for name in ("psum_num_recv_tokens_per_scaleup_rank", "psum_num_recv_tokens_per_expert", "num_unaligned_recv_tokens_per_expert"):
            if hasattr(handle, name):
                setattr(handle, name, arriving(getattr(handle, name), -7, event))


def arriving(filled: torch.Tensor, poison: float, event: EventOverlap) -> torch.Tensor:
    """`filled` itself after a synchronous dispatch; else poison that `filled` is copied over when the event is waited for."""
    if event.event is None:
        return filled
    target = torch.full_like(filled, poison, dtype=torch.float32 if filled.is_floating_point() else filled.dtype).to(filled.dtype)
    event.arrivals.append((target, filled))
    return target


def align(count: int, alignment: int) -> int:
    """`count` rounded up to a multiple of `alignment`."""
    return -(-count // alignment) * alignment


def require(holds: bool, message: str) -> None:
    """AssertionError with `message` unless `holds`; the real buffer asserts as well."""
    if not holds:
        raise AssertionError(message)


def check_arguments(
    x: Activations, topk_idx: torch.Tensor, weights: torch.Tensor | None, num_experts: int, group: FakeGroup, limit: int
) -> None:
    """What the real buffer asserts of its arguments."""
    tokens = x if isinstance(x, torch.Tensor) else x[0]
    require(num_experts % group.size == 0, "num_experts must be a multiple of the ranks")
    require(tokens.dim() == 2 and tokens.is_contiguous(), "x must be a contiguous matrix")
    require(tokens.device.type == "cpu", "the fake takes host tensors")
    require(tokens.shape[1] * tokens.element_size() % 16 == 0, "a row of x must be a multiple of 16 bytes")
    require(topk_idx.dim() == 2 and topk_idx.shape[0] == tokens.shape[0], "topk_idx must have a row per token")
    require(tokens.shape[0] <= limit * group.size, "more tokens than num_max_tokens_per_rank")
    require(
        weights is None or (weights.dtype == torch.float32 and weights.shape == topk_idx.shape),
        "topk_weights must be float32, shaped as topk_idx",
    )
    if not isinstance(x, torch.Tensor):
        require(x[1].element_size() == 4 and x[1].shape[0] == tokens.shape[0], "scales must have 4-byte elements and a row per token")

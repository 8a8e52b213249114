"""Who owns each received row: one global expert id per row, in every form that is compared here.

After an expanding dispatch the rows of `recv_x` are grouped by local expert, in ascending order. The expert kernels
need that as a column: int64 `[rows, 1]`, the global id of the expert that owns the row. All functions below return
exactly this tensor; they differ in what the host has to do for it.

Terms: `counts` is the host list of rows per local expert (with alignment above 1: padded rows), `first` the global
id of local expert 0, `expert_ids` the int64 device vector `first, first + 1, ...`, `row_numbers` the int32 device
vector `0, 1, ...` up to the number of rows, `psum` the int32 device vector of inclusive prefix sums that DeepEP
leaves in its handle, `real` the int32 device vector of rows per expert without padding.

The pair that the linter's autofix is held to:

* looped form: `expand_by_fill_loop` (V0), one launch per expert that received something;
* fixed form: `expand_by_repeat` (V3), what the unsafe fix of LCH101 (slice-fill-loop) makes of the looped form when
  `pin-memory = "PIN_MEMORY"` is set. The two bodies differ in the statement that makes `ids` and in nothing else.
  A plain function has no place to keep the id vector, so the fix makes it in place, by one `arange` over the
  function's own arguments. `expand_by_repeat_cached` (V3c) is the same with the vector kept by the caller.

V0, V1, V2, V2b and V3u are defects on purpose; the linter reports exactly these.
"""

from __future__ import annotations

import torch

# Pinned allocation raises on a machine without an accelerator, so every upload asks this. Tests and the dry run set
# it to True where they play such a machine.
PIN_MEMORY = torch.cuda.is_available()


def expand_by_fill_loop(counts: list[int], first: int, device: torch.device) -> torch.Tensor:
    """V0, the published defect: a slice and a fill per expert, one launch for each that received rows."""
    total = sum(counts)
    if total > 0:
        ids = torch.empty(total, dtype=torch.int64, device=device)
        offset = 0
        for i, count in enumerate(counts):
            if count > 0:
                ids[offset : offset + count].fill_(i + first)
                offset += count
    else:
        ids = torch.empty(0, dtype=torch.int64, device=device)
    return ids.unsqueeze(1)


def expand_by_repeat(counts: list[int], first: int, device: torch.device) -> torch.Tensor:
    """V3, the fixed form: launches do not grow with the number of experts, one pinned upload, no wait."""
    total = sum(counts)
    if total > 0:
        ids = torch.repeat_interleave(
            torch.arange(first, first + len(counts), dtype=torch.int64, device=device),
            torch.tensor(counts, dtype=torch.int64, pin_memory=PIN_MEMORY).to(device, non_blocking=True),
            output_size=total,
        )
    else:
        ids = torch.empty(0, dtype=torch.int64, device=device)
    return ids.unsqueeze(1)


def expand_by_repeat_cached(expert_ids: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """V3c: V3 with the id vector kept between calls, one launch fewer."""
    staged = torch.tensor(counts, dtype=torch.int64, pin_memory=PIN_MEMORY)
    repeats = staged.to(expert_ids.device, non_blocking=True)
    return torch.repeat_interleave(expert_ids, repeats, output_size=sum(counts)).unsqueeze(1)


def expand_with_list_upload(expert_ids: torch.Tensor, counts: list[int], device: torch.device) -> torch.Tensor:
    """V1, the naive fix: the list goes straight to the device, so the host waits for everything queued before it."""
    repeats = torch.tensor(counts, dtype=torch.int64, device=device)
    return torch.repeat_interleave(expert_ids, repeats, output_size=sum(counts)).unsqueeze(1)


def expand_without_size(expert_ids: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """V2, half a fix: without `output_size` the length is read back from the device, and the sign of the counts too."""
    staged = torch.tensor(counts, dtype=torch.int64, pin_memory=PIN_MEMORY)
    repeats = staged.to(expert_ids.device, non_blocking=True)
    return torch.repeat_interleave(expert_ids, repeats).unsqueeze(1)


def expand_from_pageable(expert_ids: torch.Tensor, counts: list[int], device: torch.device) -> torch.Tensor:
    """V2b: `non_blocking` from pageable memory, which is not guaranteed to be asynchronous."""
    repeats = torch.tensor(counts, dtype=torch.int64).to(device, non_blocking=True)
    return torch.repeat_interleave(expert_ids, repeats, output_size=sum(counts)).unsqueeze(1)


class RebuiltIds:
    """V3u: everything right but the id vector, which never changes and is made again in every call.

    `experts` and `first` are fixed for the life of the object; `device` is where the rows are.
    """

    def __init__(self, experts: int, first: int, device: torch.device) -> None:
        self.experts = experts
        self.first = first
        self.device = device

    def expand(self, counts: list[int]) -> torch.Tensor:
        """Ids of the rows that `counts` describes; two launches more than V3c."""
        expert_ids = torch.arange(self.experts, dtype=torch.int64, device=self.device) + self.first
        staged = torch.tensor(counts, dtype=torch.int64, pin_memory=PIN_MEMORY)
        repeats = staged.to(self.device, non_blocking=True)
        return torch.repeat_interleave(expert_ids, repeats, output_size=sum(counts)).unsqueeze(1)


def expand_by_device_counts(expert_ids: torch.Tensor, real: torch.Tensor, rows: int) -> torch.Tensor:
    """V4: the counts are on the device already, so nothing is uploaded. Alignment 1 only."""
    return torch.repeat_interleave(expert_ids, real, output_size=rows).unsqueeze(1)


def expand_by_search(psum: torch.Tensor, row_numbers: torch.Tensor, first: int) -> torch.Tensor:
    """V5: the owner of row r is the number of prefix sums that are at most r. Two launches, alignment 1 only.

    `psum` and `row_numbers` are int32 and contiguous: torch inserts a copy where the dtypes differ.
    """
    return torch.searchsorted(psum, row_numbers, right=True).add_(first).unsqueeze(1)


def expand_by_starts(psum: torch.Tensor, real: torch.Tensor, row_numbers: torch.Tensor, first: int) -> torch.Tensor:
    """V5a: V5 for any alignment, by where experts start. Padding rows get the id of their expert. Three launches.

    DeepEP's epilogue leaves in `psum[i]` the aligned start of expert i plus its real count, so the difference is the start.
    """
    starts = psum - real
    return torch.bucketize(row_numbers, starts[1:], right=True).add_(first).unsqueeze(1)


def expand_marked(
    psum: torch.Tensor, real: torch.Tensor, row_numbers: torch.Tensor, first: int, alignment: int, mark_padding: bool
) -> torch.Tensor:
    """V5b: V5a that writes -1 on rows behind the last expert and, if `mark_padding`, on padding rows.

    The form for a dispatch without CPU sync, where only the device knows how many of the rows are real: it depends
    on shapes alone, so a CUDA graph can hold it. V6 is the same in one launch.
    """
    owners = torch.bucketize(row_numbers, (psum - real)[1:], right=True)
    ends = psum if mark_padding or alignment == 1 else (psum + (alignment - 1)) // alignment * alignment
    unowned = row_numbers >= ends[owners]
    return owners.add_(first).masked_fill_(unowned, -1).unsqueeze(1)


def counts_from_sums(psum: torch.Tensor) -> torch.Tensor:
    """`real` where the handle does not have it, as before DeepEP added it. Alignment 1 only. Three launches."""
    return torch.diff(psum, prepend=psum.new_zeros(1))


def expand_from_host_sums(counts: list[int], row_numbers: torch.Tensor, first: int) -> tuple[torch.Tensor, torch.Tensor]:
    """V7: for a list and no handle. One pinned upload of counts and prefix sums together, then V5: two launches.

    Returns the ids and the counts, int32 `[experts]` on the device, which the expert kernels want as well.
    """
    sums = []
    total = 0
    for count in counts:
        total += count
        sums.append(total)
    staged = torch.tensor([counts, sums], dtype=torch.int32, pin_memory=PIN_MEMORY)
    on_device = staged.to(row_numbers.device, non_blocking=True)
    return expand_by_search(on_device[1], row_numbers, first), on_device[0]

"""The variants under one signature, what each of them needs, and which one a receiver takes.

| code | form | valid for |
|---|---|---|
| V0 | a fill per expert | counts on the host |
| V1 | repeat_interleave, the list sent straight to the device | counts on the host |
| V2 | repeat_interleave without the size | counts on the host |
| V2b | repeat_interleave, counts from pageable memory | counts on the host |
| V3 | repeat_interleave, counts from pinned memory, size given; what the autofix writes | counts on the host |
| V3c | V3 with kept ids | counts on the host |
| V3u | V3 with ids rebuilt from what never changes | counts on the host |
| V4 | repeat_interleave by the counts that the device has | alignment 1, CPU sync |
| V5 | search in the prefix sums that the device has | alignment 1, CPU sync |
| V5a | search in where experts start | any alignment, CPU sync |
| V5b | V5a, padding and surplus rows -1 | any |
| V6 | V5b in one Triton kernel | any, Triton |
| V7 | search in prefix sums of the list, one upload | counts on the host |
"""

from __future__ import annotations

from typing import Protocol

import torch

from fixed_receiver import ids, kernels
from fixed_receiver.spec import DispatchView, SpecError

CODES = ("V0", "V1", "V2", "V2b", "V3", "V3c", "V3u", "V4", "V5", "V5a", "V5b", "V6", "V7")
DEFECTS = ("V0", "V1", "V2", "V2b", "V3u")


class IdVectors(Protocol):
    """Where the vectors that never change come from; `cache.IdCache` in service."""

    def expert_ids(self, device: torch.device, experts: int, first: int) -> torch.Tensor:
        """int64 `[experts]`: first, first + 1, ..."""
        ...

    def row_numbers(self, device: torch.device, rows: int) -> torch.Tensor:
        """int32 `[rows]`: 0, 1, ..."""
        ...


def expand(code: str, view: DispatchView, vectors: IdVectors, mark_padding: bool = False) -> torch.Tensor:
    """Ids int64 `[rows, 1]` of the rows in `view` by the variant `code`; SpecError where that variant is not valid for it."""
    reason = refusal(code, view, mark_padding)
    if reason:
        raise SpecError(f"{code}: {reason}")
    device, rows, first = view.device, view.rows, view.first
    match code:
        case "V0":
            return ids.expand_by_fill_loop(view.host_counts(), first, device)
        case "V1":
            return ids.expand_with_list_upload(vectors.expert_ids(device, view.experts, first), view.host_counts(), device)
        case "V2":
            return ids.expand_without_size(vectors.expert_ids(device, view.experts, first), view.host_counts())
        case "V2b":
            return ids.expand_from_pageable(vectors.expert_ids(device, view.experts, first), view.host_counts(), device)
        case "V3":
            return ids.expand_by_repeat(view.host_counts(), first, device)
        case "V3c":
            return ids.expand_by_repeat_cached(vectors.expert_ids(device, view.experts, first), view.host_counts())
        case "V3u":
            return ids.RebuiltIds(view.experts, first, device).expand(view.host_counts())
        case "V4":
            return ids.expand_by_device_counts(vectors.expert_ids(device, view.experts, first), view.real_counts(), rows)
        case "V5":
            return ids.expand_by_search(view.prefix_sums(), vectors.row_numbers(device, rows), first)
        case "V5a":
            return ids.expand_by_starts(view.prefix_sums(), view.real_counts(), vectors.row_numbers(device, rows), first)
        case "V5b":
            numbers = vectors.row_numbers(device, rows)
            real = ids.counts_from_sums(view.prefix_sums()) if view.real is None else view.real
            return ids.expand_marked(view.prefix_sums(), real, numbers, first, view.alignment, mark_padding)
        case "V6":
            return kernels.launch_owner(view.prefix_sums(), view.real, rows, first, view.alignment, mark_padding).unsqueeze(1)
        case "V7":
            return ids.expand_from_host_sums(view.host_counts(), vectors.row_numbers(device, rows), first)[0]
        case _:
            raise ValueError(f"unknown variant {code!r}, expected one of {', '.join(CODES)}")


def refusal(code: str, view: DispatchView, mark_padding: bool = False) -> str:
    """Why the variant `code` would be wrong for `view`; empty where it is right."""
    if mark_padding and view.alignment > 1 and code not in ("V5b", "V6"):
        return "does not mark padding rows"
    match code:
        case "V4" if view.alignment > 1:
            return f"valid for alignment 1 only, not {view.alignment}: the counts on the device leave the padding rows out"
        case "V5" if view.alignment > 1:
            return f"valid for alignment 1 only, not {view.alignment}: padding rows would go to the next expert"
        case "V4" | "V5" | "V5a" if view.counts is None:
            return "without CPU sync there may be rows behind the last expert, which would get the next rank's ids"
        case "V5b" | "V6" if view.alignment > 1 and view.real is None:
            return "with alignment above 1 the counts without padding are needed"
        case "V6":
            return kernels.lacking(view.device)
    return ""


def choose(view: DispatchView, mark_padding: bool = False) -> str:
    """The cheapest valid variant for what the handle offers; SpecError if it offers nothing."""
    if view.psum is not None:
        if view.starts_are_sums():
            return "V5"
        if not refusal("V6", view, mark_padding):
            return "V6"
        if not refusal("V5b", view, mark_padding):
            return "V5b" if mark_padding or view.counts is None else "V5a"
    if view.counts is not None and not (mark_padding and view.alignment > 1):
        return "V7"
    raise SpecError("neither counts on the host nor prefix sums and counts on the device: nothing says who owns a row")

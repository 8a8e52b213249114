"""The decode step: a dispatch that does not expand, under a CUDA graph.

The buffer is as large as it can ever be. Dispatch wrote the first `received[-1]` rows; what lies behind them is
uninitialised and may look like valid ids. Local ids become global, everything else becomes -1. The number of rows is
read on the device, so nothing waits and a graph can be replayed with another number.

The forms write a new tensor, so asking twice gives the same answer; done in place, a second call would add the offset twice.
"""

from __future__ import annotations

import torch

from fixed_receiver import kernels


def decode_by_loops(local: list[list[int]], received: int, first: int, num_experts: int) -> list[list[int]]:
    """The definition, one id at a time: what the other two forms are compared with."""
    rows = []
    for number, row in enumerate(local):
        ids = []
        for expert in row:
            valid = number < received and expert >= 0 and expert + first < num_experts
            ids.append(expert + first if valid else -1)
        rows.append(ids)
    return rows


def decode_ids(local: torch.Tensor, received: torch.Tensor, row_numbers: torch.Tensor, first: int, num_experts: int) -> torch.Tensor:
    """Global ids, -1 where there is none; shape and dtype of `local`. Seven launches, no wait.

    local        int32 or int64 `[rows, topk]`: local expert ids, -1 for "not on this rank", anything behind the received rows
    received     int32 `[ranks]`: inclusive prefix sums of received tokens; the last is their number
    row_numbers  int32 `[rows]`: 0, 1, ...
    num_experts  experts of all ranks together
    """
    unwritten = (row_numbers >= received[-1:]).unsqueeze(1)
    invalid = (local < 0) | (local >= num_experts - first) | unwritten
    return (local + first).masked_fill_(invalid, -1)


def decode_in_one_launch(local: torch.Tensor, received: torch.Tensor, first: int, num_experts: int) -> torch.Tensor:
    """`decode_ids` by one Triton kernel."""
    return kernels.launch_decode(local, received, first, num_experts)

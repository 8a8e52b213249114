"""A small receiver of expert-parallel rows with three things that make the GPU wait for Python.

It is written to be found: `launchlint check launchlint/demo` reports each of them.
"""

from __future__ import annotations

import numpy as np
import torch


class ExpertReceiver(torch.nn.Module):
    """Turns the number of rows that each local expert got into one expert id a row."""

    def __init__(self, first_expert: int, top_k: int) -> None:
        super().__init__()
        self.first_expert = first_expert
        self.top_k = top_k

    def forward(self, rows: torch.Tensor, counts: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Expert ids `[rows]`, counts `[experts]` and row starts `[experts]`, all int64 on the device of `rows`."""
        ids = self.expert_ids(rows, counts)
        per_expert = torch.tensor(counts, dtype=torch.int64, device=rows.device)
        starts = np.cumsum([0, *counts[:-1]])
        return ids, per_expert, torch.from_numpy(starts).to(rows.device, non_blocking=True)

    def expert_ids(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        """One launch for each expert that got a row."""
        ids = torch.empty(sum(counts), dtype=torch.int64, device=rows.device)
        start = 0
        for expert, count in enumerate(counts):
            if count > 0:
                ids[start : start + count].fill_(self.first_expert + expert)
            start += count
        return ids

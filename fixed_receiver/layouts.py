"""Ways in which tokens fall on experts, and the ids that any form has to give for them, by plain lists."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from fixed_receiver.spec import DispatchView

SHAPES = ("balanced", "zipf", "one-hot", "holes")


@dataclass(frozen=True)
class Layout:
    """Rows of an expanded dispatch.

    real       rows per local expert without padding
    alignment  every expert is padded up to a multiple of it
    first      global id of local expert 0
    surplus    rows behind the last expert: only without CPU sync are there any
    synced     the counts are on the host
    """

    real: tuple[int, ...]
    alignment: int = 1
    first: int = 0
    surplus: int = 0
    synced: bool = True

    def padded(self) -> list[int]:
        """Rows per expert with padding."""
        return [-(-count // self.alignment) * self.alignment for count in self.real]

    def ids(self, mark_padding: bool = False) -> list[int]:
        """The definition: the id of every row, -1 behind the last expert and, if asked, on padding."""
        ids = []
        for expert, (count, padded) in enumerate(zip(self.real, self.padded(), strict=True), self.first):
            ids += [expert] * count
            ids += [-1 if mark_padding else expert] * (padded - count)
        return ids + [-1] * self.surplus

    def sums(self) -> list[int]:
        """What DeepEP's epilogue leaves per expert: the aligned start plus the real count."""
        sums, start = [], 0
        for count, padded in zip(self.real, self.padded(), strict=True):
            sums.append(start + count)
            start += padded
        return sums

    def view(self, device: torch.device, with_real: bool = True) -> DispatchView:
        """The same as a receiver sees it."""
        padded = self.padded()
        return DispatchView(
            rows=sum(padded) + self.surplus,
            experts=len(padded),
            first=self.first,
            device=device,
            alignment=self.alignment,
            counts=padded if self.synced else None,
            psum=torch.tensor(self.sums(), dtype=torch.int32, device=device),
            real=torch.tensor(self.real, dtype=torch.int32, device=device) if with_real else None,
        )


def spread(shape: str, experts: int, rows: int, seed: int = 0) -> tuple[int, ...]:
    """`rows` rows on `experts` experts, in one of SHAPES; the same for the same seed."""
    chance = random.Random(seed)
    match shape:
        case "balanced":
            weights = [1.0] * experts
        case "zipf":
            weights = [1.0 / rank for rank in range(1, experts + 1)]
            chance.shuffle(weights)
        case "one-hot":
            weights = [0.0] * experts
            weights[chance.randrange(experts)] = 1.0
        case "holes":
            empty = set(chance.sample(range(experts), experts // 5))
            weights = [0.0 if expert in empty else 1.0 for expert in range(experts)]
        case _:
            raise ValueError(f"unknown shape {shape!r}, expected one of {', '.join(SHAPES)}")
    scale = rows / sum(weights)
    counts = [int(weight * scale) for weight in weights]
    busy = [expert for expert, weight in enumerate(weights) if weight]
    for place in range(rows - sum(counts)):
        counts[busy[place % len(busy)]] += 1
    return tuple(counts)


def published_layout(rows: int = 4096) -> Layout:
    """The shape of the published case: 28 local experts, 22 of them with rows, on the second of eight ranks."""
    busy = spread("zipf", 22, rows - 22, seed=1)  # one row is added to each, so that none of them is empty
    real = [0] * 28
    for place, count in zip([i for i in range(28) if i % 5 != 2], busy, strict=True):
        real[place] = count + 1
    return Layout(tuple(real), first=28)


def large_layout(experts: int, rows: int, shape: str = "holes") -> Layout:
    """A layout of later experts, a fifth of them empty unless another shape is asked for."""
    return Layout(spread(shape, experts, rows, seed=experts), first=experts)

"""What a dispatch leaves behind, and what has to hold before a kernel may read it.

All checks look at host values only, so they cost no wait. They are worth their microsecond: on the CPU a wrong
`output_size` raises, on CUDA it is a device-side assert that takes the context with it, and a list of one count
broadcasts over all ids without a word.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

MAX_ROWS = 2**31 - 1  # prefix sums are int32


class SpecError(ValueError):
    """The outcome of a dispatch contradicts DeepEP's contract; the message names the invariant (I1 to I7)."""


@dataclass(frozen=True)
class DispatchView:
    """What the host and the device know about the rows that arrived, in expanded form.

    rows       rows of `recv_x`; exact with CPU sync, the worst case without
    experts    experts on this rank
    first      global id of local expert 0
    device     device of `recv_x`
    alignment  every expert starts at a multiple of it
    counts     rows per expert including padding, on the host; None without CPU sync (never an empty list)
    psum       int32 [experts] on the device: aligned start of the expert plus its real count
    real       int32 [experts] on the device: rows per expert without padding; None before DeepEP had it
    """

    rows: int
    experts: int
    first: int
    device: torch.device
    alignment: int = 1
    counts: list[int] | None = None
    psum: torch.Tensor | None = None
    real: torch.Tensor | None = None

    def host_counts(self) -> list[int]:
        """`counts`; SpecError where the dispatch had no CPU sync."""
        if self.counts is None:
            raise SpecError("the counts are not on the host: dispatch with CPU sync, or use a form that reads them on the device")
        return self.counts

    def prefix_sums(self) -> torch.Tensor:
        """`psum`; SpecError where the handle has none."""
        if self.psum is None:
            raise SpecError("the handle has no prefix sums per expert")
        return self.psum

    def real_counts(self) -> torch.Tensor:
        """`real`; SpecError where the handle has none."""
        if self.real is None:
            raise SpecError("the handle has no counts without padding")
        return self.real

    def starts_are_sums(self) -> bool:
        """True where the prefix sums alone say which expert owns a row: no padding, and no rows behind the last expert."""
        return self.alignment == 1 and self.counts is not None


def check_view(view: DispatchView) -> None:
    """Raise SpecError where `view` breaks I1 (length), I2 (sum), I3 (sign) or I7 (range), or the shape of a device vector."""
    if view.experts < 1 or view.first < 0 or view.alignment < 1:
        given = f"experts={view.experts}, alignment={view.alignment}, first={view.first}"
        raise SpecError(f"experts and alignment must be at least 1 and first at least 0, not {given}")
    if not 0 <= view.rows <= MAX_ROWS:
        raise SpecError(f"I7: {view.rows} rows do not fit the int32 prefix sums")
    if view.counts is not None:
        check_counts(view.counts, view.experts, view.rows, view.alignment)
    for name, vector in (("psum", view.psum), ("real", view.real)):
        if vector is not None:
            check_vector(name, vector, view)


def check_counts(counts: list[int], experts: int, rows: int, alignment: int) -> None:
    """Raise SpecError unless `counts` describes `rows` rows of `experts` experts, each count a multiple of `alignment`."""
    if len(counts) != experts:
        raise SpecError(f"I1: {len(counts)} counts for {experts} local experts")
    if min(counts) < 0:
        raise SpecError(f"I3: negative count {min(counts)}")
    total = sum(counts)
    if total != rows:
        raise SpecError(f"I2: the counts sum to {total}, but {rows} rows were received")
    if alignment > 1 and any(count % alignment for count in counts):
        raise SpecError(f"I2: the counts are not padded to the alignment of {alignment}")


def check_vector(name: str, vector: torch.Tensor, view: DispatchView) -> None:
    """Raise SpecError unless `vector` is int32 [experts], contiguous and where the rows are. Reads no value."""
    if vector.dtype != torch.int32:
        raise SpecError(f"{name} must be int32, not {vector.dtype}: torch would insert a copy in every call")
    if tuple(vector.shape) != (view.experts,):
        raise SpecError(f"I1: {name} has shape {tuple(vector.shape)}, expected ({view.experts},)")
    if not vector.is_contiguous():
        raise SpecError(f"{name} must be contiguous: torch would insert a copy in every call")
    if vector.device != view.device:
        raise SpecError(f"{name} is on {vector.device}, the rows are on {view.device}")


def check_mode(expanded: bool, topk_idx: torch.Tensor | None, weights: torch.Tensor | None) -> None:
    """Raise SpecError where I5 (ids come back iff not expanded) or I6 (one weight per row iff expanded) is broken."""
    if expanded != (topk_idx is None):
        raise SpecError("I5: dispatch returns topk ids exactly when it does not expand")
    if weights is not None and (weights.dim() == 1) != expanded:
        raise SpecError(f"I6: weights of {weights.dim()} dimensions from a dispatch that {'expands' if expanded else 'does not expand'}")

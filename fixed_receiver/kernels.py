"""One launch for what takes torch three to nine: ids of expanded rows, and ids of a decode step.

Needs Triton, which comes with torch's CUDA builds. Where it is missing `MISSING` says so, and calling a kernel raises
RuntimeError with it. With TRITON_INTERPRET=1 in the environment the kernels run on the CPU. A kernel is launched on the
current device, so that has to be the one of the tensors, as it is in a rank that owns one device.

No `from __future__ import annotations` here: Triton reads the annotations of its kernels.
"""

import functools
import os
from typing import TYPE_CHECKING, Any

import torch

MISSING = ""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # Triton reads it when a kernel is defined, so once is enough
BLOCK = 1024  # elements a program

if TYPE_CHECKING:
    triton: Any
    tl: Any
else:
    try:
        import triton
        import triton.language as tl
    except ImportError as error:
        MISSING = f"Triton is not installed ({error})"

if not MISSING:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def probe_kernel(number):  # type: ignore[no-untyped-def]
        tl.store(number, 7)

    @triton.jit(do_not_specialize=["rows", "experts", "first", "alignment"])  # type: ignore[untyped-decorator, unused-ignore]
    def owner_kernel(  # type: ignore[no-untyped-def]
        psum,
        real,
        ids,
        rows,
        experts,
        first,
        alignment,
        STEPS: tl.constexpr,
        HAS_REAL: tl.constexpr,
        MARK_PADDING: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = row < rows
        # Last expert that starts at or before the row, bit by bit from the highest: no branch, log2(experts) loads.
        owner = tl.zeros([BLOCK], dtype=tl.int32)
        for step in tl.static_range(STEPS):
            candidate = owner + (1 << (STEPS - 1 - step))
            known = candidate < experts
            if HAS_REAL:
                start = tl.load(psum + candidate, mask=known, other=0) - tl.load(real + candidate, mask=known, other=0)
            else:
                start = tl.load(psum + candidate - 1, mask=known, other=0)
            owner = tl.where(known & (start <= row), candidate, owner)
        end = tl.load(psum + owner)
        if not MARK_PADDING:
            end = (end + alignment - 1) // alignment * alignment
        tl.store(ids + row, tl.where(row < end, owner + first, -1).to(tl.int64), mask=inside)

    @triton.jit(do_not_specialize=["elements", "last"])  # type: ignore[untyped-decorator, unused-ignore]
    def decode_kernel(  # type: ignore[no-untyped-def]
        local, received, ids, elements, topk, last, first, local_limit, BLOCK: tl.constexpr
    ):
        element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = element < elements
        rows = tl.load(received + last)
        expert = tl.load(local + element, mask=inside, other=-1)
        keep = (expert >= 0) & (expert < local_limit) & (element // topk < rows)
        tl.store(ids + element, tl.where(keep, expert + first, -1), mask=inside)


def launch_owner(psum: torch.Tensor, real: torch.Tensor | None, rows: int, first: int, alignment: int, mark_padding: bool) -> torch.Tensor:
    """Ids int64 `[rows]` of expanded rows; -1 behind the last expert and, if asked, on padding. See `ids.expand_marked`.

    `real` may be None where `alignment` is 1: then an expert starts where the one before it ends.
    """
    refuse_missing()
    if real is None and alignment != 1:
        raise ValueError("with alignment above 1 the prefix sums alone do not say where an expert starts")
    ids = torch.empty(rows, dtype=torch.int64, device=psum.device)
    if rows == 0:
        return ids
    experts = psum.shape[0]
    owner_kernel[(blocks(rows),)](
        psum,
        psum if real is None else real,
        ids,
        rows,
        experts,
        first,
        alignment,
        STEPS=(experts - 1).bit_length(),
        HAS_REAL=real is not None,
        MARK_PADDING=mark_padding or alignment == 1,
        BLOCK=BLOCK,
    )
    return ids


def launch_decode(local: torch.Tensor, received: torch.Tensor, first: int, num_experts: int) -> torch.Tensor:
    """Global ids of a decode step, shape and dtype of `local` `[rows, topk]`; see `decode.decode_ids`."""
    refuse_missing()
    ids = torch.empty_like(local)
    if local.numel() == 0:
        return ids
    decode_kernel[(blocks(local.numel()),)](
        local, received, ids, local.numel(), local.shape[1], received.shape[0] - 1, first, num_experts - first, BLOCK=BLOCK
    )
    return ids


@functools.cache
def probe_interpreter() -> str:
    """Empty if the interpreter writes what a kernel stores; some pairs of Triton and numpy (3.1 and 2) store nothing at all."""
    number = torch.zeros(1, dtype=torch.int64)
    probe_kernel[(1,)](number)
    if number.item() == 7:
        return ""
    return f"the interpreter of Triton {triton.__version__} stores nothing beside this numpy"


def blocks(elements: int) -> int:
    """Programs of BLOCK elements that cover `elements`."""
    return -(-elements // BLOCK)


def refuse_missing() -> None:
    """Raise RuntimeError where there is no Triton."""
    if MISSING:
        raise RuntimeError(MISSING)


def lacking(device: torch.device) -> str:
    """What is missing to run the kernels on `device`; empty where they run, compiled or interpreted."""
    if MISSING or device.type == "cuda":
        return MISSING
    if INTERPRETED:
        return probe_interpreter()
    return f"Triton has no kernels for {device.type}; TRITON_INTERPRET=1 in the environment interprets them"

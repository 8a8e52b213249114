"""What a copy costs: the cases of aten/src/ATen/native/cuda/Copy.cu, told for marked storages."""

from __future__ import annotations

from typing import Any, Literal

import torch

from launchlint.audit.memory import Memory, marks
from launchlint.audit.state import State

NOT_GUARANTEED = "non-blocking copy of pageable memory, not guaranteed asynchronous"
BLOCKING = "blocking copy"


def record_copy(state: State, operation: str, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    """Record the copy of `source` into `target`, which may differ in dtype, shape (broadcast) and strides.

    Between two device buffers it is one kernel or device memcpy. Between host and device, a change of dtype or of the
    strides needs a temporary: on the device for a non-blocking copy, else on the host. A host temporary is pageable, so a
    pinned tensor that is not dense counts as pageable.
    """
    to_device, from_device = marks.of(target) is Memory.DEVICE, marks.of(source) is Memory.DEVICE
    if to_device and from_device:
        state.record("launch", operation)
    elif to_device:
        _record_upload(state, operation, target, source, non_blocking)
    elif from_device:
        _record_download(state, operation, target, source, non_blocking)


def _record_upload(state: State, operation: str, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    casts, staged = target.dtype != source.dtype, not same_layout(target, source)
    host_temporary = (casts and not non_blocking) or (staged and not source.is_contiguous()) or source.numel() != target.numel()
    pinned = marks.of(source) is Memory.PINNED and not host_temporary
    size = target.numel() * (source if casts and non_blocking else target).element_size()
    _record_transfer(state, "upload", operation, pinned, non_blocking, size)
    if (casts and non_blocking) or (staged and not target.is_contiguous()):
        state.record("launch", f"{operation} (unpack)")


def _record_download(state: State, operation: str, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    casts, staged = target.dtype != source.dtype, not same_layout(target, source)
    if (casts and non_blocking) or (staged and not source.is_contiguous()) or source.numel() != target.numel():
        state.record("launch", f"{operation} (pack)")
    pinned = marks.of(target) is Memory.PINNED and not (casts and not non_blocking) and (target.is_contiguous() or not staged)
    size = target.numel() * (target if casts and non_blocking else source).element_size()
    _record_transfer(state, "download", operation, pinned, non_blocking, size)


def same_layout(target: torch.Tensor, source: torch.Tensor) -> bool:
    """True if one memcpy does it: same shape, and both dense with equal strides."""
    if target.shape != source.shape:
        return False
    if target.is_contiguous() and source.is_contiguous():
        return True
    return target.stride() == source.stride() and torch.ops.aten.is_non_overlapping_and_dense(source)


def _record_transfer(
    state: State, kind: Literal["upload", "download"], operation: str, pinned: bool, non_blocking: bool, size: int
) -> None:
    unsure = non_blocking and not pinned
    note = NOT_GUARANTEED if unsure else "" if non_blocking else BLOCKING
    state.record(kind, operation, bytes=size, pinned=pinned, may_wait=unsure, note=note)
    if not non_blocking:
        state.record("wait", operation, note=note)


def move(
    state: State,
    operation: str,
    tensor: torch.Tensor,
    target: Memory,
    dtype: torch.dtype | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """`tensor.to(...)` into device or host memory.

    A non-blocking move to the host lands in pinned memory, as torch's own does. The gradient finds its way back, but the
    copies that it makes on that way are not counted.
    """
    device_now, device_then = marks.of(tensor) is Memory.DEVICE, target is Memory.DEVICE
    wanted = dtype or tensor.dtype
    reformats = memory_format not in (None, torch.preserve_format) and not tensor.is_contiguous(memory_format=memory_format)
    if device_now == device_then and wanted == tensor.dtype and not copy and not reformats:
        return tensor
    options: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
    with state.mute():
        moved: torch.Tensor = tensor.to(wanted, copy=True, **options)
    if device_then:
        marks.put(moved, Memory.DEVICE)
        state.record("allocation", operation)
    elif device_now and non_blocking:
        marks.put(moved, Memory.PINNED)
    with state.mute():
        record_copy(state, operation, moved, tensor, non_blocking)
    return moved

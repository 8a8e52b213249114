"""Where a tensor of a dry run pretends to live.

The data of every tensor is ordinary CPU memory; what is pretended is a mark on its storage, so views and in-place
operations keep it and results of other operations do not get it by accident. The marks are weak: they end with the storage.
"""

from __future__ import annotations

import enum
import threading

import torch
from torch.multiprocessing.reductions import StorageWeakRef

SWEEP_EVERY = 4096


class Memory(enum.Enum):
    """The three sorts of memory that decide what a copy costs."""

    PAGEABLE = "pageable"
    PINNED = "pinned"
    DEVICE = "device"


class Marks:
    """Marks on storages. A storage without one is pageable host memory."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[StorageWeakRef, Memory]] = {}
        self._until_sweep = SWEEP_EVERY
        self._lock = threading.Lock()

    def of(self, tensor: torch.Tensor) -> Memory:
        """Where `tensor` pretends to live; tensors without a storage of their own count as pageable."""
        try:
            found = self._marks.get(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):
            return Memory.PAGEABLE
        return Memory.PAGEABLE if found is None else found[1]

    def put(self, tensor: torch.Tensor, memory: Memory) -> None:
        """Mark the storage of `tensor`. The weak reference keeps its address from being used again."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return
        if memory is Memory.PAGEABLE:
            self._marks.pop(storage._cdata, None)
            return
        self._marks[storage._cdata] = (StorageWeakRef(storage), memory)  # type: ignore[no-untyped-call]
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self._sweep()

    def _sweep(self) -> None:
        with self._lock:
            self._until_sweep = SWEEP_EVERY
            for key, (reference, _) in list(self._marks.items()):
                if reference.expired():  # type: ignore[no-untyped-call]
                    self._marks.pop(key, None)


marks = Marks()

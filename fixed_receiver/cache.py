"""Id vectors that never change, made once.

Both vectors of the receiver depend on very little: the global ids of the local experts on (device, experts, first,
dtype), the row numbers on the device alone. A key with less in it is a bug that shows when expert parallelism is
re-sharded and `first` moves under the cache.

A cached tensor is written by kernels on the stream of whoever asked first. Another stream may get to it before they
ran, so each entry carries an event, and every other stream waits for it once. `warm` waits on the host instead, at
start-up: after it an entry is complete for everybody, which is what a CUDA graph needs, since a capture may neither
make an entry (its kernels would be captured and its memory belong to the graph) nor wait for one made elsewhere.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch

SMALLEST_CAPACITY = 4096  # row numbers; the vector grows by powers of two, so a service settles after a few calls


@dataclass
class Entry:
    """A vector, the event behind the kernels that wrote it, and the streams that need not wait for it any more."""

    vector: torch.Tensor
    event: torch.cuda.Event | None = None
    known_to: set[int] = field(default_factory=set)


class IdCache:
    """Vectors shared by all layers, streams and threads of a process. Entries are never dropped, so none is freed in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._experts: dict[tuple[torch.device, int, int, torch.dtype], Entry] = {}
        self._rows: dict[torch.device, Entry] = {}
        self._outgrown: list[torch.Tensor] = []

    def expert_ids(self, device: torch.device, experts: int, first: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Global ids `first ... first + experts - 1`, `[experts]` on `device`. Do not write to it."""
        key = (place(device), experts, first, dtype)
        entry = self._experts.get(key)
        if entry is None:
            with self._lock:
                entry = self._experts.get(key)
                if entry is None:
                    entry = build_entry(key[0], first, first + experts, dtype)
                    self._experts[key] = entry
        return self._wait(entry)

    def row_numbers(self, device: torch.device, rows: int) -> torch.Tensor:
        """`0 ... rows - 1`, int32 `[rows]` on `device`: a view of one vector that grows by powers of two. Do not write to it."""
        key = place(device)
        entry = self._rows.get(key)
        if entry is None or entry.vector.shape[0] < rows:
            entry = self._grow(key, rows)
        return self._wait(entry)[:rows]

    def warm(self, device: torch.device, experts: int, first: int, rows: int) -> None:
        """Make both vectors, `rows` being the most that a dispatch can bring, and wait until they are written."""
        self.expert_ids(device, experts, first)
        self.row_numbers(device, rows)
        with self._lock:
            entries = [*self._experts.values(), *self._rows.values()]
        for entry in entries:
            if entry.event is not None:
                entry.event.synchronize()
                entry.event = None

    def _grow(self, key: torch.device, rows: int) -> Entry:
        with self._lock:
            entry = self._rows.get(key)
            if entry is None or entry.vector.shape[0] < rows:
                if entry is not None:
                    self._outgrown.append(entry.vector)  # another stream may still read it; powers of two bound the sum
                entry = build_entry(key, 0, capacity_for(rows), torch.int32)
                self._rows[key] = entry
        return entry

    def _wait(self, entry: Entry) -> torch.Tensor:
        event = entry.event
        if event is not None:
            stream = torch.cuda.current_stream(entry.vector.device)
            if stream.cuda_stream not in entry.known_to:
                refuse_capture("wait for a cached id vector made on another stream")
                stream.wait_event(event)
                entry.known_to.add(stream.cuda_stream)
        return entry.vector


def capacity_for(rows: int) -> int:
    """The smallest power of two that holds `rows`, at least SMALLEST_CAPACITY."""
    return max(SMALLEST_CAPACITY, 1 << max(rows - 1, 0).bit_length())


def place(device: torch.device) -> torch.device:
    """`device` with its index: `torch.device("cuda")` and `torch.device("cuda:0")` compare unequal."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def build_entry(device: torch.device, start: int, stop: int, dtype: torch.dtype) -> Entry:
    """An entry that holds `start ... stop - 1`, with the event behind it where the device has streams."""
    if device.type != "cuda":
        with torch.inference_mode(False):
            return Entry(torch.arange(start, stop, dtype=dtype, device=device))
    refuse_capture("make a cached id vector")
    with torch.cuda.device(device), torch.inference_mode(False):  # an inference tensor could not be saved for a backward
        vector = torch.arange(start, stop, dtype=dtype, device=device)
        event: torch.cuda.Event = torch.cuda.Event()  # type: ignore[no-untyped-call, unused-ignore]
        event.record()
        return Entry(vector, event, {torch.cuda.current_stream(device).cuda_stream})


def refuse_capture(what: str) -> None:
    """Raise RuntimeError while the current stream is captured into a CUDA graph."""
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(f"cannot {what} during CUDA graph capture: call IdCache.warm before it")

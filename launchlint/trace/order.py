"""Sorting more than fits into memory: records of a fixed size, sorted in pieces, kept in a temporary file, merged."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from typing import IO

PIECE = 200_000  # records sorted in memory; at about 90 bytes each
BUFFERS = 16 << 20  # bytes read ahead by all pieces together while merging


class Sorter:
    """Takes byte strings of one length and gives them back in order; big-endian fields make that the order of numbers."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.records: list[bytes] = []
        self.pieces: list[tuple[int, int]] = []  # where each piece starts and ends in the file
        self.file: IO[bytes] | None = None

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, record: bytes) -> None:
        self.records.append(record)
        if len(self.records) >= PIECE:
            self._put_aside()

    def _put_aside(self) -> None:
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="launchlint-trace-")  # noqa: SIM115 - closed with the sorter
        self.records.sort()
        start = self.file.seek(0, 2)
        self.file.write(b"".join(self.records))
        self.pieces.append((start, self.file.tell()))
        self.records.clear()

    def __iter__(self) -> Iterator[bytes]:
        self.records.sort()
        if not self.pieces:
            return iter(self.records)
        size = max(1, BUFFERS // len(self.pieces) // self.width) * self.width
        return heapq.merge(iter(self.records), *(self._piece(start, end, size) for start, end in self.pieces))

    def _piece(self, start: int, end: int, size: int) -> Iterator[bytes]:
        assert self.file is not None
        while start < end:
            self.file.seek(start)
            data = self.file.read(min(size, end - start))
            start += len(data)
            for at in range(0, len(data), self.width):
                yield data[at : at + self.width]

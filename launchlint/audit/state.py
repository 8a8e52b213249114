"""The dry run of one thread: who is listening, and how the next new tensor is marked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from launchlint.audit.memory import Memory
from launchlint.audit.place import user_line
from launchlint.audit.report import Event, Kind, Report


class AuditError(RuntimeError):
    """The dry run cannot answer what the code asked; the message says what to do."""


class UnknownKernel(AuditError):
    """A custom operator or kernel that was not registered, so nobody knows what it costs."""


@dataclass
class State:
    """What one thread's dry run knows. Nested runs share it: an event goes to every report that is open."""

    reports: list[Report] = field(default_factory=list)
    muted: int = 0
    creating: Memory | None = None  # how new storages are marked, whatever the operands are
    adopting: bool = False  # inside a call with a device tensor: what torch makes there by itself belongs to the device too

    def record(
        self,
        kind: Kind,
        operation: str,
        count: int = 1,
        *,
        bytes: int = 0,
        pinned: bool | None = None,
        may_wait: bool = False,
        note: str = "",
    ) -> None:
        """Add an event at the user's line to every open report."""
        path, line = user_line()
        event = Event(kind, operation, path, line, count, bytes, pinned, may_wait, note)
        for report in self.reports:
            report.events.append(event)

    def problem(self, text: str) -> None:
        """Note something that CUDA would have refused, once for each line."""
        path, line = user_line()
        text = f"{path}:{line}: {text}"
        for report in self.reports:
            if text not in report.problems:
                report.problems.append(text)

    def assume(self, operator: str) -> None:
        """Note an operator that the table of facts does not know."""
        for report in self.reports:
            report.assumed.add(operator)

    @contextmanager
    def mute(self) -> Iterator[None]:
        """Inside, torch runs as always and nothing is counted."""
        self.muted += 1
        try:
            yield
        finally:
            self.muted -= 1

    @contextmanager
    def making(self, memory: Memory | None) -> Iterator[None]:
        """Inside, every new storage is marked `memory`; None goes by the operands."""
        before, self.creating = self.creating, memory
        try:
            yield
        finally:
            self.creating = before


class _Current(threading.local):
    state: State | None = None


_current = _Current()


def current() -> State | None:
    """The state of this thread's dry run, or None outside of one."""
    return _current.state


def enter(state: State | None) -> None:
    """Make `state` this thread's."""
    _current.state = state


DEVICE = torch.device("cuda", 0)
HOST = torch.device("cpu")


def as_device(device: object) -> torch.device:
    """The device that an argument names; raise AuditError for a second GPU, which a dry run does not have."""
    if isinstance(device, bool) or not isinstance(device, (int, str, torch.device)):
        raise TypeError(f"not a device: {device!r}")
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if found.type == "cuda" and found.index not in (None, 0):
        raise AuditError(f"a dry run has one device, cuda:0; {found} was asked for")
    return found


def memory_of(device: torch.device, pinned: bool = False) -> Memory:
    """The memory of a tensor on `device`."""
    if device.type == "cuda":
        return Memory.DEVICE
    return Memory.PINNED if pinned else Memory.PAGEABLE

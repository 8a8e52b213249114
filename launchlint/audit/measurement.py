"""Measuring on a CUDA machine with the interface of the dry run: torch's profiler, and its sync debug mode beside it.

Every call of torch's Python interface is wrapped in a named range that carries the user's line. What the CUDA runtime was
asked inside such a range, and what the device did for it, belongs to that line. Reading the profiler's records is a pure
function of them and needs no GPU.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from launchlint.audit.dry import Placed
from launchlint.audit.place import user_line
from launchlint.audit.report import Event, Report

RANGE = "launchlint|"
LAUNCHES = (
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cudaGraphLaunch",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
)
WAITS = tuple(f"{api}{what}Synchronize" for api in ("cuda", "hip") for what in ("Stream", "Device", "Event"))
MEMSETS = ("cudaMemsetAsync", "cudaMemset")
ALLOCATIONS = ("cudaMalloc", "hipMalloc")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the profiler: times in nanoseconds; `correlation` joins a runtime call and what the device did for it."""

    name: str
    on_device: bool
    start: int
    end: int
    correlation: int = 0
    thread: int = 0


class NameLines(TorchFunctionMode):
    """Wraps calls in ranges named by the user's line."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        path, line = user_line()
        with torch.profiler.record_function(f"{RANGE}{line}|{getattr(func, '__name__', '?')}|{path}"):
            return func(*args, **(kwargs or {}))


def events_of(records: Iterable[Record]) -> list[Event]:
    """What the profiler saw, as events with the user's line; work outside of every range has the path `?`."""
    records = list(records)
    device_work = {record.correlation: record.name for record in records if record.on_device and record.correlation}
    ranges = sorted((r for r in records if not r.on_device and r.name.startswith(RANGE)), key=lambda r: (r.start, -r.end))
    starts = [record.start for record in ranges]
    events = []
    for record in sorted((r for r in records if not r.on_device), key=lambda r: r.start):
        kind = _kind_of(record.name, device_work.get(record.correlation, ""))
        if kind is None:
            continue
        place = _innermost(ranges, starts, record)
        line, operation, path = place.split("|", 3)[1:] if place else ("0", record.name, "?")
        events.append(_event(kind, operation, path, int(line), device_work.get(record.correlation, "")))
    return events


def _kind_of(runtime_call: str, device_work: str) -> str | None:
    if runtime_call.startswith(WAITS):
        return "wait"
    if runtime_call.startswith(LAUNCHES) or runtime_call.startswith(MEMSETS):
        return "launch"
    if runtime_call.startswith(ALLOCATIONS):
        return "allocation"
    if "Memcpy HtoD" in device_work or "CopyHostToDevice" in device_work:
        return "upload"
    if "Memcpy DtoH" in device_work or "CopyDeviceToHost" in device_work:
        return "download"
    if "Memcpy DtoD" in device_work or "CopyDeviceToDevice" in device_work:
        return "launch"
    return None


def _event(kind: str, operation: str, path: str, line: int, device_work: str) -> Event:
    match kind:
        case "wait":
            return Event("wait", operation, path, line)
        case "launch":
            return Event("launch", operation, path, line)
        case "allocation":
            return Event("allocation", operation, path, line)
        case "upload":
            return Event("upload", operation, path, line, pinned="Pinned" in device_work, note=device_work)
        case _:
            return Event("download", operation, path, line, pinned="Pinned" in device_work, note=device_work)


def _innermost(ranges: list[Record], starts: list[int], record: Record) -> str:
    for index in range(bisect_right(starts, record.start) - 1, -1, -1):
        candidate = ranges[index]
        if candidate.end >= record.end and candidate.thread == record.thread:
            return candidate.name
        if record.start - candidate.start > 60_000_000_000:  # a range of a minute ago does not hold this call
            break
    return ""


def read_profiler(profiler: Any) -> list[Record]:
    """The records of a finished `torch.profiler.profile`."""
    records = []
    for event in profiler.profiler.kineto_results.events():
        start = event.start_ns()
        on_device = event.device_type() != torch._C._autograd.DeviceType.CPU
        correlation = event.correlation_id() or event.linked_correlation_id()
        thread = 0 if on_device else event.start_thread_id()
        records.append(Record(event.name(), on_device, start, start + event.duration_ns(), correlation, thread))
    return records


@contextmanager
def measuring() -> Iterator[Report]:
    """Measure the body of the `with` statement; the report is filled when it ends without an exception."""
    report = Report("measurement", torch.__version__)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.profiler.profile(activities=activities) as profiler:
            torch.cuda.set_sync_debug_mode("warn")
            try:
                with NameLines():
                    yield report
            finally:
                torch.cuda.set_sync_debug_mode(before)
            torch.cuda.synchronize()
    synchronizing = [warning for warning in caught if "synchronizing" in str(warning.message)]
    for warning in (warning for warning in caught if warning not in synchronizing):
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    report.sync_warnings = len(synchronizing)
    report.events.extend(_without_own_wait(events_of(read_profiler(profiler))))


def _without_own_wait(events: list[Event]) -> list[Event]:
    """The last wait outside of every range is the one that `measuring` itself asks for."""
    for index in range(len(events) - 1, -1, -1):
        if events[index].kind == "wait" and events[index].path == "?":
            return events[:index] + events[index + 1 :]
    return events


def run_measured(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Call `function` with its tensor arguments on the GPU, once to warm up and once measured."""
    args, kwargs = _placed(args), _placed(kwargs)
    _placed(getattr(function, "__self__", function))
    function(*_copied(args), **_copied(kwargs))
    with measuring() as report:
        report.result = function(*args, **kwargs)
    return report


def _placed(value: Any) -> Any:
    def place(leaf: Any) -> Any:
        if isinstance(leaf, Placed):
            return tree_map(lambda tensor: tensor.pin_memory() if leaf.pinned else tensor, leaf.value)
        return leaf.to("cuda") if isinstance(leaf, (torch.Tensor, torch.nn.Module)) else leaf

    return tree_map(place, value)


def _copied(value: Any) -> Any:
    def copy(leaf: Any) -> Any:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(copy, value)

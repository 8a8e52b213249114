"""One walk over a recording in time: every event counts for the line of the checked code that was running.

Each thread has a stack of the calls that are open. A call directly below a function of a checked file gets a line
(`code`); everything below that call counts for this line, until a function of a checked file begins anew. Sums are kept
per `Context`, of which there are no more than there are lines, whatever the length of the recording.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchlint.trace.code import SPECIAL, Groups, frame_of, keys_of, may_repeat, without_address
from launchlint.trace.cost import Cost, call_of, work_of
from launchlint.trace.events import TraceError, read
from launchlint.trace.order import Sorter
from launchlint.trace.places import Place, Places

PYTHON, OPERATION, RUNTIME = range(3)  # of two events that begin together the first is around the second
HOST = {"python_function": PYTHON, "cpu_op": OPERATION, "cuda_runtime": RUNTIME, "cuda_driver": RUNTIME}
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
BIAS = 1 << 62  # keeps fields that are packed as unsigned numbers above zero
HOST_RECORD = struct.Struct(">IQQBQIQ")  # thread, start, BIAS - length, kind, number, name, correlation
DEVICE_RECORD = struct.Struct(">QBIQQ")  # correlation, 0 host or 1 device, context or name, nanoseconds, bytes

Line = tuple[str, int]  # path and 1-based line
Ranges = Mapping[str, Sequence[tuple[int, int, int]]]  # by path: first line, last line, number of what stands there


@dataclass(frozen=True, slots=True)
class Context:
    """Where in the code something was spent."""

    line: Line | None  # of the innermost function that is checked; None outside one, and between two lines of one
    certain: bool  # False: another line of the function can be meant
    inside: frozenset[int]  # the numbers of all ranges that the line and the lines which called it stand in
    stacked: bool = True  # a Python function was running
    checked: bool = True  # one of a checked file


NOWHERE = Context(None, True, frozenset(), stacked=False, checked=False)
OUTSIDE = Context(None, True, frozenset(), checked=False)


@dataclass(slots=True)
class Recording:
    """What a recording says. `total` is summed from its events one by one, without looking at stacks."""

    path: str
    total: Cost = field(default_factory=Cost)
    events: int = 0
    frames: int = 0  # calls of Python functions
    device: bool = False  # there are events of a device or of its runtime
    by_context: dict[Context, Cost] = field(default_factory=dict)
    reached: set[tuple[str, int]] = field(default_factory=set)  # path and first line of each checked function that ran
    changed: set[str] = field(default_factory=set)
    ambiguous: set[str] = field(default_factory=set)

    def sum(self, holds: Callable[[Context], bool]) -> Cost:
        """The costs of all contexts for which `holds` is true."""
        cost = Cost()
        for context, part in self.by_context.items():
            if holds(context):
                cost.add(part)
        return cost


def record(path: str, files: Sequence[str], ranges: Ranges) -> Recording:
    """Read a trace and count what was spent per line of `files` and in `ranges`; raise TraceError where it is none."""
    result = Recording(path)
    with Sorter(HOST_RECORD.size) as host, Sorter(DEVICE_RECORD.size) as device:
        reader = _Reader(result, host, device)
        for event in read(path):
            reader.take(event)
        if not result.events:
            raise TraceError(f"{path}: no event of PyTorch's profiler in it (cpu_op, python_function, cuda_runtime, kernel)")
        places = Places(files)
        sweep = _Sweep(result, places, ranges, list(reader.names), device)
        for packed in host:
            sweep.take(*HOST_RECORD.unpack(packed))
        sweep.finish()
        sweep.join(device)
    result.by_context = {each.context: each.cost for each in sweep.sums}
    result.changed, result.ambiguous = places.changed, places.ambiguous
    return result


class _Reader:
    """Takes the events as they come in the file, sums them, and hands them to the sorters."""

    def __init__(self, result: Recording, host: Sorter, device: Sorter) -> None:
        self.result = result
        self.host = host
        self.device = device
        self.names: dict[str, int] = {}
        self.threads: dict[tuple[Any, Any], int] = {}

    def take(self, event: dict[str, Any]) -> None:
        category, name = event.get("cat"), event.get("name")
        if event.get("ph") != "X" or not isinstance(category, str) or not isinstance(name, str):
            return
        kind = HOST.get(category)
        if kind is None and category not in DEVICE:
            return
        try:
            start, length = round(float(event["ts"]) * 1000), max(0, round(float(event.get("dur", 0)) * 1000))
        except (KeyError, TypeError, ValueError, OverflowError):
            return
        args = event.get("args")
        self.result.events += 1
        correlation = _number(args, "correlation")
        if kind is None:
            self._device(category, name, length, correlation, _number(args, "bytes"))
        else:
            self._host(kind, name, (start, length), (event.get("pid"), event.get("tid")), correlation)

    def _host(self, kind: int, name: str, time: tuple[int, int], thread: tuple[Any, Any], correlation: int) -> None:
        start, length = time
        number = self.threads.setdefault(thread, len(self.threads))
        word = self.names.setdefault(without_address(name), len(self.names))
        if kind == PYTHON:
            self.result.frames += 1
        elif kind == RUNTIME:
            self._count_call(name, length)
        place = (start + BIAS, BIAS - length, kind, self.result.events)
        self.host.add(HOST_RECORD.pack(number, *place, word, correlation))

    def _count_call(self, name: str, length: int) -> None:
        self.result.device = True
        call, total = call_of(name), self.result.total
        total.launches += call.launches
        total.waits += call.waits
        total.wait_ns += length if call.waits else 0

    def _device(self, category: str, name: str, length: int, correlation: int, size: int) -> None:
        self.result.device = True
        total = self.result.total
        kernel = category == "kernel"
        if kernel:
            total.kernels += 1
            total.kernel_ns += length
        elif category == "gpu_memcpy":
            total.copies[kind_of(name)] += 1
            total.copied += size
        else:
            return
        word = 0 if kernel else 1 + self.names.setdefault(name, len(self.names))
        self.device.add(DEVICE_RECORD.pack(correlation, 1, word, length, size))


def kind_of(name: str) -> str:
    """`Memcpy HtoD (Pageable -> Device)` without the word that all have."""
    return name.removeprefix("Memcpy ").removeprefix("Copy")


def _number(args: Any, key: str) -> int:
    value = args.get(key, 0) if isinstance(args, dict) else 0
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else 0


# ---------------------------------------------------------------- stacks


@dataclass(slots=True)
class _Sum:
    """The cost of a context, and the context's number."""

    context: Context
    number: int
    cost: Cost = field(default_factory=Cost)


@dataclass(slots=True)
class _Running:
    """A function of a checked file that is running: at which of its places, and since when no call is open below it."""

    place: Place
    idle: int
    at: int = -1
    before: _Sum | None = None  # of the last call below it


class _Open:
    """A call that is open on a thread."""

    __slots__ = ("around", "below", "counted", "end", "inner", "name", "running", "start", "sum", "unplaced", "waited")

    def __init__(self, name: int, start: int, end: int, around: _Sum) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.sum = around  # what counts below it, unless it is a function of a checked file
        self.inner = 0  # nanoseconds in calls below it
        self.around = False  # it is an operation or inside one
        self.counted = False  # this operation, or one around it, counts as a launch
        self.waited = False  # the same for a wait
        self.below = False  # an operation below it counts as a launch
        self.running: _Running | None = None  # where it is a function of a checked file
        self.unplaced: _Open | None = None  # the function of a checked file that calls it, while it is not known where


class _Sweep:
    """The open calls of the thread that is being walked."""

    def __init__(self, result: Recording, places: Places, ranges: Ranges, names: list[str], device: Sorter) -> None:
        self.result = result
        self.places = places
        self.ranges = ranges
        self.names = names
        self.device = device
        self.stack: list[_Open] = []
        self.thread = -1
        self.sums: list[_Sum] = []
        self.known: dict[tuple[Line | None, bool, frozenset[int]], _Sum] = {}
        self.marks: dict[Line, frozenset[int]] = {}
        self.makers: dict[str, tuple[Groups, bool]] = {}
        self.nowhere = self._new(NOWHERE)
        self.outside = self._new(OUTSIDE)

    def take(self, thread: int, start: int, length: int, kind: int, _: int, name: int, correlation: int) -> None:
        """The next event in order of threads and time."""
        start, length = start - BIAS, BIAS - length
        if thread != self.thread:
            self.finish()
            self.thread = thread
        while self.stack and self.stack[-1].end <= start:
            self._close()
        parent = self.stack[-1] if self.stack else None
        call = _Open(name, start, start + length, parent.sum if parent else self.nowhere)
        if parent is not None:
            call.end = min(call.end, parent.end)  # clocks are rounded
            self._place(call, parent, kind == PYTHON)
        if kind == PYTHON:
            self._enter(call)
        elif kind == OPERATION:
            self._operate(call, parent)
        else:
            self._run(call, length, correlation)
        self.stack.append(call)

    def finish(self) -> None:
        """Close what is open at the end of a thread."""
        while self.stack:
            self._close()

    # ------------------------------------------------------------ where

    def _place(self, call: _Open, parent: _Open, is_python: bool) -> None:
        """Find out for which line a call counts, from what is around it."""
        call.around, call.counted, call.waited = parent.around, parent.counted, parent.waited
        if parent.running is not None:
            found = parent.running.place.function.find(*self._made_by(self.names[call.name]), parent.running.at)
            call.sum = self._on_line(parent, parent.running, found)
            call.unplaced = None if found else parent
            self._idle(parent, parent.running, call)
        elif is_python and parent.unplaced is not None:
            self._unwrap(call, parent.unplaced)

    def _unwrap(self, call: _Open, caller: _Open) -> None:
        """A function whose name is not in the source may be a wrapper: then the source has the name of what is called by it."""
        assert caller.running is not None
        frame = frame_of(self.names[call.name])
        named = frame is not None and not frame.name.startswith(("_", "<"))
        found = caller.running.place.function.find(((f"call:{frame.name}",),), False, caller.running.at) if frame and named else None
        if found is None:
            call.unplaced = caller
            return
        call.sum = self._on_line(caller, caller.running, found)
        for wrapper in reversed(self.stack):
            if wrapper.unplaced is not caller:
                break
            wrapper.unplaced, wrapper.sum = None, call.sum

    def _on_line(self, caller: _Open, running: _Running, found: tuple[int, bool] | None) -> _Sum:
        """The sum of a call at a place that was found in its caller; where none was, of where the caller stands."""
        function = running.place.function
        if found is not None:
            running.at = found[0]
        line = (running.place.path, function.lines[running.at] if running.at >= 0 else function.first)
        certain = found[1] if found else function.first == function.last
        return self._sum(line, certain, caller.sum.context.inside | self._marked(line))

    def _made_by(self, name: str) -> tuple[Groups, bool]:
        """What in the source makes an event of this name, and whether one place may make several in a row."""
        if name not in self.makers:
            groups, frame = keys_of(name), frame_of(name)
            place = self.places.find(frame) if frame else None
            if place and place.function.generator:  # it runs where it is iterated, which need not be where it is called
                groups = (tuple(key for group in groups for key in group) + SPECIAL["__iter__"],)
            self.makers[name] = (groups, may_repeat(name))
        return self.makers[name]

    def _idle(self, frame: _Open, running: _Running, call: _Open | None) -> None:
        """Count the interpreter's time since the last call below a function for what both that call and this one stand in."""
        place, before, after = running.place, running.before, call.sum if call else None
        inside, line, certain = frame.sum.context.inside, None, True
        if before and after:
            inside |= before.context.inside & after.context.inside
            line = after.context.line if before.context.line == after.context.line else None
            certain = line is None or (before.context.certain and after.context.certain)
        if place.function.first == place.function.last:
            line, certain = (place.path, place.function.first), True
            inside |= self._marked(line)
        now = call.start if call else frame.end
        self._sum(line, certain, inside).cost.host_ns += max(0, now - running.idle)
        running.before = after
        running.idle = max(running.idle, call.end if call else now)

    def _marked(self, line: Line) -> frozenset[int]:
        """The numbers of the ranges that hold a line."""
        if line not in self.marks:
            ranges = self.ranges.get(line[0], ())
            self.marks[line] = frozenset(number for first, last, number in ranges if first <= line[1] <= last)
        return self.marks[line]

    def _sum(self, line: Line | None, certain: bool, inside: frozenset[int]) -> _Sum:
        key = (line, certain, inside)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._new(Context(line, certain, inside))
        return found

    def _new(self, context: Context) -> _Sum:
        self.sums.append(_Sum(context, len(self.sums)))
        return self.sums[-1]

    # ------------------------------------------------------------ what

    def _enter(self, call: _Open) -> None:
        """A Python function begins; below one of a checked file, lines count anew."""
        if call.sum is self.nowhere:
            call.sum = self.outside
        frame = frame_of(self.names[call.name])
        place = self.places.find(frame) if frame else None
        if frame is None or place is None:
            return
        function = place.function
        self.result.reached.add((place.path, function.first))
        call.running = _Running(place, call.start, -1 if frame.line == function.first else function.before(frame.line))
        call.unplaced = None

    def _operate(self, call: _Open, parent: _Open | None) -> None:
        """An operation is dispatched; without a device it is taken for what it would ask of one."""
        cost = call.sum.cost
        if parent is None or not parent.around:
            cost.operations += 1
            self.result.total.operations += 1
        call.around = True
        if self.result.device:
            return
        work = work_of(self.names[call.name])
        if work.launches and not call.counted:
            self._launch(call)
        if work.waits and not call.waited:
            call.waited = True
            cost.waits += 1
            self.result.total.waits += 1

    def _launch(self, call: _Open) -> None:
        call.counted = call.below = True
        call.sum.cost.launches += 1
        self.result.total.launches += 1

    def _run(self, call: _Open, length: int, correlation: int) -> None:
        """A call of the runtime."""
        does, cost = call_of(self.names[call.name]), call.sum.cost
        cost.launches += does.launches
        cost.waits += does.waits
        cost.wait_ns += length if does.waits else 0
        if correlation and (does.launches or does.copies):
            self.device.add(DEVICE_RECORD.pack(correlation, 0, call.sum.number, 0, 0))

    def _close(self) -> None:
        call = self.stack.pop()
        if call.running is not None:
            self._idle(call, call.running, None)
        else:
            call.sum.cost.host_ns += max(0, call.end - call.start - call.inner)
        if not self.result.device and not call.counted and not call.below and work_of(self.names[call.name]).unknown:
            self._launch(call)
        if self.stack:
            self.stack[-1].inner += call.end - call.start
            self.stack[-1].below |= call.below
        else:
            self.result.total.host_ns += call.end - call.start

    def join(self, device: Sorter) -> None:
        """Give what the device did to the calls that asked for it."""
        asked, by = 0, self.nowhere
        for packed in device:
            correlation, done, word, length, size = DEVICE_RECORD.unpack(packed)
            if not done:
                asked, by = correlation, self.sums[word]
                continue
            cost = (by if correlation and correlation == asked else self.nowhere).cost
            if word == 0:
                cost.kernels += 1
                cost.kernel_ns += length
            else:
                cost.copies[kind_of(self.names[word - 1])] += 1
                cost.copied += size

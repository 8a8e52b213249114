"""What `torch.cuda` and `torch.accelerator` answer while a dry run is on: one device, one stream, and waits that are counted.

The answers go to the thread that runs dry; another thread gets torch's own. Code that imported a function by name before the
run keeps torch's own, too.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack

from launchlint.audit.functions import AnswerFunctions
from launchlint.audit.kernels import TritonGuard
from launchlint.audit.memory import Memory, marks
from launchlint.audit.state import DEVICE, AuditError, as_device, current


class Stream:
    """A stream of a dry run: work is done when it is issued, so only waiting for it counts."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = DEVICE if device is None else as_device(device)
        self.priority = priority
        self.stream_id = self.cuda_stream = 0

    def synchronize(self) -> None:
        """Counts as a wait."""
        record_wait("Stream.synchronize")

    def query(self) -> bool:
        """All work is done."""
        return True

    def is_capturing(self) -> bool:
        """No graph is recorded."""
        return False

    def wait_event(self, event: Any) -> None:
        """The device waits, the host does not."""

    def wait_stream(self, stream: Any) -> None:
        """The device waits, the host does not."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return event or Event()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self is other or (self.stream_id == other.stream_id and self.device == other.device))

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))


class Event:
    """An event of a dry run: it has always happened, and waiting for it on the host counts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = DEVICE

    def record(self, stream: Any = None) -> None:
        """Nothing to do."""

    def wait(self, stream: Any = None) -> None:
        """The device waits, the host does not."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Counts as a wait."""
        record_wait("Event.synchronize")

    def elapsed_time(self, end: Any) -> float:
        """Raises: there is no time on a device that is not there."""
        raise AuditError("a dry run measures no time: Event.elapsed_time has no answer")


def record_wait(operation: str, *arguments: Any, **options: Any) -> None:
    """Count a wait of the host for the device."""
    state = current()
    if state is not None and not state.muted:
        state.record("wait", operation, note="explicit wait")


def refuse(name: str, why: str) -> Callable[..., Any]:
    """A function that raises AuditError with `why`."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AuditError(f"{name}: {why}")

    return refused


def constant(value: Any) -> Callable[..., Any]:
    """A function that always answers `value`."""
    return lambda *args, **kwargs: value


@contextmanager
def nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context that changes nothing."""
    yield


NO_GRAPH = "a CUDA graph cannot be recorded in a dry run; run the function itself, outside of the capture"
NO_PROPERTIES = "a dry run has no hardware to ask; answer it in the test, for example with monkeypatch"


ENGINE = "_engine_run_backward"
GROUP = "_group_tensors_by_device_and_dtype"


def group_by_marks(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Optimizers group tensors by device in C++, which sees the CPU; the keys are put right."""
    groups = {}
    for (device, dtype), (lists, indices) in original(*args, **kwargs).items():
        first = next((tensor for tensors in lists for tensor in tensors if tensor is not None), None)
        pretended = first is not None and marks.of(first) is Memory.DEVICE
        groups[DEVICE if pretended else device, dtype] = (lists, indices)
    return groups


def run_backward(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The backward pass. Its caller may run without the mode, but hooks and backward functions of the user need the answers."""
    state = current()
    if state is None or any(isinstance(mode, AnswerFunctions) for mode in _get_current_function_mode_stack()):  # type: ignore[no-untyped-call]
        return original(*args, **kwargs)
    with AnswerFunctions(state):
        return original(*args, **kwargs)


def host_generator(original: Callable[..., Any], device: Any = None) -> Any:
    """A generator of random numbers: of the host, whatever device is asked for, since that is where the data are."""
    return original() if device is None or as_device(device).type == "cuda" else original(device)


def answers() -> dict[tuple[str, str], Any]:
    """What stands in for each attribute of a module, while a dry run is on."""
    stream = Stream()
    of_cuda: dict[str, Any] = {
        "is_available": constant(True),
        "is_initialized": constant(True),
        "init": constant(None),
        "_lazy_init": constant(None),
        "device_count": constant(1),
        "current_device": constant(0),
        "set_device": lambda device: as_device(device) and None,
        "synchronize": functools.partial(record_wait, "torch.cuda.synchronize"),
        "current_stream": constant(stream),
        "default_stream": constant(stream),
        "set_stream": constant(None),
        "stream": nothing,
        "device": nothing,
        "device_of": nothing,
        "Stream": Stream,
        "Event": Event,
        "is_current_stream_capturing": constant(False),
        "is_bf16_supported": constant(True),
        "empty_cache": functools.partial(record_wait, "torch.cuda.empty_cache"),
        "memory_allocated": constant(0),
        "max_memory_allocated": constant(0),
        "memory_reserved": constant(0),
        "max_memory_reserved": constant(0),
        "reset_peak_memory_stats": constant(None),
        "manual_seed": constant(None),
        "manual_seed_all": constant(None),
        "mem_get_info": refuse("torch.cuda.mem_get_info", NO_PROPERTIES),
        "get_device_properties": refuse("torch.cuda.get_device_properties", NO_PROPERTIES),
        "get_device_capability": refuse("torch.cuda.get_device_capability", NO_PROPERTIES),
        "get_device_name": refuse("torch.cuda.get_device_name", NO_PROPERTIES),
        "graph": refuse("torch.cuda.graph", NO_GRAPH),
        "CUDAGraph": refuse("torch.cuda.CUDAGraph", NO_GRAPH),
        "make_graphed_callables": refuse("torch.cuda.make_graphed_callables", NO_GRAPH),
    }
    of_accelerator: dict[str, Any] = {
        "is_available": constant(True),
        "device_count": constant(1),
        "current_accelerator": constant(torch.device("cuda")),
        "current_device_index": constant(0),
        "current_device_idx": constant(0),
        "set_device_index": constant(None),
        "synchronize": functools.partial(record_wait, "torch.accelerator.synchronize"),
        "current_stream": constant(stream),
        "set_stream": constant(None),
    }
    of_nvtx: dict[str, Any] = {
        "range_push": constant(0),
        "range_pop": constant(0),
        "mark": constant(None),
        "range": nothing,
        "range_start": constant(0),
    }
    of_torch: dict[str, Any] = {"Generator": functools.partial(host_generator, torch.Generator)}
    of_c: dict[str, Any] = {}
    if hasattr(torch._C, GROUP):
        of_c[GROUP] = functools.partial(group_by_marks, getattr(torch._C, GROUP))
    of_autograd: dict[str, Any] = {}
    if hasattr(torch.autograd, ENGINE):
        of_autograd[ENGINE] = functools.partial(run_backward, getattr(torch.autograd, ENGINE))
    of_tensor = {"record_stream": constant(None)}  # its arguments are checked before any mode is asked
    named = (
        ("torch", of_torch),
        ("torch._C", of_c),
        ("torch.Tensor", of_tensor),
        ("torch.autograd", of_autograd),
        ("torch.cuda", of_cuda),
        ("torch.accelerator", of_accelerator),
        ("torch.cuda.nvtx", of_nvtx),
    )
    return {(module, name): answer for module, table in named for name, answer in table.items()}


class Answering:
    """Installs the answers for the first dry run of the process and takes them away after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._saved: list[tuple[Any, str, Any]] = []
        self._triton = TritonGuard()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._install()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._remove()

    def _install(self) -> None:
        for (module_name, name), answer in answers().items():
            module = _module(module_name)
            if module is not None and hasattr(module, name):
                self._saved.append((module, name, vars(module).get(name, _INHERITED)))
                setattr(module, name, _for_dry_runs(getattr(module, name), answer))
        self._triton.install()

    def _remove(self) -> None:
        self._triton.remove()
        for module, name, original in reversed(self._saved):
            if original is _INHERITED:
                delattr(module, name)
            else:
                setattr(module, name, original)
        self._saved.clear()


_INHERITED = object()


def _module(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _for_dry_runs(original: Any, answer: Any) -> Any:
    """A stand-in that answers in a dry run's thread and is torch's own everywhere else."""
    if isinstance(original, type):
        return _class_for_dry_runs(original, answer)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = current()
        return original(*args, **kwargs) if state is None else answer(*args, **kwargs)

    return call


def _class_for_dry_runs(original: type, answer: Any) -> Any:
    """A class whose instances are the answer's in a dry run, and for which `isinstance` accepts both.

    It is a subclass of torch's own, since a module of torch that is first imported during the run may check that.
    """

    class Meta(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is not stand_in:
                return super().__call__(*args, **kwargs)
            return original(*args, **kwargs) if current() is None else answer(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            if cls is not stand_in:
                return bool(super().__instancecheck__(instance))
            return isinstance(instance, original) or (isinstance(answer, type) and isinstance(instance, answer))

    stand_in = Meta(original.__name__, (original,), {"__doc__": original.__doc__, "__module__": original.__module__})
    return stand_in


answering = Answering()

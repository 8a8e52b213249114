"""The CUDA device as the checks see it: keep it busy, ask whether it is, capture, and forbid waits."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from typing import Any, Protocol

import torch

from fixed_receiver import kernels
from fixed_receiver.trace import Counts, trace_call


class Mark(Protocol):
    """A place in a stream; torch.cuda.Event in practice."""

    def query(self) -> bool:
        """True once the device has passed it."""
        ...

    def synchronize(self) -> None:
        """Wait on the host until it has."""
        ...

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from here to `end_event`."""
        ...


class Gpu:
    """One CUDA device. Everything that needs one goes through here, so that the rest can be tried without."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cycles_per_ms = 0.0

    def settle(self) -> None:
        """Wait until the device is idle."""
        torch.cuda.synchronize(self.device)

    def mark(self) -> Mark:
        """A timed mark at the end of the current stream."""
        event: Mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call, unused-ignore]
        event.record()  # type: ignore[attr-defined]
        return event

    def await_mark(self, mark: Mark) -> None:
        """Make the current stream wait for `mark`; the host goes on."""
        torch.cuda.current_stream(self.device).wait_event(mark)  # type: ignore[arg-type]

    def hold(self, milliseconds: float) -> None:
        """Keep the current stream busy for about that long by a kernel that spins; the host goes on."""
        if not self.cycles_per_ms:
            self.cycles_per_ms = self.calibrate()
        torch.cuda._sleep(int(milliseconds * self.cycles_per_ms))  # type: ignore[no-untyped-call, unused-ignore]

    def calibrate(self, cycles: int = 20_000_000) -> float:
        """Clock cycles in a millisecond of the spinning kernel, second run of two."""
        for _ in range(2):
            start = self.mark()
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call, unused-ignore]
            end = self.mark()
            self.settle()
            elapsed = start.elapsed_time(end)
        return cycles / elapsed

    def stream(self) -> AbstractContextManager[Any]:
        """A new stream as the current one."""
        return torch.cuda.stream(torch.cuda.Stream(self.device))  # type: ignore[no-untyped-call, unused-ignore]

    @contextmanager
    def forbid_waits(self) -> Iterator[None]:
        """Make torch raise where it waits for the device by itself. It does not see pageable copies with non_blocking."""
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")

    def capture(self, call: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        """Capture `call` into a graph: its result, which each replay writes again, and the replay."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = call()
        return made, graph.replay

    def host_memory(self, size: int, pinned: bool) -> torch.Tensor:
        """`size` bytes on the host."""
        return torch.zeros(size, dtype=torch.uint8, pin_memory=pinned)

    def host_allocations(self) -> int | None:
        """How often pinned memory was asked of the driver since the start; None where torch does not say."""
        if not hasattr(torch.cuda, "host_memory_stats"):
            return None
        count = torch.cuda.host_memory_stats().get("num_host_alloc")
        return None if count is None else int(count)

    def trace(self, call: Callable[[], object]) -> Counts:
        """What `call` does on the device, by the profiler."""
        return trace_call(call, self.settle)

    def describe(self) -> dict[str, Any]:
        """Device and driver."""
        properties = torch.cuda.get_device_properties(self.device)
        return {
            "device": properties.name,
            "compute capability": f"{properties.major}.{properties.minor}",
            "memory GiB": round(properties.total_memory / 2**30, 1),
            **ask_driver(self.device.index or 0),
        }


def ask_driver(index: int) -> dict[str, str]:
    """Driver and clocks from nvidia-smi, empty where it is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    fields = ("driver_version", "clocks.sm", "clocks.max.sm", "power.limit")
    command = [program, f"--id={index}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (value.strip() for value in done.stdout.split(",")), strict=False))


def describe_machine() -> dict[str, Any]:
    """What a figure must be read with: versions, machine, date, command."""
    triton_version = "" if kernels.MISSING else str(getattr(kernels.triton, "__version__", "unknown"))
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "triton": triton_version,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": "python -m fixed_receiver " + " ".join(sys.argv[1:]),
    }

"""What a profiler trace says was done: kernels, copies by kind of memory, waits and allocations.

Reads the JSON that torch.profiler exports. CUPTI names a copy by both sides ("Memcpy HtoD (Pinned -> Device)"), which is
the only place where a pageable copy shows: `torch.cuda.set_sync_debug_mode` does not see it.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")


@dataclass
class Counts:
    """Sums over one trace. `names` says how often each kernel ran, `host_calls` each call into the CUDA runtime."""

    kernels: int = 0
    pinned_uploads: int = 0
    pageable_uploads: int = 0
    downloads: int = 0
    device_copies: int = 0
    fills: int = 0
    waits: int = 0
    host_allocations: int = 0
    device_allocations: int = 0
    names: Counter[str] = field(default_factory=Counter)
    host_calls: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "names": dict(self.names), "host_calls": dict(self.host_calls)}


def count_events(events: Iterable[dict[str, Any]]) -> Counts:
    """Count the `traceEvents` of an exported trace; events of other categories are left out."""
    counts = Counts()
    for event in events:
        name = str(event.get("name", ""))
        match event.get("cat"):
            case "kernel":
                counts.kernels += 1
                counts.names[name] += 1
            case "gpu_memcpy":
                count_copy(counts, name)
            case "gpu_memset":
                counts.fills += 1
            case "cuda_runtime" | "cuda_driver":
                count_host_call(counts, name)
    return counts


def count_copy(counts: Counts, name: str) -> None:
    """A copy by its direction, an upload also by the memory it comes from."""
    counts.names[name] += 1
    if "HtoD" in name:
        if "Pageable" in name:
            counts.pageable_uploads += 1
        else:
            counts.pinned_uploads += 1
    elif "DtoH" in name:
        counts.downloads += 1
    else:
        counts.device_copies += 1


def count_host_call(counts: Counts, name: str) -> None:
    """A call into the CUDA runtime or driver."""
    counts.host_calls[name] += 1
    if name in WAITS:
        counts.waits += 1
    elif name in ("cudaHostAlloc", "cudaHostRegister"):
        counts.host_allocations += 1
    elif name in ("cudaMalloc", "cudaMallocAsync", "cuMemCreate"):
        counts.device_allocations += 1


def trace_call(call: Callable[[], object], settle: Callable[[], object]) -> Counts:
    """Run `call` under torch's profiler and count what it did on a CUDA device.

    `settle` waits for the device; it runs in front of the profiler and again before it stops, so its own wait
    (cudaDeviceSynchronize) is in the trace once or more and is taken out of the count.
    """
    from torch.profiler import ProfilerActivity, profile

    settle()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
        settle()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8"))
    counts = count_events(trace["traceEvents"])
    counts.waits -= counts.host_calls["cudaDeviceSynchronize"]
    return counts

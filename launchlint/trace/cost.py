"""What was spent: the figures, and which events of a recording they are counted from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

# Calls of the CUDA and HIP runtimes and drivers that enqueue kernels (https://docs.nvidia.com/cuda/cuda-runtime-api,
# https://rocm.docs.amd.com/projects/HIP); a graph counts as the one launch that it is for the host.
LAUNCHES = ("LaunchKernel", "LaunchCooperativeKernel", "GraphLaunch", "ExtLaunchKernel", "LaunchKernelEx", "LaunchKernelExC")
# Calls that return when the device has done its work.
WAITS = ("StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "CtxSynchronize", "Memcpy", "MemcpyWithStream")
COPIES = ("Memcpy", "Memset")
VERSION = ("_v2", "_v3", "_v4", "_ptsz", "_spt", "_ptds")


@dataclass(slots=True)
class Cost:
    """Sums over a part of a recording; times in nanoseconds.

    `operations` are dispatched operations that no other operation is around. `launches` are calls that enqueue kernels;
    in a recording without a device they are the operations that would launch one, by `facts/torch.toml`, and `waits` those
    that would wait. `host_ns` is the time of the threads that ran the code, waits included; `wait_ns` is the part of it
    in calls that wait; `kernel_ns` is what the launched kernels took on the device. `copies` counts copies by kind,
    for example `HtoD (Pageable -> Device)`, `copied` their bytes.
    """

    operations: int = 0
    launches: int = 0
    waits: int = 0
    host_ns: int = 0
    wait_ns: int = 0
    kernels: int = 0
    kernel_ns: int = 0
    copies: Counter[str] = field(default_factory=Counter)
    copied: int = 0

    @property
    def pageable(self) -> int:
        """Copies from or to memory of the host that is not pinned."""
        return sum(number for kind, number in self.copies.items() if "Pageable" in kind)

    def add(self, other: Cost) -> None:
        self.operations += other.operations
        self.launches += other.launches
        self.waits += other.waits
        self.host_ns += other.host_ns
        self.wait_ns += other.wait_ns
        self.kernels += other.kernels
        self.kernel_ns += other.kernel_ns
        self.copies.update(other.copies)
        self.copied += other.copied

    def __bool__(self) -> bool:
        return bool(self.operations or self.launches or self.waits or self.host_ns or self.kernels or self.copies)

    def rank(self) -> tuple[int, int, int]:
        """The more expensive the larger."""
        return (self.host_ns, self.launches + self.waits + self.copies.total(), self.operations)

    def as_dict(self) -> dict[str, object]:
        """For JSON; times in microseconds, as the recording has them."""
        return {
            "launches": self.launches,
            "operations": self.operations,
            "waits": self.waits,
            "copies": dict(sorted(self.copies.items())),
            "pageable_copies": self.pageable,
            "copied_bytes": self.copied,
            "host_us": self.host_ns / 1000,
            "wait_us": self.wait_ns / 1000,
            "kernels": self.kernels,
            "kernel_us": self.kernel_ns / 1000,
        }


@dataclass(frozen=True, slots=True)
class Call:
    """What a call of the runtime does."""

    launches: bool
    waits: bool
    copies: bool  # it, or what it enqueues, copies or fills memory


@lru_cache(maxsize=4096)
def call_of(name: str) -> Call:
    """The call by its name, with the prefix of CUDA's or HIP's runtime or driver and the suffix of a version taken off."""
    for suffix in VERSION:
        name = name.removesuffix(suffix)
    for prefix in ("cuda", "hipModule", "hipExtModule", "hipExt", "hip", "cu"):
        if name.startswith(prefix):
            word = name.removeprefix(prefix)
            plain_copy = word in WAITS or (word.startswith("Memcpy") and not word.endswith(("Async", "Batch")))
            return Call(word in LAUNCHES, plain_copy, word.startswith(COPIES))
    return Call(False, False, False)


@dataclass(frozen=True, slots=True)
class Work:
    """What a dispatched operation would ask of a device."""

    launches: bool = False
    waits: bool = False
    unknown: bool = False  # no fact about it; it launches unless it turns out to be made of others


@lru_cache(maxsize=4096)
def work_of(name: str) -> Work:
    """What the facts say of an operation by its name in a recording, `namespace::operation`."""
    from launchlint import facts

    space, _, word = name.partition("::")
    if not word or space == "autograd":
        return Work()
    if space != "aten":
        return Work(unknown=True)
    fact = facts.aten_operations().get(word)
    if fact is None:
        return Work(unknown=True)
    copies = word == "copy_"  # conversions and moves end in it, or do nothing
    return Work(launches=fact.does == "launch" or copies, waits=fact.waits == "always")

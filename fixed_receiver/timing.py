"""Host times: how they are taken and what is said about them. Times are in nanoseconds until a summary is made."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (above 0, up to 1) of `values` do not exceed; ValueError for no values."""
    if not values:
        raise ValueError("no values")
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, not {share}")
    return sorted(values)[math.ceil(share * len(values)) - 1]


def summarize(nanoseconds: Sequence[int]) -> dict[str, Any]:
    """Repeats, and median, 99th percentile and least in microseconds."""
    return {
        "repeats": len(nanoseconds),
        "median_us": percentile(nanoseconds, 0.5) / 1000,
        "p99_us": percentile(nanoseconds, 0.99) / 1000,
        "least_us": min(nanoseconds) / 1000,
    }


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Least-squares slope of `ys` over `xs`; ValueError where `xs` are all equal."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    if spread == 0:
        raise ValueError("a slope needs two different x")
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def take_times(call: Callable[[], object], repeats: int, before: Callable[[], object] | None = None) -> list[int]:
    """Nanoseconds of each of `repeats` calls; `before` runs in front of each and is not timed. See `undisturbed`."""
    times = []
    for _ in range(repeats):
        if before is not None:
            before()
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return times


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection, this thread on one core where the system allows it, and none beside it; as before afterwards.

    torch's own host threads would inherit the one core and wait for each other on it.
    """
    collects, threads = gc.isenabled(), torch.get_num_threads()
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    gc.collect()
    gc.disable()
    torch.set_num_threads(1)
    try:
        if cores:
            os.sched_setaffinity(0, {max(cores)})
        yield
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
        torch.set_num_threads(threads)
        if collects:
            gc.enable()

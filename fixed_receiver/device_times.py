"""How long it takes on a CUDA device: on the host, behind a queue, on the device, per step, and per copy.

Host time is what the Python thread spends until the call returns. It is an upper bound of what a step can gain: with
CPU sync the host has just waited for the counts while the device still copies rows, and may be ahead of it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from fixed_receiver.cache import IdCache
from fixed_receiver.checks import Check
from fixed_receiver.gpu import Gpu
from fixed_receiver.layouts import Layout, large_layout, published_layout
from fixed_receiver.timing import percentile, slope, summarize, take_times, undisturbed
from fixed_receiver.variants import CODES, expand, refusal

QUEUE_LIMIT = 500  # launches put in front of a busy device; at about 1,024 pending ones the host waits for that alone
SWEPT = ("V0", "V3", "V3c", "V5", "V5a", "V6", "V7")
LAYERS = 92


def calls_for(gpu: Gpu, layout: Layout, codes: tuple[str, ...] = CODES) -> dict[str, Callable[[], torch.Tensor]]:
    """The variants that are valid for `layout`, warmed up."""
    cache = IdCache()
    view = layout.view(gpu.device)
    cache.warm(gpu.device, view.experts, view.first, view.rows)
    calls: dict[str, Callable[[], torch.Tensor]] = {code: partial(expand, code, view, cache) for code in codes if not refusal(code, view)}
    for call in calls.values():
        for _ in range(20):
            call()
        gpu.settle()
    return calls


def time_host(gpu: Gpu, repeats: int = 2000, size: int = 8192) -> Check:
    """P4: host time with the device idle, and behind a queue; a call that returns while the queue runs did not wait."""
    check = Check("host time, idle and behind a queue")
    products = matmuls(gpu, size)
    with undisturbed():
        for code, call in calls_for(gpu, published_layout()).items():
            idle = summarize(take_times(call, repeats, before=gpu.settle))
            row: dict[str, Any] = {"variant": code, "idle": idle}
            for milliseconds, times in ((5, 12), (20, 6)):
                row[f"behind {milliseconds} ms"] = time_behind(gpu, call, partial(gpu.hold, milliseconds), times, idle["median_us"])
            row["behind matmuls"] = time_behind(gpu, call, products, 5, idle["median_us"])
            check.rows.append(row)
            asynchronous = row["behind 20 ms"]["returned while busy"] == 1.0
            if code in ("V1", "V2"):
                check.expect(not asynchronous, f"{code} returned while the queue was running")
            elif code != "V2b":  # what a pageable copy does is the question, not a condition
                check.expect(asynchronous, f"{code} did not return before the queue had run")
    return check


def time_behind(gpu: Gpu, call: Callable[[], object], queue: Callable[[], object], times: int, idle_us: float) -> dict[str, Any]:
    """Host time of single calls behind `queue`, and the share that returned while it still ran."""
    taken, busy = [], 0
    for _ in range(times):
        gpu.settle()
        queue()
        end_of_queue = gpu.mark()
        taken += take_times(call, 1)
        busy += not end_of_queue.query()
    gpu.settle()
    summary = summarize(taken)
    return {**summary, "blocked_us": summary["median_us"] - idle_us, "returned while busy": busy / times}


def matmuls(gpu: Gpu, size: int, count: int = 20) -> Callable[[], None]:
    """A queue of real work: `count` chained products of bfloat16 matrices."""
    left = torch.randn(size, size, dtype=torch.bfloat16, device=gpu.device)
    right = torch.randn(size, size, dtype=torch.bfloat16, device=gpu.device)
    out = torch.empty_like(left)

    def enqueue() -> None:
        for _ in range(count):
            torch.matmul(left, right, out=out)

    enqueue()
    gpu.settle()
    return enqueue


def time_kernels(gpu: Gpu, rows: int = 65536) -> Check:
    """P6: device time of one call. The calls are put behind a held stream, so that the host is not what is measured."""
    check = Check("device time of one call")
    layout = large_layout(28, rows)
    busy = sum(count > 0 for count in layout.real)
    for code, call in calls_for(gpu, layout).items():
        if code in ("V1", "V2", "V2b"):
            continue  # they wait, or may wait, for the queue that this needs
        number = max(1, QUEUE_LIMIT // (busy if code == "V0" else 12))
        samples = []
        for _ in range(5):
            gpu.settle()
            gpu.hold(40)
            start = gpu.mark()
            for _ in range(number):
                call()
            end = gpu.mark()
            host_was_ahead = not start.query()
            gpu.settle()
            if host_was_ahead:
                samples.append(start.elapsed_time(end) * 1000 / number)
        check.expect(bool(samples), f"{code}: the host was never ahead of the device, so there is no device time")
        if samples:
            check.rows.append({"variant": code, "calls": number, "device_us": percentile(samples, 0.5)})
    return check


def sweep(gpu: Gpu, repeats: int = 200, experts: tuple[int, ...] = (8, 16, 28, 32, 64, 128, 256)) -> Check:
    """P7: host time over experts and rows, and microseconds that V0 costs for each busy expert."""
    check = Check("host time over experts and rows")
    with undisturbed():
        for number in experts:
            for rows in (4096, 65536):
                layout = large_layout(number, rows, "balanced")
                for code, call in calls_for(gpu, layout, SWEPT).items():
                    times = summarize(take_times(call, repeats, before=gpu.settle))
                    check.rows.append({"variant": code, "experts": number, "rows": rows, **times})
    loop = [row for row in check.rows if row["variant"] == "V0"]
    if loop:
        per_expert = slope([row["experts"] for row in loop], [row["median_us"] for row in loop])
        check.rows.append({"variant": "V0", "us per busy expert": per_expert})
    return check


def time_step(gpu: Gpu, steps: int = 5, layers: int = LAYERS, size: int = 4096) -> Check:
    """P5: a step of many layers: a dispatch stand-in that the host waits for, the receiver, a product as expert stand-in.

    The dispatch stand-in holds another stream for 0.6 ms and the host spins until it is over, as it does for the counts.
    Says the host time in the receiver and the wall time; the gain in wall time is the smaller one.
    """
    check = Check(f"a step of {layers} layers")
    weights = torch.randn(size, size, dtype=torch.bfloat16, device=gpu.device)
    with undisturbed():
        for code, call in calls_for(gpu, published_layout(), ("V0", "V3", "V3c", "V5", "V6", "V7")).items():
            walls, hosts = [], []
            for _ in range(steps + 1):
                gpu.settle()
                start = time.perf_counter_ns()
                hosts.append(run_layers(gpu, call, weights, layers))
                gpu.settle()
                walls.append(time.perf_counter_ns() - start)
            check.rows.append({"variant": code, "host in receiver": summarize(hosts[1:]), "wall": summarize(walls[1:])})
    return check


def run_layers(gpu: Gpu, call: Callable[[], object], weights: torch.Tensor, layers: int) -> int:
    """One step; nanoseconds that the host spent in `call`."""
    spent = 0
    for _ in range(layers):
        with gpu.stream():
            gpu.hold(0.6)
            arrived = gpu.mark()
        while not arrived.query():
            pass
        gpu.await_mark(arrived)
        start = time.perf_counter_ns()
        call()
        spent += time.perf_counter_ns() - start
        torch.matmul(weights, weights)
    return spent


def time_copies(gpu: Gpu, repeats: int = 200) -> Check:
    """Does a non_blocking upload from pageable memory wait? By size, from both kinds of memory, idle and behind 10 ms."""
    check = Check("uploads by size and kind of memory, idle and behind a queue")
    with undisturbed():
        for size in (112, 1024, 65536, 2**20):
            target = torch.empty(size, dtype=torch.uint8, device=gpu.device)
            for pinned in (True, False):
                source = gpu.host_memory(size, pinned)
                for non_blocking in (True, False):
                    call = partial(target.copy_, source, non_blocking=non_blocking)
                    for _ in range(10):
                        call()
                    idle = summarize(take_times(call, repeats, before=gpu.settle))
                    behind = time_behind(gpu, call, partial(gpu.hold, 10), 12, idle["median_us"])
                    check.rows.append({"bytes": size, "pinned": pinned, "non_blocking": non_blocking, "idle": idle, "behind 10 ms": behind})
                    if not non_blocking:
                        check.expect(behind["returned while busy"] == 0, f"a blocking copy of {size} bytes returned early")
                    elif pinned:
                        check.expect(behind["returned while busy"] == 1, f"a pinned copy of {size} bytes waited")
    return check

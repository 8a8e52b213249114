"""What has to be true on a CUDA device: values, counts by the profiler, no wait, graphs, streams."""

from __future__ import annotations

from functools import partial

import torch

from fixed_receiver import decode, kernels
from fixed_receiver.budgets import BUDGETS, NOT_COUNTED, Spent, check_budgets, count_call
from fixed_receiver.cache import IdCache, build_entry
from fixed_receiver.checks import Check, check_decode, check_marking, check_round_trip, check_values, raises, some_layouts
from fixed_receiver.gpu import Gpu
from fixed_receiver.layouts import SHAPES, Layout, large_layout, published_layout
from fixed_receiver.trace import Counts
from fixed_receiver.variants import CODES, DEFECTS, expand, refusal

RAISING = ("V1", "V2")  # waits that torch's sync debug mode sees; a pageable copy (V2b) it does not
POISON = -7_777_777


def check_device_values(gpu: Gpu, small: bool = False) -> Check:
    """P1: all variants over experts, rows, shapes and alignments, into memory that was poisoned before."""
    experts = (8, 28) if small else (1, 8, 16, 28, 32, 64, 128, 256)
    sizes = (0, 1, 512) if small else (0, 1, 64, 4096, 65536)
    poison(gpu, sizes[-1])
    check = check_values(gpu.device, some_layouts(experts, sizes, (1,)))
    more = [
        check_values(gpu.device, some_layouts((3, 28), (0, 1, 700), (2, 8, 128))),
        check_marking(gpu.device, some_layouts((1, 28, 256), (0, 300), (1, 8))),
        check_decode(gpu.device),
        check_round_trip(gpu.device),
    ]
    if not small:
        poison(gpu, 2**19)
        more.append(check_values(gpu.device, [large_layout(number, 2**19, shape) for number in (28, 256) for shape in SHAPES]))
    for part in more:
        check.passed &= part.passed
        check.cases += part.cases
        check.failures += part.failures
    check.name = "all forms give the ids of plain lists"
    return check


def poison(gpu: Gpu, rows: int) -> None:
    """Leave blocks in the allocator that hold no valid id, so that what is not written shows."""
    blocks = [torch.full((rows,), POISON, dtype=torch.int64, device=gpu.device) for _ in range(4)]
    gpu.settle()
    del blocks


def check_counts(gpu: Gpu) -> Check:
    """P2: kernels, copies by kind of memory, and waits of one call, by the profiler, and whether the dry run says the same.

    Launches are only put side by side: the dry run counts the kernels of one operator approximately.
    """
    check = Check("kernels, copies and waits are within budget (profiler)")
    cache = IdCache()
    dry_runs = not check_budgets(experts=(8,)).skipped
    gpu.trace(lambda: torch.ones(8, device=gpu.device))  # the first trace of a process can miss events
    for code in CODES:
        seen = []
        for layout in (published_layout(), large_layout(256, 4096)):
            view = layout.view(gpu.device)
            if refusal(code, view):
                continue
            call = partial(expand, code, view, cache)
            for _ in range(5):
                call()
            counts = gpu.trace(call)
            spent = spent_of(counts)
            broken = BUDGETS[code].broken_by(spent, sum(count > 0 for count in layout.real))
            check.expect(not broken, f"{code} at {view.experts} experts: {broken}")
            check.expect(counts.device_allocations == 0, f"{code} at {view.experts} experts: asks the driver for device memory")
            row = {"variant": code, "experts": view.experts, **counts.as_dict()}
            if dry_runs and code not in NOT_COUNTED:
                counted = count_call(code, layout)[0]
                row["dry run launches"] = counted.launches
                check.expect(copies_of(counted) == copies_of(spent), f"{code} at {view.experts} experts: the dry run says {counted}")
            check.rows.append(row)
            seen.append(spent)
        if code != "V0":
            check.expect(len(set(seen)) <= 1, f"{code} spends more where there are more experts: {seen}")
    return check


def copies_of(spent: Spent) -> tuple[int, int, int, bool]:
    """What a dry run and a trace have to agree on: uploads by kind, downloads, and whether the call waits."""
    return (spent.pinned_uploads, spent.pageable_uploads, spent.downloads, spent.waits > 0)


def spent_of(counts: Counts) -> Spent:
    """A trace in the terms of a budget. Copies and fills inside the device are launches to the host."""
    launches = counts.kernels + counts.device_copies + counts.fills
    may_wait = counts.pageable_uploads if counts.waits == 0 else 0
    return Spent(launches, counts.pinned_uploads, counts.pageable_uploads, counts.downloads, counts.waits, may_wait)


def check_freedom(gpu: Gpu, calls: int = 1000) -> Check:
    """P3: V1 and V2 wait, nothing else does as far as torch can see; steady calls ask for no pinned memory."""
    check = Check("no wait that torch sees, and no pinned memory asked for, in steady calls")
    cache = IdCache()
    view = published_layout().view(gpu.device)
    for code in CODES:
        if refusal(code, view):
            continue
        call = partial(expand, code, view, cache)
        call()
        gpu.settle()
        with gpu.forbid_waits():
            waits = raises(RuntimeError, call)
        check.expect(waits == (code in RAISING), f"{code} {'waits' if waits else 'does not wait'}")
        row = {"variant": code, "waits": waits}
        if code not in DEFECTS:
            call_many(gpu, call, calls)  # the pool of pinned blocks grows to the depth of the queue, then stays
            before = gpu.host_allocations()
            call_many(gpu, call, calls)
            after = gpu.host_allocations()
            if before is not None and after is not None:
                check.expect(after == before, f"{code} asked the driver {after - before} times for pinned memory in {calls} calls")
                row["pinned allocations"] = after - before
        check.rows.append(row)
    return check


def call_many(gpu: Gpu, call: partial[torch.Tensor], calls: int) -> None:
    """Calls in groups of twenty, the device idle behind each, so that the queue has a bounded depth."""
    for number in range(calls):
        call()
        if number % 20 == 19:
            gpu.settle()


def check_graphs(gpu: Gpu) -> Check:
    """P8: the decode step and the forms without CPU sync, captured once and replayed with other counts."""
    check = Check("captured graphs follow the counts on the device")
    cache = IdCache()
    layouts = [
        Layout(real, alignment=8, first=4, surplus=0, synced=False) for real in ((3, 0, 9, 4), (0, 0, 1, 0), (8, 8, 8, 8), (0, 0, 0, 0))
    ]
    rows = max(sum(layout.padded()) for layout in layouts)
    views = [Layout(one.real, 8, 4, rows - sum(one.padded()), synced=False) for one in layouts]
    cache.warm(gpu.device, 4, 4, rows)
    for code in ("V5b", "V6"):
        fixed = views[0].view(gpu.device)
        if refusal(code, fixed):
            continue
        expand(code, fixed, cache)
        made, replay = gpu.capture(partial(expand, code, fixed, cache))
        for layout in views:
            other = layout.view(gpu.device)
            fixed.prefix_sums().copy_(other.prefix_sums())
            fixed.real_counts().copy_(other.real_counts())
            replay()
            gpu.settle()
            check.expect(made.flatten().tolist() == layout.ids(), f"{code} replayed for {layout.real}")
    check_decode_graph(gpu, check, cache)
    return check


def check_decode_graph(gpu: Gpu, check: Check, cache: IdCache) -> None:
    """Both decode forms, replayed with other numbers of received rows over the same poisoned buffer."""
    rows = [[(row + choice) % 4 for choice in range(3)] for row in range(24)]
    local = torch.tensor(rows, device=gpu.device)
    received = torch.tensor([4, 9], dtype=torch.int32, device=gpu.device)
    numbers = cache.row_numbers(gpu.device, 24)
    forms = {"torch": partial(decode.decode_ids, local, received, numbers, 4, 8)}
    if not kernels.lacking(gpu.device):
        forms["kernel"] = partial(decode.decode_in_one_launch, local, received, 4, 8)
    for name, form in forms.items():
        form()
        made, replay = gpu.capture(form)
        for sums in ([4, 9], [0, 0], [10, 24]):
            received.copy_(torch.tensor(sums, dtype=torch.int32))
            replay()
            gpu.settle()
            check.expect(made.tolist() == decode.decode_by_loops(rows, sums[-1], 4, 8), f"decode ({name}) replayed for {sums}")


def check_streams(gpu: Gpu) -> Check:
    """P9: a cached vector read on another stream before it was written, without the cache's event and with it."""
    check = Check("the cache keeps other streams from reading too early")
    held = torch.full((1024,), POISON, dtype=torch.int64, device=gpu.device)
    ready = torch.arange(1024, device=gpu.device)
    gpu.hold(1)  # calibrates outside of what follows
    gpu.settle()
    with gpu.stream():
        gpu.hold(30)
        held.copy_(ready)
    with gpu.stream():
        early = held.clone()
    gpu.settle()
    check.rows.append({"without an event": "too early" if early[0].item() == POISON else "in time"})
    cache = IdCache()
    with gpu.stream():
        gpu.hold(30)
        cache.expert_ids(gpu.device, 256, 512)
    with gpu.stream():
        read = cache.expert_ids(gpu.device, 256, 512).clone()
    gpu.settle()
    check.expect(read.tolist() == list(range(512, 768)), "read too early in spite of the event")
    capturing = raises(RuntimeError, partial(gpu.capture, lambda: build_entry(gpu.device, 0, 8, torch.int64).vector))
    check.expect(capturing, "a cached vector could be made during capture")
    return check

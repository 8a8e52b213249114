"""What each variant may spend, and what it does spend in a dry run: launches, copies and waits, counted without a GPU.

The dry run is launchlint's (`launchlint.audit`): the function runs on CPU tensors that answer as if they lived on a
device. Kernels of one operator are approximate there (repeat_interleave is several), so a budget states an exact number
only where each operator is one kernel, and otherwise that the number does not grow with the experts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from fixed_receiver import ids
from fixed_receiver.checks import Check
from fixed_receiver.layouts import Layout, large_layout, published_layout
from fixed_receiver.spec import DispatchView
from fixed_receiver.variants import CODES, expand, refusal

CUDA = torch.device("cuda", 0)
EXPERTS = (8, 28, 64, 256)
NOT_COUNTED = ("V6",)  # a Triton kernel is no operator: one launch by construction, counted on a GPU


@dataclass(frozen=True)
class Vectors:
    """Id vectors that were made beforehand, so that a count sees the variant alone."""

    ids: torch.Tensor
    numbers: torch.Tensor

    def expert_ids(self, device: torch.device, experts: int, first: int) -> torch.Tensor:
        """The vector as it was made."""
        return self.ids

    def row_numbers(self, device: torch.device, rows: int) -> torch.Tensor:
        """The vector as it was made, cut to `rows`."""
        return self.numbers[:rows]


@dataclass(frozen=True)
class Spent:
    """Counts of one call. `may_waits` are non-blocking copies from pageable memory, not guaranteed to be asynchronous."""

    launches: int
    pinned_uploads: int
    pageable_uploads: int
    downloads: int
    waits: int
    may_waits: int


@dataclass(frozen=True)
class Budget:
    """What a variant is allowed. `launches` 0 stands for "the same for any number of experts"; -1 for one per busy expert."""

    launches: int
    pinned_uploads: int = 0
    pageable_uploads: int = 0
    waits: bool = False
    may_wait: bool = False

    def broken_by(self, spent: Spent, busy: int) -> str:
        """What is over or under budget, empty if nothing is."""
        wrong = []
        allowed = busy if self.launches < 0 else self.launches
        if allowed and spent.launches != allowed:
            wrong.append(f"{spent.launches} launches instead of {allowed}")
        if (spent.pinned_uploads, spent.pageable_uploads) != (self.pinned_uploads, self.pageable_uploads):
            wrong.append(f"{spent.pinned_uploads} pinned and {spent.pageable_uploads} pageable uploads")
        if (spent.waits > 0, spent.may_waits > 0) != (self.waits, self.may_wait):
            wrong.append(f"{spent.waits} waits, {spent.may_waits} copies that may wait")
        if spent.downloads and not self.waits:
            wrong.append(f"{spent.downloads} downloads")
        return ", ".join(wrong)


BUDGETS = {
    "V0": Budget(-1),
    "V1": Budget(0, pageable_uploads=1, waits=True),
    "V2": Budget(0, pinned_uploads=1, waits=True),
    "V2b": Budget(0, pageable_uploads=1, may_wait=True),
    "V3": Budget(0, pinned_uploads=1),
    "V3c": Budget(0, pinned_uploads=1),
    "V3u": Budget(0, pinned_uploads=1),
    "V4": Budget(0),
    "V5": Budget(2),
    "V5a": Budget(3),
    "V5b": Budget(0),
    "V6": Budget(1),
    "V7": Budget(2, pinned_uploads=1),
}


def count_call(code: str, layout: Layout) -> tuple[Spent, Any]:
    """What one call of the variant spends on `layout`, and the report behind it; ImportError where there is no launchlint."""
    from launchlint.audit import dry_run

    host = layout.view(torch.device("cpu"))
    made = Vectors(torch.arange(layout.first, layout.first + host.experts), torch.arange(host.rows, dtype=torch.int32))

    def call(psum: torch.Tensor, real: torch.Tensor, expert_ids: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        view = DispatchView(host.rows, host.experts, host.first, CUDA, host.alignment, host.counts, psum, real)
        return expand(code, view, Vectors(expert_ids, numbers))

    with pinning():
        report = dry_run(call, host.prefix_sums(), host.real_counts(), made.ids, made.numbers)
    spent = Spent(report.launches, report.pinned_uploads, report.pageable_uploads, report.downloads, report.waits, report.may_waits)
    return spent, report


@contextmanager
def pinning() -> Iterator[None]:
    """Stage counts as on a machine with an accelerator: the dry run plays one."""
    before = ids.PIN_MEMORY
    ids.PIN_MEMORY = True
    try:
        yield
    finally:
        ids.PIN_MEMORY = before


def check_budgets(experts: tuple[int, ...] = EXPERTS) -> Check:
    """Every variant over several numbers of experts, a fifth of them empty: within budget, the same ids, no growth but V0's."""
    check = Check("launches, copies and waits are within budget (dry run)")
    try:
        count_call("V5", Layout((1,)))
    except ImportError as error:
        check.skipped = f"the dry run does not import: {error}"
        return check
    for code in CODES:
        if code in NOT_COUNTED:
            continue
        seen = []
        for number in experts:
            layout = published_layout() if number == 28 else large_layout(number, 16 * number)
            if refusal(code, layout.view(torch.device("cpu"))):
                continue
            spent, report = count_call(code, layout)
            busy = sum(count > 0 for count in layout.real)
            broken = BUDGETS[code].broken_by(spent, busy)
            check.expect(not broken, f"{code} at {number} experts: {broken}")
            check.expect(report.result.flatten().tolist() == layout.ids(), f"{code} at {number} experts: other ids under the dry run")
            check.rows.append({"variant": code, "experts": number, "busy": busy, **asdict(spent)})
            seen.append(spent)
        if code != "V0":
            check.expect(len(set(seen)) == 1, f"{code} spends more where there are more experts: {seen}")
    return check

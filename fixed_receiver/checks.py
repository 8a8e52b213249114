"""Checks that need no GPU: values against plain lists, no dependence on data, budgets by dry run, kernels by interpreter.

Each returns a `Check`; `skipped` says why where the machine cannot run it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from fixed_receiver import decode, kernels
from fixed_receiver.cache import IdCache
from fixed_receiver.deepep_adapter import read_dispatch
from fixed_receiver.fake_buffer import FakeElasticBuffer, FakeGroup
from fixed_receiver.layouts import SHAPES, Layout, spread
from fixed_receiver.receiver import Dispatched, Receiver
from fixed_receiver.spec import SpecError
from fixed_receiver.variants import CODES, expand, refusal


@dataclass
class Check:
    """Outcome of one check. `rows` are what it saw, plain data for JSON."""

    name: str
    passed: bool = True
    cases: int = 0
    skipped: str = ""
    failures: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def expect(self, holds: bool, message: str) -> None:
        """Count a case and note `message` unless it holds."""
        self.cases += 1
        if not holds:
            self.passed = False
            self.failures.append(message)

    def summary(self) -> str:
        """One line for the table."""
        if self.skipped:
            return f"skipped  {self.name}: {self.skipped}"
        verdict = "ok     " if self.passed else "FAILED "
        return f"{verdict}  {self.name}: {self.cases} cases" + "".join(f"\n           {failure}" for failure in self.failures[:10])


# ---------------------------------------------------------------- values


def some_layouts(experts: Iterable[int], rows: Iterable[int], alignments: Iterable[int]) -> list[Layout]:
    """Every shape over every combination, for the first and a later rank."""
    sizes = list(rows)
    return [
        Layout(spread(shape, number, size, seed=number), alignment, first=number * rank)
        for number in experts
        for size in sizes
        for alignment in alignments
        for rank, shape in enumerate(SHAPES)
    ]


def check_values(device: torch.device, layouts: list[Layout], codes: tuple[str, ...] = CODES) -> Check:
    """Every variant against plain lists: values, dtype, shape, contiguity; refused exactly where it is not valid."""
    check = Check("every variant gives the ids of plain lists, or says why it is not valid")
    cache = IdCache()
    for layout in layouts:
        view = layout.view(device)
        expected = torch.tensor(layout.ids(), dtype=torch.int64, device=device).unsqueeze(1)
        for code in codes:
            if refusal(code, view):
                check.expect(raises(SpecError, partial(expand, code, view, cache)), f"{code} takes {describe(layout)}")
                continue
            made = expand(code, view, cache)
            same = made.dtype == expected.dtype and made.is_contiguous() and torch.equal(made, expected)
            check.expect(same, f"{code} differs for {describe(layout)}")
    return check


def check_marking(device: torch.device, layouts: list[Layout]) -> Check:
    """V5b and V6 on padding and on rows behind the last expert."""
    check = Check("padding and surplus rows are marked")
    cache = IdCache()
    for layout in layouts:
        loose = Layout(layout.real, layout.alignment, layout.first, surplus=17, synced=False)
        view = loose.view(device)
        for code in ("V5b", "V6"):
            for mark in (False, True):
                if not refusal(code, view, mark):
                    expected = torch.tensor(loose.ids(mark), dtype=torch.int64, device=device).unsqueeze(1)
                    check.expect(
                        torch.equal(expand(code, view, cache, mark), expected), f"{code} differs for {describe(loose)}, mark={mark}"
                    )
    return check


def check_decode(device: torch.device, seed: int = 0) -> Check:
    """The decode forms against loops, behind the received rows ids that look valid."""
    check = Check("a decode step drops what was not received")
    chance = random.Random(seed)
    for ranks, experts, topk in ((1, 4, 1), (2, 8, 2), (8, 28, 8), (4, 64, 6)):
        for dtype in (torch.int64, torch.int32):
            per_rank = [chance.randrange(6) for _ in range(ranks)]
            sums = [sum(per_rank[: rank + 1]) for rank in range(ranks)]
            rows = [[chance.randrange(-1, experts) for _ in range(topk)] for _ in range(sums[-1] + 13)]
            first = chance.randrange(ranks) * experts
            expected = torch.tensor(decode.decode_by_loops(rows, sums[-1], first, ranks * experts), dtype=dtype, device=device)
            local = torch.tensor(rows, dtype=dtype, device=device)
            received = torch.tensor(sums, dtype=torch.int32, device=device)
            numbers = torch.arange(len(rows), dtype=torch.int32, device=device)
            made = decode.decode_ids(local, received, numbers, first, ranks * experts)
            check.expect(made.dtype == dtype and torch.equal(made, expected), f"torch form differs for {experts} experts, {dtype}")
            if not kernels.lacking(device):
                made = decode.decode_in_one_launch(local, received, first, ranks * experts)
                check.expect(made.dtype == dtype and torch.equal(made, expected), f"kernel differs for {experts} experts, {dtype}")
    return check


def check_round_trip(device: torch.device) -> Check:
    """The receiver on the fake buffer, both modes: what dispatch spreads, the ids name, and combine adds up."""
    check = Check("the receiver names what the fake buffer dispatched")
    chance = random.Random(1)
    for rank, ranks, alignment, late in ((0, 1, 1, False), (1, 2, 16, True), (3, 4, 128, True), (0, 2, 1, True)):
        chosen = torch.tensor([chance.sample(range(16), 3) for _ in range(20)])
        x = torch.arange(1, 21, dtype=torch.bfloat16).unsqueeze(1).expand(20, 8).contiguous()
        returned = FakeElasticBuffer(FakeGroup(rank, ranks, seed=rank)).dispatch(
            x,
            chosen,
            num_experts=16,
            do_expand=True,
            expert_alignment=alignment,
            do_zero_padding=True,
            async_with_compute_stream=late and device.type == "cpu",
        )
        received = Receiver(16, rank, ranks, mark_padding=True)(move_dispatched(read_dispatch(returned), device))
        tokens, owners = received.x[:, 0].tolist(), received.topk_ids.flatten().tolist()
        good = all(
            (owner in chosen[int(token) - 1].tolist()) if token else owner == -1 for token, owner in zip(tokens, owners, strict=True)
        )
        check.expect(good, f"rank {rank} of {ranks}, alignment {alignment}")
    return check


def move_dispatched(dispatched: Dispatched, device: torch.device) -> Dispatched:
    """The same on another device; the fake buffer makes host tensors."""
    tensors: dict[str, Any] = {name: value.to(device) for name, value in vars(dispatched).items() if isinstance(value, torch.Tensor)}
    return replace(dispatched, **tensors)


# ---------------------------------------------------------------- no dependence on data


def check_meta(layout: Layout) -> Check:
    """On the meta device nothing can be read back: forms without a wait run there, V2 cannot."""
    check = Check("no form but V2 reads the device (run on meta tensors)")
    for code in CODES:
        if code == "V6":
            continue  # a kernel is no operator: the dry run and the GPU count it
        reads = raises((RuntimeError, NotImplementedError), partial(expand_on_meta, code, layout))
        check.expect(reads == (code == "V2"), f"{code} {'reads' if reads else 'does not read'} the device")
        check.rows.append({"variant": code, "reads the device": reads})
    return check


def expand_on_meta(code: str, layout: Layout) -> torch.Tensor:
    """The variant where no tensor has data; torch raises where one is read."""
    meta = torch.device("meta")
    view = layout.view(meta)
    made = expand(code, view, IdCache())
    if made.shape != (view.rows, 1):
        raise AssertionError(f"{code} made {tuple(made.shape)} for {view.rows} rows")
    return made


# ---------------------------------------------------------------- kernels without a GPU


def check_interpreter(layouts: list[Layout]) -> Check:
    """The Triton kernels on the CPU, by Triton's interpreter."""
    check = Check("the kernels agree with plain lists (Triton's interpreter)")
    host = torch.device("cpu")
    if kernels.lacking(host):
        check.skipped = kernels.lacking(host)
        return check
    for layout in layouts:
        for mark in (False, True):
            for surplus in (0, 5):
                loose = Layout(layout.real, layout.alignment, layout.first, surplus, synced=surplus == 0)
                view = loose.view(host, with_real=layout.alignment > 1)
                made = expand("V6", view, IdCache(), mark)
                check.expect(made.flatten().tolist() == loose.ids(mark), f"V6 differs for {describe(loose)}, mark={mark}")
    return check


# ---------------------------------------------------------------- small things


def describe(layout: Layout) -> str:
    """A layout in a few words."""
    return f"{len(layout.real)} experts, {sum(layout.real)} rows, alignment {layout.alignment}, first {layout.first}"


def raises(kinds: type[Exception] | tuple[type[Exception], ...], act: Callable[[], object]) -> bool:
    """True if `act` raises one of `kinds`."""
    try:
        act()
    except kinds:
        return True
    return False

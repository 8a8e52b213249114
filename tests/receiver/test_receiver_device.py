"""The parts for a CUDA device, played through on the CPU: what they expect, what they write, and that they end in time.

The player answers for the device where it has to: it is busy or idle as a test wants it, it captures by running again,
and its profiler says what the dry run counted. So it shows that the parts look at the right thing, not that CUDA does it.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from fixed_receiver import __main__ as command_line
from fixed_receiver import device_checks, device_times, gpu, ids, plot, validation
from fixed_receiver.budgets import BUDGETS, Spent
from fixed_receiver.checks import Check
from fixed_receiver.gpu import Gpu, Mark, describe_machine
from fixed_receiver.layouts import Layout, published_layout
from fixed_receiver.tables import flatten, show_report, table
from fixed_receiver.timing import percentile, slope, summarize, take_times, undisturbed
from fixed_receiver.trace import Counts, count_events
from fixed_receiver.validation import Part, run_parts


class PlayedMark:
    def __init__(self, player: Player) -> None:
        self.player = player

    def query(self) -> bool:
        return not self.player.busy

    def synchronize(self) -> None:
        self.player.settle()

    def elapsed_time(self, end_event: Any) -> float:
        return 1.5


class Player(Gpu):
    """`lasting`: a call does not end the work that is held, as it should be; else every call waits for it."""

    def __init__(self, lasting: bool = True) -> None:
        super().__init__(torch.device("cpu"))
        self.lasting = lasting
        self.busy = False
        self.traced: Callable[[object], Counts] = lambda call: Counts()

    def settle(self) -> None:
        self.busy = False

    def mark(self) -> Mark:
        return PlayedMark(self)

    def await_mark(self, mark: Mark) -> None:
        mark.synchronize()

    def hold(self, milliseconds: float) -> None:
        self.busy = self.lasting and milliseconds >= 1  # the step's own stand-in is over at once

    def stream(self) -> AbstractContextManager[Any]:
        return nullcontext()

    @contextmanager
    def forbid_waits(self) -> Iterator[None]:
        yield

    def capture(self, call: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        made = call()

        def replay() -> None:
            made.copy_(call())

        return made, replay

    def host_memory(self, size: int, pinned: bool) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.uint8)

    def host_allocations(self) -> int | None:
        return 3

    def trace(self, call: Callable[[], object]) -> Counts:
        return self.traced(call)


# ---------------------------------------------------------------- what a trace says


def event(category: str, name: str) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": 1, "dur": 2}


def test_a_trace_is_counted_by_category_and_name() -> None:
    counts = count_events(
        [
            event("cpu_op", "aten::fill_"),
            event("cuda_runtime", "cudaLaunchKernel"),
            event("kernel", "FillFunctor"),
            event("kernel", "FillFunctor"),
            event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
            event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
            event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)"),
            event("gpu_memcpy", "Memcpy DtoD (Device -> Device)"),
            event("gpu_memset", "Memset (Device)"),
            event("cuda_runtime", "cudaStreamSynchronize"),
            event("cuda_runtime", "cudaHostAlloc"),
            event("cuda_runtime", "cudaMalloc"),
            {"ph": "M", "name": "process_name"},
        ]
    )
    assert counts.kernels == 2
    assert counts.names["FillFunctor"] == 2
    assert (counts.pinned_uploads, counts.pageable_uploads, counts.downloads, counts.device_copies) == (1, 1, 1, 1)
    assert (counts.fills, counts.waits, counts.host_allocations, counts.device_allocations) == (1, 1, 1, 1)
    assert counts.host_calls["cudaLaunchKernel"] == 1
    assert json.loads(json.dumps(counts.as_dict()))["names"]["FillFunctor"] == 2


def test_a_copy_from_pageable_memory_counts_as_one_that_may_wait() -> None:
    assert device_checks.spent_of(Counts(kernels=4, pageable_uploads=1)).may_waits == 1
    assert device_checks.spent_of(Counts(kernels=4, pageable_uploads=1, waits=1)).may_waits == 0
    assert device_checks.spent_of(Counts(kernels=4, device_copies=1, fills=2)).launches == 7


@pytest.mark.parametrize(
    ("code", "spent", "message"),
    [
        ("V0", Spent(22, 0, 0, 0, 0, 0), ""),
        ("V0", Spent(5, 1, 0, 0, 0, 0), "5 launches instead of 22, 1 pinned and 0 pageable uploads"),
        ("V3", Spent(5, 1, 0, 0, 0, 0), ""),
        ("V3", Spent(5, 0, 1, 0, 0, 1), "0 pinned and 1 pageable uploads, 0 waits, 1 copies that may wait"),
        ("V2", Spent(5, 1, 0, 2, 0, 0), "0 waits, 0 copies that may wait"),
        ("V5", Spent(3, 0, 0, 0, 0, 0), "3 launches instead of 2"),
        ("V5", Spent(2, 0, 0, 1, 0, 0), "1 downloads"),
    ],
)
def test_a_budget_says_what_breaks_it(code: str, spent: Spent, message: str) -> None:
    assert BUDGETS[code].broken_by(spent, 22) == message


# ---------------------------------------------------------------- numbers


def test_percentiles() -> None:
    assert percentile([5], 0.5) == 5
    assert percentile([4, 1, 3, 2], 0.5) == 2
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 101), 1) == 100
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match="share"):
        percentile([1], 0)


def test_summaries_are_in_microseconds() -> None:
    assert summarize([3000, 1000, 2000]) == {"repeats": 3, "median_us": 2.0, "p99_us": 3.0, "least_us": 1.0}


def test_slope_of_a_line() -> None:
    assert slope([8, 16, 64], [3 + 6.5 * x for x in (8, 16, 64)]) == pytest.approx(6.5)
    with pytest.raises(ValueError, match="two different"):
        slope([8, 8], [1, 2])


def test_what_runs_before_a_call_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=1000)
    monkeypatch.setattr("fixed_receiver.timing.time.perf_counter_ns", lambda: next(clock))
    order: list[str] = []
    times = take_times(lambda: order.append("call"), 2, before=lambda: order.append("before"))
    assert times == [1000, 1000]
    assert order == ["before", "call", "before", "call"]


# ---------------------------------------------------------------- parts


def test_the_published_case_has_22_of_28_experts() -> None:
    layout = published_layout()
    assert len(layout.real) == 28
    assert sum(count > 0 for count in layout.real) == 22
    assert sum(layout.real) == 4096


def test_values_and_graphs_hold() -> None:
    player = Player()
    for check in (device_checks.check_device_values(player, small=True), device_checks.check_graphs(player)):
        assert check.failures == []
        assert check.cases >= 7  # a graph for each form, several replays each


def test_a_wrong_variant_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one(psum: torch.Tensor, row_numbers: torch.Tensor, first: int) -> torch.Tensor:
        return torch.searchsorted(psum, row_numbers, right=False).add_(first).unsqueeze(1)

    monkeypatch.setattr(ids, "expand_by_search", off_by_one)
    check = device_checks.check_device_values(Player(), small=True)
    assert not check.passed
    assert {failure.split()[0] for failure in check.failures} >= {"V5", "V7"}


def test_counts_are_held_against_budgets() -> None:
    player = Player()

    def as_budgeted(call: object) -> Counts:
        arguments = getattr(call, "args", ("V5", Layout((1,)).view(player.device)))
        code, view = arguments[0], arguments[1]
        budget = BUDGETS[code]
        busy = sum(count > 0 for count in view.host_counts())
        launches = busy if budget.launches < 0 else budget.launches or 5
        downloads = 2 if code == "V2" else 0
        return Counts(launches, budget.pinned_uploads, budget.pageable_uploads, downloads, waits=int(budget.waits))

    player.traced = as_budgeted
    check = device_checks.check_counts(player)
    assert check.failures == []
    assert {row["variant"] for row in check.rows} >= {"V0", "V1", "V5", "V7"}
    assert [row["dry run launches"] for row in check.rows if row["variant"] == "V0"] == [22, 205]
    player.traced = lambda call: Counts(kernels=2, waits=1)
    broken = device_checks.check_counts(player).failures
    assert "V5 at 28 experts: 1 waits, 0 copies that may wait" in broken
    assert any(failure.startswith("V5 at 28 experts: the dry run says") for failure in broken)
    assert any(failure.startswith("V0 at 28 experts: 2 launches instead of 22") for failure in broken)


def test_waits_are_looked_for_where_they_are_and_where_not() -> None:
    """The player's torch never raises, so exactly the two variants that have to wait are missed."""
    check = device_checks.check_freedom(Player(), calls=20)
    assert check.failures == ["V1 does not wait", "V2 does not wait"]
    assert all(row.get("pinned allocations", 0) == 0 for row in check.rows)


def test_pinned_memory_that_is_asked_for_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()
    monkeypatch.setattr(Player, "host_allocations", lambda self: next(asked))
    assert "V7 asked the driver 1 times for pinned memory in 20 calls" in device_checks.check_freedom(Player(), calls=20).failures


def test_the_order_of_streams_is_checked() -> None:
    """Without streams nothing is early; that an entry could be made during capture is what the player gets wrong."""
    check = device_checks.check_streams(Player())
    assert check.failures == ["a cached vector could be made during capture"]
    assert check.rows == [{"without an event": "in time"}]


def test_a_call_that_returns_before_the_queue_has_run_did_not_wait() -> None:
    lasting = device_times.time_host(Player(), repeats=3, size=8)
    assert lasting.failures == ["V1 returned while the queue was running", "V2 returned while the queue was running"]
    waiting = device_times.time_host(Player(lasting=False), repeats=3, size=8)
    assert {failure.split()[0] for failure in waiting.failures} == {"V0", "V3", "V3c", "V3u", "V4", "V5", "V5a", "V5b", "V7"}
    row = lasting.rows[0]
    assert row["behind 5 ms"]["returned while busy"] == 1
    assert row["behind 5 ms"]["blocked_us"] == row["behind 5 ms"]["median_us"] - row["idle"]["median_us"]


def test_copies_are_asked_for_each_kind_of_memory() -> None:
    check = device_times.time_copies(Player(), repeats=2)
    kinds = {(row["bytes"], row["pinned"], row["non_blocking"]) for row in check.rows}
    assert len(kinds) == len(check.rows) == 16
    assert {size for size, _, _ in kinds} == {112, 1024, 65536, 2**20}
    assert {failure for failure in check.failures if "returned early" not in failure} == set()
    waiting = device_times.time_copies(Player(lasting=False), repeats=2)
    assert len(waiting.failures) == 4
    assert all("a pinned copy of" in failure for failure in waiting.failures)


def test_device_time_needs_a_host_that_is_ahead() -> None:
    check = device_times.time_kernels(Player(), rows=64)
    assert check.failures == []
    by_code = {row["variant"]: row for row in check.rows}
    assert not {"V1", "V2"} & set(by_code)
    assert by_code["V5"]["device_us"] == pytest.approx(1500 / by_code["V5"]["calls"])
    assert not device_times.time_kernels(Player(lasting=False), rows=64).passed


def test_sweep_and_step_give_rows_to_draw() -> None:
    check = device_times.sweep(Player(), repeats=2, experts=(8, 16))
    assert "us per busy expert" in check.rows[-1]
    document = {"parts": [{"code": "P7", "rows": check.rows}]}
    assert plot.curves(document, 4096)["V0"][0] == [8, 16]
    step = device_times.time_step(Player(), steps=1, layers=2, size=8)
    assert {"V0", "V3", "V5"} <= {row["variant"] for row in step.rows}
    assert all(row["wall"]["median_us"] >= row["host in receiver"]["median_us"] for row in step.rows)


# ---------------------------------------------------------------- report


def parts() -> list[Part]:
    def fail() -> Check:
        check = Check("one that fails")
        check.expect(False, "as it should")
        check.rows.append({"variant": "V0", "idle": {"median_us": 1.25}, "names": {"kernel": 1}})
        return check

    def break_down() -> Check:
        raise RuntimeError("device-side assert")

    return [Part("A", fail), Part("B", break_down), Part("C", lambda: Check("one that passes")), Part("D", fail, needs=10_000)]


def test_a_report_holds_every_part(tmp_path: Path) -> None:
    document = validation.new_document("cpu")
    path = tmp_path / "report.json"
    said: list[str] = []
    assert not run_parts(parts(), 100, document, str(path), said.append)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(document))
    assert written["schema"] == 1
    assert [part["code"] for part in written["parts"]] == ["A", "B", "C", "D"]
    assert [part["passed"] for part in written["parts"]] == [False, False, True, True]
    assert written["parts"][1]["failures"] == ["RuntimeError: device-side assert"]
    assert "s left of 100" in written["parts"][3]["skipped"]
    assert {"torch", "python", "machine", "date", "command"} <= set(written["environment"])
    assert len(said) == 4
    assert list(tmp_path.iterdir()) == [path]
    assert "as it should" in said[0]
    assert "1.2" in show_report(document)


def test_tables_line_up() -> None:
    rows = [flatten({"variant": "V0", "idle": {"us": 1.26}, "host_calls": {"x": 1}}), flatten({"variant": "V10", "more": True})]
    assert table(rows).splitlines() == ["variant  idle us  more", "     V0      1.3", "    V10           True"]


def test_the_parts_for_a_device_are_all_there() -> None:
    codes = [part.code for part in validation.device_parts(Player())]
    assert set(codes) == {"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "copies"}
    assert sum(part.needs for part in validation.device_parts(Player())) < validation.SECONDS


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("arguments", [["validate", "--device", "cuda"], ["bench"]])
def test_without_a_device_it_says_so(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(arguments) == 2
    assert "no CUDA device" in capsys.readouterr().err


def test_plot_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["plot", str(tmp_path / "none.json")]) == 2
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert command_line.main(["plot", str(tmp_path / "other.json")]) == 2
    assert capsys.readouterr().err.count("fixed_receiver: ") == 2


def test_a_timed_thread_is_left_as_it_was() -> None:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    threads = torch.get_num_threads()
    with pytest.raises(KeyError), undisturbed():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    assert threads == torch.get_num_threads()
    assert cores == (os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set())


def test_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the figures need matplotlib, an extra")
    document = validation.new_document("cuda")
    sweep = [{"variant": "V0", "experts": number, "rows": 4096, "median_us": 6.0 * number} for number in (8, 64)]
    host = [{"variant": "V0", "idle": {"median_us": 9.0}, "behind 20 ms": {"median_us": 10.0}}]
    document["parts"] = [{"code": "P7", "rows": sweep}, {"code": "P4", "rows": host}]
    path = tmp_path / "report.json"
    validation.write_document(document, str(path))
    written = plot.draw_report(str(path), str(tmp_path / "figures"))
    assert [Path(name).name for name in written] == ["host_time.png", "idle_and_queued.png"]
    assert all(Path(name).stat().st_size > 1000 for name in written)


def test_the_driver_is_asked_only_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fixed_receiver.gpu.shutil.which", lambda name: None)
    assert gpu.ask_driver(0) == {}
    assert describe_machine()["torch"] == torch.__version__

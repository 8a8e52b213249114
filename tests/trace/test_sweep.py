"""Sums per line, with recordings in the profiler's format that are made by hand, and with real ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from launchlint.trace import order
from launchlint.trace.cost import call_of
from launchlint.trace.events import TraceError
from launchlint.trace.sweep import Recording, record
from tests.trace.synthetic import Tape

DATA = Path(__file__).parent / "data"
WORK = """\
import torch


def upload(counts, device):
    return torch.tensor(counts).to(device)


def step(out, counts):
    ids = upload(counts, out.device)
    for i, n in enumerate(counts):
        out[i, :n].fill_(1.0)
    if (out > 0).any():
        torch.cuda.synchronize()
    return again(out, 2)


def again(out, depth):
    out.mul_(2)
    return again(out, depth - 1) if depth else out
"""
TENSOR = "<built-in method {} of Tensor object at 0x7f{:010x}>"
PAGEABLE = "HtoD (Pageable -> Device)"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work.py"
    path.write_text(WORK)
    return path


def tape_of_steps(steps: int) -> Tape:
    """`step(out, [3, 1])` so many times, as a recording on a GPU shows it."""
    tape = Tape()
    for number in range(steps):
        with tape.python("work.py(8): step"):
            with tape.python("work.py(4): upload"):
                with tape.python("<built-in method tensor of type object at 0x7f0000000000>"), tape.operation("aten::lift_fresh"):
                    pass
                with tape.python(TENSOR.format("to", number)), tape.operation("aten::to"), tape.operation("aten::copy_"):
                    tape.copy(PAGEABLE, 16)
                    tape.runtime("cudaStreamSynchronize", 30)
            for fill in range(2):
                for view in ("select", "slice"):
                    with tape.operation(f"aten::{view}"):
                        pass
                with tape.python(TENSOR.format("fill_", fill)), tape.operation("aten::fill_"):
                    tape.launch("fill", 3, "cudaLaunchKernelExC")
            with tape.operation("aten::gt"):
                tape.launch("greater", 4)
            with tape.python(TENSOR.format("any", number)), tape.operation("aten::any"):
                tape.launch("any", 5)
                tape.launch("any", 5)
            with tape.operation("aten::is_nonzero"), tape.operation("aten::item"):
                tape.copy("DtoH (Device -> Pageable)", 1)
                tape.runtime("cudaStreamSynchronize", 40)
            with (
                tape.python("torch/cuda/__init__.py(1087): synchronize"),
                tape.python("<built-in function _cuda_synchronize>"),
            ):
                tape.runtime("cudaDeviceSynchronize", 50)
            recurse(tape, 2)
    return tape


def recurse(tape: Tape, depth: int) -> None:
    with tape.python("work.py(17): again"):
        with tape.python(TENSOR.format("mul_", depth)), tape.operation("aten::mul_"):
            tape.launch("mul", 2)
        if depth:
            recurse(tape, depth - 1)


def lines(recording: Recording) -> dict[int, tuple[int, int, int, dict[str, int]]]:
    """By line: launches, waits, microseconds of kernels, copies."""
    found: dict[int, tuple[int, int, int, dict[str, int]]] = {}
    for line in {context.line for context in recording.by_context if context.line}:
        cost = recording.sum(lambda context, line=line: context.line == line)  # type: ignore[misc]
        if cost.launches or cost.waits or cost.copies:
            found[line[1]] = (cost.launches, cost.waits, cost.kernel_ns // 1000, dict(cost.copies))
    return found


def test_launches_waits_and_copies_land_on_their_lines(work: Path, tmp_path: Path) -> None:
    trace = tape_of_steps(3).write(tmp_path / "trace.json")
    recording = record(str(trace), [str(work)], {})
    assert lines(recording) == {
        5: (0, 3, 0, {PAGEABLE: 3}),
        11: (6, 0, 18, {}),
        12: (9, 3, 42, {"DtoH (Device -> Pageable)": 3}),
        13: (0, 3, 0, {}),
        18: (9, 0, 18, {}),
    }
    total = recording.total
    assert (total.launches, total.waits, total.wait_ns, total.kernels, total.copied) == (24, 9, 360_000, 24, 51)
    assert total.pageable == 6


def test_a_range_counts_what_its_lines_call_and_nothing_twice(work: Path, tmp_path: Path) -> None:
    trace = tape_of_steps(3).write(tmp_path / "trace.json")
    ranges = {str(work): [(9, 9, 0), (10, 11, 1), (14, 14, 2), (18, 19, 3), (1, 30, 4)]}
    recording = record(str(trace), [str(work)], ranges)
    costs = [recording.sum(lambda context, number=number: number in context.inside) for number in range(5)]  # type: ignore[misc]
    assert [(cost.launches, cost.waits, cost.pageable) for cost in costs] == [(0, 3, 3), (6, 0, 0), (9, 0, 0), (9, 0, 0), (24, 9, 6)]
    assert costs[4].host_ns <= recording.total.host_ns
    assert costs[0].host_ns > costs[0].wait_ns == 90_000


def test_sums_over_the_lines_are_the_sums_of_the_recording(work: Path, tmp_path: Path) -> None:
    tape = tape_of_steps(4)
    tape.thread = 200  # the thread that runs the backward pass has no Python functions
    for _ in range(5):
        with tape.operation("autograd::engine::evaluate_function: MulBackward0"), tape.operation("aten::mul"):
            tape.launch("backward")
    trace = tape.write(tmp_path / "trace.json")
    recording = record(str(trace), [str(work)], {})
    assert recording.sum(lambda context: True) == recording.total
    assert recording.sum(lambda context: not context.stacked).launches == 5
    assert recording.sum(lambda context: not context.stacked).kernel_ns == 15_000


def test_neither_the_order_of_the_file_nor_the_size_of_the_pieces_matters(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tape_of_steps(6)
    expected = record(str(tape.write(tmp_path / "trace.json")), [str(work)], {})
    by_kind = sorted(tape.events, key=lambda event: (event["cat"], -event["ts"] if event["cat"] == "kernel" else 0))
    tape.events = by_kind
    monkeypatch.setattr(order, "PIECE", 7)
    again = record(str(tape.write(tmp_path / "again.json")), [str(work)], {})
    assert again.by_context == expected.by_context
    assert again.total == expected.total


def test_a_wrapper_of_another_file_stands_where_what_it_calls_is_called(work: Path, tmp_path: Path) -> None:
    tape = Tape()
    with (
        tape.python("work.py(8): step"),
        tape.python("torch/utils/_contextlib.py(116): decorate_context"),
        tape.python("work.py(17): again"),
        tape.python(TENSOR.format("mul_", 1)),
    ):
        tape.launch("mul")
    ranges = {str(work): [(14, 14, 0), (9, 9, 1)]}
    recording = record(str(tape.write(tmp_path / "trace.json")), [str(work)], ranges)
    assert recording.sum(lambda context: 0 in context.inside).launches == 1
    assert recording.sum(lambda context: 1 in context.inside).launches == 0


def test_a_call_by_its_name() -> None:
    names = {
        "launch": "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchKernelExC_ptsz cuLaunchKernel cuLaunchKernelEx cudaGraphLaunch "
        "hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel hipGraphLaunch cudaLaunchCooperativeKernel",
        "wait": "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize hipStreamSynchronize cuCtxSynchronize",
        "copy": "cudaMemcpyAsync cudaMemsetAsync hipMemcpyAsync cudaMemcpy2DAsync cudaMemcpyAsync_v2",
        "wait and copy": "cudaMemcpy hipMemcpy cudaMemcpy2D hipMemcpyWithStream",
        "nothing": "cudaMalloc cudaStreamWaitEvent cudaEventRecord cudaStreamIsCapturing cudaLaunchHostFunc cudaFuncSetAttribute other",
    }
    for what, words in names.items():
        for name in words.split():
            call = call_of(name)
            said = (("launch", call.launches), ("wait", call.waits), ("copy", call.copies))
            assert (" and ".join(word for word, holds in said if holds) or "nothing") == what, name


@pytest.mark.parametrize("name", ["alexnet_a100", "simple_add_a100"])
def test_sums_of_real_recordings(name: str) -> None:
    path = DATA / f"{name}.json.gz"
    with gzip.open(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    count = Counter(event["name"] for event in events if event["cat"] == "cuda_runtime")
    waits = [event for event in events if event["name"] in ("cudaStreamSynchronize", "cudaDeviceSynchronize")]
    kernels = [event for event in events if event["cat"] == "kernel"]
    copies = [event for event in events if event["cat"] == "gpu_memcpy"]
    recording = record(str(path), [], {})
    total = recording.total
    assert (total.launches, total.waits) == (count["cudaLaunchKernel"], len(waits)) == (79, 21)
    assert total.wait_ns == 1000 * sum(event["dur"] for event in waits)
    assert (total.kernels, total.kernel_ns) == (len(kernels), 1000 * sum(event["dur"] for event in kernels))
    assert total.copies == {PAGEABLE: len(copies)} and total.copied == sum(event["args"]["bytes"] for event in copies)
    assert recording.sum(lambda context: True) == total, "walking the stacks loses nothing and counts nothing twice"
    assert recording.frames == 0 and recording.device


def test_a_trace_of_another_program_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "chrome.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "toplevel", "name": "Task", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}))
    with pytest.raises(TraceError, match="no event of PyTorch's profiler"):
        record(str(path), [], {})


@pytest.mark.parametrize("odd", [{"ts": "soon"}, {"ts": None}, {"dur": float("inf")}, {"name": 3}, {"args": []}, {"cat": None}])
def test_odd_events_are_passed_over(work: Path, tmp_path: Path, odd: dict[str, object]) -> None:
    tape = tape_of_steps(1)
    expected = record(str(tape.write(tmp_path / "trace.json")), [str(work)], {}).total.launches
    tape.events.append({"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "args": {}} | odd)
    assert record(str(tape.write(tmp_path / "odd.json")), [str(work)], {}).total.launches == expected

"""Recordings that torch makes here, on the CPU."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="recording needs torch")

import torch

from launchlint import facts
from launchlint.trace import sweep
from launchlint.trace.sweep import record

MODEL = """\
import torch


def pack(counts):
    out = torch.zeros(len(counts), 8)
    for i, n in enumerate(counts):
        out[i, :n].fill_(1.0)
    return out


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        y = self.first(x).relu()
        y = self.norm(y) + x
        if y.sum() > 1e9:
            y = y * 2
        scale = max(t.item() for t in y[:, 0])
        return y / scale


def train(counts):
    block = Block()
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1, momentum=0.9, foreach=False)
    for _ in range(3):
        loss = block(pack(counts)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss
"""
COUNTS = [3, 0, 5, 1]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "recorded_model.py"
    path.write_text(MODEL)
    spec = importlib.util.spec_from_file_location("recorded_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "recorded_model", module)
    spec.loader.exec_module(module)
    return module


def recorded(path: Path, function: Any, *args: Any, stacks: bool = True) -> Any:
    """Call the function under the profiler and write the trace to `path`."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], with_stack=stacks) as profiler:
        function(*args)
    profiler.export_chrome_trace(str(path))
    return profiler


def operations(path: Path) -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "cpu_op"]


def outermost(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The operations that no other operation of their thread is around."""
    ends: dict[int, float] = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] >= ends.get(event["tid"], 0):
            ends[event["tid"]] = event["ts"] + event["dur"]
            yield event


def test_the_launches_of_a_loop_land_on_its_line(model: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    recorded(trace, model.pack, COUNTS)
    recording = record(str(trace), [model.__file__], {model.__file__: [(6, 7, 0)]})
    fills = [event for event in operations(trace) if event["name"] == "aten::fill_"]
    on_line = recording.sum(lambda context: context.line == (model.__file__, 7))
    assert on_line.launches == len(fills) == len(COUNTS)
    views = [event for event in operations(trace) if event["name"] in ("aten::select", "aten::slice")]
    assert on_line.operations == len(fills) + len(views)
    assert all(context.certain for context in recording.by_context if context.line == (model.__file__, 7))
    loop = recording.sum(lambda context: 0 in context.inside)
    assert (loop.launches, loop.operations) == (on_line.launches, on_line.operations)
    assert loop.host_ns >= on_line.host_ns >= 1000 * sum(event["dur"] for event in fills) * 0.99


def test_totals_agree_with_the_sums_of_the_trace(model: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    recorded(trace, model.train, COUNTS)
    recording = record(str(trace), [model.__file__], {})
    names = Counter(event["name"] for event in operations(trace))
    assert recording.total.operations == len(list(outermost(operations(trace))))
    assert recording.total.waits == names["aten::item"] + names["aten::is_nonzero"] - names_inside(trace)
    assert recording.sum(lambda context: True) == recording.total
    known = facts.aten_operations()
    most = sum(number for name, number in names.items() if known[name[6:]].launches) if all_known(names, known) else 10**9
    assert 0 < recording.total.launches <= most


def names_inside(path: Path) -> int:
    """How many `item` are the work of an `is_nonzero`."""
    events = operations(path)
    around = [event for event in events if event["name"] == "aten::is_nonzero"]
    return sum(
        1
        for event in events
        for other in around
        if event["name"] == "aten::item" and event["tid"] == other["tid"] and other["ts"] <= event["ts"] < other["ts"] + other["dur"]
    )


def all_known(names: Counter[str], known: dict[str, facts.Operation]) -> bool:
    return all(name.startswith("aten::") and name[6:] in known for name in names)


def test_lines_of_a_training_step(model: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    recorded(trace, model.train, COUNTS)
    recording = record(str(trace), [model.__file__], {})
    by_line: Counter[int] = Counter()
    waits: Counter[int] = Counter()
    for context, cost in recording.by_context.items():
        if context.line:
            by_line[context.line[1]] += cost.launches
            waits[context.line[1]] += cost.waits
    assert by_line[5] == 3 and by_line[7] == 12
    assert by_line[18] >= 2 * 3 and by_line[19] == 2 * 3 and by_line[20] == 2 * 3 and by_line[23] == 3 and by_line[21] == 0
    assert {line: number for line, number in waits.items() if number} == {20: 3, 22: 12}
    assert by_line[33] > 0, "the optimizer's own launches count for the line that steps it"
    assert by_line[32] > 0, "on a CPU the backward pass runs where it is called"


def test_certain_lines_are_those_of_which_the_profiler_knows_the_call(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler keeps the line of a call in its event tree, though it does not write it to the trace."""
    trace = tmp_path / "trace.json"
    profiler = recorded(trace, model.train, COUNTS)
    base = json.loads(trace.read_text())["baseTimeNanoseconds"]
    truth: dict[int, int] = {}
    todo = list(profiler.profiler.kineto_results.experimental_event_tree())
    while todo:
        event = todo.pop()
        todo += event.children
        if hasattr(event.extra_fields, "caller"):
            truth[event.start_time_ns - base] = event.extra_fields.caller.line_number
    placed: list[tuple[str, int, tuple[str, int], bool]] = []
    original = sweep._Sweep._close

    def close(self: Any) -> None:
        call, caller = self.stack[-1], self.stack[-2] if len(self.stack) > 1 else None
        if caller is not None and caller.running is not None:
            placed.append((self.names[call.name], call.start, call.sum.context.line, call.sum.context.certain))
        original(self)

    monkeypatch.setattr(sweep._Sweep, "_close", close)
    torch_files = [str(path) for part in ("nn", "optim") for path in Path(torch.__path__[0], part).rglob("*.py")]
    record(str(trace), [model.__file__, *torch_files], {})
    known = [(name, line, truth[start], certain) for name, start, line, certain in placed if start in truth]
    certain = [(name, line, true) for name, line, true, sure in known if sure]
    assert len(known) > 500 and len(certain) > len(known) // 3
    for title, part in (("all", known), ("the model's file", [each for each in known if each[1][0] == model.__file__])):
        sure = sum(each[3] for each in part)
        right = sum(line[1] == true for _, line, true, is_sure in part if not is_sure)
        print(f"{title}: {len(part)} calls, {sure} on a certain line; of the other {len(part) - sure}, {right} on the right one")
    wrong = [each for each in certain if each[1][1] != each[2]]
    assert len(wrong) <= len(certain) // 100, wrong


def test_without_stacks_nothing_has_a_line(model: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    recorded(trace, model.pack, COUNTS, stacks=False)
    recording = record(str(trace), [model.__file__], {})
    assert recording.frames == 0 and recording.total.launches == 5
    assert recording.sum(lambda context: not context.stacked) == recording.total

"""A trace that is larger than the memory it may take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.synthetic import large

resource = pytest.importorskip("resource", reason="peak memory is asked of the operating system, and Windows has no such call")

SIZE = 50_000_000
WORK = """\
import torch


def step(out, lengths):
    for i, n in enumerate(lengths):
        out[i, :n].fill_(1.0)
    return out.item()
"""
PROGRAM = """\
import json, resource, sys
from launchlint.trace.join import join
unit = 1 if sys.platform == "darwin" else 1024
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
joined = join(sys.argv[1], [], [], [sys.argv[2]])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
total = joined.recording.total
lines = {line.line: (line.cost.launches, line.cost.waits, line.cost.pageable) for line in joined.lines}
print(json.dumps([peak - before, joined.recording.events, total.launches, total.waits, total.pageable, lines]))
"""


def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    trace, work = tmp_path / "large.json", tmp_path / "work.py"
    work.write_text(WORK)
    with open(trace, "w") as file:
        file.writelines(large(SIZE))
    output = subprocess.run([sys.executable, "-c", PROGRAM, trace, work], capture_output=True, text=True, check=True).stdout
    grown, events, launches, waits, pageable, lines = json.loads(output)
    steps = events // 14
    assert trace.stat().st_size >= SIZE and events == 14 * steps > 200_000, "more than is sorted in memory"
    assert (launches, waits, pageable) == (2 * steps, steps, steps)
    assert lines == {"6": [2 * steps, 0, 0], "7": [0, steps, steps]}
    assert grown < SIZE, f"{grown / 1e6:.0f} MB for a trace of {SIZE / 1e6:.0f} MB"

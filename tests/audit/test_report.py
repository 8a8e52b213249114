"""Reports: sums, order of lines, text and JSON; and the profiler's records read as events."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="the records are read beside torch")

from launchlint.audit.measurement import Record, events_of
from launchlint.audit.report import Event, Report

HERE = __file__


def report() -> Report:
    return Report(
        "dry run",
        "2.13.0",
        [
            Event("launch", "fill_", HERE, 1, 22),
            Event("allocation", "empty", HERE, 2),
            Event("upload", "to", HERE, 4, pinned=True, bytes=112),
            Event("upload", "to", HERE, 4, pinned=False, may_wait=True, note="not sure"),
            Event("download", "item", HERE, 3),
            Event("wait", "item", HERE, 3, note="read back"),
        ],
    )


def test_sums() -> None:
    made = report()
    assert (made.launches, made.waits, made.downloads, made.allocations) == (22, 1, 1, 1)
    assert (made.pinned_uploads, made.pageable_uploads, made.may_waits) == (1, 1, 1)


def test_a_wait_comes_before_many_launches() -> None:
    assert [line.line for line in report().lines] == [3, 1, 4, 2]


def test_lines_name_their_operations_and_notes() -> None:
    line = report().lines[0]
    assert line.operations == {"item": 1} and line.notes == ["read back"]
    assert line.source and line.place.endswith("test_report.py:3")


def test_table_is_aligned_and_can_be_cut() -> None:
    text = report().table(limit=2).splitlines()
    assert text[0].split() == ["launches", "waits", "pinned", "up", "pageable", "up", "down", "alloc", "line", "source"]
    assert "and 2 more lines" in text[3] and text[4].split()[:6] == ["22", "1", "1", "1", "1", "1"]
    assert any("not guaranteed asynchronous: 1" in line for line in text)


def test_json() -> None:
    written = json.loads(report().to_json())
    assert written["totals"]["launches"] == 22 and written["may_wait"] == 1
    assert written["lines"][0] | {"path": ""} == {
        "path": "",
        "line": 3,
        "source": report().lines[0].source,
        "launches": 0,
        "waits": 1,
        "pinned_uploads": 0,
        "pageable_uploads": 0,
        "downloads": 1,
        "allocations": 0,
        "operations": {"item": 1},
        "notes": ["read back"],
        "findings": [],
    }


def host(name: str, start: int, end: int, correlation: int = 0, thread: int = 1) -> Record:
    return Record(name, False, start, end, correlation, thread)


def device(name: str, correlation: int) -> Record:
    return Record(name, True, 0, 1, correlation)


def test_records_of_the_profiler() -> None:
    """Names as the CUDA runtime and CUPTI give them; times are made up, since only their nesting counts."""
    records = [
        host("launchlint|7|add|a.py", 0, 100),
        host("aten::add", 5, 90),
        host("cudaLaunchKernel", 10, 20, 1),
        device("void at::native::vectorized_elementwise_kernel", 1),
        host("launchlint|8|to|a.py", 200, 400),
        host("cudaMemcpyAsync", 210, 220, 2),
        device("Memcpy HtoD (Pageable -> Device)", 2),
        host("cudaStreamSynchronize", 230, 390, 3),
        host("launchlint|9|to|a.py", 500, 600),
        host("cudaMemcpyAsync", 510, 520, 4),
        device("Memcpy HtoD (Pinned -> Device)", 4),
        host("launchlint|10|cpu|a.py", 700, 900),
        host("cudaMemcpyAsync", 710, 720, 5),
        device("Memcpy DtoH (Device -> Pageable)", 5),
        host("cudaStreamSynchronize", 730, 890, 6),
        host("cudaDeviceSynchronize", 1000, 1010, 7),
    ]
    seen = [(event.kind, event.path, event.line, event.pinned) for event in events_of(records)]
    assert seen == [
        ("launch", "a.py", 7, None),
        ("upload", "a.py", 8, False),
        ("wait", "a.py", 8, None),
        ("upload", "a.py", 9, True),
        ("download", "a.py", 10, False),
        ("wait", "a.py", 10, None),
        ("wait", "?", 0, None),
    ]


def test_the_innermost_range_of_the_same_thread_counts() -> None:
    records = [
        host("launchlint|1|outer|a.py", 0, 1000),
        host("launchlint|2|inner|a.py", 100, 200),
        host("launchlint|3|other|a.py", 300, 400, thread=2),
        host("cudaLaunchKernel", 150, 160, 1),
        host("cudaLaunchKernel", 350, 360, 2),
    ]
    assert [event.line for event in events_of(records)] == [2, 1]

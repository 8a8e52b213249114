"""Every operation of the battery costs what CUDA semantics say."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch", reason="the dry run needs torch")

import torch

from launchlint.audit import Report, dry_run
from launchlint.facts import release
from tests.audit.battery import BATTERY, NUMBER_AT_INDICES, NUMBER_IN_ONE_ELEMENT, Entry, make_data

COUNTERS = {"L": "launches", "W": "waits", "P": "pageable_uploads", "p": "pinned_uploads", "D": "downloads", "?": "may_waits"}
VERSION = release(torch.__version__)


def spent_by(entry: Entry) -> Report:
    """The report of one entry; making the operands is not part of it."""
    with dry_run():
        data = make_data()
        with dry_run() as report:
            entry.call(data)
    return report


def differences(entry: Entry, report: Report) -> list[str]:
    """Where the report is not what the entry expects."""
    expected = {word[0]: word[1:] for word in entry.expected.split()}
    wrong = []
    for letter, name in COUNTERS.items():
        spent, wanted = getattr(report, name), expected.get(letter, "0")
        if (spent == 0) if wanted == "" else (spent != int(wanted)):
            wrong.append(f"{name}: {spent}, expected {wanted or 'some'}")
    return wrong


@pytest.mark.parametrize("entry", BATTERY, ids=lambda entry: entry.name)
def test_cost(entry: Entry) -> None:
    report = spent_by(entry)
    assert not differences(entry, report), f"{differences(entry, report)}\n{report.table()}"
    assert not report.assumed and not report.problems, report.table()


def test_size() -> None:
    names = [entry.name for entry in BATTERY]
    assert len(names) == len(set(names)) >= 120
    assert all(re.fullmatch(r"([LWPpD?]\d* ?)*", entry.expected) for entry in BATTERY)


@pytest.mark.parametrize("entry", [NUMBER_IN_ONE_ELEMENT, NUMBER_AT_INDICES], ids=lambda entry: entry.name)
def test_number_stored_by_index(entry: Entry) -> None:
    """torch up to 2.14 makes a host tensor of the number and uploads it; pytorch PR 188267 and 188330 change that later."""
    report = spent_by(entry)
    if VERSION <= (2, 14):
        assert not differences(entry, report), report.table()
    else:
        assert report.launches == 1 and report.waits in (0, 1), report.table()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="measuring needs a CUDA device; the dry run of the same battery has run")
def test_measured() -> None:  # pragma: no cover - only on a GPU
    """The measurement agrees with the dry run on what happens at all; every difference in number is printed."""
    from launchlint.audit import measure

    disagreeing = []
    for entry in BATTERY:
        entry.call(make_data())  # libraries are loaded by the first call
        data = make_data()
        with measure() as report:
            entry.call(data)
        counted = spent_by(entry)
        for name in ("launches", "waits", "pageable_uploads", "pinned_uploads", "downloads"):
            measured, expected = getattr(report, name), getattr(counted, name)
            if measured != expected:
                print(f"{entry.name}: {name} measured {measured}, counted {expected}")
            if bool(measured) != bool(expected):
                disagreeing.append(f"{entry.name}: {name}")
    assert not disagreeing

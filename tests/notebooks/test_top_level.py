"""Loops outside functions: in a notebook they are what runs often, in a module they run once."""

from __future__ import annotations

import json

from launchlint import engine, registry
from launchlint.settings import Settings
from launchlint.source import Source

CODE = ["import torch\n", "total = 0.0\n", "for loss in losses:\n", "    total += loss.item()\n", "print(total)\n", "last = loss.item()"]


def codes(source: Source) -> list[tuple[str, int]]:
    settings = Settings()
    report = engine.check_source(source, registry.select(settings), settings)
    assert not report.problems
    return [(finding.code, source.position(finding.span.start).line) for finding in report.findings]


def notebook(*cells: list[str]) -> Source:
    made: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "source": cell, "execution_count": None, "outputs": []} for cell in cells
    ]
    data = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return Source.from_bytes("work.ipynb", json.dumps(data).encode())


def test_a_loop_of_a_notebook_is_hot_and_what_stands_around_it_is_not() -> None:
    assert codes(notebook(CODE)) == [("LCH307", 4)]


def test_the_import_may_stand_in_another_cell() -> None:
    found = codes(notebook(CODE[:1], CODE[1:]))
    assert [code for code, _ in found] == ["LCH307"]


def test_a_module_runs_once() -> None:
    assert codes(Source.from_bytes("work.py", "".join(CODE).encode())) == []


def test_numpy_in_the_notebook_makes_an_item_anybodys() -> None:
    assert codes(notebook(["import numpy as np\n", *CODE])) == []

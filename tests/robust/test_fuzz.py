"""A small share of the fuzzer's inputs, what the inputs hold, and that faults which are put in on purpose are found."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest

from launchlint import check, engine, fixes
from launchlint.model import FileReport, Problem
from launchlint.source import Source
from tests.robust import fuzz, notebooks
from tests.robust.grammar import Writer
from tests.robust.inputs import LOOP
from tests.robust.test_fixing import FIXABLE

COUNT = 240
OLD = ("slice", "Suite", "Index", "ExtSlice", "AugLoad", "AugStore", "Param")  # kinds of node that no parser makes any more


@pytest.fixture(scope="module")
def inputs() -> fuzz.Inputs:
    return fuzz.Inputs(seed=1)


def test_made_and_damaged_files(inputs: fuzz.Inputs) -> None:
    tally = fuzz.fuzz(inputs, range(COUNT))
    assert tally.failures == []
    assert set(tally.kinds) == {"grammar", "changed code", "damaged code", "notebook", "damaged notebook"}
    assert COUNT // 10 < tally.broken < COUNT - COUNT // 10, "both doors are tried"
    assert tally.findings > COUNT // 10
    assert tally.fixed.total() > 5


def test_the_grammar_makes_every_kind_of_statement_and_expression() -> None:
    met: set[type[ast.AST]] = set()
    parsed = 0
    for seed in range(250):
        try:
            tree = ast.parse(Writer(random.Random(seed)).module())
        except SyntaxError:
            continue
        parsed += 1
        met.update(node.__class__ for node in ast.walk(tree))
    wanted = {*ast.stmt.__subclasses__(), *ast.expr.__subclasses__(), *ast.pattern.__subclasses__()}
    assert {kind.__name__ for kind in wanted - met} - set(OLD) == set()
    assert parsed > 100


def test_an_input_depends_on_its_seed_and_number_only(inputs: fuzz.Inputs, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOOP)
    for root in (None, tmp_path):
        one, other = fuzz.Inputs(3, root), fuzz.Inputs(3, root)
        forward = [one.make(number) for number in range(60)]
        assert [other.make(number) for number in reversed(range(60))] == forward[::-1]
        assert ("damaged file" in {kind for kind, _ in forward}) is (root is not None)
        third = fuzz.Inputs(4, root)
        assert [third.make(number) for number in range(60)] != forward


# ---------------------------------------------------------------- faults put in on purpose


class Given(fuzz.Inputs):
    """One input, whatever the number."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def make(self, number: int) -> tuple[str, bytes]:
        return "given", self.data


def told(data: bytes, seconds: float = fuzz.SECONDS) -> str:
    """What the fuzzer says of an input; empty where nothing is wrong."""
    return " ".join(said for _, _, said in fuzz.fuzz(Given(data), range(1), seconds).failures)


def test_nothing_is_wrong_without_a_fault() -> None:
    for data in (FIXABLE.encode(), b"def f(:\n", b"\xff\n", b"", b"x = 1\0"):
        assert told(data) == ""


def test_a_traceback_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(engine._FileCheck, "scope", fail)
    assert "planted" in told(FIXABLE.encode())


def test_a_rule_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine._FileCheck._ask

    def fail(self: Any, rule: Any, check: Any, site: Any, context: Any) -> Any:
        def broken(*_: object) -> None:
            raise KeyError("planted")

        return real(self, rule, broken, site, context)

    monkeypatch.setattr(engine._FileCheck, "_ask", fail)
    assert "a rule failed" in told(FIXABLE.encode())


def test_a_slow_check_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(engine._FileCheck, "scope", forever)
    assert "more than 0.5 seconds" in told(FIXABLE.encode(), 0.5)


def written(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let every fix write `data`."""

    def write(path: str, source: Source, text: str) -> None:
        Path(path).write_bytes(data)

    monkeypatch.setattr(fixes, "write", write, raising=False)


def test_a_fix_that_breaks_the_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch, b"def f(:\n")
    assert told(FIXABLE.encode()) != ""


def test_a_fix_that_changes_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch, FIXABLE.encode())
    assert "fixed, and the file is as it was" in told(FIXABLE.encode())


def test_a_broken_file_that_is_changed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = check._Fixing.round

    def spoil(self: Any, files: Any) -> bool:
        Path(fuzz.NAME).write_bytes(b"")
        return real(self, files)

    monkeypatch.setattr(check._Fixing, "round", spoil)
    assert "was changed" in told(b"def f(:\n")


@pytest.mark.parametrize("reasons", [[], ["one", "two"], ["two\nlines"], [" "]])
def test_anything_but_one_clear_line_is_told(monkeypatch: pytest.MonkeyPatch, reasons: list[str]) -> None:
    problems = [Problem("layer.py", reason, 1) for reason in reasons]
    monkeypatch.setattr(engine, "check_files", lambda paths, *_, **__: engine.Report([FileReport(paths[0], problems=problems)]))
    assert told(b"def f(:\n") != ""


def test_a_refusal_of_what_parses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem("layer.py", "no", 1)
    monkeypatch.setattr(engine, "check_files", lambda paths, *_, **__: engine.Report([FileReport(paths[0], problems=[problem])]))
    assert "what parses is refused" in told(b"x = 1\n")


# ---------------------------------------------------------------- notebooks


def book(*cells: str) -> bytes:
    return json.dumps({"cells": [{"cell_type": "code", "outputs": [{"text": "1"}], "source": cell} for cell in cells]}).encode()


def told_of_notebook(data: bytes) -> str:
    class Notebook(Given):
        def make(self, number: int) -> tuple[str, bytes]:
            return "given notebook", self.data

    return " ".join(said for _, _, said in fuzz.fuzz(Notebook(data), range(1)).failures)


def test_nothing_is_wrong_with_a_notebook_without_a_fault() -> None:
    for data in (book(FIXABLE), book("%time x = 1", FIXABLE, "x = ("), b'{"cells": 1}', b"{", b"\xff"):
        assert told_of_notebook(data) == ""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (book(FIXABLE).replace(b'"1"', b'"2"'), "something else than the text of cells"),
        (book("x = ("), "does not parse now"),
        (b"{", "no JSON"),
        (book(FIXABLE), "the file is as it was"),
    ],
)
def test_a_fix_that_spoils_a_notebook_is_told(monkeypatch: pytest.MonkeyPatch, after: bytes, said: str) -> None:
    written(monkeypatch, after)
    assert said in told_of_notebook(book(FIXABLE))


def test_cells_and_outputs_make_a_notebook() -> None:
    assert notebooks.is_sound(book("x = 1"))
    assert notebooks.is_sound(b'{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x"]}]}]}')
    for data in (b"[]", b'{"cells": [1]}', b'{"cells": [{"cell_type": "code", "source": 1}]}', b'{"worksheets": []}', b"{"):
        assert not notebooks.is_sound(data)

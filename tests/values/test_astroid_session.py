"""What a look into other modules leaves behind in the process, and what it may cost."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

import pytest
from astroid import MANAGER, context, parse
from astroid.manager import AstroidManager

from launchlint.values.astroid_session import Bounds, Session
from launchlint.values.value import NOTHING
from tests.values.project import names_with, values_for, write_project

DEVICE = "tensor on the device"


@pytest.fixture
def linted(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def ask(linted: Path, bounds: Bounds | None = None) -> str:
    return str(values_for(linted, bounds).function("shop.base.make"))


def test_the_cache_of_the_host_stays_as_it_was(linted: Path) -> None:
    ask(linted)  # the first use of astroid in a process fills its cache with the builtins
    manager = AstroidManager()
    theirs = parse("x = 1", "torch")
    manager.astroid_cache["shop.base"] = theirs
    before = dict(manager.astroid_cache)
    try:
        assert ask(linted) == DEVICE
        assert AstroidManager().astroid_cache == before
        assert MANAGER.astroid_cache is AstroidManager().astroid_cache
    finally:
        for name in ("torch", "shop.base"):
            manager.astroid_cache.pop(name, None)


def test_lists_and_hooks_of_the_host_stay_as_they_were(linted: Path) -> None:
    before = {name: AstroidManager.brain[name] for name in AstroidManager.brain}
    inferred = context._INFERENCE_CACHE
    ask(linted)
    assert all(AstroidManager.brain[name] is value for name, value in before.items())
    assert context._INFERENCE_CACHE is inferred


def test_the_host_can_go_on_with_astroid(linted: Path) -> None:
    module = parse("import os\nclass A:\n    x = 1\ny = A().x\n")
    before = next(module["y"].infer()).value
    ask(linted)
    assert next(module["y"].infer()).value == before == 1
    assert next(parse("def f():\n    return [1]\nz = f()\n")["z"].infer()).pytype() == "builtins.list"


def test_state_is_put_back_after_an_error(linted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = AstroidManager().astroid_cache
    values = values_for(linted)
    monkeypatch.setattr(values, "_called", lambda module, parts: 1 / 0)
    assert values.function("shop.base.make") is NOTHING
    assert AstroidManager().astroid_cache is cache


def test_collector_and_recursion_limit_are_left_alone(linted: Path) -> None:
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), sys.getrecursionlimit()
    ask(linted)
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), sys.getrecursionlimit()) == before


def test_nothing_is_printed(linted: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (linted.parents[2] / "neighbour/tools.py").write_text("import torch\ndef make():\n    '\\d'\n    return 1 is 1\n", encoding="utf-8")
    values_for(linted).function("neighbour.tools.make")
    assert capfd.readouterr() == ("", "")


def test_a_question_is_asked_once(linted: Path) -> None:
    values = values_for(linted)
    for _ in range(3):
        values.function("shop.base.make")
    assert (values.asked, values.answered) == (1, 1)


def test_what_no_file_can_answer_does_not_open_astroid(linted: Path) -> None:
    values = values_for(linted)
    values.function("nowhere_to_be_found.make")
    values.attribute("Unheard", "x", names_with())
    assert values.asked == 0


@pytest.mark.parametrize(
    "bounds",
    [Bounds(file_seconds=0.0), Bounds(run_seconds=0.0), Bounds(file_steps=0), Bounds(file_modules=0), Bounds(module_bytes=10)],
    ids=["no seconds for a file", "no seconds for a run", "no steps", "no modules", "no bytes"],
)
def test_a_bound_that_is_spent_ends_the_answers(linted: Path, bounds: Bounds) -> None:
    assert ask(linted, bounds) == "unknown"


def test_time_runs_out_in_the_middle(linted: Path) -> None:
    ticks = iter(range(1_000_000))
    session = Session(Bounds(file_seconds=50, run_seconds=1000), clock=lambda: float(next(ticks)))  # every look at the clock is a second
    values = values_for(linted, session=session)
    answers = [
        str(values.attribute("Inner", name, names_with(Inner="shop.base.Inner"))) for name in ("moved_rows", "plain_rows", "summed") * 9
    ]
    values._known.clear()
    assert DEVICE in answers
    for _ in range(30):
        last = values.attribute("Inner", "moved_rows", names_with(Inner="shop.base.Inner"))
        values._known.clear()
    assert last is NOTHING


def test_trees_are_given_up(linted: Path) -> None:
    session = Session(Bounds(kept_nodes=100))
    assert str(values_for(linted, session=session).function("shop.base.make")) == DEVICE
    assert str(values_for(linted, session=session).function("neighbour.tools.make")) != "unknown"
    assert sum(session.nodes.values()) <= 100


def test_another_project_takes_the_place_of_the_first(linted: Path, tmp_path: Path) -> None:
    other = write_project(tmp_path / "other")
    (tmp_path / "other/shop/base.py").write_text("def make():\n    return 1\n", encoding="utf-8")
    session = Session()
    assert str(values_for(linted, session=session).function("shop.base.make")) == DEVICE
    assert str(values_for(other, session=session).function("shop.base.make")) == "host scalar"
    assert str(values_for(linted, session=session).function("shop.base.make")) == DEVICE


def test_the_order_of_files_does_not_matter(linted: Path) -> None:
    """A module must not add to the classes of another: which of them was built before depends on the run."""
    root = linted.parents[2]
    (root / "neighbour/writer.py").write_text(
        "import torch\nfrom shop.base import Inner\nitem = Inner('cuda')\nitem.added = torch.zeros(3)\ndef f():\n    return 1\n",
        encoding="utf-8",
    )
    session = Session()
    names = names_with(Inner="shop.base.Inner")
    assert str(values_for(linted, session=session).function("neighbour.writer.f")) == "host scalar"
    assert values_for(linted, session=session).attribute("Inner", "added", names) is NOTHING


@pytest.mark.parametrize(
    "code",
    [
        "def make(x):\n    return " + " + ".join(["x"] * 2000) + "\n",
        "def make(x):\n    return " + "(" * 90 + "x" + ")" * 90 + "\n",
        "class A(A):\n    pass\ndef make():\n    return A().x\n",
        "class A(B):\n    pass\nclass B(A):\n    x = 1\ndef make():\n    return A().x\n",
        "from neighbour.tools import make\n",
        "from neighbour.tools import *\n",
        "def make():\n    return other()\ndef other():\n    return make()\n",
        "\n".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x)" for n in range(60)) + "\ndef f60(x):\n    return x\nmake = f0\n",
        "import torch\nx = torch.zeros(1)\n" + "x = x + x\n" * 500 + "def make():\n    return x\n",
        "x = " + "[" * 80 + "]" * 80 + "\ndef make():\n    return x\n",
        "if True:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(400)) + "def make():\n    return 1\n",
    ],
)
def test_hostile_modules_end_quickly(linted: Path, code: str) -> None:
    (linted.parents[2] / "neighbour/tools.py").write_text(code, encoding="utf-8")
    started = time.perf_counter()
    values_for(linted, Bounds(file_seconds=2.0)).function("neighbour.tools.make")
    assert time.perf_counter() - started < 20

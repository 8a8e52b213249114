"""The table of facts: current, free of contradictions, and in agreement with what torch itself says of its operators."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from launchlint.facts import CONDITIONS, FactsError, Operation, aten_operations, check, read_groups, release, torch_operations


def test_json_is_current() -> None:
    run = subprocess.run([sys.executable, "-m", "launchlint.facts", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_table_does_not_contradict_itself() -> None:
    check(aten_operations())
    assert len(torch_operations()) > 800


def test_every_condition_is_used_and_counted_somewhere() -> None:
    used = {operation.waits for operation in aten_operations().values()}
    assert used == set(CONDITIONS)
    pytest.importorskip("torch", reason="the checks of the dry run need torch")
    from launchlint.audit.conditions import CHECKS

    by_function = {"device-argument", "blocking-or-pageable", "other-device", "no-num-classes"}  # calls that ATen never sees whole
    assert set(CHECKS) | by_function == set(CONDITIONS)


@pytest.mark.parametrize(
    ("name", "does", "waits", "device", "result"),
    [
        ("fill_", "launch", "no", "receiver", "tensor"),
        ("view", "view", "no", "operands", "tensor"),
        ("empty", "allocate", "no", "argument", "tensor"),
        ("tensor", "upload", "device-argument", "argument", "tensor"),
        ("item", "download", "always", "host", "scalar"),
        ("tolist", "download", "always", "host", "host-list"),
        ("repeat_interleave", "launch", "tensor-repeats-without-output-size", "operands", "tensor"),
        ("sort", "launch", "no", "operands", "pair"),
        ("split", "view", "no", "operands", "list"),
        ("numel", "host", "no", "host", "scalar"),
        ("synchronize", "wait", "always", "host", "none"),
    ],
)
def test_some_facts(name: str, does: str, waits: str, device: str, result: str) -> None:
    fact = torch_operations()[name]
    assert (fact.does, fact.waits, fact.device, fact.result) == (does, waits, device, result)


def test_versions() -> None:
    fact = Operation("x", since="2.6", until="2.14")
    assert not fact.holds((2, 5)) and fact.holds((2, 6)) and fact.holds((2, 13)) and not fact.holds((2, 14))
    assert release("2.13.0+cpu") == (2, 13)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([{"names": ["a", "a"]}], "a is in the table twice"),
        ([{"names": ["a"], "colour": "red"}], "a: .*colour"),
    ],
)
def test_broken_tables_are_refused(groups: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(FactsError, match=message):
        read_groups(groups)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Operation("a", waits="sometimes", source="s"), "unknown condition 'sometimes'"),
        (Operation("a"), "no source"),
        (Operation("a", does="view", source="s"), "launches nothing"),
    ],
)
def test_impossible_facts_are_refused(operation: Operation, message: str) -> None:
    with pytest.raises(FactsError, match=message):
        check({"a": operation})


# ---------------------------------------------------------------- held against torch


def overloads() -> Iterator[tuple[str, Any]]:
    """Base name and overload of every ATen operator of this torch."""
    torch = pytest.importorskip("torch", reason="this holds the table against torch")
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            name, _, overload = full.removeprefix("aten::").partition(".")
            try:
                yield name, getattr(getattr(torch.ops.aten, name), overload or "default")
            except (AttributeError, RuntimeError):
                continue


def test_what_torch_says_depends_on_data_waits() -> None:
    torch = pytest.importorskip("torch", reason="this holds the table against torch")
    facts = aten_operations()
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    tagged = {name for name, overload in overloads() if tags & set(overload.tags)}
    assert len(tagged) > 10
    assert {name for name in tagged if name not in facts or not facts[name].may_wait} == set()


def test_views_of_torch_launch_nothing() -> None:
    """A name that the table has as a launch is no pure view for torch.

    `coalesce` may return its argument, which is then already coalesced; else it computes.
    """
    torch = pytest.importorskip("torch", reason="this holds the table against torch")
    from launchlint.audit.dispatch import is_view

    facts, wrong = aten_operations(), set()
    for name, overload in overloads():
        has_output = bool(overload._schema.returns) and isinstance(overload._schema.returns[0].type, torch.TensorType)
        if has_output and is_view(overload) and name in facts and facts[name].does == "launch":
            wrong.add(name)
    assert wrong <= {"coalesce"}


def test_spelled_names_exist() -> None:
    torch = pytest.importorskip("torch.distributed", reason="this holds the table against torch") and importlib.import_module("torch")
    if release(torch.__version__) < (2, 13):
        pytest.skip("the table lists names of torch 2.13, older ones have fewer")

    def place(path: str) -> Any:
        found: Any = torch
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        return found

    missing = []
    for name, fact in torch_operations().items():
        if "function" in fact.spelled and not any(hasattr(place(module), name) for module in fact.modules):
            missing.append(f"function {name}")
        if "method" in fact.spelled and not hasattr(place(fact.owner), name):
            missing.append(f"method {name}")
    assert missing == []

"""Runs the code of a case beside its fixed form, on CPU tensors that pretend to live on a device.

The `inputs` block of a case is run in the namespace of either; what its last line gives is compared. It should be large
enough for the fix to pay: one `repeat_interleave` costs more launches than two fills.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from launchlint.audit import Report, dry_run
from tests.cases.case import Case


@dataclass(frozen=True, slots=True)
class Run:
    """What the inputs gave, and what that cost."""

    result: Any
    report: Report

    @property
    def price(self) -> dict[str, int]:
        """What a fix must bring down, by name."""
        totals = self.report.totals
        return {"waits": totals.waits, "pageable uploads": totals.pageable_uploads, "launches": totals.launches}


def run(code: str, inputs: str) -> Run:
    """Define what `code` defines and run `inputs`, whose last statement must be an expression."""
    *statements, last = ast.parse(inputs).body
    if not isinstance(last, ast.Expr):
        raise ValueError("the last line of an `inputs` block is an expression: what the code gives")
    names: dict[str, Any] = {"__name__": "layer"}
    exec(compile(code, "<case>", "exec"), names)
    with torch.random.fork_rng(devices=()), dry_run() as report:
        torch.manual_seed(0)
        exec(compile(ast.Module(statements, []), "<inputs>", "exec"), names)
        report.events.clear()  # making the inputs is no part of the price
        result = eval(compile(ast.Expression(last.value), "<inputs>", "eval"), names)
    return Run(result, report)


def complaints(case: Case, fixed: str) -> list[str]:
    """What is wrong with the fixed code as it runs: other values, or no lower price."""
    before, after = run(case.code, case.inputs), run(fixed, case.inputs)
    found = list(differences(before.result, after.result))
    found += [f"CUDA would raise: {problem}" for problem in after.report.problems]
    grown = [name for name in ("waits", "pageable uploads") if after.price[name] > before.price[name]]
    if grown or sum(after.price.values()) >= sum(before.price.values()):
        found.append(f"costs no less: {before.price} before, {after.price} after")
    return found


def differences(one: Any, other: Any, place: str = "the result") -> Iterator[str]:
    """Where two results differ in values, dtype, shape or strides."""
    match one, other:
        case torch.Tensor(), torch.Tensor():
            for name in ("dtype", "shape"):
                if getattr(one, name) != getattr(other, name):
                    yield f"{place}: {name} {getattr(one, name)} became {getattr(other, name)}"
                    return
            if one.stride() != other.stride():
                yield f"{place}: strides {one.stride()} became {other.stride()}"
            if not torch.equal(one, other):
                yield f"{place}: {one} became {other}"
        case ((list() | tuple()), (list() | tuple())) if len(one) == len(other) and type(one) is type(other):
            for number, pair in enumerate(zip(one, other, strict=True)):
                yield from differences(*pair, f"{place}[{number}]")
        case _:
            if type(one) is not type(other) or one != other:
                yield f"{place}: {one!r} became {other!r}"

"""What the callers of a function say of its parameters, as a flow asks for it. `values.callers` has the answers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Protocol

from launchlint.rule import FunctionNode
from launchlint.values.evaluate import has_splat, keyword
from launchlint.values.value import Device, Kind, Value

Given = Mapping[str, Value]  # parameter -> what all callers agree on
NOTHING_GIVEN: Given = {}
LEFT_OUT = ast.Constant(value=...)


class Callers(Protocol):
    """The callers of the functions of one file."""

    def given(self, node: FunctionNode) -> Given:
        """What they give to the parameters of a function."""


def refine(known: Value, given: Value) -> Value:
    """A parameter in the light of what its callers give; what its own function shows for certain stays."""
    match given.kind:
        case Kind.DEVICE:
            return given if known.kind in (Kind.UNKNOWN, Kind.DEVICE, Kind.OBJECT, Kind.SCALAR) else known  # `device: str`
        case Kind.TENSOR | Kind.ARRAY | Kind.SCALAR if known.kind is Kind.TENSOR:
            if known.device is Device.UNKNOWN or known.by_name:
                device = given.device if given.kind is Kind.TENSOR else Device.HOST
                return known.but(device=device, pinned=given.pinned, by_name=given.by_name, origin=given.origin)
            return known
        case _:
            return given if known.kind is Kind.UNKNOWN else known


def argument_of(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """What a call gives to a parameter; `LEFT_OUT` for its default, None where the call does not show it. `place` is -1 where the
    parameter is given by its name only."""
    found = keyword(call, name)
    if found is not None:
        return found
    before = call.args[: place + 1] if place >= 0 else []
    if any(isinstance(argument, ast.Starred) for argument in before):
        return None
    if 0 <= place < len(call.args):
        return call.args[place]
    hidden = has_splat(call) or any(isinstance(argument, ast.Starred) for argument in call.args)
    return None if hidden else LEFT_OUT

"""What the constructions of a class in its own file give to a field that it only declares: `Lengths(on_host=rows.cpu())`."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from launchlint.scan import ClassScope
from launchlint.values.evaluate import has_splat, keyword
from launchlint.values.value import NOWHERE, Device, Kind, Origin, Value

_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_MANY = 6
_COPIES = ("_cpu", "_np", "_host")


def is_plain(owner: ClassScope) -> bool:
    """True for a class whose constructor is made from its fields, as that of a dataclass or a named tuple is."""
    return not any(name in owner.methods for name in _CONSTRUCTORS)


def beside_copy(promised: Value, attribute: str, declared: Container[str]) -> Value:
    """A declared tensor that has a host copy beside it is on the device: `lens` with `lens_cpu`, pointless if both were on the host."""
    if promised.kind is not Kind.TENSOR or promised.device is not Device.UNKNOWN or attribute.endswith(_COPIES):
        return promised
    copy = next((attribute + end for end in _COPIES if attribute + end in declared), "")
    return promised.but(device=Device.DEVICE, origin=Origin(NOWHERE.line, f"its host copy is {copy}")) if copy else promised


def given(calls: list[ast.Call], owner: ClassScope, attribute: str) -> Iterator[ast.expr | None]:
    """The argument of each construction for a field; None where a call does not show it."""
    if len(calls) > _MANY:
        return
    place = list(owner.fields).index(attribute)
    for call in calls:
        named = keyword(call, attribute)
        if named is not None:
            yield named
        elif has_splat(call) or any(isinstance(argument, ast.Starred) for argument in call.args):
            yield None
        elif place < len(call.args) and not owner.bases:
            yield call.args[place]
        else:
            yield None

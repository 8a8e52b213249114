"""What the constructions of a class in its own file give to a field that it only declares: `Lengths(on_host=rows.cpu())`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.scan import ClassScope
from launchlint.values.evaluate import has_splat, keyword

_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_MANY = 6


def is_plain(owner: ClassScope) -> bool:
    """True for a class whose constructor is made from its fields, as that of a dataclass or a named tuple is."""
    return not any(name in owner.methods for name in _CONSTRUCTORS)


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

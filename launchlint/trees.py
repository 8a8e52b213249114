"""Walking syntax trees. `ast.walk` and `ast.iter_child_nodes` spend most of their time on contexts and operators that nobody asks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

# Fields that never hold a node, or only contexts and operators.
_NO_NODES = frozenset(
    {
        "ctx", "op", "ops", "id", "attr", "arg", "name", "asname", "module", "level", "kind", "conversion", "type_comment", "simple",
        "is_async", "lineno", "rest", "str", "tag", "type_ignores", "kwd_attrs",
    }
)  # fmt: skip
_CHILDLESS = frozenset({ast.Constant, ast.Name, ast.Global, ast.Nonlocal, ast.MatchSingleton})
LEAVES = frozenset(
    {ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.alias, str, int, bool, type(None)}
)
_HOLEY = frozenset({"keys", "kw_defaults"})  # lists with None for what is not written
_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind in _CHILDLESS:
        names: tuple[str, ...] = ()
    elif kind.__name__ == "TypeAlias":
        names = kind._fields  # the only one whose name is a node
    else:
        names = tuple(name for name in kind._fields if name not in _NO_NODES)
    _fields[kind] = names
    return names


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below `node` in the order of its fields, as `ast.iter_child_nodes`, but no contexts and operators."""
    kind = node.__class__
    names = _fields.get(kind)
    if names is None:
        names = _fields_of(kind)
    found: list[ast.AST] = []
    for name in names:
        child = getattr(node, name, None)
        if child.__class__ is list:
            found += child if name not in _HOLEY else [item for item in child if item is not None]
        elif child is not None:
            found.append(child)
    return found


def branches(node: ast.AST) -> list[ast.AST]:
    """`children` without names, constants and other leaves: for those who look for calls, loops and assignments."""
    kind = node.__class__
    names = _fields.get(kind)
    if names is None:
        names = _fields_of(kind)
    found: list[ast.AST] = []
    for name in names:
        child: Any = getattr(node, name, None)
        if child.__class__ is list:
            found += [item for item in child if item.__class__ not in LEAVES]
        elif child.__class__ not in LEAVES:
            found.append(child)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and everything below it, nearest first, as `ast.walk`, but no contexts and operators."""
    level = [node]
    while level:
        yield from level
        below: list[ast.AST] = []
        for above in level:
            if above.__class__ not in _CHILDLESS:
                below += children(above)
        level = below

"""Walking syntax trees. `ast.walk` and `ast.iter_child_nodes` spend most of their time on contexts and operators that nobody asks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_NO_NODES = frozenset(
    {
        "ctx", "op", "ops", "id", "attr", "arg", "name", "asname", "module", "level", "kind", "conversion", "type_comment", "simple",
        "is_async", "lineno", "rest", "str", "tag", "type_ignores",
    }
)  # fmt: skip
_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below `node` in source order of their fields, as `ast.iter_child_nodes`, but no contexts and operators."""
    kind = node.__class__
    names = _fields.get(kind)
    if names is None:
        names = _fields[kind] = () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _NO_NODES)
    found: list[ast.AST] = []
    for name in names:
        child = getattr(node, name, None)
        if child.__class__ is list:
            found += [item for item in child if isinstance(item, ast.AST)]
        elif isinstance(child, ast.AST):
            found.append(child)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and everything below it, nearest first, as `ast.walk`, but no contexts and operators."""
    level = [node]
    while level:
        yield from level
        level = [below for above in level for below in children(above)]

"""Functions of which a file holds several, one for each version of a library: only the first is what a current installation runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint.guards import text_of
from launchlint.rule import FunctionNode
from launchlint.trees import walk

_LIBRARY = re.compile(r"^_?(HAVE|HAS)_[A-Z0-9_]+$|^_?is_\w+_(available|min_version)$|version", re.I)
_MISSING = ("ImportError", "ModuleNotFoundError")


def fallback_definitions(tree: ast.Module) -> dict[int, str]:
    """The lines on which such a function starts, and what has to be missing for it."""
    found: dict[int, str] = {}
    for node in tree.body:
        match node:
            case ast.If() if library := _library(node.test):
                first = {function.name for function in _functions(node.body)}
                later = (function for function in _functions(node.orelse) if function.name in first)
                found |= {function.lineno: f"for installations without `{library}`" for function in later}
            case ast.Try(handlers=handlers):
                for handler in handlers:
                    if any(isinstance(item, ast.Name) and item.id in _MISSING for item in walk(handler.type or handler)):
                        found |= {function.lineno: "for installations without a library" for function in _functions(handler.body)}
    return found


def _library(test: ast.expr) -> str:
    """What a test asks for, if that is a library or its version."""
    names = (item.id for item in walk(test) if isinstance(item, ast.Name))
    return text_of(test) if any(_LIBRARY.search(name) for name in names) else ""


def _functions(body: list[ast.stmt]) -> Iterator[FunctionNode]:
    """The functions that a branch defines, and those in the branches behind `elif`."""
    pending = body[::-1]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, ast.If):
            pending += [*node.body, *node.orelse][::-1]

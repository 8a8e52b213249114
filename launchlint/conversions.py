"""`if not torch.is_tensor(x): x = torch.tensor([x], device=...)`: a convenience for callers that have no tensor, which a step has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.guards import Guard
from launchlint.names import dotted
from launchlint.rule import Frame
from launchlint.trees import walk


def guards_of_conversions(node: ast.AST, frame: Frame | None) -> Iterator[Guard]:
    """The tests around an upload that ask whether what is uploaded is a tensor already."""
    while frame is not None:
        asked = _asked(frame.node.test, frame.part) if isinstance(frame.node, (ast.If, ast.IfExp)) else ""
        if asked and any(isinstance(part, (ast.Name, ast.Attribute)) and dotted(part) == asked for part in walk(node)):
            yield Guard("lower", f"only where `{asked}` comes in as no tensor")
        frame = frame.outer


def _asked(test: ast.expr, part: str) -> str:
    """The name of which a branch knows that it holds no tensor."""
    negated = part == "orelse"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, kind]) if dotted(kind).rpartition(".")[2] == "Tensor" and negated:
            return dotted(asked)
        case ast.Call(func=function, args=[asked]) if dotted(function).rpartition(".")[2] == "is_tensor" and negated:
            return dotted(asked)
    return ""

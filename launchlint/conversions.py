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
        if asked and _uploads(node, asked):
            yield Guard("lower", f"only where `{asked}` comes in as no tensor")
        frame = frame.outer


def guards_of_conversions_before(node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef | None, line: int) -> Iterator[Guard]:
    """What the early returns above a line say: `if torch.is_tensor(x): return x.to(device)`."""
    for statement in function.body if function is not None else []:
        if (statement.end_lineno or statement.lineno) >= line:
            return
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return) and not statement.orelse:
            asked = _asked(statement.test, "orelse")
            if asked and _uploads(node, asked):
                yield Guard("lower", f"only where `{asked}` comes in as no tensor")


def _uploads(node: ast.AST, name: str) -> bool:
    """True where a name is part of what is uploaded; where it goes is another matter."""
    data = node.args[0] if isinstance(node, ast.Call) and node.args else node
    return any(isinstance(part, (ast.Name, ast.Attribute)) and dotted(part) == name for part in walk(data))


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

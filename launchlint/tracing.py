"""Branches for a size that is no number: only tracing gives such sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.guards import Guard
from launchlint.names import last_name
from launchlint.rule import Frame, FunctionNode
from launchlint.trees import walk


def guards_of_tracing(frame: Frame | None, function: FunctionNode | None) -> Iterator[Guard]:
    """The other way of `fill(d) if isinstance(d, int) else torch.tensor(d)`, where `d` is part of a shape."""
    while frame is not None and function is not None:
        match frame:
            case Frame(ast.If(test=test) | ast.IfExp(test=test), "body" | "orelse" as part):
                if (size := _no_number(test, part)) and _is_size(size, function):
                    yield Guard("mute", f"only while it is traced, since `{size}` is a size")
        frame = frame.outer


def _no_number(test: ast.expr, part: str) -> str:
    """The name of which a branch knows that it is no number."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    match test.operand if isinstance(test, ast.UnaryOp) else test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), ast.Name(id="int")]) if negated is (part == "body"):
            return name
    return ""


def _is_size(name: str, function: FunctionNode) -> bool:
    """True where the function binds a name to a part of a shape, and to nothing else."""
    bound = [node for node in walk(function) if isinstance(node, (ast.Assign, ast.AnnAssign))]
    values = [node.value for node in bound if any(_binds(target, name) for target in _targets(node))]
    return bool(values) and all(value is not None and _is_of_shape(value) for value in values)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _binds(target: ast.expr, name: str) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _is_of_shape(value: ast.expr) -> bool:
    """`x.shape[-1]`, `x.shape`, `x.size(0)`."""
    if isinstance(value, ast.Subscript):
        value = value.value
    return last_name(value.func if isinstance(value, ast.Call) else value) in ("shape", "size")

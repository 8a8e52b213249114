"""`if not torch.is_tensor(x): x = torch.tensor([x], device=...)`: a convenience for callers that have no tensor, which a step has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.guards import Guard
from launchlint.names import dotted
from launchlint.rule import Frame, FunctionNode
from launchlint.trees import walk


def guards_of_conversions(node: ast.AST, frame: Frame | None, function: FunctionNode | None, line: int) -> Iterator[Guard]:
    """The tests that ask whether what is uploaded is a tensor already: those around an upload, and the early returns above it, such as
    `if torch.is_tensor(x): return x.to(device)`."""
    for asked in (*_asked_around(frame, function), *_asked_before(function, line)):
        if _uploads(node, asked):
            yield Guard("lower", f"only where `{asked}` comes in as no tensor")


def _asked_around(frame: Frame | None, function: FunctionNode | None) -> Iterator[str]:
    while frame is not None:
        if isinstance(frame.node, (ast.If, ast.IfExp)):
            asked = _asked(frame.node.test, frame.part) or _asked_for_list(frame.node.test, frame.part, function)
            if asked:
                yield asked
        frame = frame.outer


def _asked_before(function: FunctionNode | None, line: int) -> Iterator[str]:
    for statement in function.body if function is not None else []:
        if (statement.end_lineno or statement.lineno) >= line:
            return
        match statement:
            case ast.If(test=test, body=[*_, ast.Return()], orelse=[]) if asked := _asked(test, "orelse"):
                yield asked


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


def _asked_for_list(test: ast.expr, part: str, function: FunctionNode | None) -> str:
    """The name of which a branch knows that it holds a list, of a parameter that is announced as a tensor or a list. One that may be
    a text as well is what requests bring, and they bring lists."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=asked), kind]) if part == "body" and _only_lists(kind):
            arguments = function.args if function is not None else None
            for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if arguments is not None else ():
                if item.arg == asked and item.annotation is not None:
                    names = {dotted(each).rpartition(".")[2] for each in _names(item.annotation)}
                    return asked if "Tensor" in names and "str" not in names else ""
    return ""


def _names(annotation: ast.expr) -> Iterator[ast.expr]:
    return (node for node in walk(annotation) if isinstance(node, (ast.Name, ast.Attribute)))


def _only_lists(kind: ast.expr) -> bool:
    """`(list, tuple)`: what a caller may give in place of a tensor; a number comes as often as not from the configuration."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(dotted(part) in ("list", "tuple") for part in kinds)

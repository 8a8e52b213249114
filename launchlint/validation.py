"""Branches of a training step that run in validation only: what is measured there is copied to the host on purpose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint.guards import Guard
from launchlint.names import last_name
from launchlint.rule import Frame, FunctionNode
from launchlint.trees import walk

_LOSS = re.compile(r"(^|_)(loss(es)?|criterion)(_|$)", re.I)
_TARGETS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def guards_of_validation(frame: Frame | None, function: FunctionNode | None) -> Iterator[Guard]:
    """`if not self.training: errors = count(tokens.cpu())` in a function that has computed the loss by then.

    A model that computes its loss in the branch for training alone answers requests in the other one, which stays as hot as it was.
    """
    while frame is not None and function is not None:
        match frame:
            case Frame(ast.If(test=test, lineno=line), "body" | "orelse" as part, outer):
                if _is_left_when_training(test, part) and _learns(outer, function, line):
                    yield Guard("lower", "only in validation, behind the loss of a training step")
        frame = frame.outer


def _is_left_when_training(test: ast.expr, part: str) -> bool:
    """True if a branch does not run when `self.training` holds."""
    pending = [(test, part == "body")]
    while pending:
        asked, wanted = pending.pop()
        match asked:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append((operand, not wanted))
            case ast.BoolOp(op=operator, values=values) if isinstance(operator, ast.And if wanted else ast.Or):
                pending += [(value, wanted) for value in values]
            case ast.Attribute(value=ast.Name(id="self"), attr="training") if not wanted:
                return True
    return False


def _learns(outer: Frame | None, function: FunctionNode, line: int) -> bool:
    """True in a function that is named after a loss, and if a statement above a line, on every way to it, computes one."""
    if _LOSS.search(function.name):
        return True
    blocks = [function.body]
    while outer is not None:
        block = getattr(outer.node, outer.part, None)
        blocks += [block] if isinstance(block, list) else []
        outer = outer.outer
    return any(_computes_loss(statement) for block in blocks for statement in block if statement.lineno < line)


def _computes_loss(statement: ast.stmt) -> bool:
    if not isinstance(statement, (*_TARGETS, ast.Expr)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(statement, _TARGETS) else []
    calls = [node for node in walk(statement.value) if isinstance(node, ast.Call)]
    named = [name for target in targets for part in walk(target) if (name := last_name(part))]
    return bool(calls) and any(_LOSS.search(name) for name in (*named, *(last_name(call.func) for call in calls)))

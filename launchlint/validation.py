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
        if isinstance(frame.node, ast.If) and frame.part in ("body", "orelse") and _is_left_when_training(frame.node.test, frame.part):
            if _LOSS.search(function.name) or _has_loss_before(frame, function):
                yield Guard("lower", "only in validation, behind the loss of a training step")
        frame = frame.outer


def _is_left_when_training(test: ast.expr, part: str) -> bool:
    """True if a branch does not run when `self.training` holds."""
    wanted = part == "body"
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if wanted else ast.Or):
        return any(_is_left_when_training(operand, "body" if wanted else "orelse") for operand in test.values)
    return not wanted and isinstance(test, ast.Attribute) and test.attr == "training" and last_name(test.value) == "self"


def _has_loss_before(frame: Frame, function: FunctionNode) -> bool:
    """True if a statement ahead of the branch, on every way to it, computes a loss."""
    assert isinstance(frame.node, ast.If)
    blocks, outer = [function.body], frame.outer
    while outer is not None:
        block = getattr(outer.node, outer.part, None)
        blocks += [block] if isinstance(block, list) else []
        outer = outer.outer
    return any(_computes_loss(statement) for block in blocks for statement in block if statement.lineno < frame.node.lineno)


def _computes_loss(statement: ast.stmt) -> bool:
    if not isinstance(statement, (*_TARGETS, ast.Expr)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(statement, _TARGETS) else []
    calls = [node for node in walk(statement.value) if isinstance(node, ast.Call)]
    named = [name for target in targets for part in walk(target) if (name := last_name(part))]
    return bool(calls) and any(_LOSS.search(name) for name in (*named, *(last_name(call.func) for call in calls)))

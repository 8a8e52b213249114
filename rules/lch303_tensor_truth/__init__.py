"""LCH303: a branch on a value that the device holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH303",
        name="tensor-truth",
        summary="a branch asks the device for an answer, and the host waits for it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium", unknown="- - - low"),
    )
)


@rule.on(ast.If, ast.While, ast.IfExp, ast.Assert)
def check_test(node: ast.If | ast.While | ast.IfExp | ast.Assert, ctx: Context) -> Iterator[Outcome]:
    """`if x.any():`, `while t:`, `assert (x > 0).all()`, with `and`, `or` and `not`."""
    pending = [node.test]
    while pending:
        test = pending.pop()
        match test:
            case ast.BoolOp(values=values):
                pending.extend(values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append(operand)
            case _:
                yield from _judge(test, ctx)


def _judge(test: ast.expr, ctx: Context) -> Iterator[Outcome]:
    value = ctx.value(test)
    asks = _is_any_or_all(test) or _compares_reduction(test)
    if value.is_tensor:
        if not (value.boolean or asks or isinstance(test, ast.Compare)):
            return
        sure = asks or isinstance(test, ast.Compare) or value.scalar
        level = value.device_level() if sure else min(value.device_level(), Level.UNKNOWN)
    elif asks and value.is_unknown:
        level = Level.UNKNOWN
    else:
        if asks:
            yield Silence(test, f"it tests a {value}")
        return
    if level is Level.NO:
        yield Silence(test, f"it tests a {value}")
        return
    yield Hit(test, f"the branch reads its answer from the device, and the host waits for everything queued before it{reads.advice(test, ctx)}", level)


def _is_any_or_all(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in ("any", "all", "equal", "allclose", "is_nonzero")


def _compares_reduction(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare):
        return False
    return any(reads.is_reduction(side) and not _is_plain_function(side) for side in (test.left, *test.comparators))


def _is_plain_function(side: ast.expr) -> bool:
    """`np.max(x)` and `torch.max(x)`: a function of a module and not a method."""
    return isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and isinstance(side.func.value, ast.Name) and side.func.value.id in ("np", "math")

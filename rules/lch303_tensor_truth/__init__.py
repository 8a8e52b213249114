"""LCH303: a branch on a value that the device holds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from launchlint import loops, reads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH303",
        name="tensor-truth",
        summary="a branch asks the device for an answer, and the host waits for it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - low medium", unknown="- - - low"),
        fix=Applicability.SAFE,
    )
)

_ASKS = frozenset({"any", "all"})
_MESSAGE = "the branch reads its answer from the device, and the host waits for everything queued before it"
_IDENTITY = frozenset({ast.Is, ast.IsNot})
_Test = ast.If | ast.While | ast.IfExp | ast.Assert


def may_be_asked(node: _Test | ast.BoolOp) -> bool:
    """False where the test is made of `is`, `isinstance(...)` and their kind only, which is most tests: no tensor is asked there."""
    pending = [node if isinstance(node, ast.BoolOp) else node.test]
    while pending:
        test = pending.pop()
        match test:
            case ast.BoolOp(values=values):
                pending += values
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append(operand)
            case ast.Constant() | ast.Call(func=ast.Name(id="isinstance" | "hasattr" | "callable" | "issubclass")):
                pass
            case ast.Compare(left=left, ops=ops, comparators=sides) if all(op.__class__ in _IDENTITY for op in ops):
                if any(side.__class__ is ast.Call for side in (left, *sides)):
                    return True
            case _:
                return True
    return False


@rule.on(ast.If, ast.While, ast.IfExp, ast.Assert, when=may_be_asked)
def check_test(node: _Test, ctx: Context) -> Iterator[Outcome]:
    """`if x.any():`, `while t:`, `assert (x > 0).all()`, with `and`, `or` and `not`."""
    for test in _asked(node.test):
        for outcome in _judge(test, ctx):
            if isinstance(outcome, Hit) and isinstance(node, ast.If):
                yield Hit(outcome.node, outcome.message, outcome.level, outcome.related, _fix_of(node, ctx), outcome.group)
            else:
                yield outcome


@rule.on(ast.BoolOp, when=may_be_asked)
def check_operands(node: ast.BoolOp, ctx: Context) -> Iterator[Outcome]:
    """`flag = x.any() or y`: all operands but the last are asked, wherever the expression stands."""
    for value in node.values[:-1]:
        for test in _asked(value):
            yield from _judge(test, ctx)


@rule.on(ast.UnaryOp, when=lambda node: node.op.__class__ is ast.Not)
def check_not(node: ast.UnaryOp, ctx: Context) -> Iterator[Outcome]:
    """`done = not unfinished.any()`."""
    for test in _asked(node.operand):
        yield from _judge(test, ctx)


@rule.on(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
def check_condition(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, ctx: Context) -> Iterator[Outcome]:
    """`[row for row in rows if mask[row]]`."""
    for generator in node.generators:
        for condition in generator.ifs:
            for test in _asked(condition):
                yield from _judge(test, ctx)


@rule.on(ast.Assign, when=lambda node: node.value.__class__ is ast.Compare and node.targets[0].__class__ is ast.Name)
def check_flag(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`finished = unfinished.max() == 0` in a loop whose condition hands `finished` on: it is asked at every turn."""
    flag = node.targets[0]
    value = ctx.value(node.value)
    if not isinstance(flag, ast.Name) or not value.is_tensor or not value.scalar:
        return
    for loop in ctx.loops():
        if isinstance(loop, ast.While) and loops.mentions(loop.test, {flag.id}):
            level = value.device_level()
            if level > Level.NO:
                yield Hit(
                    node.value,
                    f"the loop asks the device for `{flag.id}` at every turn, and the host waits for the answer",
                    level,
                    ((loop, "the loop"),),
                )
            return


def _asked(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a test whose truth is asked for."""
    pending = [test]
    while pending:
        current = pending.pop()
        match current:
            case ast.BoolOp(values=values):
                pending.extend(reversed(values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append(operand)
            case _:
                yield current


def _judge(test: ast.expr, ctx: Context) -> Iterator[Outcome]:
    value = ctx.value(test)
    asks = _is_any_or_all(test) or _compares_reduction(test)
    if reads.compares_enumeration(test) or _compares_text(test):
        yield Silence(test, "it compares names, not tensors")
        return
    compared = _compared(test, ctx)
    if compared is not None:
        yield reads.outcome(test, compared, reads.level(compared, ctx), _MESSAGE, ctx)
    elif value.is_tensor:
        compares = isinstance(test, ast.Compare)
        if not (value.boolean or asks or compares or value.scalar):
            return
        level = reads.level(test, ctx)
        if not asks and (value.by_name or not (compares or value.scalar)):
            level = min(level, Level.UNKNOWN)
        yield reads.outcome(test, test, level, _MESSAGE, ctx)
    elif asks and value.is_unknown:
        level = Level.NO if reads.says_host(test, ctx) else Level.UNKNOWN
        yield reads.outcome(test, test, level, _MESSAGE, ctx)
    elif asks:
        yield Silence(test, f"it tests a {value}")


def _compared(test: ast.expr, ctx: Context) -> ast.expr | None:
    """The tensor that `torch.equal(x, y)`, `torch.allclose(x, y)` and `x.is_nonzero()` look at; their result is a Python truth."""
    match test:
        case ast.Call(func=ast.Attribute(attr="is_nonzero")):
            return reads.operand(test, ctx)
        case ast.Call(func=function, args=[first, *_]) if ctx.name(function) in ("torch.equal", "torch.allclose"):
            return first
        case ast.Call(func=ast.Attribute(value=first, attr="equal" | "allclose")) if ctx.value(first).is_tensor:
            return first
    return None


def _is_any_or_all(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _ASKS


def _compares_reduction(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare):
        return False
    return any(reads.is_reduction(side) and not _is_plain_function(side) for side in (test.left, *test.comparators))


def _is_plain_function(side: ast.expr) -> bool:
    """`np.max(x)`: a function of a module and not a method."""
    return (
        isinstance(side, ast.Call)
        and isinstance(side.func, ast.Attribute)
        and isinstance(side.func.value, ast.Name)
        and side.func.value.id in ("np", "math")
    )


def _compares_text(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (test.left, *test.comparators)
    )


def _fix_of(node: ast.If, ctx: Context) -> Callable[[], Fix | None]:
    return lambda: _fix(node, ctx)


def _fix(node: ast.If, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, ctx)

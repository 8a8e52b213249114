"""LCH307: a read back in every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops, reads, uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH307",
        name="read-per-element",
        summary="every turn of a loop reads from the device, and the host waits once per turn",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - medium medium", unknown="- - - low"),
        fix=Applicability.UNSAFE,
    )
)

_GATHERED = "a figure that is only logged can stay on the device until it is"  # it comes out of a step of training


@rule.on(ast.Call, names=("item", "tolist", "cpu", "numpy"))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x[i].item()`, `x[i].tolist()`, `row.cpu()` in a loop."""
    match node.func:
        case ast.Attribute(value=read, attr=method) if ctx.loops() and not reads.is_foreign(node, ctx) and not reads.is_chained(read):
            pass
        case _:
            return
    if node.args and method == "item":
        return
    level = reads.level(read, ctx)
    if method == "cpu" and ctx.value(read).is_unknown and not reads.says_host(read, ctx):
        level = Level.INFERRED
    if method == "numpy" and level < Level.KNOWN:
        yield Silence(node, "a bare .numpy() works on host tensors only")
        return
    yield _outcome(node, read, level, ctx)


@rule.on(ast.Call, names=("to",))
def check_to(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x[i].to("cpu")` in a loop."""
    match node.func:
        case ast.Attribute(value=read) if ctx.loops() and not uploads.is_non_blocking(node, ctx) and not reads.is_chained(read):
            pass
        case _:
            return
    if uploads.destination(node, ctx) is not Device.HOST or reads.follows_tensor(node, ctx):
        return
    value = ctx.value(read)
    unknown = Level.INFERRED if value.kind is Kind.UNKNOWN and not reads.says_host(read, ctx) else Level.UNKNOWN
    yield _outcome(node, read, reads.level(read, ctx, unknown), ctx)


@rule.on(ast.Call, names=("int", "float", "bool", "complex"))
def check_cast(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`int(x[i])` in a loop."""
    match node:
        case ast.Call(func=ast.Name(), args=[read], keywords=[]) if ctx.loops() and ctx.value(read).is_tensor:
            sure = ctx.value(read).scalar or reads.is_reduction(read) or isinstance(read, (ast.Subscript, ast.Name))
            level = reads.level(read, ctx)
            yield _outcome(node, read, level if sure else min(level, Level.UNKNOWN), ctx)


def _outcome(node: ast.Call, read: ast.expr, level: Level, ctx: Context) -> Outcome:
    loop = ctx.loops()[0]
    turn = loops.describe(loop, ctx)
    cure = _GATHERED if any(last_name(call.func) == "backward" for call in loops.calls_in(loop)) else "one read before the loop waits once"
    message = f"the host waits for the device once for each {turn}; {cure}"
    outcome = reads.outcome(node, read, level, message, ctx, ((loop, "the loop"),))
    if isinstance(outcome, Hit):
        return Hit(node, outcome.message, outcome.level, outcome.related, lambda: _fix(node, read, ctx))
    return outcome


def _fix(node: ast.Call, read: ast.expr, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, read, ctx)

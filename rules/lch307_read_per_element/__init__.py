"""LCH307: a read back in every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops, reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH307",
        name="read-per-element",
        summary="every turn of a loop reads from the device, and the host waits once per turn",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium", unknown="- - - low"),
    )
)


@rule.on(ast.Call, names=("item", "tolist", "cpu", "numpy"))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x[i].item()`, `x[i].tolist()`, `row.cpu()` in a loop."""
    around = ctx.loops()
    if not around or not isinstance(node.func, ast.Attribute) or reads.is_foreign(node, ctx):
        return
    if node.args and node.func.attr == "item":
        return
    read = node.func.value
    if _is_chained(read):
        return
    value = ctx.value(read)
    level = value.device_level()
    if node.func.attr == "cpu" and value.is_unknown:
        level = Level.INFERRED
    if node.func.attr == "numpy" and level < Level.KNOWN:
        yield Silence(node, "a bare .numpy() works on host tensors only")
        return
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, read, level, around[0], ctx)


@rule.on(ast.Call, names=("to",))
def check_to(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x[i].to("cpu")` in a loop."""
    around = ctx.loops()
    if not around or not isinstance(node.func, ast.Attribute) or uploads.is_non_blocking(node, ctx):
        return
    if uploads.destination(node, ctx) is not Device.HOST:
        return
    value = ctx.value(node.func.value)
    level = value.device_level(Level.INFERRED if value.kind is Kind.UNKNOWN else Level.UNKNOWN)
    if level > Level.NO:
        yield _hit(node, node.func.value, level, around[0], ctx)


@rule.on(ast.Call, names=("int", "float", "bool"))
def check_cast(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`int(x[i])` in a loop."""
    around = ctx.loops()
    if not around or not isinstance(node.func, ast.Name) or len(node.args) != 1:
        return
    read = node.args[0]
    value = ctx.value(read)
    if not value.is_tensor:
        return
    sure = value.scalar or reads.is_reduction(read) or isinstance(read, (ast.Subscript, ast.Name))
    level = value.device_level() if sure else min(value.device_level(), Level.UNKNOWN)
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, read, level, around[0], ctx)


def _is_chained(read: ast.expr) -> bool:
    while isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
        if read.func.attr in ("cpu", "tolist", "numpy"):
            return True
        read = read.func.value
    return False


def _hit(node: ast.Call, read: ast.expr, level: Level, loop: Loop, ctx: Context) -> Hit:
    return Hit(
        node,
        f"the host waits for the device once for each {loops.describe(loop, ctx)}; one read before the loop waits once{reads.advice(read, ctx)}",
        level,
        related=((loop, "the loop"),),
    )

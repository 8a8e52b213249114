"""LCH301: one number read back from the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, repeats_list
from launchlint.values import Kind

rule = Rule(
    Meta(
        code="LCH301",
        name="scalar-read",
        summary="one number is read back from the device, and the host waits for everything queued before it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium", unknown="- - - low"),
    )
)


@rule.on(ast.Call, names=("item",))
def check_item(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.item()`."""
    if not isinstance(node.func, ast.Attribute) or node.args or reads.in_loop(ctx):
        return
    value = ctx.value(node.func.value)
    level = value.device_level()
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, node.func.value, level, ctx)


@rule.on(ast.Call, names=("int", "float", "bool", "complex"))
def check_cast(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`int(x.max())`, `float(loss)`."""
    if not isinstance(node.func, ast.Name) or len(node.args) != 1 or reads.in_loop(ctx):
        return
    yield from judge_cast(node, node.args[0], ctx)


def judge_cast(node: ast.Call, read: ast.expr, ctx: Context) -> Iterator[Outcome]:
    """A cast reads if its operand is a tensor; without a reduction or a scalar that needs positive evidence."""
    if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) and read.func.attr in ("item", "numel", "size", "dim", "tolist"):
        return
    value = ctx.value(read)
    if value.is_tensor:
        sure = value.scalar or reads.is_reduction(read) or isinstance(read, ast.Subscript)
        level = value.device_level() if sure else min(value.device_level(), Level.UNKNOWN)
    elif value.is_unknown and reads.is_reduction(read) and value.kind is Kind.UNKNOWN:
        level = Level.UNKNOWN
    else:
        return
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, read, level, ctx)


@rule.on(ast.BinOp, when=repeats_list)
def check_list_times_tensor(node: ast.BinOp, ctx: Context) -> Iterator[Outcome]:
    """`[x] * n` with a tensor: the length is read back."""
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        value = ctx.value(node.right)
        if value.is_tensor and value.device_level() > Level.NO:
            yield _hit(node, node.right, value.device_level(), ctx)


def _hit(node: ast.expr, read: ast.expr, level: Level, ctx: Context) -> Hit:
    return Hit(node, f"the host reads one number back and waits for everything queued before it{reads.advice(read, ctx)}", level)

"""LCH401: an asynchronous copy to the host whose result is read before it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH401",
        name="unwaited-download",
        summary="the result of an asynchronous copy to the host is read before anything waits for it: the values may be old",
        group="hazards",
        since="0.1.0",
        policy=Policy.grid(known="high high high high", inferred="medium medium medium medium"),
    )
)

_MESSAGE = "the copy to the host may still be in flight when its result is read here: the values are those that the memory held before"


@rule.on(ast.Call, names=("to",))
def check_to(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`y = x.to("cpu", non_blocking=True)`, then `y.tolist()`."""
    match node.func:
        case ast.Attribute(value=source) if uploads.is_non_blocking(node, ctx) and uploads.destination(node, ctx) is Device.HOST:
            level = _level(source, node, ctx)
        case _:
            return
    if level is Level.NO:
        yield Silence(node, f"it copies a {ctx.value(source)}")
        return
    chained = _chained_read(node, ctx)
    if chained is not None:
        yield Hit(chained, _MESSAGE, level, ((node, "the copy starts here"),))
        return
    match ctx.statement:
        case ast.Assign(targets=[(ast.Name() | ast.Attribute()) as target], value=value) if value is node and dotted(target):
            yield from _first_read(node, dotted(target), level, ctx)


@rule.on(ast.Call, names=("copy_",))
def check_copy(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`host.copy_(x, non_blocking=True)`, then `host.numpy()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=target), args=[source, *_]) if uploads.is_non_blocking(node, ctx):
            pass
        case _:
            return
    base = reads.base_of(target, ctx)
    if base is None or not (ctx.value(target).on_host or reads.says_host(target, ctx)):
        return
    level = _level(source, node, ctx)
    if level is not Level.NO:
        yield from _first_read(node, dotted(base), level, ctx)


def _level(source: ast.expr, node: ast.Call, ctx: Context) -> Level:
    if reads.follows_tensor(node, ctx) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        return Level.NO
    return reads.level(source, ctx, Level.NO if reads.says_host(source, ctx) else Level.INFERRED)


def _chained_read(node: ast.Call, ctx: Context) -> ast.expr | None:
    """`.tolist()` of `x.to("cpu", non_blocking=True).tolist()`, `int(...)` around it."""
    parent = ctx.parent(node)
    match parent:
        case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[inner]) if inner is node:
            return parent
        case ast.Attribute(value=inner, attr=method) if inner is node and method in ("tolist", "numpy", "item"):
            call = ctx.parent(parent)
            return call if isinstance(call, ast.Call) and call.func is parent and method != "numpy" else None
    return None


def _first_read(node: ast.Call, name: str, level: Level, ctx: Context) -> Iterator[Outcome]:
    from . import after

    found = after.first_read(ctx, name)
    match found:
        case after.Read(where, certain):
            yield Hit(where, _MESSAGE, level if certain else min(level, Level.INFERRED), ((node, "the copy starts here"),))
        case after.Wait(reason):
            yield Silence(node, reason)

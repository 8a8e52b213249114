"""LCH102: one tensor-valued store per turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence, stores_item
from launchlint.values import Kind

rule = Rule(
    Meta(
        code="LCH102",
        name="element-store-loop",
        summary="a loop stores one slice or row of a tensor per turn, a few kernels each",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - low medium"),
    )
)


@rule.on(ast.Assign, when=stores_item)
def check_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`out[i] = f(x[i])`."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            stored = ctx.value(value)
            if stored.kind is Kind.SCALAR or (stored.is_tensor and stored.scalar) or ctx.value(target.slice).boolean:
                return  # a number is LCH101's, a mask LCH304's
            if stored.on_host:
                return  # a tensor that is made on the host is stored on the host, or its upload is what costs
            yield from _judge(node, target, ctx)


@rule.on(ast.AugAssign)
def check_update(node: ast.AugAssign, ctx: Context) -> Iterator[Outcome]:
    """`out[i] += f(x[i])`."""
    if isinstance(node.target, ast.Subscript) and ctx.loops():
        yield from _judge(node, node.target, ctx)


@rule.on(ast.Call, names=("copy_",))
def check_copy(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`dst[a:b].copy_(src[c:d])`."""
    match node.func:
        case ast.Attribute(value=ast.Subscript() as target) if ctx.loops():
            if node.args and ctx.value(node.args[0]).on_host:
                return  # an upload per turn is LCH202's or LCH203's
            if node.args and _walks_itself(node.args[0], ctx):
                yield Silence(node, "each turn copies a whole tensor of its own, without a temporary")
                return
            yield from _judge(node, target, ctx)


def _judge(node: ast.Assign | ast.AugAssign | ast.Call, target: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    loop = _loop_that_moves(target, ctx)
    if loop is None:
        return
    base = ctx.value(target.value)
    level = base.device_level(Level.INFERRED if isinstance(node, ast.Call) or _takes_tensor(node, target, ctx) else Level.NO)
    if level is Level.NO:
        if base.is_tensor:
            yield Silence(node, f"`{ctx.text(target.value)}` is a {base}")
        return
    if loops.has_few_turns(loop, ctx) or loops.walks_configuration(loop) or loops.walks_what_is_kept(loop, ctx):
        yield Silence(node, "the loop makes a few turns, or as many as the configuration says")
        return
    if loops.walks_chunks(loop):
        yield Silence(node, "the loop walks chunks, which bounds memory")
        return
    if isinstance(loop, (ast.For, ast.While)) and loops.carries_tensor(loop, ctx):
        yield Silence(node, "each turn needs what the turn before made, so that the stores cannot be joined")
        return
    if loops.reads_what_it_stored(target, loop):
        yield Silence(node, "each turn computes with what the turn before stored, so that the stores cannot be joined")
        return
    if isinstance(node, ast.AugAssign) and _adds_tile(target):
        yield Silence(node, "each turn adds a tile of an image, and tiles overlap")
        return
    if loops.walks_results(loop, ctx):
        yield Silence(node, "the loop walks what a heavy call made for each turn, which outweighs the small launches")
        return
    if loops.heavy_call(loop, ctx) is not None:
        yield Silence(node, "a heavy call in the same loop outweighs the small launches")
        return
    yield Hit(node, f"the store launches at least one kernel for each {loops.describe(loop, ctx)}", level, related=((loop, "the loop"),))


def _adds_tile(target: ast.Subscript) -> bool:
    """`frame[:, y : y + height, x : x + width] += tile * window`"""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
    bounded = [part for part in parts if isinstance(part, ast.Slice) and part.lower is not None and part.upper is not None]
    return len(bounded) > 1


def _walks_itself(source: ast.expr, ctx: Context) -> bool:
    """`for part in parts: out[a:b].copy_(part, non_blocking=True)`: separate tensors, maybe from the host, gathered into one buffer."""
    call = ctx.statement.value if isinstance(ctx.statement, ast.Expr) else None
    if not isinstance(source, ast.Name) or not isinstance(call, ast.Call) or ctx.keyword(call, "non_blocking") is None:
        return False
    return any(isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and loop.target.id == source.id for loop in ctx.loops()[:1])


def _takes_tensor(node: ast.Assign | ast.AugAssign | ast.Call, target: ast.Subscript, ctx: Context) -> bool:
    """`x[a:b] = tensor`: nobody stores a tensor into a slice of a list."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return isinstance(node, ast.Assign) and any(isinstance(part, ast.Slice) for part in parts) and ctx.value(node.value).is_tensor


def _loop_that_moves(target: ast.Subscript, ctx: Context) -> Loop | None:
    for loop in ctx.loops():
        if loops.mentions(target.slice, loops.turned_names(loop)):
            return loop
    return None

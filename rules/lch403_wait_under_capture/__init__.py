"""LCH403: a wait, a copy from pageable memory or a shape of data inside a graph capture."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, may_index_by_data
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH403",
        name="wait-under-capture",
        summary="code that is captured into a graph waits for the device or copies from pageable memory, which capture forbids",
        group="hazards",
        since="0.1.0",
        policy=Policy.grid(known="high high high high", inferred="medium medium medium medium"),
        preview=True,
    )
)

_READS = ("item", "tolist", "cpu", "numpy", "int", "float", "bool")
_SHAPES = ("nonzero", "masked_select", "unique", "unique_consecutive", "bincount", "argwhere", "repeat_interleave", "where")
_READ = "reading from the device while a graph is captured raises an error, and a replay would not read again"
_SHAPE = "a shape that depends on the data cannot be captured: the host would have to wait for it"
_UPLOAD = "a copy from pageable memory waits, which capture forbids; a replay would copy whatever that memory holds by then"
_WAIT = "waiting for the device while a graph is captured raises an error"


@rule.on(ast.Call, names=_READS)
def check_read(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.item()`, `x.cpu()`, `int(x.max())` under capture."""
    if not reads.under_capture(ctx):
        return
    match node:
        case ast.Call(func=ast.Name(), args=[ast.Call() as read]) if reads.is_reduction(read):
            pass
        case ast.Call(func=ast.Attribute(value=read)) if not reads.is_foreign(node, ctx) and not reads.is_chained(read):
            pass
        case _:
            return
    yield _judge(node, read, _READ, ctx)


@rule.on(ast.Call, names=_SHAPES)
def check_shape(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.nonzero()`, `torch.where(mask)` under capture."""
    if not reads.under_capture(ctx) or reads.is_foreign(node, ctx) or ctx.keyword(node, "output_size") is not None:
        return
    read = reads.operand(node, ctx)
    if read is None or (ctx.name(node.func) == "torch.where" and len(node.args) != 1) or (not ctx.name(node.func) and _is_where(node)):
        return
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "repeat_interleave"
        and not any(ctx.value(item).is_tensor for item in node.args[-1:])
    ):
        return
    yield _judge(node, read, _SHAPE, ctx)


def _is_where(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "where"


@rule.on(ast.Subscript, when=may_index_by_data)
def check_mask(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`x[mask]` under capture."""
    if (
        isinstance(node.ctx, ast.Load)
        and reads.makes_mask(node.slice, ctx)
        and reads.under_capture(ctx)
        and not ctx.value(node.value).on_host
    ):
        yield _judge(node, node.slice, _SHAPE, ctx)


@rule.on(ast.If, ast.While)
def check_branch(node: ast.If | ast.While, ctx: Context) -> Iterator[Outcome]:
    """`if x.any():` under capture."""
    match node.test:
        case ast.Call(func=ast.Attribute(attr="any" | "all")) as test if reads.under_capture(ctx):
            yield _judge(test, test, _READ, ctx)


@rule.on(ast.Call, names=(*uploads.CONSTRUCTORS, "to", "cuda", "copy_"))
def check_upload(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.tensor(rows, device=d)`, `host.to(d)` under capture."""
    if not reads.under_capture(ctx):
        return
    if uploads.constructor(node, ctx):
        data, goes = uploads.data_of(node), uploads.goes_to(node, ctx)
        if data is None or goes in (None, Device.HOST):
            return
        level = uploads.host_level(data, ctx.value(data), ctx)
    else:
        source = uploads.copied_from(node, ctx)
        level = uploads.pageable_level(ctx.value(source)) if source is not None else Level.NO
    if level >= Level.INFERRED:
        yield Hit(node, _UPLOAD, level)


@rule.on(ast.Call, names=("synchronize",))
def check_wait(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.cuda.synchronize()` under capture."""
    if reads.under_capture(ctx):
        yield Hit(node, _WAIT, Level.KNOWN if ctx.name(node.func).startswith("torch.") else Level.INFERRED)


def _judge(node: ast.expr, read: ast.expr, message: str, ctx: Context) -> Outcome:
    level = reads.level(read, ctx)
    if level is Level.NO:
        return Silence(node, f"it reads a {ctx.value(read)}")
    return Hit(node, message, level)

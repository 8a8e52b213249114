"""LCH202: an asynchronous copy asked for from memory that is not pinned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy, Span
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device, Kind, Value

rule = Rule(
    Meta(
        code="LCH202",
        name="unpinned-non-blocking",
        summary="a non_blocking copy from pageable memory, which is not guaranteed to be asynchronous",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- low medium medium"),
        fix=Applicability.UNSAFE,
    )
)


@rule.on(ast.Call, names=("to", "cuda"))
def check_move(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`host.to(device, non_blocking=True)` and `host.cuda(non_blocking=True)`."""
    if not isinstance(node.func, ast.Attribute) or not uploads.is_non_blocking(node, ctx):
        return
    where = uploads.destination(node, ctx)
    if where is None or where is Device.HOST:
        return
    yield from _judge(node, node.func.value, Level.KNOWN if where is Device.DEVICE else Level.INFERRED, ctx)


@rule.on(ast.Call, names=("copy_",))
def check_copy(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`device.copy_(host, non_blocking=True)`."""
    if not isinstance(node.func, ast.Attribute) or not node.args or not uploads.is_non_blocking(node, ctx):
        return
    target = ctx.value(node.func.value)
    if target.on_host and not (target.by_name and target.is_tensor):
        return
    if target.on_host:
        yield Silence(node, f"`{ctx.text(node.func.value)}` is on the host by its name")
        return
    yield from _judge(node, node.args[0], Level.KNOWN, ctx)


def _judge(node: ast.Call, host: ast.expr, limit: Level, ctx: Context) -> Iterator[Outcome]:
    value = ctx.value(host)
    level = min(uploads.pageable_level(value), limit)
    if level <= Level.UNKNOWN:
        if value.is_tensor and value.device is Device.HOST:
            yield Silence(node, "its source is pinned" if value.pinned else "whether its source is pinned is not shown")
        return
    yield Hit(
        node,
        "`non_blocking=True` from pageable memory is not guaranteed to be asynchronous: "
        "the driver stages the copy and may make the host wait",
        level,
        related=_made(value, host, ctx),
        fix=lambda: _fix(node, ctx),
    )


def _made(value: Value, host: ast.expr, ctx: Context) -> tuple[tuple[ast.expr | ast.stmt | Span, str], ...]:
    line = value.origin.line
    if value.kind is not Kind.TENSOR or not line or line == host.lineno:
        return ()
    start = ctx.source.offset(line, 0)
    text = ctx.source.line(line)
    indent = len(text) - len(text.lstrip())
    return ((Span(start + indent, start + len(text)), f"made in pageable memory here ({value.origin.why})"),)


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, ctx)

"""LCH302: a whole tensor read back to the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH302",
        name="bulk-read",
        summary="a tensor is copied back to the host, and the host waits for everything queued before it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium", unknown="- - - low"),
    )
)


@rule.on(ast.Call, names=("tolist", "cpu", "numpy"))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.tolist()`, `x.cpu()`, `x.numpy()`."""
    match node.func:
        case ast.Attribute(value=read, attr=method) if not reads.in_loop(ctx) and not reads.is_foreign(node, ctx):
            yield from judge(node, read, method, ctx)


@rule.on(ast.Call, names=("to",))
def check_to(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.to("cpu")`."""
    match node.func:
        case ast.Attribute(value=read) if not reads.in_loop(ctx):
            yield from judge_to(node, read, ctx)


def judge(node: ast.Call, read: ast.expr, method: str, ctx: Context) -> Iterator[Outcome]:
    """A read by name of the method: `.cpu()` is only ever called on tensors, `.tolist()` and `.numpy()` on anything."""
    value = ctx.value(read)
    if _is_chained(node, ctx):
        return  # x.cpu().numpy(): one read, reported once
    level = value.device_level(Level.UNKNOWN)
    if method == "numpy" and level < Level.KNOWN:
        yield Silence(node, "a bare .numpy() works on host tensors only")
        return
    if method == "cpu" and value.is_unknown:
        level = Level.INFERRED
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, read, level, ctx)


def judge_to(node: ast.Call, read: ast.expr, ctx: Context) -> Iterator[Outcome]:
    """`.to("cpu")` in its spellings; with `non_blocking` it does not wait (LCH401 looks after that)."""
    if uploads.destination(node, ctx) is not Device.HOST or uploads.is_non_blocking(node, ctx):
        return
    value = ctx.value(read)
    level = value.device_level(Level.UNKNOWN)
    if value.is_unknown and not value.class_name:
        level = Level.INFERRED
    if level is Level.NO:
        yield Silence(node, f"it reads a {value}")
        return
    yield _hit(node, read, level, ctx)


def _is_chained(node: ast.Call, ctx: Context) -> bool:
    """True for the outer call of `x.cpu().numpy()` and `x.to("cpu").tolist()`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if inner.func.attr in ("cpu", "tolist", "numpy"):
            return True
        inner = inner.func.value
    return False


def _hit(node: ast.Call, read: ast.expr, level: Level, ctx: Context) -> Hit:
    return Hit(node, f"the tensor is copied to the host, which waits for everything queued before it{reads.advice(read, ctx)}", level)

"""LCH402: a pinned buffer written again while an earlier copy from it may still read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted, last_name
from launchlint.rule import Context, Hit, Loop, Outcome, Rule
from launchlint.trees import walk

rule = Rule(
    Meta(
        code="LCH402",
        name="staging-overwritten",
        summary="a pinned staging buffer is written again while an earlier copy from it may be in flight: the device gets the new values",
        group="hazards",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium"),
        preview=True,
    )
)

_MESSAGE = "the staging buffer is written again while the copy from it may still be in flight: the device may get the new values"
_WAITS = re.compile(r"sync|wait|join|flush|barrier|query|item$|tolist$|cpu$")
_WRITES = frozenset({"copy_", "fill_", "zero_", "add_", "mul_", "sub_", "resize_"})


@rule.on(ast.Call, names=("to", "cuda", "copy_"))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`self.staging.to(d, non_blocking=True)` with a later write in the same block, or a write at the next turn of the loop."""
    if not uploads.is_non_blocking(node, ctx):
        return
    source = uploads.copied_from(node, ctx)
    base = reads.base_of(source, ctx) if source is not None else None
    if source is None or base is None or ctx.value(source).pinned is not True:
        return
    level = Level.INFERRED if ctx.value(source).by_name else Level.KNOWN
    written = _written_after(node, dotted(base), _part(source, ctx), ctx)
    if written is not None:
        yield Hit(written, _MESSAGE, level, ((node, "the copy starts here"),))


def _part(source: ast.expr, ctx: Context) -> str:
    """The index of `staging[:n]` as written; empty for the whole buffer."""
    return ctx.text(source.slice) if isinstance(source, ast.Subscript) else ""


def _written_after(node: ast.Call, name: str, part_read: str, ctx: Context) -> ast.expr | ast.stmt | None:
    """The first write to `name` behind the copy: later in the block, or earlier in the loop that runs both."""
    for statement in _rest_of_block(ctx.statement, ctx):
        for part in walk(statement):
            if _waits(part):
                return None
            if _writes(part, name, part_read, ctx):
                return part if isinstance(part, (ast.expr, ast.stmt)) else None
    around = [loop for loop in ctx.loops() if isinstance(loop, (ast.For, ast.While))]
    if not around or _is_made_in(around[0], name) or any(_waits(part) for part in walk(around[0])):
        return None
    return next((part for part in walk(around[0]) if _writes(part, name, part_read, ctx) and isinstance(part, (ast.expr, ast.stmt))), None)


def _rest_of_block(statement: ast.stmt, ctx: Context) -> Iterator[ast.stmt]:
    parent = ctx.parent(statement)
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(parent, block, None)
        if isinstance(statements, list) and statement in statements:
            yield from statements[statements.index(statement) + 1 :]


def _waits(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and bool(_WAITS.search(last_name(part.func)))


def _writes(part: ast.AST, name: str, part_read: str, ctx: Context) -> bool:
    """A write to what the copy reads; two different slices may be disjoint, so they do not count."""
    match part:
        case ast.Subscript(value=target, slice=index) if isinstance(part.ctx, ast.Store):
            written = ctx.text(index)
        case ast.Call(func=ast.Attribute(value=target, attr=method)) if method in _WRITES:
            written = ctx.text(target.slice) if isinstance(target, ast.Subscript) else ""
        case _:
            return False
    return _spelled(target) == name and (not part_read or not written or written == part_read)


def _spelled(target: ast.expr) -> str:
    while isinstance(target, (ast.Subscript, ast.Call)):
        target = target.value if isinstance(target, ast.Subscript) else target.func
        if isinstance(target, ast.Attribute) and not dotted(target):
            target = target.value
    return dotted(target).removesuffix(".numpy").removesuffix(".narrow").removesuffix(".view")


def _is_made_in(loop: Loop, name: str) -> bool:
    """A buffer that every turn allocates anew is not the one that the last copy reads."""
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and dotted(node) == name for node in walk(loop)
    )

"""LCH205: an existing tensor pinned in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH205",
        name="pinned-per-call",
        summary="an existing host tensor is copied into newly pinned memory in every step",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- - medium medium", inferred="- - medium medium", unknown="- - - low"),
        preview=True,
    )
)


@rule.on(ast.Call, names=("pin_memory",))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.pin_memory()`."""
    if not isinstance(node.func, ast.Attribute) or node.args:
        return
    value = ctx.value(node.func.value)
    if value.pinned:
        yield Silence(node, "it is pinned already, which makes the call free")
        return
    level = Level.KNOWN if value.is_tensor and value.on_host and not value.by_name else Level.INFERRED if value.is_tensor else Level.UNKNOWN
    yield Hit(
        node,
        "`pin_memory()` allocates pinned memory under a process-wide lock and copies into it; construct the tensor pinned or keep a buffer",
        level,
    )

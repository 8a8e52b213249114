"""LCH209: an asynchronous download into memory that is not pinned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH209",
        name="unpinned-download",
        summary="a non_blocking copy into pageable host memory, which is not guaranteed to be asynchronous",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- - high high", inferred="- - medium medium"),
        fix=Applicability.DISPLAY,
    )
)


@rule.on(ast.Call, names=("copy_",))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`host.copy_(device, non_blocking=True)`."""
    if not isinstance(node.func, ast.Attribute) or not node.args or not uploads.is_non_blocking(node, ctx):
        return
    target, source = ctx.value(node.func.value), ctx.value(node.args[0])
    if not target.is_tensor or target.device is not Device.HOST or source.on_host:
        return
    if target.pinned is not False or target.by_name:
        yield Silence(node, "its target is pinned" if target.pinned else "whether its target is pinned is not shown")
        return
    level = Level.KNOWN if source.on_device else Level.INFERRED
    yield Hit(
        node, "the target is pageable host memory: the copy is not guaranteed to be asynchronous", level, fix=lambda: _shown(node, ctx)
    )


def _shown(node: ast.Call, ctx: Context) -> Fix:
    """Never applied: a copy into pinned memory really runs on, and nothing shows that its reader waits for it."""
    target = ctx.text(node.func.value) if isinstance(node.func, ast.Attribute) else "host"
    sketch = f"allocate `{target}` once with pin_memory=True, record an event after the copy and wait for it before reading"
    return Fix("copy into memory that is allocated pinned, and wait before reading it", (), Applicability.DISPLAY, shows=sketch)

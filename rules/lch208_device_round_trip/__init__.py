"""LCH208: data that leaves the device and comes back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH208",
        name="device-round-trip",
        summary="a value leaves the device and comes back in the same expression",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium"),
        fix=Applicability.SAFE,
    )
)

_TYPE = re.compile(r"torch\.(Bool|Long|Int|Float|Double|Half|Byte|Char|Short|BFloat16)Tensor$")


@rule.on(ast.Call, names=("type",))
def check_type(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`mask.type(torch.BoolTensor)`: the class is the host's, so the data moves to the host."""
    if not isinstance(node.func, ast.Attribute) or len(node.args) != 1 or not _TYPE.match(ctx.name(node.args[0])):
        return
    level = ctx.value(node.func.value).device_level(Level.INFERRED)
    if level > Level.NO:
        message = f"`{ctx.text(node.args[0])}` is a class of host tensors: the data is copied to the host, which waits"
        yield Hit(node, message, level, fix=lambda: _fix(node, ctx))


@rule.on(ast.Call, names=("to", "cuda"))
def check_return(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.cpu()....to(device)` in one expression."""
    if not isinstance(node.func, ast.Attribute) or uploads.destination(node, ctx) is not Device.DEVICE:
        return
    inner: ast.expr = node.func.value
    while True:
        match inner:
            case ast.Call(func=ast.Attribute(value=before, attr="cpu")):
                level = ctx.value(before).device_level(Level.INFERRED)
                if level > Level.NO:
                    yield Hit(node, "the value is copied to the host and back: the host waits twice", level)
                return
            case ast.Call(func=ast.Attribute(value=before)) | ast.Subscript(value=before) | ast.Attribute(value=before):
                inner = before
            case _:
                return


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, ctx)

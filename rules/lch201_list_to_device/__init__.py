"""LCH201: host data made into a device tensor by a constructor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH201",
        name="list-to-device",
        summary="a list or array on the host is made into a device tensor, and the host waits for the copy",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- low medium medium", unknown="- low low medium"),
        fix=Applicability.SAFE,
    )
)


@rule.on(ast.Call, names=uploads.CONSTRUCTORS)
def check_constructor(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.tensor(data, device=...)` and its relatives."""
    data = uploads.data_of(node)
    if data is None or not uploads.constructor(node, ctx):
        return
    device = uploads.goes_to(node, ctx)
    if device is None:
        return
    if device is Device.HOST:
        yield Silence(node, "its device is the host")
        return
    if _is_empty(data):
        yield Silence(node, "an empty list holds nothing to copy")
        return
    value = ctx.value(data)
    if value.kind is Kind.SCALAR:
        return  # LCH206 has more to say about a number
    level = uploads.host_level(data, value, ctx)
    if level is Level.UNKNOWN and ctx.name(node.func) == "torch.tensor":
        level = Level.INFERRED  # torch.tensor of a tensor warns, so it is nearly always given host data
    if device is Device.UNKNOWN:
        level = min(level, Level.INFERRED)
    if level is Level.NO:
        yield Silence(node, f"its data is a {value}")
        return
    yield _hit(node, data, level, ctx)


@rule.on(ast.Call, names=("new_tensor",))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.new_tensor(data)`: the device is that of `x`."""
    if not isinstance(node.func, ast.Attribute) or not node.args:
        return
    asked = ctx.keyword(node, "device")
    receiver = ctx.value(node.func.value)
    if receiver.on_host or (asked is not None and ctx.device(asked) is Device.HOST):
        yield Silence(node, "its device is the host")
        return
    if _is_empty(node.args[0]):
        yield Silence(node, "an empty list holds nothing to copy")
        return
    value = ctx.value(node.args[0])
    if value.kind is Kind.SCALAR:
        return  # LCH206 has more to say about a number
    level = min(uploads.host_level(node.args[0], value, ctx), Level.KNOWN)
    if level is Level.NO:
        yield Silence(node, f"its data is a {value}")
        return
    yield _hit(node, node.args[0], max(level, Level.INFERRED), ctx)


def _is_empty(data: ast.expr) -> bool:
    return isinstance(data, (ast.List, ast.Tuple)) and not data.elts


def _hit(node: ast.Call, data: ast.expr, level: Level, ctx: Context) -> Hit:
    value = ctx.value(data)
    kind = {Kind.ARRAY: "a numpy array", Kind.TENSOR: "a host tensor"}.get(value.kind, "host data")
    if value.kind in (Kind.LIST, Kind.TUPLE) or isinstance(data, (ast.List, ast.Tuple, ast.ListComp)):
        kind = "a list"
    return Hit(
        node,
        f"{kind} goes to the device through pageable memory, and the host waits until the copy is done",
        level,
        fix=lambda: _fix(node, ctx),
    )


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, ctx)

"""LCH206: a number made into a device tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads, uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, stores_item
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH206",
        name="scalar-upload",
        summary="a number is uploaded as a tensor of its own, and the host waits for the copy",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium"),
        fix=Applicability.SAFE,
    )
)

_MESSAGE = (
    "one number is uploaded through pageable memory, and the host waits; operators take the number itself, "
    "`torch.full` writes it on the device"
)
_NOTHING_TO_MEASURE = "a branch that answers NaN is taken where there is nothing to measure"


@rule.on(ast.Call, names=uploads.CONSTRUCTORS)
def check_constructor(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.tensor(0.5, device=device)`."""
    data = uploads.data_of(node)
    if data is None or not uploads.constructor(node, ctx) or ctx.value(data).kind is not Kind.SCALAR:
        return
    device = uploads.goes_to(node, ctx)
    if device is None:
        return
    if _is_left_out(data, ctx):
        yield Silence(node, _NOTHING_TO_MEASURE)
        return
    if device is Device.HOST:
        yield Silence(node, "its device is the host")
        return
    level = Level.KNOWN if device is Device.DEVICE else Level.INFERRED
    yield Hit(node, _MESSAGE, level, fix=lambda: _fix(node, ctx))


@rule.on(ast.Call, names=("where",))
def check_arm(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.where(mask, torch.tensor(1.0), x)`: a number without a device is copied to where the mask is; arithmetic would not."""
    if ctx.name(node.func) != "torch.where" or len(node.args) != 3:
        return
    mask, *arms = node.args
    level = ctx.value(mask).device_level()
    for arm in arms if level is not Level.NO and not reads.says_host(mask, ctx) else ():
        match arm:
            case ast.Call(args=[number]) if uploads.constructor(arm, ctx) == "tensor" and uploads.goes_to(arm, ctx) is None:
                if ctx.value(number).kind is Kind.SCALAR:
                    yield Hit(arm, _MESSAGE, level)


@rule.on(ast.Call, names=("new_tensor",))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.new_tensor(0.5)`: the device is that of `x`."""
    if not isinstance(node.func, ast.Attribute) or not node.args or ctx.value(node.args[0]).kind is not Kind.SCALAR:
        return
    asked = ctx.keyword(node, "device")
    receiver = ctx.value(node.func.value)
    if receiver.on_host or (asked is not None and ctx.device(asked) is Device.HOST):
        yield Silence(node, "its device is the host")
        return
    if _is_left_out(node.args[0], ctx):
        yield Silence(node, _NOTHING_TO_MEASURE)
        return
    yield Hit(node, _MESSAGE, Level.KNOWN if receiver.on_device and not receiver.by_name else Level.INFERRED)


@rule.on(ast.Assign, when=stores_item)
def check_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`t[i] = number` on a device tensor: before a recent torch the number was uploaded."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=stored):
            base, value = ctx.value(target), ctx.value(stored)
            if base.device_level() is not Level.KNOWN or value.kind is not Kind.SCALAR or ctx.loops():
                return
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            if all(ctx.value(part).kind is Kind.SCALAR and not isinstance(part, (ast.Slice, ast.Constant)) for part in parts):
                yield Hit(
                    node,
                    "the number stored at one place is uploaded first in older torch; a slice store (`t[i:i + 1] = v`) is a plain fill",
                    Level.INFERRED,
                )


def _is_left_out(data: ast.expr, ctx: Context) -> bool:
    """True for `float("nan")` and `math.nan` in a branch."""
    match data:
        case ast.Attribute(attr="nan"):
            pass
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]) if text.lower() == "nan":
            pass
        case _:
            return False
    return any(isinstance(frame.node, (ast.If, ast.IfExp)) and frame.part in ("body", "orelse") for frame in ctx.frames())


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from launchlint.fixes.constants import fill_on_device, number_on_device

    return fill_on_device(node, ctx) or number_on_device(node, ctx)

"""LCH106: a device tensor rebuilt in every step from what never changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH106",
        name="constant-rebuilt",
        summary="a device tensor is rebuilt in every step from constants",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium"),
        outranks=("LCH201", "LCH206"),
        fix=Applicability.SAFE,
    )
)


@rule.on(ast.Call, names=uploads.CONSTRUCTORS)
def check_constructor(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.tensor([0, 1], device=device)`: uploaded again in every step."""
    data = uploads.data_of(node)
    if data is None or not uploads.constructor(node, ctx) or not isinstance(data, (ast.List, ast.Tuple)) or not data.elts:
        return
    device = uploads.goes_to(node, ctx)
    if device is None or not ctx.is_constant(data):
        return
    if device is Device.HOST:
        yield Silence(node, "its device is the host")
        return
    if uploads.is_kept(ctx):
        yield Silence(node, "it is kept on the object and made again only when it has to grow")
        return
    yield Hit(
        node,
        "the same list is uploaded in every step, and the host waits for the copy; build it once, or write it on the device",
        Level.KNOWN if device is Device.DEVICE else Level.INFERRED,
        fix=lambda: _fix(node, ctx),
    )


def _may_shift(node: ast.BinOp) -> bool:
    sides = (node.left.__class__, node.right.__class__)
    return ast.Call in sides or (node.op.__class__ is ast.Add and ast.Attribute in sides)


@rule.on(ast.BinOp, when=_may_shift)
def check_range(node: ast.BinOp, ctx: Context) -> Iterator[Outcome]:
    """`torch.arange(self.n, device=device) + self.offset`: two launches for what never changes."""
    for side, other in ((node.left, node.right), (node.right, node.left)):
        made = _range_of(side, ctx)
        if made is None or not all(ctx.is_constant(argument) for argument in made.args):
            continue
        device = ctx.keyword(made, "device")
        if device is None or ctx.device(device) is not Device.DEVICE:
            continue
        value = ctx.value(other)
        if ctx.is_constant(other) and (value.kind is not Kind.SCALAR or _is_attribute(other)):
            if uploads.is_kept(ctx):
                yield Silence(node, "it is kept on the object and made again only when it has to grow")
                return
            yield Hit(
                node,
                "the same range is built and shifted on the device in every step; keep it as a buffer, keyed by all that it depends on",
                Level.KNOWN,
            )
            return


def _range_of(side: ast.expr, ctx: Context) -> ast.Call | None:
    """The `torch.arange` call that `side` is, or that the only assignment to the name `side` makes."""
    if isinstance(side, ast.Name):
        bound = ctx.assigned(side.id)
        if len(bound) != 1 or not isinstance(bound[0], ast.Assign):
            return None
        side = bound[0].value
    return side if isinstance(side, ast.Call) and ctx.name(side.func) == "torch.arange" else None


def _is_attribute(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Attribute)


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from launchlint.fixes.constants import fill_on_device

    sketch = f"once, in the constructor or kept by device: {' '.join(ctx.text(node).split())}"
    return fill_on_device(node, ctx) or Fix("build it once", (), Applicability.DISPLAY, shows=sketch)

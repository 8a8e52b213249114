"""LCH203: a host tensor copied to the device by a blocking call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.facts import torch_operations
from launchlint.model import Applicability, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, stores_item
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH203",
        name="blocking-upload",
        summary="a host tensor is copied to the device by a call that waits for the copy",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- - medium medium", inferred="- - - low"),
        fix=Applicability.UNSAFE,
    )
)


@rule.on(ast.Call, names=("to", "cuda"))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`host.to(device)` and `host.cuda()` without `non_blocking`."""
    if not isinstance(node.func, ast.Attribute) or uploads.is_non_blocking(node, ctx):
        return
    if uploads.destination(node, ctx) is not Device.DEVICE:
        return
    value = ctx.value(node.func.value)
    if not value.is_tensor or value.device is not Device.HOST or is_fresh_factory(node.func.value, ctx):
        return
    if value.by_name:
        yield Silence(node, f"only a name says that it is on the host ({value.origin.why})")
        return
    yield Hit(node, "the copy to the device is blocking: the host waits until it is done", Level.KNOWN)


@rule.on(ast.Assign, when=stores_item)
def check_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`device[a:b] = host_tensor`."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=target)], value=stored):
            base, value = ctx.value(target), ctx.value(stored)
            if base.device_level() >= Level.INFERRED and value.is_tensor and value.device is Device.HOST and not value.by_name and not value.scalar:
                yield Hit(node, "the store copies a host tensor to the device, and the host waits until it is done", base.device_level())


def is_fresh_factory(expr: ast.expr, ctx: Context) -> bool:
    """`torch.zeros(...)` without data from the host: LCH204 says something better."""
    name = ctx.name(expr.func).rpartition(".")[2] if isinstance(expr, ast.Call) else ""
    operation = torch_operations().get(name)
    return operation is not None and operation.factory and not operation.from_host_data

"""LCH203: a host tensor copied to the device by a blocking call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops, uploads
from launchlint.facts import torch_operations
from launchlint.model import Applicability, Fix, Heat, Level, Meta, Policy
from launchlint.names import last_name
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

_CPU = re.compile(r"_cpu(_tensor)?$")


@rule.on(ast.Call, names=("to", "cuda"))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`host.to(device)` and `host.cuda()` without `non_blocking`."""
    if not isinstance(node.func, ast.Attribute) or uploads.is_non_blocking(node, ctx):
        return
    if uploads.destination(node, ctx) is not Device.DEVICE:
        return
    host = node.func.value
    value = ctx.value(host)
    if not value.is_tensor or value.device is not Device.HOST or is_fresh_factory(host, ctx):
        return
    named = value.by_name and _says_cpu(host, ctx)
    if value.by_name and not named:
        yield Silence(node, f"only a name says that it is on the host ({value.origin.why})")
        return
    if attribute := uploads.registered_attribute(host, ctx):
        yield Silence(node, f"`self.{attribute}` is a parameter or buffer and moves with its module")
        return
    if uploads.is_kept(ctx):
        yield Silence(node, "the copy is kept on the object and made again only when it has to grow")
        return
    level = Level.KNOWN if named else _level(host, ctx)
    message = "the copy to the device is blocking: the host waits until it is done"
    yield Hit(node, message, level, fix=lambda: _fix(node, ctx), doubt=_doubt(ctx))


@rule.on(ast.Call, names=("copy_",))
def check_copy(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`device[a:b].copy_(host_tensor)`: a copy like the store, in another spelling."""
    match node:
        case ast.Call(func=ast.Attribute(value=target), args=[source, *_]) if not uploads.is_non_blocking(node, ctx):
            yield from _judge_store(node, target, source, "the copy to the device is blocking: the host waits until it is done", ctx)


@rule.on(ast.Assign, when=stores_item)
def check_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`device[a:b] = host_tensor`."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=target)], value=stored):
            message = "the store copies a host tensor to the device, and the host waits until it is done"
            yield from _judge_store(node, target, stored, message, ctx)


def _judge_store(node: ast.Assign | ast.Call, target: ast.expr, stored: ast.expr, message: str, ctx: Context) -> Iterator[Outcome]:
    base, value = ctx.value(target), ctx.value(stored)
    is_upload = value.is_tensor and value.device is Device.HOST and not value.by_name and not value.scalar
    if is_upload and base.device_level() >= Level.INFERRED:
        yield Hit(node, message, min(base.device_level(), _level(stored, ctx)), doubt=_doubt(ctx))


def _doubt(ctx: Context) -> str:
    """Why a copy may run once for a request or less, in a function that something hot leads to.

    What a module's forward or the builder of a step's metadata calls runs with it. A scheduler, a sampler or the stage of a
    pipeline leads to much that runs once for a request.
    """
    if ctx.function.heat is not Heat.REACHED:
        return ""
    root = ctx.function.chain[0] if ctx.function.chain else ""
    if ctx.function.per != "layer" and "metadata" not in root.lower():
        return f"which may run once for a request below `{root}`"
    return uploads.rare_branch(ctx) or uploads.becomes_buffer(ctx)


def _says_cpu(host: ast.expr, ctx: Context) -> bool:
    """`m.lens_cpu.to(device)`: the name and the copy agree on where it is. Names that hold host data by habit only prove nothing."""
    return _CPU.search(last_name(uploads.root_of(host, ctx))) is not None


def _level(host: ast.expr, ctx: Context) -> Level:
    """KNOWN where the host tensor is made in this function or by a call in it.

    An attribute may have been made under a default device or moved since, and a parameter that the code asks for its
    device is a host tensor only now and then.
    """
    root = uploads.root_of(host, ctx)
    match root:
        case ast.Name(id=name) if loops.parameter(ctx, name) is not None and not uploads.assigned_before(name, host, ctx):
            return Level.INFERRED
        case _ if ctx.value(host).origin.why.startswith("parameter "):
            return Level.INFERRED
        case ast.Attribute():
            return Level.KNOWN if ctx.value(root).pinned else Level.INFERRED
    return Level.KNOWN


def is_fresh_factory(expr: ast.expr, ctx: Context) -> bool:
    """`torch.zeros(...)` without data from the host: LCH204 says something better."""
    name = ctx.name(expr.func).rpartition(".")[2] if isinstance(expr, ast.Call) else ""
    operation = torch_operations().get(name)
    return operation is not None and operation.factory and not operation.from_host_data


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    """Pinned where it is made, else a sketch."""
    from launchlint.fixes.pinning import blocking_to_pinned

    sketch = "staged = torch.empty(..., pin_memory=True); staged.copy_(host); staged.to(device, non_blocking=True)"
    return blocking_to_pinned(node, ctx) or Fix("stage in memory that is allocated pinned", (), Applicability.DISPLAY, shows=sketch)

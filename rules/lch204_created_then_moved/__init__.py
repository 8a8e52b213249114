"""LCH204: a factory on the host followed by a copy to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.facts import torch_operations
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH204",
        name="created-then-moved",
        summary="a tensor is made on the host and copied, although its factory takes a device",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high"),
        fix=Applicability.SAFE,
    )
)


_SIZED = frozenset({"torch.empty", "torch.zeros", "torch.ones", "torch.rand", "torch.randn"})  # their positional arguments are sizes


@rule.on(ast.Call, names=("to", "cuda"))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.zeros(n).to(device)`."""
    match node.func:
        case ast.Attribute(value=ast.Call() as made) if uploads.destination(node, ctx) is Device.DEVICE:
            name = ctx.name(made.func)
            operation = torch_operations().get(name.rpartition(".")[2])
            if not name.startswith("torch.") or operation is None or not operation.factory or operation.from_host_data:
                return
            if name in _SIZED and _is_empty(made):
                yield Silence(node, "it has no elements, so nothing is filled and nothing is copied")
                return
            value = ctx.value(made)
            if value.is_tensor and value.device is Device.HOST and ctx.keyword(made, "device") is None and not value.pinned:
                yield Hit(
                    node,
                    f"`{name}` fills host memory that is then copied to the device; with `device=` it is made there",
                    Level.KNOWN,
                    fix=lambda: _fix(node, ctx),
                )


def _is_empty(made: ast.Call) -> bool:
    """`torch.empty(0)`, `torch.zeros((0, 4))`."""
    sizes = made.args[0].elts if made.args and isinstance(made.args[0], (ast.Tuple, ast.List)) else made.args
    return any(isinstance(size, ast.Constant) and size.value == 0 for size in sizes)


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from launchlint.fixes.factories import make_on_device

    return make_on_device(node, ctx)

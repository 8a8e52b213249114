"""LCH207: a device tensor indexed by something that lives on the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import uploads
from launchlint.model import Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, may_index_by_data
from launchlint.values import Device, Kind, Value

rule = Rule(
    Meta(
        code="LCH207",
        name="host-index",
        summary="a device tensor is indexed by a list, an array or a host tensor, which is uploaded first",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- - high high", inferred="- - - medium"),
    )
)


@rule.on(ast.Subscript, when=may_index_by_data)
def check(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`table[ids]` and `logits[:, ids] = v`."""
    base = ctx.value(node.value)
    if not base.is_tensor or base.device is Device.HOST:
        return
    for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        value = ctx.value(part)
        if isinstance(part, ast.Slice) or _adds_dimensions(part) or not _is_host_index(value):
            continue
        if value.by_name and value.is_tensor:
            yield Silence(node, f"only a name says that the index is on the host ({value.origin.why})")
            return
        if attribute := uploads.registered_attribute(part, ctx):
            yield Silence(node, f"`self.{attribute}` is a parameter or buffer and moves with its module")
            return
        yield Hit(
            node, f"the index is a {value}: it is copied to the device for this one access, from pageable memory", base.device_level()
        )
        return


def _adds_dimensions(index: ast.expr) -> bool:
    """`[None]` and `[None] * n`."""
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Mult):
        index = index.left
    return isinstance(index, ast.List) and all(isinstance(part, ast.Constant) and part.value is None for part in index.elts)


def _is_host_index(value: Value) -> bool:
    if value.kind is Kind.ARRAY:
        return True
    if value.kind is Kind.LIST:  # a list of device tensors, as `torch.where(mask)` gives, is no host data
        inner = value.element
        return inner is None or not inner.is_tensor or inner.device is Device.HOST
    return value.is_tensor and value.device is Device.HOST and not value.scalar

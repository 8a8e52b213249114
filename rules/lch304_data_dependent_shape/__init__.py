"""LCH304: a result whose shape only the device knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, may_index_by_data, stores_item
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH304",
        name="data-dependent-shape",
        summary="the shape of a result depends on the data, so the host waits to learn it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- - medium medium"),
    )
)

# Seldom on the device in hot code, so they need positive evidence.
_RARE = frozenset({"unique", "unique_consecutive", "bincount", "one_hot"})


@rule.on(ast.Call, names=("nonzero", "masked_select", "argwhere", "unique", "unique_consecutive", "bincount", "one_hot", "where", "equal"))
def check_call(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.nonzero()`, `torch.where(c)`, `torch.unique(x)` and their kind."""
    match node.func:
        case ast.Attribute(attr=name):
            pass
        case _:
            return
    if reads.is_foreign(node, ctx) or not _is_dynamic(name, node, ctx):
        return
    read = reads.operand(node, ctx)
    if read is None:
        return
    value = ctx.value(read)
    is_function = ctx.name(node.func).startswith("torch")
    level = value.device_level(Level.UNKNOWN if name in _RARE else Level.INFERRED if is_function or name in ("nonzero", "masked_select") else Level.UNKNOWN)
    if name in _RARE and level is Level.INFERRED and value.is_unknown:
        level = Level.UNKNOWN
    if level is Level.NO:
        yield Silence(node, f"it works on a {value}")
        return
    yield Hit(node, f"the shape of `{name}`'s result depends on the data: the host waits for the device to learn it", level)


def _is_dynamic(name: str, node: ast.Call, ctx: Context) -> bool:
    function = ctx.name(node.func).startswith("torch")
    count = len(node.args) + len(node.keywords)
    match name:
        case "where":
            return function and len(node.args) == 1 and not node.keywords
        case "equal":
            return function
        case "one_hot":
            return ctx.keyword(node, "num_classes") is None and count == 1
        case "unique" | "unique_consecutive":
            return True
        case _:
            return ctx.keyword(node, "size") is None


@rule.on(ast.Subscript, when=may_index_by_data)
def check_mask_read(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`x[mask]` where it is read."""
    if not isinstance(node.ctx, ast.Load):
        return
    base = ctx.value(node.value)
    if not (base.is_tensor or base.kind is Kind.UNKNOWN) or base.device is Device.HOST:
        return
    for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        if reads.makes_mask(part, ctx):
            mask = ctx.value(part)
            level = Level.KNOWN if mask.device is Device.DEVICE and not mask.by_name else Level.INFERRED
            level = min(max(base.device_level(), Level.UNKNOWN), level) if base.device_level() is not Level.INFERRED else level
            yield Hit(node, "indexing with a mask has a result of unknown size: the host waits for the device to count the mask", level)
            return


@rule.on(ast.Assign, when=stores_item)
def check_mask_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`x[mask] = tensor`; storing a number is a masked fill and does not wait."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=stored):
            base, value = ctx.value(target), ctx.value(stored)
            if base.device_level() < Level.INFERRED or not value.is_tensor or value.scalar:
                return
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(reads.makes_mask(part, ctx) for part in parts):
                yield Hit(node, "storing a tensor through a mask needs the mask's count: the host waits for it", Level.INFERRED)

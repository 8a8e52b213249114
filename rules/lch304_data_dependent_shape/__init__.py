"""LCH304: a result whose shape only the device knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Outcome, Rule, may_index_by_data, stores_item
from launchlint.values import Device, Kind, Value

rule = Rule(
    Meta(
        code="LCH304",
        name="data-dependent-shape",
        summary="the shape of a result depends on the data, so the host waits to learn it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - medium medium"),
    )
)

_NAMES = ("nonzero", "masked_select", "argwhere", "unique", "unique_consecutive", "bincount", "one_hot", "where", "equal")
_RARE = frozenset({"unique", "unique_consecutive", "bincount", "one_hot"})  # seldom on the device in hot code: positive evidence only
_GATHERED = "indexing with a mask has a result of unknown size: the host waits for the device to count the mask"
_STORED = "storing a tensor through a mask needs the mask's count: the host waits for it"
_UPDATED = "updating through a mask gathers and stores, and the host waits for the mask's count in both"


@rule.on(ast.Call, names=_NAMES)
def check_call(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.nonzero()`, `torch.where(c)`, `torch.unique(x)` and their kind."""
    is_function = ctx.name(node.func).startswith("torch")
    name = ctx.name(node.func).rpartition(".")[2] if is_function else node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name not in _NAMES or reads.is_foreign(node, ctx) or not _is_dynamic(name, node, is_function, ctx):
        return
    read = reads.operand(node, ctx)
    if read is None:
        return
    sure = is_function or name in ("nonzero", "masked_select")
    unknown = Level.INFERRED if sure and (name not in _RARE or reads.is_argument_of_forward(read, ctx)) else Level.UNKNOWN
    if reads.says_host(read, ctx):
        unknown = Level.NO
    yield reads.outcome(node, read, reads.level(read, ctx, unknown), _message(name), ctx)


def _message(name: str) -> str:
    match name:
        case "equal":
            return "`torch.equal` compares on the device and reads the answer back: the host waits for it"
        case "one_hot":
            return "`one_hot` without `num_classes` reads the largest class back from the device: the host waits for it"
        case _:
            return f"the shape of `{name}`'s result depends on the data: the host waits for the device to learn it"


def _is_dynamic(name: str, node: ast.Call, is_function: bool, ctx: Context) -> bool:
    match name:
        case "where":
            return is_function and len(node.args) == 1 and not node.keywords
        case "equal":
            return is_function
        case "one_hot":
            return ctx.keyword(node, "num_classes") is None and len(node.args) == 1
        case _:
            return ctx.keyword(node, "size") is None  # jax's nonzero(size=...) has a fixed shape


@rule.on(ast.Subscript, when=may_index_by_data)
def check_mask_read(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`x[mask]` where it is read."""
    if not isinstance(node.ctx, ast.Load):
        return
    base = ctx.value(node.value)
    if not (base.is_tensor or base.kind is Kind.UNKNOWN) or base.device is Device.HOST or reads.says_host(node.value, ctx):
        return
    mask = _mask_of(node, ctx)
    if mask is not None:
        yield reads.outcome(node, mask, _level_of_pair(node.value, ctx.value(mask), ctx), _GATHERED, ctx, group=_group(mask, ctx))


@rule.on(ast.Assign, when=stores_item)
def check_mask_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`x[mask] = tensor`; storing a number is a masked fill and does not wait."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=target) as place], value=stored):
            value = ctx.value(stored)
            if value.is_tensor and not (value.scalar and value.device is Device.HOST) and reads.level(target, ctx) >= Level.INFERRED:
                mask = _mask_of(place, ctx)
                if mask is not None:
                    yield reads.outcome(node, mask, Level.INFERRED, _STORED, ctx, group=_group(mask, ctx))


@rule.on(ast.AugAssign, when=lambda node: node.target.__class__ is ast.Subscript)
def check_mask_update(node: ast.AugAssign, ctx: Context) -> Iterator[Outcome]:
    """`x[mask] += y`: a gather and a store."""
    match node.target:
        case ast.Subscript(value=target) as place if reads.level(target, ctx) >= Level.INFERRED:
            mask = _mask_of(place, ctx)
            if mask is not None:
                yield reads.outcome(node, mask, Level.INFERRED, _UPDATED, ctx, group=_group(mask, ctx))


def _group(mask: ast.expr, ctx: Context) -> str:
    """One mask that is used again and again is counted each time; its indices, computed once, serve all."""
    return f"LCH3:{mask.id}" if isinstance(mask, ast.Name) and not ctx.loops() else ""


def _mask_of(place: ast.Subscript, ctx: Context) -> ast.expr | None:
    parts = place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]
    return next((part for part in parts if reads.makes_mask(part, ctx)), None)


def _level_of_pair(base: ast.expr, mask: Value, ctx: Context) -> Level:
    """The mask decides; a base of which nothing is known may still be a list of tensors or a frame of a table."""
    level = Level.KNOWN if mask.device is Device.DEVICE and not mask.by_name else Level.INFERRED
    found = ctx.value(base).device_level(Level.INFERRED if reads.is_argument_of_forward(base, ctx) else Level.UNKNOWN)
    return level if found is Level.INFERRED else min(max(found, Level.UNKNOWN), level)

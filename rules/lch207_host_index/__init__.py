"""LCH207: a device tensor indexed by something that lives on the host."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted, last_name
from launchlint.rule import Context, Hit, Outcome, Rule, Silence, may_index_by_data
from launchlint.trees import walk
from launchlint.values import Device, Kind, Value
from launchlint.values.conventions import value_of_name
from launchlint.values.value import NOTHING

rule = Rule(
    Meta(
        code="LCH207",
        name="host-index",
        summary="a device tensor is indexed by a list, an array or a host tensor, which is uploaded first",
        group="uploads",
        since="0.1.0",
        policy=Policy.grid(known="- - high high", inferred="- - - medium", unknown="- - low medium"),
    )
)


_PLURAL = re.compile(r"(ids|indices|indexes|idxs|rows|columns|cols|tokens|positions)$")


@rule.on(ast.Subscript, when=may_index_by_data)
def check(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`table[ids]` and `logits[:, ids] = v`."""
    base = ctx.value(node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    level = base.device_level(Level.INFERRED if _has_dimensions(parts) else Level.NO)
    if level is Level.NO:
        return
    for part in parts:
        value = ctx.value(part)
        if isinstance(part, ast.Slice) or _adds_dimensions(part):
            continue
        if value.is_unknown and _is_tested_list(part, ctx):
            message = (
                f"`{ctx.text(part)}` is tested for its truth, so it is a list: uploaded for this one access, from pageable memory"
            )
            yield Hit(node, message, Level.INFERRED)
            return
        if not _is_host_index(value):
            continue
        if part is node.slice and _is_tuple(part, ctx):
            yield Silence(node, "the index is a tuple, which is one index for each dimension")
            return
        if value.by_name and value.is_tensor and (base.by_name or base.is_unknown or value_of_name(last_name(part)) is NOTHING):
            yield Silence(node, f"only names say where the index and the tensor live ({value.origin.why})")
            return
        if value.by_name and value.is_tensor:
            yield Hit(node, f"`{ctx.text(part)}` is on the host by its name: it is copied to the device for this one access", Level.UNKNOWN)
            return
        if attribute := uploads.registered_attribute(part, ctx):
            yield Silence(node, f"`self.{attribute}` is a parameter or buffer and moves with its module")
            return
        yield Hit(node, f"the index is a {value}: it is copied to the device for this one access, from pageable memory", level)
        return


def _is_tuple(index: ast.expr, ctx: Context) -> bool:
    """A parameter that is announced as a tuple, or a name that is only ever bound to `tuple(...)`."""
    if isinstance(index, ast.BinOp):  # `(...,) + (None,) * n`
        return any(isinstance(part, ast.Tuple) for part in walk(index))
    if not isinstance(index, ast.Name):
        return _is_call_of_tuple(index)
    given = loops.parameter(ctx, index.id)
    if given is not None and given.annotation is not None:
        return any(last_name(part) in ("Tuple", "tuple") for part in _alternatives(given.annotation))
    bound = ctx.assigned(index.id)
    return bool(bound) and all(isinstance(each, ast.Assign) and _is_call_of_tuple(each.value) for each in bound)


def _is_call_of_tuple(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func) == "tuple"


def _alternatives(annotation: ast.expr) -> list[ast.expr]:
    """`Tuple` of `Optional[Tuple[int, ...]]` and of `tuple | None`."""
    match annotation:
        case ast.Subscript(value=base, slice=inner) if last_name(base) == "Optional":
            return _alternatives(inner)
        case ast.Subscript(value=base):
            return [base]
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return [*_alternatives(left), *_alternatives(right)]
        case _:
            return [annotation]


def _has_dimensions(parts: list[ast.expr]) -> bool:
    """`x[:, ids]` and `x[..., ids]`: only tensors and arrays have dimensions, and arrays are known where they are made."""
    return len(parts) > 1 and any(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts)


def _is_tested_list(index: ast.expr, ctx: Context) -> bool:
    """`if ids: x[:, ids] = v` with a name in the plural: the truth of several elements is an error but for a list."""
    spelled = dotted(index)
    if not _PLURAL.search(spelled):
        return False
    for frame in ctx.frames():
        if isinstance(frame.node, ast.If) and frame.part == "body":
            test = frame.node.test
            tested = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
            if any(dotted(item) == spelled for item in tested):
                return True
    return False


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

"""`if mask.any(): x[mask] = number` needs no branch: without a hit the store writes nothing."""

from __future__ import annotations

import ast

from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.values import Device, Kind


def rewrite(node: ast.If, ctx: Context) -> Fix | None:
    """The store without its branch, where the tested mask is the one stored through and a number is stored."""
    match node:
        case ast.If(
            test=ast.Call() as test, body=[ast.Assign(targets=[ast.Subscript(value=target, slice=mask)], value=stored) as store], orelse=[]
        ):
            tested = _tested(test, ctx)
        case _:
            return None
    if tested is None or ctx.text(tested) != ctx.text(mask) or not _is_plain(mask) or not _is_number(stored, ctx):
        return None
    value, base = ctx.value(mask), ctx.value(target)
    if not (value.is_tensor and value.boolean) or not base.is_tensor or base.device is Device.HOST:
        return None
    source = ctx.source
    head = Span(source.span(node).start, source.span(store).start)
    if "#" in source.text[head.start : head.end] or source.text[head.start : head.start + 2] != "if":
        return None
    return Fix("store through the mask without asking whether it has a hit", (Edit(head, ""),), Applicability.SAFE)


def _tested(test: ast.Call, ctx: Context) -> ast.expr | None:
    """`mask` of `mask.any()` and `torch.any(mask)`."""
    match test:
        case ast.Call(func=function, args=[mask], keywords=[]) if ctx.name(function) == "torch.any":
            return mask
        case ast.Call(func=ast.Attribute(value=mask, attr="any"), args=[], keywords=[]) if not ctx.name(test.func):
            return mask
    return None


def _is_plain(mask: ast.expr) -> bool:
    """Names, numbers and operators: evaluated once or twice, it is the same."""
    plain = (
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.Compare,
        ast.BinOp,
        ast.UnaryOp,
        ast.operator,
        ast.unaryop,
        ast.cmpop,
        ast.expr_context,
    )
    return all(isinstance(part, plain) for part in ast.walk(mask))


def _is_number(stored: ast.expr, ctx: Context) -> bool:
    """A number on the host: a tensor without dimensions would be read back."""
    match stored:
        case ast.Constant(value=bool() | int() | float()) | ast.UnaryOp(operand=ast.Constant(value=int() | float())):
            return True
    return ctx.value(stored).kind is Kind.SCALAR

"""A constant that is uploaded, made on the device instead: `torch.tensor([-1], device=d)` -> `torch.full((1,), -1, device=d)`.

Equal in values, dtype, shape and strides, and one of very few fixes that are SAFE: only literal numbers count, since
`torch.full` would read a 0-dim tensor, and the dtype stays as it was written or as both infer it (int64 for whole
numbers, bool for truth values, the default dtype for floats).
"""

from __future__ import annotations

import ast

from launchlint.fixes.staging import torch_module
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context
from launchlint.values import Kind

CONSTRUCTORS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
WIDE = frozenset(f"torch.{name}" for name in ("int64", "long", "int32", "int", "float32", "float", "float64", "double"))
LARGE = 1e18  # int64 and float32 hold it
HALF = 65504  # what float16 holds: beyond, torch.tensor rounds and torch.full raises
SMALL = 127  # every dtype holds it


def fill_on_device(call: ast.Call, ctx: Context) -> Fix | None:
    """The SAFE fix for one literal, a list of equal literals, `[literal] * length` or an empty list; None for other data."""
    if ctx.name(call.func) not in CONSTRUCTORS or len(call.args) != 1:
        return None
    if not {keyword.arg for keyword in call.keywords} <= {"dtype", "device"} or ctx.keyword(call, "device") is None:
        return None
    data = call.args[0]
    if not opens_plainly(call, data, ctx):
        return None
    if isinstance(data, ast.List | ast.Tuple) and not data.elts:
        return _made(call, data, "empty", "0", Applicability.SAFE, ctx)
    shaped = _shape_and_value(data, ctx)
    if shaped is None:
        return None
    shape, value, never_empty = shaped
    dtype = ctx.keyword(call, "dtype")
    if not never_empty and dtype is None:
        return None  # an empty list is float32 whatever was in it
    number = ast.literal_eval(value)
    if not abs(number) <= _limit(number, dtype, never_empty, ctx):
        return None
    return _made(call, data, "full", f"{shape}, {ctx.text(value)}", Applicability.SAFE, ctx)


def number_on_device(call: ast.Call, ctx: Context) -> Fix | None:
    """UNSAFE `torch.full` for one host number that is no literal: `torch.tensor([n], dtype=t, device=d)`.

    Only with a dtype, since that of a numpy number is not what `torch.full` infers; a number that the dtype does not hold may
    be rounded by one and refused by the other.
    """
    if ctx.name(call.func) not in CONSTRUCTORS or len(call.args) != 1 or ctx.keyword(call, "dtype") is None:
        return None
    data = call.args[0]
    number, shape = (data.elts[0], "(1,)") if isinstance(data, ast.List | ast.Tuple) and len(data.elts) == 1 else (data, "()")
    known = ctx.value(number)
    if known.kind is not Kind.SCALAR or known.by_name or not opens_plainly(call, data, ctx) or "#" in ctx.text(data):
        return None
    return _made(call, data, "full", f"{shape}, {ctx.text(number)}", Applicability.UNSAFE, ctx)


def _made(call: ast.Call, data: ast.expr, factory: str, arguments: str, applicability: Applicability, ctx: Context) -> Fix:
    torch = torch_module(ctx.source)
    edits = (Edit(ctx.source.span(call.func), f"{torch.text}.{factory}"), Edit(ctx.source.span(data), arguments))
    return Fix(f"make it on the device with torch.{factory}", edits, applicability, torch.imports)


def opens_plainly(call: ast.Call, first: ast.expr, ctx: Context) -> bool:
    """True if nothing but the bracket of `call` and white space stands before its first argument: no parentheses of its own."""
    return ctx.source.text[ctx.source.span(call.func).end : ctx.source.span(first).start].strip() == "("


def _shape_and_value(data: ast.expr, ctx: Context) -> tuple[str, ast.expr, bool] | None:
    """(shape, value, cannot be empty)."""
    nested = _nested(data)
    if nested is not None:
        shape, first = nested
        return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})", first, True
    match data:
        case ast.BinOp(left=ast.List(elts=[value]), op=ast.Mult(), right=length) if _is_number(value):
            if isinstance(length, ast.Constant) and type(length.value) is int:
                return f"({length.value},)", value, length.value > 0
            if _is_length(length, ctx):
                return f"({ctx.text(length)},)", value, False
    return None


def _nested(data: ast.expr) -> tuple[tuple[int, ...], ast.expr] | None:
    """Shape and value of nested lists that hold one number again and again; None for anything else."""
    if _is_number(data):
        return (), data
    if not isinstance(data, ast.List | ast.Tuple) or not data.elts:
        return None
    parts = [_nested(part) for part in data.elts]
    first = parts[0]
    for part in parts:
        if first is None or part is None or part[0] != first[0] or ast.dump(part[1]) != ast.dump(first[1]):
            return None
    return ((len(parts), *first[0]), first[1]) if first else None


def _is_length(node: ast.expr, ctx: Context) -> bool:
    """`len(x)`, which is never negative: a list times a negative number is empty, a negative shape is an error."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute()], keywords=[]):
            return not ctx.assigned("len")
    return False


def _limit(number: float, dtype: ast.expr | None, never_empty: bool, ctx: Context) -> float:
    """Up to which size the two constructors agree, on errors too."""
    if not never_empty:
        return SMALL  # an empty list holds nothing that could be too large
    is_wide = isinstance(number, int) if dtype is None else ctx.name(dtype) in WIDE
    return LARGE if is_wide else HALF


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return not isinstance(value, bool)
        case ast.Constant(value=int() | float()):
            return True
    return False

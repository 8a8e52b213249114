"""A tensor made on the host and moved, made on the device instead: `torch.zeros(n).to(d)` -> `torch.zeros(n, device=d)`."""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import add_argument, on_one_line
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.values import Kind

EXACT = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "eye"))  # every device makes the same
INEXACT = frozenset(f"torch.{name}" for name in ("arange", "linspace", "logspace", "rand", "randn", "randint", "randperm"))
HANDLED = frozenset({"dtype", "size", "fill_value", "n", "m", "start", "end", "step", "steps", "base", "low", "high"})


def make_on_device(move: ast.Call, ctx: Context) -> Fix | None:
    """The fix for `torch.factory(...).to(device)` and `.cuda()`; None for other moves.

    SAFE for factories whose values every device makes alike. UNSAFE for random ones, which use another generator, and for
    ranges of floats, which may round differently. A dtype in the move, a pinned or shared result: no fix.
    """
    if not isinstance(move.func, ast.Attribute) or not isinstance(move.func.value, ast.Call):
        return None
    made = move.func.value
    name, device = ctx.name(made.func), _device(move, ctx)
    if name not in EXACT | INEXACT or not device or not {keyword.arg for keyword in made.keywords} <= HANDLED:
        return None
    added = add_argument(made, f"device={device}", ctx)
    tail = Span(ctx.source.span(made).end, ctx.source.span(move).end)
    if added is None or not _is_plain(ctx.source.text[tail.start : tail.end]):
        return None
    exact = name in EXACT or (name == "torch.arange" and all(_is_whole(value, ctx) for value in made.args))
    applicability = Applicability.SAFE if exact else Applicability.UNSAFE
    return Fix(f"make it on the device: {name}(..., device={device})", (added, Edit(tail, "")), applicability)


def _device(move: ast.Call, ctx: Context) -> str:
    """The device of a move as source text; empty where it may be a dtype or another tensor."""
    if any(keyword.arg not in ("device", "non_blocking") for keyword in move.keywords):
        return ""
    named = ctx.keyword(move, "device")
    given = [*move.args, *([named] if named else [])]
    match move.func, given:
        case ast.Attribute(attr="cuda"), []:
            return '"cuda"'
        case ast.Attribute(attr="to"), [device] if named or _is_device(device, ctx):
            return on_one_line(device, ctx)
    return ""


def _is_device(node: ast.expr, ctx: Context) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.Attribute(attr="device") | ast.Name(id="device"):
            return True
    return ctx.value(node).kind is Kind.DEVICE


def _is_whole(node: ast.expr, ctx: Context) -> bool:
    """True for what is a whole number on the host for certain."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_whole(operand, ctx)
        case ast.Call(func=ast.Name(id="len")):
            return not ctx.assigned("len")
    return False


def _is_plain(tail: str) -> bool:
    """True if what is taken away holds no comment, and no closing parenthesis around what was made."""
    return "#" not in tail and "\\" not in tail and tail.lstrip().startswith(".")

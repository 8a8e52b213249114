"""One `torch._foreach_*` call for a loop that does one operation on each tensor of a list.

UNSAFE: the values are the same, but all tensors are held in one list, an error leaves none or all of them changed, and a
tensor that is in the list twice may be read before it is written.
"""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.liveness import Liveness
from launchlint.fixes.staging import torch_module
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context, Loop
from launchlint.values import Kind

# Operations that `_foreach_` has with the same meaning for no argument and for one number.
WITHOUT_ARGUMENT = frozenset({"zero_", "neg_", "sqrt_", "abs_"})
WITH_NUMBER = frozenset({"mul_", "add_", "div_", "sub_"})
NAMES = ("tensors", "tensor_list", "foreach_tensors")


def rewrite(call: ast.Call, loop: Loop, ctx: Context) -> Fix | None:
    """The fix for `for p in params: p.op_(...)`, with or without an `if` around the operation; None for other loops."""
    arguments = _arguments(call, ctx)
    taken = _taken(call, loop, ctx)
    if arguments is None or taken is None:
        return None
    name = _free_name(ctx)
    if not name:
        return None
    torch = torch_module(ctx.source)
    assert isinstance(call.func, ast.Attribute) and isinstance(loop, ast.For)
    start = ctx.source.span(loop).start
    indent = ctx.source.text[ctx.source.line_starts[ctx.source.position(start).line - 1] : start]
    if indent.strip():
        return None
    step = "\t" if indent.endswith("\t") else "    "
    operation = f"{torch.text}._foreach_{call.func.attr}({', '.join([name, *arguments])})"
    text = f"{name} = [{taken}]\n{indent}if {name}:  # an empty list is an error\n{indent}{step}{operation}"
    edit = Edit(ctx.source.span(loop), text)
    return Fix(f"one {torch.text}._foreach_{call.func.attr} for all tensors", (edit,), Applicability.UNSAFE, torch.imports)


def _arguments(call: ast.Call, ctx: Context) -> list[str] | None:
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return None
    match call.args:
        case [] if call.func.attr in WITHOUT_ARGUMENT:
            return []
        case [number] if call.func.attr in WITH_NUMBER:
            value = ctx.value(number)
            if value.kind is Kind.SCALAR and not value.by_name:
                return [on_one_line(number, ctx)]
    return None


def _taken(call: ast.Call, loop: Loop, ctx: Context) -> str | None:
    """The inside of the list of tensors: `p.grad for p in params if p.grad is not None`."""
    function = ctx.function.node
    match loop:
        case ast.For(target=ast.Name(id=name), body=[statement], orelse=[]) if function is not None:
            pass
        case _:
            return None
    span = ctx.source.span(loop)
    if "#" in ctx.source.text[span.start : span.end] or Liveness(function).is_read_after(frozenset({name}), loop):
        return None
    if any(isinstance(node, ast.Name) and node.id == name for argument in call.args for node in ast.walk(argument)):
        return None
    condition = ""
    match statement:
        case ast.If(test=test, body=[ast.Expr(value=inner)], orelse=[]):
            condition = f" if {on_one_line(test, ctx)}"
        case ast.Expr(value=inner):
            pass
        case _:
            return None
    if inner is not call or not isinstance(call.func, ast.Attribute):
        return None
    return f"{on_one_line(call.func.value, ctx)} for {name} in {on_one_line(loop.iter, ctx)}{condition}"


def _free_name(ctx: Context) -> str:
    used = {node.id for node in ast.walk(ctx.source.tree) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(ctx.source.tree) if isinstance(node, ast.arg)}
    return next((name for name in NAMES if name not in used), "")

"""Pinning where the memory is made, or the project's upload helper."""

from __future__ import annotations

import ast

from launchlint.fixes.staging import helper, pin_memory
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.values import Device, Kind

# Factories that take `pin_memory=`.
FACTORIES = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "arange", "rand", "randn", "randint", "linspace"))
LISTS = frozenset({Kind.LIST, Kind.TUPLE, Kind.SCALAR})


def rewrite(call: ast.Call, ctx: Context) -> Fix | None:
    """The fix for a `.to(d, non_blocking=True)`, `.cuda(non_blocking=True)` or `dst.copy_(src, non_blocking=True)`.

    UNSAFE: `pin_memory=` in the call that makes the host tensor, where that call is in sight; or the configured helper
    where the tensor is made in the same expression. A sketch where it is made otherwise.
    """
    host = _host_side(call)
    if host is None:
        return None
    return _through_helper(call, host, ctx) or _pinned(host, ctx) or _shown(host, ctx)


def _host_side(call: ast.Call) -> ast.expr | None:
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="to" | "cuda")):
            return owner
        case ast.Call(func=ast.Attribute(attr="copy_"), args=[host, *_]):
            return host
    return None


def _through_helper(call: ast.Call, host: ast.expr, ctx: Context) -> Fix | None:
    """`torch.tensor(x, dtype=t).to(d, non_blocking=True)` -> `helper(x, dtype=t, device=d)`, also for `torch.from_numpy(x)`."""
    own = helper(ctx.settings)
    match call, host:
        case (
            ast.Call(func=ast.Attribute(attr="to"), args=[device], keywords=[ast.keyword(arg="non_blocking")]),
            ast.Call(args=[data], keywords=[] | [ast.keyword(arg="dtype")]),
        ) if own is not None and ctx.name(host.func) in ("torch.tensor", "torch.from_numpy"):
            pass
        case _:
            return None
    text = ctx.source.text
    whole, dtype = ctx.source.span(call), ctx.keyword(host, "dtype")
    if "#" in text[whole.start : whole.end] or isinstance(data, ast.Starred):
        return None
    parts = [_one_line(data, ctx), *([f"dtype={_one_line(dtype, ctx)}"] if dtype else []), f"device={_one_line(device, ctx)}"]
    edit = Edit(whole, f"{own.text}({', '.join(parts)})")
    return Fix(f"upload with {own.text}", (edit,), Applicability.UNSAFE, own.imports)


def _pinned(host: ast.expr, ctx: Context) -> Fix | None:
    """Not in a loop, where one copy for all turns is the cure and pinned memory per turn is not."""
    made = _creation(host, ctx)
    pin = pin_memory(ctx.source, ctx.settings)
    if made is None or pin is None or not pin.text or ctx.loops() or not _can_pin(made, ctx):
        return None
    edit = _added_argument(made, f"pin_memory={pin.text}", ctx)
    if edit is None:
        return None
    return Fix("make the host tensor in pinned memory", (edit,), Applicability.UNSAFE, pin.imports)


def _creation(host: ast.expr, ctx: Context) -> ast.Call | None:
    """The call that makes the host tensor: the expression itself, or what its name is bound to, once."""
    match host:
        case ast.Call():
            return host
        case ast.Name(id=name):
            match ctx.assigned(name):
                case [ast.Assign(targets=[ast.Name()], value=ast.Call() as made)] | [ast.AnnAssign(value=ast.Call() as made)]:
                    return made
    return None


def _can_pin(made: ast.Call, ctx: Context) -> bool:
    name = ctx.name(made.func)
    if any(keyword.arg in (None, "pin_memory", "out") for keyword in made.keywords) or not made.args:
        return False
    device = ctx.keyword(made, "device")
    if device is not None and ctx.device(device) is not Device.HOST:
        return False
    if name == "torch.tensor":  # refuses to pin what it makes from a numpy array or a tensor
        return ctx.value(made.args[0]).kind in LISTS
    return name in FACTORIES


def _added_argument(made: ast.Call, argument: str, ctx: Context) -> Edit | None:
    """Insert an argument at the end, in the layout that is there; None where a comment or a backslash follows the last one."""
    text, bracket = ctx.source.text, ctx.source.span(made).end - 1
    last = max(ctx.source.span(part).end for part in (*made.args, *(keyword.value for keyword in made.keywords)))
    rest = text[last:bracket]
    if "#" in rest or "\\" in rest:
        return None
    used = last + len(rest.rstrip())
    if not text[last:used].endswith(","):
        return Edit(Span(used, used), f", {argument}")
    lines = text[ctx.source.span(made).start : bracket]
    if "\n" not in rest and "\r" not in rest:
        return Edit(Span(used, used), f" {argument}" if "\n" in lines else f" {argument},")
    start = min(ctx.source.span(part).start for part in made.args)
    line_start = ctx.source.line_starts[ctx.source.position(start).line - 1]
    indent = text[line_start:start]
    return Edit(Span(used, used), f"\n{indent}{argument}," if not indent.strip() else f" {argument},")


def _shown(host: ast.expr, ctx: Context) -> Fix:
    """`torch.from_numpy` and operations give pageable memory whatever their input was."""
    match host:
        case ast.Call(args=[ast.expr() as data, *_]) if ctx.name(host.func) == "torch.from_numpy":
            array = _one_line(data, ctx)
            sketch = f"torch.empty({array}.shape, dtype=..., pin_memory=True).copy_(torch.from_numpy({array}))"
        case _:
            sketch = "staged = torch.empty(..., pin_memory=True); staged.copy_(host)"
    return Fix("stage in memory that is allocated pinned", (), Applicability.DISPLAY, shows=sketch)


def _one_line(node: ast.expr, ctx: Context) -> str:
    text = ctx.text(node)
    return ast.unparse(node) if "\n" in text or "\r" in text else text

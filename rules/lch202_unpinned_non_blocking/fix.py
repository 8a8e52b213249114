"""Pinning where the memory is made, or the project's upload helper."""

from __future__ import annotations

import ast
from dataclasses import replace

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.factories import make_on_device
from launchlint.fixes.pinning import pin_creation
from launchlint.fixes.staging import helper
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context


def rewrite(call: ast.Call, ctx: Context) -> Fix | None:
    """The fix for a `.to(d, non_blocking=True)`, `.cuda(non_blocking=True)` or `dst.copy_(src, non_blocking=True)`.

    UNSAFE: no copy, where a factory can make the tensor on the device; `pin_memory=` in the call that makes the host tensor,
    where that call is in sight; or the configured helper where the tensor is made in the same expression. A sketch where it
    is made otherwise.
    """
    host = _host_side(call)
    if host is None:
        return None
    return _without_copy(call, ctx) or _through_helper(call, host, ctx) or _pinned(call, host, ctx) or _shown(host, ctx)


def _without_copy(call: ast.Call, ctx: Context) -> Fix | None:
    """`torch.zeros(n).to(d, non_blocking=True)` -> `torch.zeros(n, device=d)`."""
    fix = make_on_device(call, ctx)
    return replace(fix, applicability=Applicability.UNSAFE) if fix else None


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
    parts = [on_one_line(data, ctx), *([f"dtype={on_one_line(dtype, ctx)}"] if dtype else []), f"device={on_one_line(device, ctx)}"]
    edit = Edit(whole, f"{own.text}({', '.join(parts)})")
    return Fix(f"upload with {own.text}", (edit,), Applicability.UNSAFE, own.imports)


def _pinned(call: ast.Call, host: ast.expr, ctx: Context) -> Fix | None:
    pinned = pin_creation(host, call, ctx)
    if pinned is None:
        return None
    edit, imports = pinned
    return Fix("make the host tensor in pinned memory", (edit,), Applicability.UNSAFE, imports)


def _shown(host: ast.expr, ctx: Context) -> Fix:
    """`torch.from_numpy` and operations give pageable memory whatever their input was."""
    match host:
        case ast.Call(args=[ast.expr() as data, *_]) if ctx.name(host.func) == "torch.from_numpy":
            array = on_one_line(data, ctx)
            sketch = f"torch.empty({array}.shape, dtype=..., pin_memory=True).copy_(torch.from_numpy({array}))"
        case _:
            sketch = "staged = torch.empty(..., pin_memory=True); staged.copy_(host)"
    return Fix("stage in memory that is allocated pinned", (), Applicability.DISPLAY, shows=sketch)

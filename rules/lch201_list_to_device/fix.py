"""The upload of host data as the project wants it, or none at all where the data is a constant.

The edits are as small as they can be, so that comments and the layout inside the call stay.
"""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.constants import CONSTRUCTORS, fill_on_device, number_on_device
from launchlint.fixes.staging import helper, pin_memory, torch_module
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.values import Device, Kind

LISTS = frozenset({Kind.LIST, Kind.TUPLE, Kind.SCALAR})


def rewrite(call: ast.Call, ctx: Context) -> Fix | None:
    """SAFE `torch.full` for literal constants; else UNSAFE, `torch.full` for a number, the configured helper or a pinned
    upload; else a sketch.

    None where the call is not `torch.tensor(data, dtype=..., device=...)` or one of its relatives.
    """
    device = ctx.keyword(call, "device")
    if device is None or ctx.device(device) is Device.HOST or ctx.name(call.func) not in CONSTRUCTORS:
        return None
    keywords = {keyword.arg for keyword in call.keywords}
    if not keywords <= {"dtype", "device"} or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    return (
        fill_on_device(call, ctx)
        or number_on_device(call, ctx)
        or _through_helper(call, ctx)
        or _pinned(call, device, ctx)
        or _shown(call, device, ctx)
    )


def _through_helper(call: ast.Call, ctx: Context) -> Fix | None:
    """`torch.tensor` copies whatever it is given; its relatives hand a tensor through, so their data must be known."""
    own = helper(ctx.settings)
    kind = ctx.value(call.args[0]).kind
    if own is None or not (kind in LISTS or kind is Kind.ARRAY or (kind is Kind.UNKNOWN and ctx.name(call.func) == "torch.tensor")):
        return None
    edit = Edit(ctx.source.span(call.func), own.text)
    return Fix(f"upload with {own.text}", (edit,), Applicability.UNSAFE, own.imports)


def _pinned(call: ast.Call, device: ast.expr, ctx: Context) -> Fix | None:
    """`torch.tensor(x, device=d)` -> `torch.tensor(x, pin_memory=True).to(d, non_blocking=True)`.

    Only for lists and numbers: `torch.tensor` refuses to pin what it makes from a numpy array or a tensor. Not in a loop,
    where one upload for all turns is the cure and pinned memory per turn is not. Not where the device may be None, the
    default device, to which `.to(None)` copies nothing.
    """
    if ctx.loops() or any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(device)):
        return None
    pin = pin_memory(ctx.source, ctx.settings)
    place = _keyword_span(call, "device", ctx)
    if pin is None or not pin.text or ctx.value(call.args[0]).kind not in LISTS or "#" in ctx.source.text[place.start : place.end]:
        return None
    edits = [Edit(place, f"pin_memory={pin.text}")]
    imports = pin.imports
    if ctx.name(call.func) != "torch.tensor":  # the others take no pin_memory
        torch = torch_module(ctx.source)
        edits.append(Edit(ctx.source.span(call.func), f"{torch.text}.tensor"))
        imports += torch.imports
    end = ctx.source.span(call).end
    edits.append(Edit(Span(end, end), f".to({on_one_line(device, ctx)}, non_blocking=True)"))
    return Fix("build the tensor in pinned memory and copy without waiting", tuple(sorted(edits)), Applicability.UNSAFE, imports)


def _shown(call: ast.Call, device: ast.expr, ctx: Context) -> Fix:
    data, target = on_one_line(call.args[0], ctx), on_one_line(device, ctx)
    if ctx.value(call.args[0]).kind is Kind.ARRAY and not ctx.loops():
        sketch = f"torch.empty({data}.shape, dtype=..., pin_memory=True).copy_(torch.from_numpy({data})).to({target}, non_blocking=True)"
    elif ctx.loops():
        sketch = "before the loop: one pinned host tensor for all turns, one copy with non_blocking=True, then its rows"
    else:
        sketch = f"torch.tensor({data}, pin_memory=True).to({target}, non_blocking=True)"
    return Fix("upload from pinned memory without waiting", (), Applicability.DISPLAY, shows=sketch)


def _keyword_span(call: ast.Call, name: str, ctx: Context) -> Span:
    """A keyword argument with the parentheses around its value, which the value's own span leaves out."""
    keyword = next(keyword for keyword in call.keywords if keyword.arg == name)
    start = ctx.source.offset(keyword.lineno, keyword.col_offset)
    end_line, end_column = keyword.end_lineno, keyword.end_col_offset
    return Span(start, ctx.source.offset(end_line or keyword.lineno, end_column or 0))

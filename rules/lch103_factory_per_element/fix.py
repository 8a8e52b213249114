"""One `repeat_interleave` for `torch.cat([torch.full((n,), i, ...) for i, n in enumerate(counts)])`.

UNSAFE: values, dtype and shape are the same; the counts and an id vector take memory on the device, the counts are uploaded
from pinned memory, and an empty list of counts gives an empty tensor where `torch.cat` raises.
"""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.layout import call, render
from launchlint.fixes.staging import stage, torch_module
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context
from launchlint.values import Device, Kind

WHOLE = frozenset(f"torch.{name}" for name in ("int64", "long", "int32", "int", "int16", "short"))


def rewrite(join: ast.Call, ctx: Context) -> Fix | None:
    """The fix for the one form in which the counts are a host list and every piece is full of its own number."""
    match join:
        case ast.Call(
            args=[
                ast.ListComp(
                    elt=ast.Call() as made,
                    generators=[
                        ast.comprehension(
                            target=ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=count)]),
                            iter=ast.Call(func=ast.Name(id="enumerate"), args=[(ast.Name() | ast.Attribute()) as counts], keywords=[]),
                            ifs=[],
                            is_async=0,
                        )
                    ],
                )
            ],
            keywords=[],
        ) if ctx.name(join.func) == "torch.cat" and _is_full(made, number, count, ctx):
            pass
        case _:
            return None
    value, span = ctx.value(counts), ctx.source.span(join)
    if value.kind is not Kind.LIST or value.by_name or value.element is None or value.element.kind is not Kind.SCALAR:
        return None
    if "#" in ctx.source.text[span.start : span.end]:
        return None
    torch = torch_module(ctx.source)
    device, dtype = ctx.keyword(made, "device"), ctx.keyword(made, "dtype")
    if device is None:
        return None
    place, counted = on_one_line(device, ctx), on_one_line(counts, ctx)
    staged = stage(ctx, counted, f"{torch.text}.int64", place, True)
    if staged is None:
        return None
    ids = call(f"{torch.text}.arange", f"len({counted})", dtype=on_one_line(dtype, ctx) if dtype else "", device=place)
    code = call(f"{torch.text}.repeat_interleave", ids, staged.code, output_size=f"sum({counted})")
    start = ctx.source.line_starts[ctx.source.position(span.start).line - 1]
    line = ctx.source.text[start : span.start]
    indent = line[: len(line) - len(line.lstrip())]
    text = render(code, indent, line[len(indent) :])[len(line) - len(indent) :]
    imports = tuple(dict.fromkeys(torch.imports + staged.imports))
    return Fix("one torch.repeat_interleave for all pieces", (Edit(span, text),), Applicability.UNSAFE, imports)


def _is_full(made: ast.Call, number: str, count: str, ctx: Context) -> bool:
    """`torch.full((count,), number, dtype=..., device=...)` on the device and of a whole type."""
    match made:
        case ast.Call(args=[ast.Tuple(elts=[ast.Name(id=length)]) | ast.List(elts=[ast.Name(id=length)]), ast.Name(id=value)]):
            if (length, value) != (count, number) or ctx.name(made.func) != "torch.full":
                return False
        case _:
            return False
    if not {keyword.arg for keyword in made.keywords} <= {"dtype", "device"}:
        return False
    dtype, device = ctx.keyword(made, "dtype"), ctx.keyword(made, "device")
    return (dtype is None or ctx.name(dtype) in WHOLE) and device is not None and ctx.device(device) is Device.DEVICE

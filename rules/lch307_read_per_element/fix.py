"""One `tolist()` before the loop for `for i in ...: t[i].item()`."""

from __future__ import annotations

import ast

from launchlint.fixes.comments import comments, loses_comment
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.names import dotted
from launchlint.rule import Context
from launchlint.values import Kind

_CASTS = frozenset({"int", "float", "bool"})


def rewrite(node: ast.Call, read: ast.expr, ctx: Context) -> Fix | None:
    """Hoist every `t[i].item()` and `int(t[i])` of the loop at once; None where the loop may write or rebind `t`.

    `flatten` keeps `t` of shape (n, 1) right: there `t[i].item()` works and `t.tolist()[i]` would be a list.
    UNSAFE: the values are read before the loop, and also where the loop makes no turn.
    """
    loop = ctx.loops()[0]
    match node, read:
        case ast.Call(func=ast.Attribute(attr="item") | ast.Name(), args=_), ast.Subscript(value=ast.Name() as table):
            pass
        case _:
            return None
    if not isinstance(loop, ast.For) or loop.orelse or not _is_left_alone(loop, table.id, ctx):
        return None
    name = f"{table.id}_values"
    inside = (place for statement in loop.body for place in ast.walk(statement))
    places = [place for place in inside if isinstance(place, ast.Call) and _element_of(place, table.id, ctx) is not None]
    if not places or min(places, key=ctx.source.span) is not node:
        return None  # the first read of the loop carries the fix for all
    if _uses(loop, table.id) != len(places) or _is_taken(name, ctx):
        return None
    edits = [_before(loop, f"{name} = {table.id}.flatten().tolist()", ctx), *(_edit(place, table.id, name, ctx) for place in places)]
    if any(edit is None for edit in edits):
        return None
    made = tuple(edit for edit in edits if edit is not None)
    if loses_comment(comments(ctx.source), made):
        return None
    return Fix(f"read `{table.id}` once, before the loop", made, Applicability.UNSAFE)


def _element_of(place: ast.Call, table: str, ctx: Context) -> ast.Subscript | None:
    """`t[i]` of `t[i].item()` and of `int(t[i])`, where `i` is a number on the host."""
    match place:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=name), slice=index) as element, attr="item"), args=[], keywords=[]
        ):
            pass
        case ast.Call(func=ast.Name(id=cast), args=[ast.Subscript(value=ast.Name(id=name), slice=index) as element], keywords=[]) if (
            cast in _CASTS
        ):
            pass
        case _:
            return None
    return element if name == table and ctx.value(index).kind is Kind.SCALAR else None


def _edit(place: ast.Call, table: str, name: str, ctx: Context) -> Edit | None:
    element = _element_of(place, table, ctx)
    if element is None:
        return None
    text = f"{name}[{ctx.text(element.slice)}]"
    if isinstance(place.func, ast.Name):
        return Edit(ctx.source.span(element), text)
    return Edit(ctx.source.span(place), text)


def _before(loop: ast.For, line: str, ctx: Context) -> Edit | None:
    start = ctx.source.span(loop).start
    first = ctx.source.line_starts[ctx.source.position(start).line - 1]
    indent = ctx.source.text[first:start]
    return None if indent.strip() else Edit(Span(start, start), f"{line}{ctx.source.newline}{indent}")


def _is_left_alone(loop: ast.For, table: str, ctx: Context) -> bool:
    """True if nothing in the loop gives `table` another value, writes to a tensor in place, or calls what might."""
    for node in ast.walk(loop):
        match node:
            case ast.Name(id=name) if name == table and not isinstance(node.ctx, ast.Load):
                return False
            case ast.Subscript(value=target) if not isinstance(node.ctx, ast.Load) and ctx.value(target).kind not in (
                Kind.LIST,
                Kind.DICT,
                Kind.ARRAY,
            ):
                return False
            case ast.AugAssign(target=target) if ctx.value(target).is_tensor:
                return False
            case ast.Call(func=ast.Attribute(attr=method)) if method.endswith("_"):
                return False
            case ast.Break() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.Return():
                return False
            case ast.Name(id="locals" | "vars" | "eval" | "exec"):
                return False
    return True


def _uses(loop: ast.For, table: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == table for statement in loop.body for node in ast.walk(statement))


def _is_taken(name: str, ctx: Context) -> bool:
    function = ctx.function.node
    return (
        function is None
        or any(dotted(node) == name for node in ast.walk(function) if isinstance(node, ast.Name))
        or any(argument.arg == name for argument in ast.walk(function) if isinstance(argument, ast.arg))
    )

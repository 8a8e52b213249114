"""Adding an argument to a call in the layout that the call has."""

from __future__ import annotations

import ast

from launchlint.model import Edit, Span
from launchlint.rule import Context

_PARENTHESISED = (ast.Yield, ast.YieldFrom, ast.NamedExpr)


def add_argument(call: ast.Call, argument: str, ctx: Context) -> Edit | None:
    """Insert `argument` behind the last one; None where a comment or a backslash is in the way."""
    text, bracket = ctx.source.text, ctx.source.span(call).end - 1
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not values:
        empty = text[ctx.source.span(call.func).end : bracket].strip() == "("
        return Edit(Span(bracket, bracket), argument) if empty else None
    last = max(ctx.source.span(value).end for value in values)
    rest = text[last:bracket]  # closing parentheses of the last value, a comma, white space
    if "#" in rest or "\\" in rest:
        return None
    place = last + len(rest.rstrip())
    here = Span(place, place)
    if not text[last:place].endswith(","):
        return Edit(here, f", {argument}")
    if "\n" not in rest and "\r" not in rest:
        return Edit(here, f" {argument},")
    first = min(ctx.source.span(value).start for value in values)
    indent = text[ctx.source.line_starts[ctx.source.position(first).line - 1] : first]
    return Edit(here, f" {argument}," if indent.strip() else f"\n{indent}{argument},")


def on_one_line(node: ast.expr, ctx: Context) -> str:
    """The source of `node` for an argument, as written where that is one line without a comment.

    `(yield x)` and `(x := y)` need their parentheses in most places, which are not part of what is written of them.
    """
    text = ctx.text(node)
    return ast.unparse(node) if "\n" in text or "\r" in text or "#" in text or isinstance(node, _PARENTHESISED) else text

"""`output_size=` where the repeats were made from a list that the host still has."""

from __future__ import annotations

import ast

from launchlint import reads
from launchlint.fixes.arguments import add_argument
from launchlint.model import Applicability, Fix
from launchlint.names import dotted
from launchlint.rule import Context
from launchlint.values import Kind

_GROWS = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "fill", "put", "resize"})


def rewrite(node: ast.Call, data: ast.expr | None, repeats: ast.expr, ctx: Context) -> Fix | None:
    """SAFE where the counts alone give the length; else UNSAFE, because one count may stand for every row."""
    counts = _counts(repeats, ctx)
    if counts is None or len(ctx.assigned("sum")) or (ctx.keyword(node, "dim") is not None and data is None):
        return None
    text = ctx.text(counts)
    total = f"sum({text})" if ctx.value(counts).kind is Kind.LIST else f"int({text}.sum())"
    edit = add_argument(node, f"output_size={total}", ctx)
    if edit is None:
        return None
    safe = data is None or _counts_up(data, text, ctx)
    return Fix(f"say the length: output_size={total}", (edit,), Applicability.SAFE if safe else Applicability.UNSAFE)


def _counts(repeats: ast.expr, ctx: Context) -> ast.expr | None:
    """The list behind the repeats: in the call itself, or in the assignment above with nothing in between that changes it."""
    direct = reads.uploaded(repeats, ctx)
    if direct is not None:
        return direct if _is_counts(direct, ctx) else None
    if not isinstance(repeats, ast.Name):
        return None
    between: list[ast.stmt] = []
    for statement in reads.before(ctx):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=made) if name == repeats.id:
                data = reads.uploaded(made, ctx)
                if data is None or not _is_counts(data, ctx):
                    return None
                touched = {dotted(data), repeats.id}
                return None if any(_changes(one, touched) for one in [*between, ctx.statement]) else data
        between.append(statement)
    return None


def _is_counts(data: ast.expr, ctx: Context) -> bool:
    """A name of a list of numbers or of an array of one dimension, as far as can be seen."""
    value = ctx.value(data)
    if not isinstance(data, (ast.Name, ast.Attribute)) or value.by_name:
        return False
    if value.kind is Kind.ARRAY:
        return True
    return value.kind is Kind.LIST and (value.element is None or value.element.kind in (Kind.SCALAR, Kind.UNKNOWN))


def _changes(statement: ast.stmt, names: set[str]) -> bool:
    """True if `statement` may give one of `names` another value or change it in place."""
    for node in ast.walk(statement):
        match node:
            case ast.Name() | ast.Attribute() if isinstance(node.ctx, ast.Store) and dotted(node) in names:
                return True
            case ast.Subscript(value=target) if isinstance(node.ctx, (ast.Store, ast.Del)) and dotted(target) in names:
                return True
            case ast.Call(func=ast.Attribute(value=target, attr=method)) if dotted(target) in names and (
                method in _GROWS or method.endswith("_")
            ):
                return True
    return False


def _counts_up(data: ast.expr, counts: str, ctx: Context) -> bool:
    """`torch.arange(len(counts), ...)`: as many rows as counts, so that no count is spread over several rows."""
    match data:
        case ast.Call(func=function, args=[ast.Call(func=ast.Name(id="len"), args=[counted])]) if ctx.name(function) == "torch.arange":
            return ctx.text(counted) == counts
    return False

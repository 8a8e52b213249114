"""Filled pieces that are joined, made at once: `torch.cat([torch.full((n,), i, device=d) for i, n in enumerate(counts)])`."""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.layout import flat
from launchlint.fixes.repeats import Turn, are_host_values, ids_of, repeat, turn_of
from launchlint.fixes.staging import torch_module
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context
from launchlint.values import Device

JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack"})


def join_of_fills(joined: ast.Call, ctx: Context) -> Fix | None:
    """The UNSAFE fix for a join of one-dimensional `torch.full` pieces over host counts; None for every other join.

    Same values, dtype and shape, but for no counts at all: the join raises, the new code gives an empty tensor.
    """
    match joined.args:
        case [ast.ListComp(generators=[walk], elt=ast.Call() as piece)]:
            pass
        case _:
            return None
    turn = turn_of(walk.target, walk.iter)
    if ctx.name(joined.func) not in JOINS or not _joins_rows(joined) or walk.is_async or turn is None:
        return None
    if any(not _is_guard(test, turn) for test in walk.ifs) or "#" in ctx.text(joined):
        return None
    return _fix(joined, piece, turn, ctx)


def _fix(joined: ast.Call, piece: ast.Call, turn: Turn, ctx: Context) -> Fix | None:
    named = {keyword.arg: keyword.value for keyword in piece.keywords}
    if ctx.name(piece.func) != "torch.full" or len(piece.args) != 2 or not set(named) <= {"dtype", "device"}:
        return None
    size, value = piece.args
    if not (isinstance(size, ast.Tuple | ast.List) and len(size.elts) == 1 and turn.is_count(size.elts[0])):
        return None
    written = frozenset(turn.names)
    ids = ids_of(value, turn, written)
    if ids is None or not are_host_values(turn.counts, ids, ctx):
        return None
    dtype, device = named.get("dtype"), named.get("device")
    if dtype is None and (ids.listed or ids.shift):
        return None  # what torch.full infers depends on the value; a bare index is int64
    if device is not None and ctx.device(device) is Device.HOST:
        return None
    torch = torch_module(ctx.source).text
    made = repeat(
        turn.counts,
        ids,
        on_one_line(dtype, ctx) if dtype else f"{torch}.int64",
        on_one_line(device, ctx) if device else "",
        f"sum({on_one_line(turn.counts, ctx)})",
        ctx,
    )
    if made is None or _depends_on_turn(piece, written):
        return None
    title = "make all pieces with one torch.repeat_interleave"
    return Fix(title, (Edit(ctx.source.span(joined), flat(made.code)),), Applicability.UNSAFE, made.imports)


def _depends_on_turn(piece: ast.Call, written: frozenset[str]) -> bool:
    """True if the dtype or the device of a piece depends on its turn."""
    parts = [part for keyword in piece.keywords for part in ast.walk(keyword.value)]
    return any(isinstance(part, ast.Name) and part.id in written for part in parts)


def _is_guard(test: ast.expr, turn: Turn) -> bool:
    """`if n`, `if n > 0`: without it the piece is empty."""
    match test:
        case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
            return turn.is_count(left)
    return turn.is_count(test)


def _joins_rows(joined: ast.Call) -> bool:
    return all(keyword.arg == "dim" and isinstance(keyword.value, ast.Constant) and keyword.value.value == 0 for keyword in joined.keywords)

"""What a fill loop and a list of filled pieces have in common: per turn a count and an id, and one `repeat_interleave` for all.

`for i, count in enumerate(counts)`, `for i in range(len(counts))` and `for id, count in zip(ids, counts)` are read into a
`Turn`; the value of a turn into `Ids`; both together into the expression that gives every id as often as it counts.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.layout import call
from launchlint.fixes.staging import Staged, stage, torch_module
from launchlint.rule import Context
from launchlint.values import Kind

PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.operator, ast.unaryop, ast.expr_context
)  # fmt: skip
COUNTS_DTYPE = "int64"  # int32 counts are cast to int64 on the device first


@dataclass(frozen=True, slots=True)
class Turn:
    """What the header of a loop says of one turn: the names of the position, of the count and of the id."""

    counts: ast.expr
    count: str = ""
    index: str = ""
    start: int = 0  # of the index
    ids: ast.expr | None = None
    id_name: str = ""
    by_index: bool = False  # the count is `counts[index]`
    strict: bool = False  # there are as many ids as counts, or zip raises

    @property
    def names(self) -> tuple[str, ...]:
        """What the header binds."""
        return tuple(filter(None, (self.index, self.count, self.id_name)))

    def is_count(self, node: ast.expr) -> bool:
        """True if `node` is the count of the turn."""
        match node:
            case ast.Name(id=name):
                return name == self.count
            case ast.Subscript(value=value, slice=ast.Name(id=name)):
                return self.by_index and name == self.index and ast.dump(value) == ast.dump(self.counts)
        return False


@dataclass(frozen=True, slots=True)
class Ids:
    """The value of turn number p: `listed[p]` where that is given, else `p + start + shift`, with the loop-invariant `shift`
    subtracted where `negative`."""

    listed: ast.expr | None = None
    as_many: bool = False  # `listed` is as long as the counts; else it may be longer, and the rest is not used
    start: int = 0
    shift: ast.expr | None = None
    negative: bool = False


def turn_of(target: ast.expr, walked: ast.expr) -> Turn | None:
    """Read `for target in walked`; None for what is not one of the spellings over a plain name."""
    match target, walked:
        case ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=count)]), ast.Call(func=ast.Name(id="enumerate")) as numbered:
            start = _start(numbered)
            if start is not None and is_pure(numbered.args[0]):
                return Turn(numbered.args[0], count, index, start)
        case (
            ast.Name(id=index),
            ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[counts], keywords=[])], keywords=[]),
        ) if is_pure(counts):
            return Turn(counts, index=index, by_index=True)
        case (
            ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=count)]),
            ast.Call(func=ast.Name(id="zip"), args=[ids, counts], keywords=[] | [ast.keyword(arg="strict")] as options),
        ) if is_pure(ids) and is_pure(counts):
            strict = any(isinstance(option.value, ast.Constant) and option.value.value is True for option in options)
            return Turn(counts, count, ids=ids, id_name=name, strict=strict)
    return None


def _start(numbered: ast.Call) -> int | None:
    """The first index of `enumerate`; None where it is no literal."""
    match numbered.args, numbered.keywords:
        case ([_], []):
            return 0
        case ([_, ast.Constant(value=int(start))], []) | ([_], [ast.keyword(arg="start", value=ast.Constant(value=int(start)))]):
            return int(start)
    return None


def ids_of(value: ast.expr, turn: Turn, written: frozenset[str]) -> Ids | None:
    """Read `i`, `i + shift`, `shift + i`, `i - shift`, `ids[i]` or the id that zip gives; nothing in it may be `written`."""
    match value:
        case ast.Name(id=name) if name == turn.index:
            return Ids(start=turn.start)
        case ast.Name(id=name) if name == turn.id_name:
            return Ids(turn.ids, turn.strict)
        case ast.Subscript(value=listed, slice=ast.Name(id=name)) if name == turn.index and turn.start == 0:
            return Ids(listed) if _is_invariant(listed, written) else None
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, right=shift) if name == turn.index:
            negative = isinstance(op, ast.Sub)
        case ast.BinOp(left=shift, op=ast.Add(), right=ast.Name(id=name)) if name == turn.index:
            negative = False
        case _:
            return None
    return Ids(start=turn.start, shift=shift, negative=negative) if _is_invariant(shift, written) else None


def _is_invariant(node: ast.expr, written: frozenset[str]) -> bool:
    return is_pure(node) and not names_of(node) & written


def is_pure(node: ast.expr) -> bool:
    """True for names, attributes, constant subscripts, whole numbers and arithmetic on them: read twice, they give the same."""
    for part in ast.walk(node):
        if not isinstance(part, PURE):
            return False
        if isinstance(part, ast.Constant) and not isinstance(part.value, int | str):
            return False
    return True


def names_of(node: ast.AST | None) -> set[str]:
    """Every name in `node`."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if node else set()


# -------------------------------------------------------------------- the one expression


def are_host_values(counts: ast.expr, ids: Ids, ctx: Context) -> bool:
    """False where a tensor is among the operands: it would be read back, or be copied where nothing was copied before."""
    parts = [part for part in (counts, ids.listed, ids.shift) if part is not None]
    return not any(ctx.value(part).kind in (Kind.TENSOR, Kind.DICT) for part in parts)


def repeat(counts: ast.expr, ids: Ids, dtype: str, device: str, total: str, ctx: Context) -> Staged | None:
    """`torch.repeat_interleave(ids, counts, output_size=total)`: int64 counts uploaded as configured, ids of `dtype`.

    `dtype`, `device` (empty: the default device) and `total` are source text. None where the configured upload is not
    available in this file. The result has the dtype of the ids, one dimension and `total` items.
    """
    torch = torch_module(ctx.source)
    staged = _staged(counts, f"{torch.text}.{COUNTS_DTYPE}", device, ctx)
    made = _listed(counts, ids, dtype, device, ctx) if ids.listed else _range(counts, ids, dtype, device, ctx)
    if staged is None or made is None:
        return None
    code = call(f"{torch.text}.repeat_interleave", made.code, staged.code, output_size=total)
    return Staged(code, tuple(dict.fromkeys(torch.imports + staged.imports + made.imports)))


def _staged(data: ast.expr, dtype: str, device: str, ctx: Context) -> Staged | None:
    is_list = ctx.value(data).kind in (Kind.LIST, Kind.TUPLE)
    return stage(ctx, on_one_line(data, ctx), dtype, device, is_list)


def _listed(counts: ast.expr, ids: Ids, dtype: str, device: str, ctx: Context) -> Staged | None:
    """The listed ids, cut to as many as there are counts: a loop leaves the rest alone, `repeat_interleave` refuses it."""
    assert ids.listed is not None
    if ids.as_many:
        return _staged(ids.listed, dtype, device, ctx)
    cut = f"{_operand(ids.listed, ctx)}[: len({on_one_line(counts, ctx)})]"
    return stage(ctx, cut, dtype, device, ctx.value(ids.listed).kind in (Kind.LIST, Kind.TUPLE))


def _range(counts: ast.expr, ids: Ids, dtype: str, device: str, ctx: Context) -> Staged:
    """One id per count by one `arange`, with the shift in its bounds."""
    length = f"len({on_one_line(counts, ctx)})"
    shift = _operand(ids.shift, ctx) if ids.shift else ""
    bounds: tuple[str, ...]
    if ids.negative:
        first = f"{ids.start} - {shift}" if ids.start else f"-{shift}"
        bounds = (first, f"{length} + {ids.start} - {shift}" if ids.start else f"{length} - {shift}")
    else:
        first = " + ".join(part for part in (shift, str(ids.start) if ids.start else "") if part)
        bounds = (first, f"{first} + {length}") if first else (length,)
    return Staged(call(f"{torch_module(ctx.source).text}.arange", *bounds, dtype=dtype, device=device), ())


def _operand(node: ast.expr, ctx: Context) -> str:
    """`node` as an operand of + and -."""
    text = on_one_line(node, ctx)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.Subscript) else f"({text})"

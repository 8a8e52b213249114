"""The form that one `repeat_interleave` replaces: consecutive slices of one tensor, each filled with the id of its turn.

    offset = 0
    for i, count in enumerate(counts):
        ids[offset : offset + count].fill_(i + first)
        offset += count

in its spellings. This module looks at the loop alone; what stands around it is `placement`'s business.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.operator, ast.unaryop, ast.expr_context
)  # fmt: skip


Store = tuple[str, ast.expr, ast.expr]  # target, slice, value


@dataclass(frozen=True, slots=True)
class RunningOffset:
    """A recognised loop.

    Turn number p writes `target[offset : offset + counts[p]]`. The value is `ids[p]` where `ids` is given, else
    `p + start + shift`, with `shift` a loop-invariant expression that is subtracted where `negative`.
    """

    target: str
    offset: str
    counts: ast.expr
    ids: ast.expr | None = None
    start: int = 0
    shift: ast.expr | None = None
    negative: bool = False
    locals: frozenset[str] = field(default_factory=frozenset)  # every name that the loop binds, `offset` included


@dataclass(frozen=True, slots=True)
class Turn:
    """What the loop header says of one turn: names of the position, of the count and of the id."""

    counts: ast.expr
    count: str = ""
    index: str = ""
    start: int = 0
    ids: ast.expr | None = None
    id_name: str = ""
    by_index: bool = False  # the count is `counts[index]`


def running_offset(loop: ast.stmt) -> RunningOffset | None:
    """Describe `loop` if it is the form and does nothing else; None for everything else."""
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    turn = _turn(loop)
    if turn is None:
        return None
    body = list(loop.body)
    if turn.by_index and (named := _named_count(body[0], turn)):
        turn, body = replace(turn, count=named), body[1:]
    body = _without_guard(body, turn)
    return _describe(body, turn) if body else None


# -------------------------------------------------------------------- the header


def _turn(loop: ast.For) -> Turn | None:
    match loop.target, loop.iter:
        case ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=count)]), ast.Call(func=ast.Name(id="enumerate")) as call:
            start = _start(call)
            if start is not None and is_pure(call.args[0]):
                return Turn(call.args[0], count, index, start)
        case (
            ast.Name(id=index),
            ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[counts], keywords=[])], keywords=[]),
        ) if is_pure(counts):
            return Turn(counts, index=index, by_index=True)
        case (
            ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=count)]),
            ast.Call(func=ast.Name(id="zip"), args=[ids, counts], keywords=[] | [ast.keyword(arg="strict")]),
        ) if is_pure(ids) and is_pure(counts):
            return Turn(counts, count, ids=ids, id_name=name)
    return None


def _start(call: ast.Call) -> int | None:
    """The first index of `enumerate`; None where it is no literal."""
    match call.args, call.keywords:
        case ([_], []):
            return 0
        case ([_, ast.Constant(value=int(start))], []) | ([_], [ast.keyword(arg="start", value=ast.Constant(value=int(start)))]):
            return int(start)
    return None


def _named_count(first: ast.stmt, turn: Turn) -> str:
    """`count` of `count = counts[i]`."""
    match first:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_count(value, turn):
            return name
    return ""


# -------------------------------------------------------------------- the body


def _without_guard(body: list[ast.stmt], turn: Turn) -> list[ast.stmt]:
    """The body without its test for an empty turn, which would write nothing and add 0."""
    match body:
        case [ast.If(test=test, body=inner, orelse=[]), *after] if _is_some(test, turn):
            return [*inner, *after]
        case [ast.If(test=test, body=[ast.Continue()], orelse=[]), *after] if _is_none(test, turn):
            return after
    return body


def _is_some(test: ast.expr, turn: Turn) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
            return _is_count(left, turn)
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=1)]):
            return _is_count(left, turn)
        case ast.Compare(left=ast.Constant(value=0), ops=[ast.Lt() | ast.NotEq()], comparators=[right]):
            return _is_count(right, turn)
    return _is_count(test, turn)


def _is_none(test: ast.expr, turn: Turn) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant(value=0)]):
            return _is_count(left, turn)
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[ast.Constant(value=1)]):
            return _is_count(left, turn)
        case ast.Compare(left=ast.Constant(value=0), ops=[ast.Eq() | ast.GtE()], comparators=[right]):
            return _is_count(right, turn)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_count(operand, turn)
    return False


def _describe(body: list[ast.stmt], turn: Turn) -> RunningOffset | None:
    """What the statements of a turn do, if they write the next slice, move the offset behind it, and do no more."""
    bounds = _bounds(body, turn)
    if bounds is None:
        return None
    offset, others, store = bounds
    target, _, value = store
    bound = [name for name in (target, offset, *others, turn.index, turn.count, turn.id_name) if name]
    read = names_of(turn.counts) | (names_of(turn.ids) if turn.ids else set())
    if len(set(bound)) != len(bound) or read & set(bound):  # every name has one meaning
        return None
    form = RunningOffset(target, offset, turn.counts, start=turn.start, locals=frozenset(bound[1:]))
    return _with_value(form, value, turn)


def _bounds(body: list[ast.stmt], turn: Turn) -> tuple[str, tuple[str, ...], Store] | None:
    """(the name of the running offset, other names that are bound, the store); the statements of a turn are one of

    store `[offset : offset + count]`, advance / `end = offset + count`, store `[offset:end]`, advance /
    `start, offset = offset, offset + count`, store `[start:offset]`.
    """
    match body:
        case [ast.Assign(targets=[ast.Name(id=end)], value=ast.BinOp() as total), node, advance]:
            offset, store = _other_term(total, turn), _store(node)
            if store and _is_slice(store, offset, end) and _advances(advance, offset, end, turn):
                return offset, (end,), store
        case [
            ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=start), ast.Name(id=offset)])],
                value=ast.Tuple(elts=[ast.Name(id=before), ast.BinOp() as total]),
            ),
            node,
        ] if offset == before == _other_term(total, turn):
            store = _store(node)
            if store and _is_slice(store, start, offset):
                return offset, (start,), store
        case [node, advance]:
            store = _store(node)
            match store:
                case (_, ast.Slice(lower=ast.Name(id=offset), upper=ast.expr() as upper, step=None), _):
                    if _adds_count(upper, offset, turn) and _advances(advance, offset, "", turn):
                        return offset, (), store
    return None


def _is_slice(store: Store, lower: str, upper: str) -> bool:
    match store:
        case (_, ast.Slice(lower=ast.Name(id=first), upper=ast.Name(id=last), step=None), _):
            return bool(lower) and (first, last) == (lower, upper)
    return False


def _store(node: ast.stmt) -> Store | None:
    """(target, slice, value) of `target[slice].fill_(value)` and `target[slice] = value`."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=target), slice=place), attr="fill_"), args=[value], keywords=[]
            )
        ):
            return target, place, value
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target), slice=place)], value=value):
            return target, place, value
    return None


def _advances(node: ast.stmt, offset: str, end: str, turn: Turn) -> bool:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            return name == offset and _is_count(value, turn)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=value)):
            return name == offset and value == end
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name == offset and _adds_count(value, offset, turn)
    return False


def _adds_count(node: ast.expr, offset: str, turn: Turn) -> bool:
    return isinstance(node, ast.BinOp) and _other_term(node, turn) == offset


def _other_term(node: ast.BinOp, turn: Turn) -> str:
    """`offset` of `offset + count` and of `count + offset`; empty for other sums."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=right) if _is_count(right, turn):
            return name
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Name(id=name)) if _is_count(left, turn):
            return name
    return ""


def _is_count(node: ast.expr, turn: Turn) -> bool:
    match node:
        case ast.Name(id=name):
            return name == turn.count
        case ast.Subscript(value=value, slice=ast.Name(id=name)):
            return turn.by_index and name == turn.index and ast.dump(value) == ast.dump(turn.counts)
    return False


# -------------------------------------------------------------------- the value


def _with_value(form: RunningOffset, value: ast.expr, turn: Turn) -> RunningOffset | None:
    """`i`, `i + shift`, `shift + i`, `i - shift`, `ids[i]`, or the id that zip gives."""
    match value:
        case ast.Name(id=name) if name == turn.index:
            return form
        case ast.Name(id=name) if name == turn.id_name:
            return replace(form, ids=turn.ids)
        case ast.Subscript(value=ids, slice=ast.Name(id=name)) if name == turn.index and turn.start == 0 and _is_invariant(ids, form):
            return replace(form, ids=ids)
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, right=shift) if name == turn.index:
            negative = isinstance(op, ast.Sub)
        case ast.BinOp(left=shift, op=ast.Add(), right=ast.Name(id=name)) if name == turn.index:
            negative = False
        case _:
            return None
    return replace(form, shift=shift, negative=negative) if _is_invariant(shift, form) else None


def _is_invariant(node: ast.expr, form: RunningOffset) -> bool:
    return is_pure(node) and not names_of(node) & (form.locals | {form.target})


def is_pure(node: ast.expr) -> bool:
    """True for names, attributes, constant subscripts, whole numbers and arithmetic on them: read twice, they give the same."""
    for part in ast.walk(node):
        if not isinstance(part, PURE):
            return False
        if isinstance(part, ast.Constant) and not isinstance(part.value, int | str):
            return False
    return True


def names_of(node: ast.AST) -> set[str]:
    """Every name in `node`."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}

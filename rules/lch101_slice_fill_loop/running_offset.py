"""The form that one `repeat_interleave` replaces: consecutive slices of one tensor, each filled with the id of its turn.

    offset = 0
    for i, count in enumerate(counts):
        ids[offset : offset + count].fill_(i + first)
        offset += count

in its spellings. This module looks at the loop alone; what stands around it is `placement`'s business.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from launchlint.fixes.repeats import Ids, Turn, ids_of, names_of, turn_of

Store = tuple[str, ast.expr, ast.expr]  # target, slice, value


@dataclass(frozen=True, slots=True)
class RunningOffset:
    """A recognised loop: turn number p writes id number p to `target[offset : offset + counts[p]]`."""

    target: str
    offset: str
    counts: ast.expr
    ids: Ids
    locals: frozenset[str]  # every name that the loop binds, `offset` included


def running_offset(loop: ast.stmt) -> RunningOffset | None:
    """Describe `loop` if it is the form and does nothing else; None for everything else."""
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    turn = turn_of(loop.target, loop.iter)
    if turn is None:
        return None
    body = list(loop.body)
    if turn.by_index and (named := _named_count(body[0], turn)):
        turn, body = replace(turn, count=named), body[1:]
    body = _without_guard(body, turn)
    return _describe(body, turn) if body else None


def _named_count(first: ast.stmt, turn: Turn) -> str:
    """`count` of `count = counts[i]`."""
    match first:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if turn.is_count(value):
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
            return turn.is_count(left)
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=1)]):
            return turn.is_count(left)
        case ast.Compare(left=ast.Constant(value=0), ops=[ast.Lt() | ast.NotEq()], comparators=[right]):
            return turn.is_count(right)
    return turn.is_count(test)


def _is_none(test: ast.expr, turn: Turn) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant(value=0)]):
            return turn.is_count(left)
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[ast.Constant(value=1)]):
            return turn.is_count(left)
        case ast.Compare(left=ast.Constant(value=0), ops=[ast.Eq() | ast.GtE()], comparators=[right]):
            return turn.is_count(right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return turn.is_count(operand)
    return False


def _describe(body: list[ast.stmt], turn: Turn) -> RunningOffset | None:
    """What the statements of a turn do, if they write the next slice, move the offset behind it, and do no more."""
    bounds = _bounds(body, turn)
    if bounds is None:
        return None
    offset, others, store = bounds
    target, _, value = store
    bound = (target, offset, *others, *turn.names)
    if len(set(bound)) != len(bound) or (names_of(turn.counts) | names_of(turn.ids)) & set(bound):  # a name has one meaning
        return None
    ids = ids_of(value, turn, frozenset(bound))
    return RunningOffset(target, offset, turn.counts, ids, frozenset(bound[1:])) if ids else None


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
            return name == offset and turn.is_count(value)
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
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=right) if turn.is_count(right):
            return name
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Name(id=name)) if turn.is_count(left):
            return name
    return ""

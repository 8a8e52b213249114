"""Parameters that the callers in sight settle: one that each of them gives, one that all of them leave at the same constant.

What stands behind `if scale is None:` does not run where every caller gives a scale.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from launchlint.rule import Frame, FunctionNode
from launchlint.values.flow import defaults_of, walk_statements
from launchlint.values.parameters import LEFT_OUT, argument_of

_NAMES = 8  # that a value is followed through
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


@dataclass(frozen=True, slots=True)
class Settled:
    """What calls say of the parameters of a function."""

    given: frozenset[str] = frozenset()  # by each call, with something that is not None as far as it shows
    constants: dict[str, object] = field(default_factory=dict)  # the same literal in each call


NOTHING_SETTLED = Settled()


def dead_branch(frame: Frame | None, function: FunctionNode, settled: Settled) -> str:
    """Why a place around which `frame` stands does not run, as far as the callers in sight show; or an empty string."""
    while frame is not None:
        for name, reason in _impossible(frame, settled):
            if not _is_bound_outside(function, name, frame.node):
                return reason
        frame = frame.outer
    return ""


def tested(frame: Frame | None) -> set[str]:
    """The names that the tests around a place ask about."""
    found: set[str] = set()
    while frame is not None:
        if isinstance(frame.node, (ast.If, ast.IfExp)):
            found |= {name for operand, _ in _operands(frame) for name, _, _ in _question(operand)}
            found |= {compared[0] for operand, _ in _operands(frame) if (compared := _comparison(operand)) is not None}
        frame = frame.outer
    return found


def settle(function: FunctionNode, shift: int, calls: Iterable[tuple[ast.Call, FunctionNode]]) -> Settled:
    """What calls, each with the function that makes it, say of the parameters of `function`; `shift` parameters are not written."""
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults = _defaults(function)
    names = [argument.arg for argument in (*positional, *function.args.kwonlyargs)]
    given, constants = set(names[shift:]), dict[str, object]()
    is_first = True
    for call, caller in calls:
        if any(isinstance(argument, ast.Starred) for argument in call.args) or any(word.arg is None for word in call.keywords):
            return NOTHING_SETTLED
        for index, name in enumerate(names):
            expr = argument_of(call, name, index - shift if index < len(positional) else -1)
            expr = defaults.get(name) if expr is LEFT_OUT else expr
            if expr is None or _may_be_none(expr, caller):
                given.discard(name)
            value = expr.value if isinstance(expr, ast.Constant) else ...
            if is_first:
                constants[name] = value
            elif name in constants and (constants[name] is not value):
                del constants[name]
        is_first = False
    settled = {name: value for name, value in constants.items() if value is not ...}
    return NOTHING_SETTLED if is_first else Settled(frozenset(given), settled)


def _defaults(function: FunctionNode) -> dict[str, ast.expr]:
    return {argument.arg: default for argument, default in defaults_of(function)}


def _may_be_none(expr: ast.expr, caller: FunctionNode) -> bool:
    """True for None, and for a name that the caller may have None under: an optional parameter, or a local that is bound to it."""
    pending, seen = [expr], set[str]()
    while pending:
        match pending.pop():
            case ast.Constant(value=None) | ast.Call(func=ast.Name(id="getattr") | ast.Attribute(attr="get" | "pop")):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                pending += [body, orelse]
            case ast.Name(id=name) if name not in seen:  # `x = x if ok else y` asks about itself
                seen.add(name)
                if len(seen) > _NAMES:
                    return True  # who knows
                default = _defaults(caller).get(name)
                if isinstance(default, ast.Constant) and default.value is None:
                    return True
                pending += _bound(caller, name)
    return False


def _bound(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    for node in walk_statements(function.body):
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            yield node.value


def _is_bound_outside(function: FunctionNode, name: str, branch: ast.AST) -> bool:
    """True where a parameter gets another value outside the branch that asks about it."""
    inside = set(walk_statements([branch])) if isinstance(branch, ast.If) else set()
    for node in walk_statements(function.body):
        if node not in inside and isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return True
    return False


def _impossible(frame: Frame, settled: Settled) -> Iterator[tuple[str, str]]:
    """The names, with a reason each, because of which the branch of a frame is never taken."""
    if not isinstance(frame.node, (ast.If, ast.IfExp)):
        return
    for operand, wanted in _operands(frame):
        compared = _comparison(operand)
        if compared is not None and compared[0] in settled.constants:
            name, given = compared[0], settled.constants[compared[0]]
            if _holds(given, compared[1], compared[2]) is (not wanted):
                yield name, f"`{name}` is {given!r} for every caller in sight"
        for name, kind, asked in _question(operand):
            if kind == "none" and name in settled.given and asked is wanted:
                yield name, f"every caller in sight gives `{name}`"
            elif kind == "none" and name in settled.constants and settled.constants[name] is None and asked is not wanted:
                yield name, f"no caller in sight gives `{name}`"
            elif kind == "truth" and name in settled.constants and bool(settled.constants[name]) is not (asked is wanted):
                yield name, f"`{name}` is {settled.constants[name]} for every caller in sight"


def _comparison(test: ast.expr) -> tuple[str, ast.cmpop, object] | None:
    """The name, the operator and the constant of `size > 0` and of `mode == "rows"`."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[asked], comparators=[ast.Constant(value=value)]) if type(asked) in _COMPARED:
            return name, asked, value
        case _:
            return None


def _holds(given: object, asked: ast.cmpop, value: object) -> bool | None:
    """What a comparison of two constants says; None where they cannot be ordered."""
    try:
        return bool(_COMPARED[type(asked)](given, value))
    except TypeError:
        return None


def _operands(frame: Frame) -> Iterator[tuple[ast.expr, bool]]:
    """The parts of a test, each with the answer that it must give for the branch to run."""
    assert isinstance(frame.node, (ast.If, ast.IfExp))
    test, wanted = frame.node.test, frame.part == "body"
    if frame.part not in ("body", "orelse"):
        return
    is_all = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if wanted else ast.Or)
    yield from ((operand, wanted) for operand in (test.values if is_all and isinstance(test, ast.BoolOp) else [test]))


def _question(test: ast.expr) -> Iterator[tuple[str, str, bool]]:
    """The name that a test asks about, what it asks (`none` or `truth`), and whether it is so where the test holds."""
    holds = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    match test:
        case ast.Name(id=name):
            yield name, "truth", holds
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(value=None)]):
            yield name, "none", holds is isinstance(operator, ast.Is)

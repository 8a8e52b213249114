"""Reads in a helper that something hot calls: what its author could hardly do without.

A role is called every step by a framework that knows nothing of the read, so the read is worth a look whatever it is for. A helper
is called because of what it does. Where that is to let the ranks agree, or to bring a result to the host, the reader learns nothing
from a finding, so such reads are less sure than the table of the rule says.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import reads
from launchlint.hot.summary import LOOP_OWNERS
from launchlint.model import Heat, Level
from launchlint.names import dotted, last_name
from launchlint.patterns import Pattern
from launchlint.rule import Context, FunctionNode, Hit, Silence
from launchlint.scan import FUNCTIONS
from launchlint.trees import walk

_COLLECTIVES = frozenset(
    {"all_reduce", "allreduce", "all_gather", "allgather", "all_gather_into_tensor", "all_gather_single", "broadcast", "all_to_all_single"}
)
_FOR_THE_HOST = Pattern(r"checksum|fingerprint|digest|(^|_)hash(_|$)|_to_(cpu|host)$|(^|_)(d2h|dtoh)(_|$)", re.I)
_STEPS = 4  # assignments that lead from what is read to what was filled


def outcome(node: ast.expr, read: ast.expr, found: Level, message: str, ctx: Context) -> Hit | Silence:
    """The end of the checks for a plain read: as for every read, and in a helper with what speaks for it."""
    return reads.outcome(node, read, found, message, ctx, doubt=doubt(read, found, ctx), wider=together(found, ctx))


def doubt(read: ast.expr, found: Level, ctx: Context) -> str:
    """Why a read in a helper is one that its author hardly does without, or an empty string."""
    if ctx.function.heat is not Heat.REACHED or found is not Level.KNOWN:
        return ""
    names = [called.rpartition(".")[2] for called in ctx.function.chain[1:]]
    if names and names[-1] in LOOP_OWNERS:
        return "in a function that generates, outside its loop over tokens"
    if (called := next((name for name in names if _FOR_THE_HOST.search(name)), "")) != "":
        return f"`{called}` is called for what the host gets, by its name"
    if (collective := agreed_by(read, ctx)) != "":
        return f"the ranks agree on it by `{collective}`"
    return ""


def together(found: Level, ctx: Context) -> str:
    """One name for the plain reads in a helper: whoever comes to look at one sees them all, and the first wait empties the queue."""
    node = ctx.function.node
    if node is None or ctx.function.heat is not Heat.REACHED or found is not Level.KNOWN:
        return ""
    return f"LCH3:helper:{node.lineno}"


def agreed_by(read: ast.expr, ctx: Context) -> str:
    """The collective that has filled what is read: in this function, in one of the file that gives it, or ahead of the call that
    brings it here; or an empty string."""
    base = reads.base_of(_compared(read, ctx), ctx)
    function = ctx.function.node
    for _ in range(_STEPS):
        if base is None or function is None:
            return ""
        if (collective := _filling(function, dotted(base), read.lineno)) != "":
            return collective
        made = _last_value(base, ctx)
        if made is None or _base_name(made) == dotted(base):  # a parameter, or a view of it under its own name
            made = _given(base, function, ctx)
        if isinstance(made, ast.Call) and (helper := _function_of(made, ctx)) is not None:
            return next((last_name(call.func) for call in _collectives(helper)), "")
        if made is None or reads.is_reduction(made):  # `total = counts.sum()` may be had from the list of counts
            return ""
        base = reads.base_of(made, ctx)
    return ""


def _compared(read: ast.expr, ctx: Context) -> ast.expr:
    """`flags` of `torch.all(flags == 1)`."""
    inner = reads.operand(read, ctx) if isinstance(read, ast.Call) else read
    return inner.left if isinstance(inner, ast.Compare) else read


def _given(base: ast.Name | ast.Attribute, function: FunctionNode, ctx: Context) -> ast.expr | None:
    """What the caller that the chain names gives a parameter: for a local name of its own, the value that it got last."""
    names = [argument.arg for argument in function.args.args]
    caller = _caller(ctx)
    if caller is None or not isinstance(base, ast.Name) or base.id not in names:
        return None
    for call in walk(caller):
        if isinstance(call, ast.Call) and last_name(call.func) == function.name:
            place = names.index(base.id) - (names[0] in ("self", "cls"))
            given = next((item.value for item in call.keywords if item.arg == base.id), None)
            given = call.args[place] if given is None and place < len(call.args) else given
            return _bound_above(given, caller, call.lineno) if isinstance(given, ast.Name) else given
    return None


def _bound_above(name: ast.Name, caller: FunctionNode, line: int) -> ast.expr | None:
    found: ast.Assign | None = None
    for node in walk(caller):
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name.id and node.lineno < line:
                found = node if found is None or node.lineno > found.lineno else found
    return found.value if found is not None else None


def _caller(ctx: Context) -> FunctionNode | None:
    """The function of this file by which a helper is reached."""
    if len(ctx.function.chain) < 2:
        return None
    owner, _, name = ctx.function.chain[-2].rpartition(".")
    body = ctx.source.tree.body
    if owner:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner), [])
    return _named(name, body)


def _filling(function: FunctionNode, spelled: str, line: int) -> str:
    """The collective above a line that is given `spelled`, or a view of it."""
    for call in _collectives(function):
        if call.lineno < line and any(_base_name(argument) == spelled for argument in call.args):
            return last_name(call.func)
    return ""


def _collectives(function: FunctionNode) -> Iterator[ast.Call]:
    for node in walk(function):
        if isinstance(node, ast.Call) and last_name(node.func).strip("_") in _COLLECTIVES:
            yield node


def _base_name(expr: ast.expr) -> str:
    """`x` of `x.flatten()` and of `x[1:]`."""
    while not isinstance(expr, (ast.Name, ast.Attribute)):
        match expr:
            case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                expr = inner
            case _:
                return ""
    return dotted(expr)


def _last_value(base: ast.Name | ast.Attribute, ctx: Context) -> ast.expr | None:
    """What the last assignment above the place gives a name, where it always runs."""
    spelled = dotted(base)
    for statement in reads.before(ctx):
        match statement:
            case ast.Assign(targets=[target], value=value) if dotted(target) == spelled:
                return value
    return None


def _function_of(call: ast.Call, ctx: Context) -> FunctionNode | None:
    """The method of the class or the function of the file that is called."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if ctx.function.class_node is not None:
            body = ctx.function.class_node.body
        case ast.Name(id=name):
            body = ctx.source.tree.body
        case _:
            return None
    return _named(name, body)


def _named(name: str, body: list[ast.stmt]) -> FunctionNode | None:
    return next((node for node in body if isinstance(node, FUNCTIONS) and node.name == name), None)

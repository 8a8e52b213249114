"""What the rest of a block does with a host tensor that is still being filled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from launchlint import reads, uploads
from launchlint.facts import torch_operations
from launchlint.names import dotted, last_name
from launchlint.rule import Context
from launchlint.values import Device

_WAITS = re.compile(r"sync|wait|join|flush|barrier|finish|query|result|block|drain|item$|tolist$|cpu$")
_READS = frozenset({"item", "tolist"})
_CASTS = frozenset({"int", "float", "bool", "list", "sum", "max", "min", "sorted", "set", "tuple"})
_HARMLESS = frozenset(
    [
        "append",
        "extend",
        "len",
        "range",
        "enumerate",
        "zip",
        "isinstance",
        "print",
        "get",
        "record",
        "record_stream",
        "Event",
        "Stream",
        "size",
        "numel",
        "dim",
        "shape",
    ]
)


@dataclass(frozen=True, slots=True)
class Read:
    """The first place that needs the values; `certain` where nothing that could have waited is called before."""

    where: ast.expr
    certain: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Something waits first, or nothing in this function needs the values."""

    reason: str


def first_read(ctx: Context, name: str) -> Read | Wait:
    """Follow the statements behind the copy in its own block and then in the blocks around it, up to a loop's end."""
    views = {name}
    certain = True
    for statement in _following(ctx):
        for node in _in_order(statement):
            match _step(node, views, ctx):
                case "read":
                    return Read(_asking(node), certain)
                case "wait":
                    return Wait(f"`{ctx.text(node) if isinstance(node, ast.expr) else 'it'}` waits first"[:80])
                case "unknown":
                    certain = False
        match statement:
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                break
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
                if _is_view(value, views, ctx):
                    views.add(dotted(target))
                elif dotted(target) in views:
                    views.discard(dotted(target))
                    if not views:
                        return Wait("it gets another value before it is read")
    return Wait("nothing in this function reads its values")


def _step(node: ast.AST, views: set[str], ctx: Context) -> str:
    """read | wait | unknown | nothing, for one node in the order of evaluation."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _READS and _rests_on(inner, views, ctx):
            return "read"
        case ast.Call(func=ast.Name(id=called), args=[inner, *_]) if called in _CASTS and _rests_on(inner, views, ctx):
            return "read"
        case ast.Call(func=function) if (
            ctx.name(function) in ("numpy.asarray", "numpy.array") and node.args and _rests_on(node.args[0], views, ctx)
        ):
            return "nothing"  # a view of memory that is still being filled
        case ast.Call():
            return _of_call(node, ctx)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return "read" if _asks(test, views, ctx) else "nothing"
        case ast.For(iter=walked) if _rests_on(walked, views, ctx):
            return "read"
        case ast.With(items=items):
            return "wait" if any(_WAITS.search(dotted(item.context_expr)) for item in items) else "nothing"
    return "nothing"


def _asking(node: ast.AST) -> ast.expr:
    """The expression of a node that reads: the test of a branch, what a loop walks over."""
    match node:
        case ast.If(test=asked) | ast.While(test=asked) | ast.IfExp(test=asked) | ast.Assert(test=asked) | ast.For(iter=asked):
            return asked
    assert isinstance(node, ast.expr)
    return node


def _of_call(node: ast.Call, ctx: Context) -> str:
    name = last_name(node.func)
    if name == "to" and uploads.destination(node, ctx) is Device.HOST and not uploads.is_non_blocking(node, ctx):
        read = reads.operand(node, ctx)
        if read is not None and (ctx.value(read).is_unknown or ctx.value(read).device is not Device.HOST):
            return "wait"  # of the same stream, behind the copy that is asked about
    if _WAITS.search(name):
        read = reads.operand(node, ctx)
        if name in ("item", "tolist", "cpu") and read is not None and ctx.value(read).device is Device.HOST:
            return "nothing"  # a host tensor makes nobody wait
        return "wait"
    if name in _HARMLESS or name in torch_operations() or ctx.name(node.func).startswith(("torch.", "numpy.", "math.")):
        return "nothing"
    return "unknown"


def _asks(test: ast.expr, views: set[str], ctx: Context) -> bool:
    match test:
        case ast.BoolOp(values=values):
            return any(_asks(value, views, ctx) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _asks(inner, views, ctx)
        case ast.Compare(left=left, comparators=[ast.Constant(value=None)]) if dotted(left) in views:
            return False
        case ast.Compare(left=left, ops=ops):
            return not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops) and _rests_on(left, views, ctx)
    return _rests_on(test, views, ctx)


def _rests_on(expr: ast.expr, views: set[str], ctx: Context) -> bool:
    base = reads.base_of(expr, ctx)
    return base is not None and dotted(base) in views


def _is_view(value: ast.expr, views: set[str], ctx: Context) -> bool:
    """`y.numpy()`, `y[1:]`, `y.view(-1)` and `np.asarray(y)` still look at the memory that is being filled."""
    if isinstance(value, ast.Call) and ctx.name(value.func).startswith("numpy.") and value.args:
        value = value.args[0]
    return _rests_on(value, views, ctx)


def _following(ctx: Context) -> Iterator[ast.stmt]:
    """The statements that run after the one of the copy, as written; a loop's or a function's end is the end."""
    current: ast.AST | None = ctx.statement
    while current is not None and current is not ctx.function.node:
        parent = ctx.parent(current)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and current in statements:
                yield from statements[statements.index(current) + 1 :]
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            return
        current = parent


def _in_order(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, inner calls first; nested functions run later and are left out."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    stack: list[tuple[ast.AST, bool]] = [(statement, False)]
    while stack:
        node, done = stack.pop()
        if done or isinstance(node, (ast.If, ast.While, ast.For, ast.With, ast.Assert)):
            yield node
        if not done and not isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack += [] if isinstance(node, (ast.If, ast.While, ast.For, ast.With, ast.Assert)) else [(node, True)]
            stack += [(child, False) for child in reversed(list(ast.iter_child_nodes(node)))]

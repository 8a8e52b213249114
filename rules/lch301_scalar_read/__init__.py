"""LCH301: one number read back from the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import helpers, loops, reads
from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted, last_name
from launchlint.rule import Context, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH301",
        name="scalar-read",
        summary="one number is read back from the device, and the host waits for everything queued before it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low medium high", inferred="- - low medium", unknown="- - - low"),
    )
)

_MESSAGE = "the host reads one number back and waits for everything queued before it"
_PRINTED = "printing a tensor reads it back, and the host waits for everything queued before it"
_METHODS_OF_NUMBERS = ("item", "numel", "size", "dim", "tolist", "__len__")
_CHECKED = "; a check that takes a callable makes its text only when it fails"
_SELDOM = "it is printed where there is something to warn of"
_WARNS = frozenset({"warning", "warning_once", "warn", "error", "exception", "critical"})
_SCORES = re.compile(r"forward|(^|_)(score|search|decode|encode|model|extend|step)(_|$)")
_LOGGER = re.compile(r"(^|_)log(ger|ging)?$", re.I)


@rule.on(ast.Call, names=("item",))
def check_item(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.item()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=read), args=[]) if not reads.in_loop(ctx):
            if _is_told(node, ctx):
                yield Silence(node, _SELDOM)
                return
            yield helpers.outcome(node, read, reads.level(read, ctx), _MESSAGE, ctx)


@rule.on(ast.Call, names=("int", "float", "bool", "complex"))
def check_cast(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`int(x.max())`, `float(loss)`; without a reduction or a scalar that needs positive evidence."""
    match node:
        case ast.Call(func=ast.Name(), args=[read], keywords=[]) if not reads.in_loop(ctx) and not _is_number(read):
            pass
        case _:
            return
    value = ctx.value(read)
    if value.is_tensor:
        sure = value.scalar or reads.is_reduction(read) or isinstance(read, ast.Subscript)
        if value.by_name and not reads.is_reduction(read):
            sure = False  # `int(cuda_version.split(".")[0])`
        level = reads.level(read, ctx)
        yield helpers.outcome(node, read, level if sure else min(level, Level.UNKNOWN), _MESSAGE, ctx)
    elif value.is_unknown and reads.is_reduction(read) and not value.class_name and not reads.says_host(read, ctx):
        yield helpers.outcome(node, read, Level.UNKNOWN, _MESSAGE, ctx)


def _is_number(read: ast.expr) -> bool:
    """`int(x.item())` is reported at the inner call."""
    return isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) and read.func.attr in _METHODS_OF_NUMBERS


@rule.on(ast.JoinedStr)
def check_text(node: ast.JoinedStr, ctx: Context) -> Iterator[Outcome]:
    """`f"{loss}"`."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue) and _prints_tensor(part.value, ctx) and not reads.in_loop(ctx):
            told = last_name(call.func) if (call := _call_around(node, ctx)) is not None else ""
            if told in _WARNS and _is_conditional(ctx):
                yield Silence(node, _SELDOM)
                return
            if told == "info" and _is_behind_search(ctx):
                yield Silence(node, "the result of a loop that runs a model is told once")
                return
            message = _PRINTED + (_CHECKED if "check" in told else "")
            yield helpers.outcome(node, part.value, reads.level(part.value, ctx), message, ctx)
            return


@rule.on(ast.Call, names=("print", "info", "warning"))
def check_log(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`print(loss)`, `logger.info("%s", loss)`."""
    function = node.func
    if isinstance(function, ast.Attribute) and not _LOGGER.search(dotted(function.value).rpartition(".")[2]):
        return
    for argument in node.args:
        if _prints_tensor(argument, ctx) and not reads.in_loop(ctx):
            if last_name(function) in _WARNS and _is_conditional(ctx):
                yield Silence(node, _SELDOM)
                return
            yield helpers.outcome(node, argument, reads.level(argument, ctx), _PRINTED, ctx)
            return


def _call_around(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The call that a text is an argument of."""
    above = ctx.parent(node)
    return above if isinstance(above, ast.Call) and node is not above.func else None


def _is_told(node: ast.Call, ctx: Context) -> bool:
    """`logger.warning("up to %s rows", rows.max().item())` where there is something to warn of."""
    above: ast.AST | None = node
    while isinstance(above, ast.expr):
        if isinstance(above, ast.Call) and above is not node and last_name(above.func) in _WARNS:
            return _is_conditional(ctx)
        above = ctx.parent(above)
    return False


def _is_conditional(ctx: Context) -> bool:
    return any(isinstance(frame.node, ast.If) and frame.part in ("body", "orelse") for frame in ctx.frames())


def _is_behind_search(ctx: Context) -> bool:
    """True behind a loop that runs a model at every turn, over tokens or frames: what follows it is told once for all of them."""
    function = ctx.function.node
    for statement in function.body if function is not None else ():
        if (statement.end_lineno or statement.lineno) >= ctx.statement.lineno:
            return False
        if isinstance(statement, (ast.For, ast.While)) and any(_SCORES.search(last_name(call.func)) for call in loops.calls_in(statement)):
            return True
    return False


def _prints_tensor(expr: ast.expr, ctx: Context) -> bool:
    value = ctx.value(expr)
    return value.is_tensor and not value.by_name and reads.level(expr, ctx) > Level.NO

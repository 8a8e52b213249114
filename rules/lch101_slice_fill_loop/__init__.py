"""LCH101: a loop that fills one slice or row per turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Applicability, Fix, Level, Meta, Policy, Span
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence, stores_item
from launchlint.values import Kind

rule = Rule(
    Meta(
        code="LCH101",
        name="slice-fill-loop",
        summary="a loop fills one slice or row of a tensor per turn, one kernel each",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- low medium medium"),
        fix=Applicability.UNSAFE,
    )
)


@rule.on(ast.Call, names=("fill_", "zero_"))
def check_call(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`t[a:b].fill_(v)` and `t[i].zero_()`."""
    match node.func:
        case ast.Attribute(value=ast.Subscript() as target, attr=method):
            yield from _judge(node, target, ctx, f"`{method}`", Level.INFERRED)


@rule.on(ast.Assign, when=stores_item)
def check_store(node: ast.Assign, ctx: Context) -> Iterator[Outcome]:
    """`t[a:b] = v` and `t[i] = number`."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            stored = ctx.value(value)
            is_number = stored.kind is Kind.SCALAR or (stored.is_tensor and stored.scalar)
            if is_number and not ctx.value(target.slice).boolean:
                yield from _judge(node, target, ctx, "the store", Level.NO)


def _judge(node: ast.Call | ast.Assign, target: ast.Subscript, ctx: Context, what: str, unknown: Level) -> Iterator[Outcome]:
    loop = _loop_that_moves(target, ctx)
    if loop is None:
        return
    base = ctx.value(target.value)
    level = base.device_level(unknown)
    if level is Level.NO:
        if base.is_tensor:
            yield Silence(node, f"`{ctx.text(target.value)}` is a {base}")
        return
    if loops.has_few_turns(loop, ctx) or loops.walks_configuration(loop):
        yield Silence(node, "the loop makes a few turns, or as many as the configuration says")
        return
    if loops.writes_to_item(target.value, loop, ctx):
        yield Silence(node, "each turn writes to another tensor, its own item")
        return
    if loops.makes_what_it_writes(target.value, loop, ctx):
        level = Level.INFERRED  # the turns have more to do than this one store
    if loops.walks_results(loop, ctx):
        yield Silence(node, "the loop walks what a heavy call made for each turn, which outweighs the small launch")
        return
    if loops.heavy_call(loop, ctx) is not None:
        yield Silence(node, "a heavy call in the same loop outweighs the small launch")
        return
    if any(ctx.value(part).kind in (Kind.LIST, Kind.ARRAY) for part in _parts(target.slice)):
        return  # a host index is LCH207's
    yield Hit(
        node,
        f"{what} launches one kernel for each {loops.describe(loop, ctx)}; one write over the whole tensor does the same",
        level,
        related=_related(loop, target, ctx),
        fix=lambda: _fix(loop, ctx),
        span=None,
    )


def _loop_that_moves(target: ast.Subscript, ctx: Context) -> Loop | None:
    """The innermost loop in which the slice differs from turn to turn."""
    for loop in ctx.loops():
        if loops.mentions(target.slice, loops.turned_names(loop)):
            return loop
    return None


def _parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _related(loop: Loop, target: ast.Subscript, ctx: Context) -> tuple[tuple[ast.expr | ast.stmt | Span, str], ...]:
    found: list[tuple[ast.expr | ast.stmt | Span, str]] = [(loop, "the loop")]
    walked = loops.iterated(loop)
    if isinstance(walked, ast.Name):
        argument = loops.parameter(ctx, walked.id)
        if argument is not None:
            found.append((_span_of(argument, ctx), f"the counts: `{walked.id}` comes from the caller"))
        else:
            found += [(statement, f"`{walked.id}` is made here") for statement in ctx.assigned(walked.id)[:1]]
    if isinstance(target.value, ast.Name):
        made = [statement for statement in ctx.assigned(target.value.id) if statement.lineno < target.lineno]
        found += [(statement, f"`{target.value.id}` is made here") for statement in made[-1:]]
    return tuple(found)


def _span_of(argument: ast.arg, ctx: Context) -> Span:
    source = ctx.source
    end_line, end_column = argument.end_lineno or argument.lineno, argument.end_col_offset or argument.col_offset
    return Span(source.offset(argument.lineno, argument.col_offset), source.offset(end_line, end_column))


def _fix(loop: Loop, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(loop, ctx) if isinstance(loop, ast.stmt) else None

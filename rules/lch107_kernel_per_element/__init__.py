"""LCH107: a kernel launched once per element of a host loop."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence
from launchlint.trees import walk

rule = Rule(
    Meta(
        code="LCH107",
        name="kernel-per-element",
        summary="a custom kernel is launched once per element of a loop",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - medium medium"),
    )
)

_KERNEL = re.compile(r"kernel$|_kernel_|^_?triton_|_triton$")

_SUBSCRIPT_CALLED = re.compile(r"\]\s*\(")
_PARTS = re.compile(r"layer|level|stage|step|group|chunk")  # as many turns as the configuration says, or as memory allows


@rule.on(ast.Call, when=lambda node: isinstance(node.func, ast.Subscript))
def check_grid(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`kernel[grid](...)` in a loop."""
    around = ctx.loops()
    if around and _is_launch(node):
        assert isinstance(node.func, ast.Subscript)
        yield from _judge(node, last_name(node.func.value), around[0], ctx)


@rule.on(ast.For)
def check_helper(node: ast.For, ctx: Context) -> Iterator[Outcome]:
    """A function of this file that launches a kernel and nothing else of weight, called in a loop."""
    if not _may_launch(ctx.source.text):
        return  # no function of this file does
    called = [(call, call.func.id) for call in loops.calls_in(node) if isinstance(call.func, ast.Name)]
    launching = [(call, name) for call, name in called if _launches(name, ctx)]
    if not launching or _PARTS.search(f"{ctx.text(node.target)} {ctx.text(node.iter)}") or loops.heavy_call(node, ctx) is not None:
        return  # turns of that kind do more than launch what the helper launches
    inner = [item for statement in node.body for item in walk(statement) if isinstance(item, ast.For)]
    for call, name in launching:
        if not any(call in loops.calls_in(loop) for loop in inner):
            yield from _judge(call, name, node, ctx, Level.INFERRED)
            return


def _judge(node: ast.Call, name: str, loop: Loop, ctx: Context, level: Level = Level.KNOWN) -> Iterator[Outcome]:
    if loops.has_few_turns(loop, ctx) or loops.walks_configuration(loop):
        yield Silence(node, "the loop makes a few turns, or as many as the configuration says")
        return
    if loops.walks_chunks(loop):
        yield Silence(node, "the loop walks chunks, which bounds memory")
        return
    if not loops.mentions(node, loops.turned_names(loop)):
        return
    yield Hit(
        node,
        f"`{name}` is launched once for each {loops.describe(loop, ctx)}; one launch over a padded or indexed grid does them all",
        level,
        related=((loop, "the loop"),),
        group=f"LCH1:{loop.lineno}:{loop.col_offset}",
    )


def _is_launch(call: ast.Call) -> bool:
    """`kernel[grid](...)`, `kernel[(n,)](...)`, `kernel[lambda meta: (n,)](...)`."""
    match call.func:
        case ast.Subscript(value=launched, slice=grid):
            if _KERNEL.search(last_name(launched)):
                return True
            return isinstance(grid, ast.Lambda) or (isinstance(grid, ast.Name) and grid.id in ("grid", "launch_grid"))
    return False


@functools.lru_cache(maxsize=8)
def _may_launch(text: str) -> bool:
    """Whether a subscript is called anywhere in a file, asked once for all its loops."""
    return _SUBSCRIPT_CALLED.search(text) is not None


def _launches(name: str, ctx: Context) -> bool:
    """True for a function of this file that launches a kernel outside any loop of its own."""
    for node in ctx.source.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return any(isinstance(item, ast.Call) and _is_launch(item) for item in walk(node))
    return False

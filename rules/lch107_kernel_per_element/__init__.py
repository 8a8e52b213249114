"""LCH107: a kernel launched once per element of a host loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Outcome, Rule, Silence

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


@rule.on(ast.Call, when=lambda node: isinstance(node.func, ast.Subscript))
def check_grid(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`kernel[grid](...)` in a loop."""
    around = ctx.loops()
    if not around or not isinstance(node.func, ast.Subscript):
        return
    name = last_name(node.func.value)
    if not _KERNEL.search(name):
        return
    if loops.has_few_turns(around[0]) or loops.walks_configuration(around[0]):
        yield Silence(node, "the loop makes a few turns, or as many as the configuration says")
        return
    if not loops.mentions(node, loops.turned_names(around[0])):
        return
    yield Hit(node, f"`{name}` is launched once for each {loops.describe(around[0], ctx)}; one launch over a padded or indexed grid does them all", Level.KNOWN, related=((around[0], "the loop"),))

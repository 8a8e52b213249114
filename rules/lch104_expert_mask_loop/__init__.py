"""LCH104: a loop over experts that masks the tokens of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.trees import walk
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH104",
        name="expert-mask-loop",
        summary="a loop over experts selects the tokens of each by a mask, with several launches and often a wait per expert",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- low medium medium"),
    )
)

_EXPERTS = re.compile(r"expert|num_local|n_routed|hit_experts|lora|adapter", re.I)
_SELECTS = frozenset({"where", "nonzero", "masked_select", "argwhere"})
_SCATTERS = frozenset({"index_add_", "index_add", "scatter_add_", "index_copy_", "index_put_"})


@rule.on(ast.For)
def check(node: ast.For, ctx: Context) -> Iterator[Outcome]:
    """`for e in range(num_experts): rows = torch.where(ids == e)...; out.index_add_(...)`."""
    if not _EXPERTS.search(_header(node, ctx)):
        return
    if loops.has_few_turns(node, ctx):
        yield Silence(node, "the loop makes a few turns only")
        return
    select = _selection(node, ctx)
    if select is None:
        return
    value = ctx.value(select)
    if value.kind in (Kind.LIST, Kind.TUPLE):  # torch.where(mask) gives a tuple of tensors
        value = value.element or (value.elements[0] if value.elements else value)
    if value.on_host and not value.by_name:
        yield Silence(node, f"the tokens are selected on the host ({value})")
        return
    level = Level.KNOWN if value.on_device else Level.INFERRED
    yield Hit(
        node,
        "each expert selects its tokens by a mask: several launches, and often a wait, for each expert of each layer",
        level,
        related=((select, "the tokens of one expert are selected here"),),
        span=ctx.source.header(node),
    )


def _header(node: ast.For, ctx: Context) -> str:
    return f"{ctx.text(node.target)} {ctx.text(node.iter)}"


def _selection(node: ast.For, ctx: Context) -> ast.expr | None:
    """The expression that selects one expert's tokens, if the loop also gathers or scatters by it."""
    turned = loops.turned_names(node)
    for call in loops.calls_in(node):
        name = last_name(call.func)
        if name not in _SELECTS or not loops.mentions(call, turned) or ctx.name(call.func).startswith("numpy"):
            continue
        if name != "where" or len(call.args) == 1:
            return call
    for inner in loops.body_of(node):
        for item in walk(inner):
            if isinstance(item, ast.Compare) and len(item.ops) == 1 and isinstance(item.ops[0], ast.Eq) and loops.mentions(item, turned):
                value = ctx.value(item)
                if value.is_tensor and value.boolean and value.device is not Device.HOST and _is_index(item, node):
                    return item
    return None


def _is_index(mask: ast.Compare, loop: ast.For) -> bool:
    """True if the mask, or a name that it is bound to, selects rows in the loop; as a factor it selects nothing."""
    names: set[str] = set()
    for node in walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if any(item is mask for item in walk(value)):
                names.add(name)
    for node in walk(loop):
        if isinstance(node, ast.Subscript):
            for part in walk(node.slice):
                if part is mask or (isinstance(part, ast.Name) and part.id in names):
                    return True
    return False

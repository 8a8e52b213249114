"""LCH108: a data-sized loop of several small tensor operations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.facts import torch_operations
from launchlint.model import Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.trees import walk
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH108",
        name="small-operations-loop",
        summary="a loop over requests, images or groups makes several small tensor operations per turn",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- - medium high", inferred="- - - low"),
    )
)

_MANY = 2
_MANY_WITH_ARITHMETIC = 4  # a range and an offset, joined afterwards, are of LCH103

# Walked by such a name, a loop makes as many turns as the model has parts, whatever the batch is.
_ORDER = re.compile(r"range\([^)]*\border\b")  # of a solver: two or three
_PARTS = ("layer", "block", "module", "expert", "config", "num_heads", "world_size", "stage", "level")


@rule.on(ast.For)
def check(node: ast.For, ctx: Context) -> Iterator[Outcome]:
    """`for n in lengths: parts.append(torch.arange(n, device=d) + start)` and its kind."""
    if any(isinstance(item, ast.For) for item in node.body):
        return  # the inner loop is the better place
    launches = _launches(node, ctx)
    if len(launches) < _MANY:
        launches += _arithmetic(node, launches, ctx)
        if len(launches) < _MANY_WITH_ARITHMETIC:
            return
    if loops.has_few_turns(node, ctx) or loops.walks_configuration(node):
        yield Silence(node, "the loop makes a few turns, or as many as the configuration says")
        return
    if loops.walks_chunks(node):
        yield Silence(node, "the loop walks chunks, which bounds memory")
        return
    if loops.carries_tensor(node, ctx):
        yield Silence(node, "each turn needs a tensor of the turn before")
        return
    if (heavy := loops.heavy_call(node, ctx)) is not None:
        yield Silence(node, f"`{last_name(heavy.func)}` in the same loop outweighs the small launches")
        return
    if (held := _held_module(node, ctx)) is not None:
        yield Silence(node, f"`{held}` holds something that is called with a tensor, as a module is")
        return
    if not _is_data_sized(node, ctx):
        yield Silence(node, "nothing shows that the loop grows with the data")
        return
    known = [item for item in launches if item[1]]
    level = Level.KNOWN if known else Level.INFERRED
    count = len(launches)
    yield Hit(
        node,
        f"about {count} small launches for each {loops.describe(node, ctx)}; batch the turns into one operation",
        level,
        related=tuple((call, "a launch per turn") for call, _ in launches[:4]),
        span=ctx.source.header(node),
        gives_way=True,
    )


def _launches(node: ast.For, ctx: Context) -> list[tuple[ast.expr, bool]]:
    """Operations of the body that launch, and whether their device is proven."""
    found: list[tuple[ast.expr, bool]] = []
    operations = torch_operations()
    for call in loops.calls_in(node):
        operation = operations.get(last_name(call.func))
        if operation is None or operation.does != "launch" or operation.heavy or operation.launches < 1:
            continue
        value = ctx.value(call)
        if isinstance(call.func, ast.Attribute) and not ctx.name(call.func).startswith("torch."):
            receiver = ctx.value(call.func.value)
            if not receiver.is_tensor or receiver.device is Device.HOST:
                continue
            value = receiver
        elif not ctx.name(call.func).startswith("torch."):
            continue
        if value.kind is Kind.TENSOR and value.device is not Device.HOST:
            found.append((call, value.on_device and not value.by_name))
    return found


def _arithmetic(node: ast.For, launches: list[tuple[ast.expr, bool]], ctx: Context) -> list[tuple[ast.expr, bool]]:
    """Operators of a body that makes a tensor on the device in each turn, where their result is known to be there too."""
    operations = torch_operations()
    if not any(known and operations[last_name(call.func)].factory for call, known in launches if isinstance(call, ast.Call)):
        return []
    found = [item for item in loops.nodes_in(node) if isinstance(item, ast.BinOp)]
    return [(item, True) for item in found if (value := ctx.value(item)).on_device and not value.by_name]


def _held_module(node: ast.For, ctx: Context) -> str | None:
    """A name that the function has bound to an object and that the loop calls with a tensor: `with loaded(m) as encoder: encoder(x)`."""
    function = ctx.function.node
    if function is None:
        return None
    bound = {item.optional_vars.id for item in _withitems(function) if isinstance(item.optional_vars, ast.Name)}
    for call in loops.calls_in(node):
        if isinstance(call.func, ast.Name) and call.func.id in bound and any(ctx.value(argument).is_tensor for argument in call.args):
            return call.func.id
    return None


def _withitems(function: ast.AST) -> Iterator[ast.withitem]:
    for item in walk(function):
        if isinstance(item, (ast.With, ast.AsyncWith)):
            yield from item.items


def _is_data_sized(node: ast.For, ctx: Context) -> bool:
    """The loop walks a host list or array, a range over a length that is not configuration, or zips of such."""
    walked = loops.iterated(node)
    if walked is None or ctx.is_constant(walked):
        return False
    value = ctx.value(walked)
    if value.is_tensor:
        return False
    text = f"{ctx.text(node.target)} {ctx.text(walked)}".lower()
    return not any(word in text for word in _PARTS) and not _ORDER.search(ctx.text(node.iter))

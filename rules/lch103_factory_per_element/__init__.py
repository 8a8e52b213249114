"""LCH103: small factories called once per element and then joined."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops
from launchlint.facts import torch_operations
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence
from launchlint.trees import walk
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH103",
        name="factory-per-element",
        summary="a small tensor is made per element and the pieces are joined, one kernel or more each",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- low low medium"),
        fix=Applicability.UNSAFE,
    )
)

_JOINS = ("cat", "stack", "concat", "concatenate", "hstack", "vstack", "block_diag", "pad_sequence", "nested_tensor", "as_nested_tensor")
_FACTORIES = frozenset(
    {
        "arange", "full", "zeros", "ones", "tensor", "as_tensor", "asarray", "linspace", "eye", "full_like", "zeros_like", "ones_like",
        "new_full", "new_zeros", "new_ones", "new_tensor",
    }
)  # fmt: skip
_FILLS = frozenset({"full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "new_full", "new_zeros", "new_ones"})


@rule.on(ast.Call, names=_JOINS)
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.cat([torch.arange(n, device=d) for n in counts])`, and the same with a list that a loop fills."""
    if not ctx.name(node.func).startswith("torch.") or not node.args:
        return
    pieces = [(piece, _factory(piece, ctx), loop) for piece, loop in _pieces(node.args[0], ctx)]
    for _, made, loop in pieces:
        if made is None:
            continue
        if any(other is None and where is loop and _stands_in(made, piece, loop, ctx) for piece, other, where in pieces):
            yield Silence(node, "a piece is made only for an item that gives none")
            return
        value = ctx.value(made)
        if value.device is Device.HOST:
            yield Silence(node, "the pieces are made on the host")
            return
        if not value.on_device and ctx.name(made.func) in ("torch.as_tensor", "torch.asarray"):
            yield Silence(node, "without a device, the pieces stay where their data is")
            return
        kept = loops.walks_configuration(loop) or loops.walks_what_is_kept(loop, ctx)
        if loops.has_few_turns(loop, ctx) or kept or loops.heavy_call(loop, ctx) is not None:
            yield Silence(node, "the loop makes few or heavy turns")
            return
        level = Level.KNOWN if value.on_device else Level.INFERRED
        yield Hit(
            node,
            f"one small tensor is made for each {loops.describe(loop, ctx)} and the pieces are joined: a kernel or more for each",
            level,
            related=((loop, "the loop"), (made, "made here")),
            fix=lambda: _fix(node, ctx),
            made=made,  # of several on one call the surest is reported
        )


def _pieces(joined: ast.expr, ctx: Context) -> Iterator[tuple[ast.expr, Loop]]:
    """What is joined, with the loop that makes it."""
    match joined:
        case ast.ListComp() | ast.GeneratorExp():
            yield joined.elt, joined
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.ListComp() | ast.GeneratorExp() as inner]):
            yield inner.elt, inner
        case ast.Name(id=name):
            yield from loops.pieces_of(name, ctx)


def _stands_in(made: ast.Call, given: ast.expr, loop: Loop, ctx: Context) -> bool:
    """True where a turn appends either a filled `made` or `given`: in the two branches of an `if`, or one behind a `continue`."""
    if last_name(made.func) not in _FILLS:
        return False
    node: ast.AST | None = made
    while node is not None and node is not loop:
        parent = ctx.parent(node)
        if isinstance(parent, ast.If):
            branch, other = (parent.body, parent.orelse) if node in parent.body else (parent.orelse, parent.body)
            if any(item is given for statement in other for item in walk(statement)):
                return True
            if branch and isinstance(branch[-1], ast.Continue):
                return not any(item is given for statement in branch for item in walk(statement))
        node = parent
    return False


def _factory(piece: ast.expr, ctx: Context) -> ast.Call | None:
    """The factory call in a piece, also below arithmetic and views: `torch.arange(n, device=d) + start`."""
    operations = torch_operations()
    for node in walk(piece):
        if not isinstance(node, ast.Call):
            continue
        name = ctx.name(node.func)
        called = name.rpartition(".")[2] if name.startswith("torch.") else last_name(node.func)
        if called in _FACTORIES and (name.startswith("torch.") or called.startswith("new_")):
            return node
        operation = operations.get(called)
        if operation is not None and operation.heavy:
            return None
    return None


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, ctx)

"""LCH105: the same in-place operation on each tensor of a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.names import last_name
from launchlint.rule import Context, Hit, Loop, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH105",
        name="parameter-loop",
        summary="the same in-place operation on each parameter, gradient or buffer, one kernel each",
        group="launches",
        since="0.1.0",
        policy=Policy.grid(known="- medium medium medium", inferred="- medium medium medium"),
        preview=True,
        fix=Applicability.UNSAFE,
    )
)

_OPERATIONS = (
    "zero_", "mul_", "add_", "div_", "sub_", "fill_", "clamp_", "lerp_", "addcmul_", "addcdiv_", "copy_", "neg_", "sqrt_", "abs_",
)  # fmt: skip
_TENSORS = re.compile(r"param|grad|buffer|weight|shadow|ema|master|moment|exp_avg", re.I)
# What may stand in the loop beside the operation without making it more than one operation a tensor.
_BESIDE = frozenset(
    {*_OPERATIONS, "detach", "to", "isinstance", "hasattr", "getattr", "len", "numel", "is_floating_point", "zip", "items", "get", "float"}
)


@rule.on(ast.Call, names=_OPERATIONS)
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`for p in params: p.grad.mul_(factor)`."""
    around = [loop for loop in ctx.loops() if isinstance(loop, (ast.For, ast.AsyncFor))]
    if not around or not isinstance(node.func, ast.Attribute):
        return
    loop, receiver = around[0], node.func.value
    if not _is_turn(receiver, loop):
        return
    value = ctx.value(receiver)
    if value.on_host and not value.by_name:
        yield Silence(node, f"it works on a {value}")
        return
    if not _TENSORS.search(f"{ctx.text(loop.iter)} {ctx.text(loop.target)} {ctx.text(receiver)}"):
        return
    if loops.has_few_turns(loop, ctx):
        yield Silence(node, "the loop makes a few turns only")
        return
    if other := next((name for call in loops.calls_in(loop) if (name := last_name(call.func)) not in _BESIDE), ""):
        yield Silence(node, f"a turn does more than this: `{other}`")
        return
    operation = node.func.attr.rstrip("_")
    yield Hit(
        node,
        f"`{node.func.attr}` launches one kernel for each tensor; `torch._foreach_{operation}_` is usually faster for many small ones",
        Level.KNOWN if value.on_device else Level.INFERRED,
        related=((loop, "the loop"),),
        fix=lambda: _fix(node, loop, ctx),
    )


def _is_turn(receiver: ast.expr, loop: Loop) -> bool:
    """`p`, `p.grad`, `p.grad.data` for the loop's own name `p`; no subscript and no call."""
    while isinstance(receiver, ast.Attribute) and receiver.attr in ("grad", "data", "main_grad", "decoupled_grad"):
        receiver = receiver.value
    return isinstance(receiver, ast.Name) and isinstance(loop, (ast.For, ast.AsyncFor)) and loops.mentions(loop.target, {receiver.id})


def _fix(node: ast.Call, loop: Loop, ctx: Context) -> Fix | None:
    from . import fix

    return fix.rewrite(node, loop, ctx)

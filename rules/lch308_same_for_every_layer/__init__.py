"""LCH308: a wait in a layer's forward whose operands come from the step and not from the layer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted
from launchlint.rule import Context, Outcome, Rule

rule = Rule(
    Meta(
        code="LCH308",
        name="same-for-every-layer",
        summary="every layer waits for something that is the same for the whole step",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- - medium medium", inferred="- - medium medium"),
        preview=True,
        outranks=("LCH301", "LCH302", "LCH303", "LCH304", "LCH305", "LCH309"),
    )
)

_STEP = re.compile(
    r"(^|_)(forward_batch|forward_context|forward_metadata|attn_metadata|attention_metadata|metadata|input_metadata|packed_seq_params|batch_info)$"
)
_CONFIG = re.compile(r"(^|_)(config|cfg|args)$")
_FORWARD = re.compile(r"^(forward|__call__)|_forward$|^forward_")
_OUTSIDE = re.compile(r"metadata|planner|scheduler|runner|builder|backend$|pooler|sampler|processor|logits", re.I)
_DEPTH = 8


@rule.on(
    ast.Call,
    names=("item", "tolist", "cpu", "nonzero", "masked_select", "repeat_interleave", "unique", "unique_consecutive", "int", "bool"),
)
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`attn_metadata.lens.max().item()`, `torch.nonzero(forward_batch.mask)` in a layer's forward."""
    if not _is_layer(ctx):
        return
    read = _operand(node, ctx)
    if read is None or reads.says_host(read, ctx) or ctx.value(read).on_host or not _is_tensor_like(read, ctx):
        return
    origin = _origin(read, ctx)
    if origin:
        message = f"every layer waits here for a value that comes from `{origin}` alone: once per step is enough, where that is built"
        yield reads.outcome(node, read, Level.INFERRED, message, ctx)


@rule.on(ast.If, ast.While, ast.IfExp)
def check_branch(node: ast.If | ast.While | ast.IfExp, ctx: Context) -> Iterator[Outcome]:
    """`if (attn_metadata.lens > 0).any():`, also as a part of the test."""
    if not _is_layer(ctx):
        return
    pending = [node.test]
    while pending:
        match pending.pop():
            case ast.BoolOp(values=values):
                pending.extend(reversed(values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append(operand)
            case ast.Call(func=ast.Attribute(attr="any" | "all")) as test:
                yield from _judge_question(test, ctx)


def _judge_question(test: ast.Call, ctx: Context) -> Iterator[Outcome]:
    read = reads.operand(test, ctx)
    if read is None or reads.says_host(read, ctx) or ctx.value(read).on_host:
        return
    origin = _origin(read, ctx)
    if origin:
        message = f"every layer asks the device about `{origin}`: once per step is enough, where that is built"
        yield reads.outcome(test, read, Level.INFERRED, message, ctx)


def _operand(node: ast.Call, ctx: Context) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="int" | "bool"), args=[ast.Call() as inner]):
            return inner if reads.is_reduction(inner) else None
        case ast.Call(func=ast.Name(id="int" | "bool")):
            return None
        case ast.Call(func=ast.Attribute(attr="repeat_interleave")) if ctx.keyword(node, "output_size") is not None:
            return None
    return reads.operand(node, ctx)


def _is_tensor_like(read: ast.expr, ctx: Context) -> bool:
    value = ctx.value(read)
    return value.is_tensor or value.is_unknown


def _is_layer(ctx: Context) -> bool:
    """A method that every layer of a model runs; what prepares the step is none."""
    owner, node = ctx.function.class_node, ctx.function.node
    if node is None or owner is None or _OUTSIDE.search(owner.name):
        return False
    return ctx.function.per == "layer" and bool(_FORWARD.search(node.name))


def _origin(read: ast.expr, ctx: Context) -> str:
    """The step's object that every name in `read` comes from, seen through local assignments; empty where one comes from elsewhere."""
    found = ""
    pending: list[ast.expr] = [read]
    seen: set[str] = set()
    for _ in range(_DEPTH * 4):
        if not pending:
            return found
        expr = pending.pop()
        for name in _leaves(expr):
            spelled = dotted(name)
            parts = spelled.split(".")
            if any(_STEP.search(part) for part in parts[:2]) and len(parts) > 1:
                found = found or spelled
            elif (
                ctx.name(name).partition(".")[0] in ("torch", "numpy")
                or ctx.is_constant(name)
                or any(_CONFIG.search(part) for part in parts)
            ):
                continue
            elif isinstance(name, ast.Name) and name.id not in seen:
                made = ctx.assigned(name.id)
                if len(made) != 1 or not isinstance(made[0], ast.Assign) or not isinstance(made[0].targets[0], ast.Name):
                    return ""
                seen.add(name.id)
                pending.append(made[0].value)
            else:
                return ""
    return ""


def _leaves(expr: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """The names that `expr` is made of: attributes as a whole, methods and keywords left out."""
    pending: list[ast.AST] = [expr]
    while pending:
        match pending.pop():
            case ast.Call(func=function, args=arguments, keywords=keywords):
                pending += [*arguments, *(keyword.value for keyword in keywords)]
                pending += [function.value] if isinstance(function, ast.Attribute) else []
            case ast.Attribute() as attribute if dotted(attribute):
                yield attribute
            case ast.Name() as name:
                yield name
            case node:
                pending += ast.iter_child_nodes(node)

"""LCH305: repeat_interleave whose result's length is read back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import reads
from launchlint.model import Applicability, Fix, Level, Meta, Policy
from launchlint.names import dotted
from launchlint.rule import Context, Hit, Outcome, Rule, Silence
from launchlint.values import Kind

rule = Rule(
    Meta(
        code="LCH305",
        name="repeat-without-size",
        summary="repeat_interleave without output_size reads the length of its result back from the device",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- medium high high", inferred="- medium medium medium", unknown="- - - medium"),
        fix=Applicability.SAFE,
    )
)

_MESSAGE = "without `output_size` the length of the result is summed and checked on the device and read back: the host waits twice"
_NUMBER_NAME = re.compile(r"num_|n_rep|groups|factor|ratio|size|head|(^|_)n$|^r$|^k$|repeat$|^\d+$")
_CONFIGURED = re.compile(r"(^|_)(num|n|max)_(?!.*_per_)")  # an attribute: what a constructor took from the configuration
_TENSOR_NAME = re.compile(r"tokens|lens|patches|chunk|seq|counts")


@rule.on(ast.Call, names=("repeat_interleave",))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.repeat_interleave(counts)` and `torch.repeat_interleave(x, counts)`."""
    if ctx.keyword(node, "output_size") is not None or reads.is_foreign(node, ctx):
        return
    if isinstance(node.func, ast.Name) and not ctx.name(node.func):
        return  # a function of the project that bears the name
    data, repeats = operands(node, ctx)
    if repeats is None:
        return
    value = ctx.value(repeats)
    level = reads.level(repeats, ctx) if value.is_tensor or value.is_unknown else Level.NO
    if data is not None and (ctx.value(data).on_host or reads.says_host(data, ctx)):
        level = Level.NO
    if value.is_unknown and (reads.says_host(repeats, ctx) or (value.kind is Kind.UNKNOWN and _looks_like_number(repeats, ctx))):
        level = Level.NO
    if level is Level.NO:
        yield Silence(node, f"its repeats are a {value}")
        return
    # Its cure is another than that of the reads beside it.
    own = "" if reads.in_loop(ctx) else f"LCH3:repeat:{node.lineno}:{node.col_offset}"
    outcome = reads.outcome(node, repeats, level, _MESSAGE, ctx, group=own)
    if isinstance(outcome, Hit):
        outcome = Hit(node, outcome.message, outcome.level, outcome.related, lambda: _fix(node, ctx), outcome.group)
    yield outcome


def operands(node: ast.Call, ctx: Context) -> tuple[ast.expr | None, ast.expr | None]:
    """What is repeated, and how often; `torch.repeat_interleave(counts)` repeats the numbers from 0."""
    repeats = ctx.keyword(node, "repeats")
    if ctx.name(node.func) != "torch.repeat_interleave":
        data = node.func.value if isinstance(node.func, ast.Attribute) else None
        return data, repeats or (node.args[0] if node.args else None)
    if not node.args:
        return ctx.keyword(node, "input"), repeats
    if repeats is None and len(node.args) == 1:
        return None, node.args[0]
    return node.args[0], repeats or node.args[1]


def _looks_like_number(repeats: ast.expr, ctx: Context) -> bool:
    if isinstance(repeats, (ast.Constant, ast.BinOp)):
        return True
    if isinstance(repeats, ast.Attribute) and dotted(repeats.value) == "self" and _CONFIGURED.search(repeats.attr):
        return True
    if _is_number_name(ctx.text(repeats)):
        return True
    bound = [each.value for each in ctx.assigned(repeats.id) if isinstance(each, ast.Assign)] if isinstance(repeats, ast.Name) else []
    return bool(bound) and all(isinstance(value, ast.Constant) or _is_number_name(ctx.text(value)) for value in bound)


def _is_number_name(text: str) -> bool:
    return bool(_NUMBER_NAME.search(text)) and not _TENSOR_NAME.search(text)


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    from . import fix

    data, repeats = operands(node, ctx)
    return fix.rewrite(node, data, repeats, ctx) if repeats is not None else None

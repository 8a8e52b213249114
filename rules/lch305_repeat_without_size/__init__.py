"""LCH305: repeat_interleave whose result's length is read back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint.model import Level, Meta, Policy
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
    )
)

_NUMBER_NAME = re.compile(r"num_|n_rep|groups|factor|ratio|size|head|(^|_)n$|^r$|^k$|repeats?$|^\d+$")
_TENSOR_NAME = re.compile(r"tokens|lens|patches|chunk|seq|counts")


@rule.on(ast.Call, names=("repeat_interleave",))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.repeat_interleave(counts)` and `torch.repeat_interleave(x, counts)`."""
    if ctx.keyword(node, "output_size") is not None:
        return
    is_function = ctx.name(node.func) == "torch.repeat_interleave"
    position = 1 if is_function else 0
    repeats = ctx.keyword(node, "repeats") or (node.args[position] if len(node.args) > position else None)
    if is_function:
        data = node.args[0] if node.args else None
    else:
        data = node.func.value if isinstance(node.func, ast.Attribute) else None
    if repeats is None:
        if not (is_function and len(node.args) == 1 and data is not None):
            return
        repeats = data
    value = ctx.value(repeats)
    if value.is_tensor or value.is_unknown:
        level = value.device_level()
    else:
        level = Level.NO
    if data is not None and ctx.value(data).on_host:
        level = Level.NO
    if value.kind is Kind.UNKNOWN and _looks_like_number(repeats, ctx):
        level = Level.NO
    if level is Level.NO:
        yield Silence(node, f"its repeats are a {value}")
        return
    yield Hit(node, "without `output_size` the length of the result is summed and checked on the device and read back: the host waits twice", level)


def _looks_like_number(repeats: ast.expr, ctx: Context) -> bool:
    if isinstance(repeats, (ast.Constant, ast.BinOp)):
        return True
    text = ctx.text(repeats)
    return bool(_NUMBER_NAME.search(text)) and not _TENSOR_NAME.search(text)

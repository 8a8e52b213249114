"""LCH309: a device tensor used where Python or torch needs a number: it is read back without a word of it in the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import loops, reads
from launchlint.model import Level, Meta, Policy
from launchlint.rule import Context, Outcome, Rule, repeats_list
from launchlint.values import Device, Kind

rule = Rule(
    Meta(
        code="LCH309",
        name="implicit-read",
        summary="a device tensor stands where a number is needed, so it is read back without being asked for",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low high high", inferred="- - low medium"),
    )
)

# Operations that need their arguments as numbers, by which positions: torch.f(...) and x.f(...) count without the operand.
_SIZES = frozenset(
    {
        "zeros", "ones", "empty", "rand", "randn", "new_zeros", "new_ones", "new_empty", "eye", "arange", "randint", "randperm",
    }
)  # fmt: skip
_ARGUMENTS = frozenset(
    {
        "full", "new_full", "view", "reshape", "expand", "repeat", "tile", "unflatten", "narrow", "select", "roll", "topk", "tril", "triu",
        "diagonal", "split", "chunk", "tensor_split", "unsqueeze", "broadcast_to", "tril_indices", "triu_indices", "pad", "one_hot",
        "full_like", "masked_fill", "masked_fill_",
    }
)  # fmt: skip
_NONE_BY_POSITION = frozenset({"repeat_interleave", "bincount", "add", "add_", "sub", "sub_"})
_KEYWORDS = frozenset(
    {
        "output_size", "num_classes", "minlength", "diagonal", "alpha", "k", "size", "value", "fill_value", "split_size_or_sections",
        "split_size",
    }
)  # fmt: skip
_FACTORIES = frozenset(
    {
        "zeros", "ones", "empty", "rand", "randn", "eye", "arange", "randint", "randperm", "full", "tril_indices", "triu_indices",
    }
)  # fmt: skip
_BUILTINS = ("max", "min", "sorted", "range")


@rule.on(ast.Slice, when=lambda node: any(part.__class__ not in (ast.Constant, type(None)) for part in (node.lower, node.upper, node.step)))
def check_slice(node: ast.Slice, ctx: Context) -> Iterator[Outcome]:
    """`x[:n]` with a tensor `n`."""
    for bound in (node.lower, node.upper, node.step):
        if bound is not None and _is_read(bound, ctx):
            yield _outcome(bound, bound, "a slice bound", ctx)


@rule.on(ast.Subscript, when=lambda node: node.slice.__class__ not in (ast.Slice, ast.Constant))
def check_index(node: ast.Subscript, ctx: Context) -> Iterator[Outcome]:
    """`names[t]` of a Python list, and `x[t]` where `t` has no dimensions; with dimensions it is a gather on the device."""
    base = ctx.value(node.value)
    if base.kind is Kind.DICT:
        return
    for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        value = ctx.value(part)
        needs_number = base.kind in (Kind.LIST, Kind.TUPLE) or (base.is_tensor and value.scalar and not value.boolean)
        if needs_number and not isinstance(part, ast.Slice) and _is_read(part, ctx):
            yield _outcome(part, part, "an index", ctx)


@rule.on(ast.Call, names=_BUILTINS)
def check_builtin(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`range(n)`, `max(a, b)`: Python asks each tensor for a number or for a truth."""
    if not isinstance(node.func, ast.Name) or ctx.name(node.func).startswith("torch"):
        return
    if node.func.id == "range" or len(node.args) > 1:
        for argument in node.args:
            if _is_read(argument, ctx):
                yield _outcome(node, argument, f"an argument of `{node.func.id}`", ctx)
                return
    elif node.args and _is_read(node.args[0], ctx) and not ctx.value(node.args[0]).by_name:
        message = f"the builtin `{node.func.id}` compares the elements of a device tensor one by one, and the host waits for each"
        yield reads.outcome(node, node.args[0], reads.level(node.args[0], ctx), message, ctx)


@rule.on(ast.Call, names=_SIZES | _ARGUMENTS | _NONE_BY_POSITION)
def check_argument(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.zeros(n, device=d)`, `x.split(sizes)`, `F.one_hot(x, num_classes=n)`."""
    if not _is_of_torch(node, ctx):
        return
    for argument in _numbers(node, ctx):
        parts = argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]
        for part in parts:
            if _is_read(part, ctx):
                yield _outcome(node, part, f"an argument of `{_called(node, ctx)}`", ctx, _makes_on_host(node, ctx))
                return


@rule.on(ast.BinOp, when=repeats_list)
def check_list_times_tensor(node: ast.BinOp, ctx: Context) -> Iterator[Outcome]:
    """`[x] * n` with a tensor `n`."""
    if _is_read(node.right, ctx):
        yield _outcome(node, node.right, "the length of a list", ctx)


def _is_of_torch(node: ast.Call, ctx: Context) -> bool:
    """A function of torch, or a method of a tensor; modules and classes have a `topk` or `split` of their own."""
    name = ctx.name(node.func)
    if name:
        return name.rpartition(".")[0] in ("torch", "torch.nn.functional")
    return isinstance(node.func, ast.Attribute) and ctx.value(node.func.value).is_tensor


def _numbers(node: ast.Call, ctx: Context) -> Iterator[ast.expr]:
    """The arguments of `node` that torch takes as numbers."""
    name = _called(node, ctx)
    positional = list(node.args)
    if name not in _FACTORIES and ctx.name(node.func).startswith("torch."):
        positional = positional[1:]  # the operand of a function
    match name:
        case _ if name in _NONE_BY_POSITION:
            positional = []
        case "masked_fill" | "masked_fill_":
            positional = positional[1:]
        case "split" | "tensor_split" | "one_hot" | "pad":
            positional = positional[:1]
    yield from positional
    yield from (keyword.value for keyword in node.keywords if keyword.arg in _KEYWORDS)


def _called(node: ast.Call, ctx: Context) -> str:
    name = ctx.name(node.func)
    if name.startswith("torch."):
        return name.rpartition(".")[2]
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_read(expr: ast.expr, ctx: Context) -> bool:
    """A tensor that is not known to be on the host."""
    value = ctx.value(expr)
    return value.is_tensor and value.device is not Device.HOST


def _makes_on_host(node: ast.Call, ctx: Context) -> bool:
    """`torch.arange(n)` without a device: whoever makes a host tensor of that size mostly has the size on the host."""
    return _called(node, ctx) in _FACTORIES and ctx.value(node).device is Device.HOST


def _outcome(node: ast.expr, read: ast.expr, place: str, ctx: Context, doubtful: bool = False) -> Outcome:
    level = reads.level(read, ctx)
    if ctx.value(read).by_name or (doubtful and level is Level.INFERRED):
        level = min(level, Level.UNKNOWN)
    around = ctx.loops()
    often = f" once for each {loops.describe(around[0], ctx)}" if around else ""
    message = f"a device tensor is {place}: it is read back{often}, and the host waits for everything queued before it"
    group = f"LCH3:{read.id}" if isinstance(read, ast.Name) and not around else ""  # one number used again and again
    return reads.outcome(node, read, level, message, ctx, ((around[0], "the loop"),) if around else (), group)

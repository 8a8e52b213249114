"""LCH302: a whole tensor read back to the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint import helpers, reads, uploads
from launchlint.model import Level, Meta, Policy
from launchlint.names import last_name
from launchlint.patterns import Pattern
from launchlint.rule import Context, Outcome, Rule, Silence
from launchlint.trees import walk
from launchlint.values import Device

rule = Rule(
    Meta(
        code="LCH302",
        name="bulk-read",
        summary="a tensor is copied back to the host, and the host waits for everything queued before it",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- low medium high", inferred="- - low medium", unknown="- - - low"),
    )
)

_ANSWERS = ("forward", "__call__", "predict", "infer")
_SESSION = Pattern(r"(^|_)(session|sess|interpreter|runtime)$")
_REMOTE = ("remote", "rpc", "rpc_method")
_RUNS = ("run", "infer", "invoke", "predict")
_MESSAGE = "the tensor is copied to the host, which waits for everything queued before it"


@rule.on(ast.Call, names=("tolist", "cpu", "numpy"))
def check_method(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.tolist()`, `x.cpu()`, `x.numpy()`: `.cpu()` is only ever called on tensors, the others on anything."""
    match node.func:
        case ast.Attribute(value=read, attr=method) if (
            not reads.in_loop(ctx) and not reads.is_foreign(node, ctx) and not reads.is_chained(read)
        ):
            pass
        case _:
            return
    level = reads.level(read, ctx)
    if method == "numpy" and level < Level.KNOWN:
        yield Silence(node, "a bare .numpy() works on host tensors only")
        return
    if method == "cpu" and _feeds_host_algorithm(ctx):
        yield Silence(node, "an algorithm of scipy works on the host")
        return
    if method == "cpu" and _feeds_host_runtime(read, ctx):
        yield Silence(node, "the results are arrays of the host, so what computes them takes such arrays")
        return
    if method == "cpu" and _answers_driver(ctx):
        yield Silence(node, "what a worker returns to its driver travels through the host")
        return
    if method == "cpu" and _feeds_session(node, ctx):
        yield Silence(node, "a session of another runtime takes arrays of the host")
        return
    if method == "cpu" and ctx.value(read).is_unknown and not reads.says_host(read, ctx):
        level = Level.INFERRED
    yield helpers.outcome(node, read, level, _MESSAGE, ctx)


@rule.on(ast.Call, names=("to",))
def check_to(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`x.to("cpu")` in its spellings; with `non_blocking` it does not wait (LCH401 looks after that)."""
    match node.func:
        case ast.Attribute(value=read) if not reads.in_loop(ctx) and not reads.is_chained(read):
            pass
        case _:
            return
    if uploads.destination(node, ctx) is not Device.HOST or uploads.is_non_blocking(node, ctx):
        return
    if reads.follows_tensor(node, ctx):
        yield Silence(node, "it goes where another tensor is, and nothing says that this is the host")
        return
    value = ctx.value(read)
    level = reads.level(read, ctx)
    if value.is_unknown and not value.class_name and not reads.says_host(read, ctx):
        level = Level.INFERRED
    yield helpers.outcome(node, read, level, _MESSAGE, ctx)


def _feeds_host_runtime(read: ast.expr, ctx: Context) -> bool:
    """True for the input of a forward that gives arrays: `def forward(self, image: Tensor) -> np.ndarray` asks another runtime."""
    function = ctx.function.node
    if function is None or function.name not in _ANSWERS or function.returns is None:
        return False
    while isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
        read = read.func.value
    parameters = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    gives_arrays = any(last_name(part) == "ndarray" for part in walk(function.returns))
    return gives_arrays and isinstance(read, ast.Name) and read.id in parameters


def _answers_driver(ctx: Context) -> bool:
    """True for what a method returns that is registered for calls from another process: `@register(dispatch_mode=...)`, `@ray.remote`."""
    function = ctx.function.node
    if function is None or not isinstance(ctx.statement, ast.Return):
        return False
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=called, keywords=keywords):
                if last_name(called) in _REMOTE or any(item.arg == "dispatch_mode" for item in keywords):
                    return True
            case ast.Name() | ast.Attribute() if last_name(decorator) in _REMOTE:
                return True
    return False


def _feeds_session(node: ast.expr, ctx: Context) -> bool:
    """`self.session.run(names, {name: image.cpu().numpy()})`"""
    inner: ast.AST = node
    above = ctx.parent(node)
    while isinstance(above, ast.expr | ast.keyword):
        match above:
            case ast.Call(func=ast.Attribute(value=holder, attr=method)) if inner is not above.func:
                if _SESSION.search(last_name(holder)) and method in _RUNS:
                    return True
        inner, above = above, ctx.parent(above)
    return False


def _feeds_host_algorithm(ctx: Context) -> bool:
    """True in a function that matches by scipy: such an algorithm has no counterpart on the device."""
    function = ctx.function.node
    return function is not None and any(
        isinstance(item, ast.Call) and last_name(item.func) == "linear_sum_assignment" for item in walk(function)
    )

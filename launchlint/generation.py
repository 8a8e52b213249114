"""What runs around the loop over tokens or time steps: once for a whole generation, however often its parts run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint import loops
from launchlint.guards import Guard, text_of
from launchlint.hot import GENERATION
from launchlint.hot.denoising import walks_time_steps
from launchlint.hot.summary import LOOP_OWNERS
from launchlint.names import last_name
from launchlint.rule import Context, FunctionNode, Loop
from launchlint.trees import children, walk

_GENERATES = re.compile(r"^_*generate(_|$)")
_RUNS_MODEL = re.compile(r"forward|(^|_)model($|_)|^(encode|decode)$")
_TIME_STEPS = re.compile(r"time_?steps|inference_steps|denoising_steps|(^|\W)sigmas(\W|$)")


def guards_of_generation(ctx: Context, function: FunctionNode | None, line: int) -> Iterator[Guard]:
    """What runs once ahead of a whole generation or once behind it; hundreds of steps of the model stand against it."""
    turns = ctx.function.turns
    for test in _tests_around(ctx):
        if _is_one_time_step(test):
            yield Guard("lower", "in one of all time steps only")
    if ctx.function.per == GENERATION and turns is not None:
        if not any(loop.lineno == first for loop in ctx.loops() for first, _ in turns) and not any(map(_takes_steps, ctx.loops())):
            yield Guard("lower", "outside the loop over time steps, once for a whole generation")
        return
    around = [loop for loop in ctx.loops() if isinstance(loop, (ast.For, ast.AsyncFor, ast.While))]
    if len(around) > 1:
        return  # a loop in a loop, over the tokens of each prompt, makes many turns even so
    if ctx.function.per == GENERATION and not any(_runs_model(loop, ctx) for loop in ctx.loops()):
        yield Guard("lower", "once ahead of a whole generation")
    elif function is not None and _GENERATES.match(function.name) and _is_behind_tokens(function.body, line):
        yield Guard("lower", "behind the loop over tokens, once at the end of a whole generation")


def _tests_around(ctx: Context) -> Iterator[ast.expr]:
    """The conditions under which a place runs."""
    for frame in ctx.frames():
        if isinstance(frame.node, (ast.If, ast.IfExp)) and frame.part == "body":
            test = frame.node.test
            yield from test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _is_one_time_step(test: ast.expr) -> bool:
    """`i == len(timesteps) - 1`."""
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.BinOp(left=count, op=ast.Sub(), right=ast.Constant(value=1))]):
            return bool(_TIME_STEPS.search(text_of(count)))
        case _:
            return False


def _takes_steps(loop: Loop) -> bool:
    """True for a loop over tokens that stands in a pipeline beside the one over time steps: `logits = self.decode_step(token)`."""
    if any(isinstance(node, ast.For) and walks_time_steps(node) for node in loops.nodes_in(loop)):
        return False  # a loop over clips, each a whole generation
    called = [last_name(call.func) for call in loops.calls_in(loop)]
    if isinstance(loop, ast.While) and any(_RUNS_MODEL.search(name) for name in called):
        return True  # `while len(tokens) < most: logits = self.language_model(tokens)`
    return any(name.endswith("_step") for name in called)


def _runs_model(loop: Loop, ctx: Context) -> bool:
    """True for a loop that runs a model in each turn: it may be the very loop over tokens, or over images to encode."""
    if any(_RUNS_MODEL.search(last_name(call.func)) for call in loops.calls_in(loop)):
        return True
    return loops.heavy_call(loop, ctx) is not None


def _is_behind_tokens(body: list[ast.stmt], line: int) -> bool:
    """True if the loop over tokens ends above a line, and no other loop holds both."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.stmt) or node.lineno >= line:
            continue
        is_above = (node.end_lineno or node.lineno) < line
        if is_above and _holds_tokens(node):
            return True
        if is_above or not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            pending.extend(child for child in children(node) if isinstance(child, ast.stmt))
    return False


def _holds_tokens(node: ast.stmt) -> bool:
    """`while True: logits = forward(tokens)`, and `self._sample(...)`, which holds such a loop."""
    if isinstance(node, ast.While):
        return any(isinstance(item, ast.Call) and _RUNS_MODEL.search(last_name(item.func)) for item in walk(node))
    called = node.value if isinstance(node, (ast.Assign, ast.Return, ast.Expr)) else None
    return isinstance(called, ast.Call) and last_name(called.func) in LOOP_OWNERS

"""LCH306: an explicit wait in a function that runs every step; opt-in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.model import Level, Meta, Policy
from launchlint.names import dotted
from launchlint.rule import Context, Hit, Outcome, Rule, Silence

rule = Rule(
    Meta(
        code="LCH306",
        name="explicit-synchronize",
        summary="the host waits explicitly for the device in every step",
        group="reads",
        since="0.1.0",
        policy=Policy.grid(known="- - medium high", inferred="- - - medium"),
        opt_in=True,
    )
)

_WHOLE_DEVICE = ("torch.cuda.synchronize", "torch.accelerator.synchronize", "torch.npu.synchronize", "torch.xpu.synchronize")
_TIMERS = ("time.", "perf_counter", "elapsed_time", "timer", "monotonic")


@rule.on(ast.Call, names=("synchronize", "barrier"))
def check(node: ast.Call, ctx: Context) -> Iterator[Outcome]:
    """`torch.cuda.synchronize()`, `stream.synchronize()`, `dist.barrier()`."""
    name = ctx.name(node.func)
    spelled = dotted(node.func)
    if ctx.function.node is not None and any(word in ctx.text(ctx.function.node) for word in _TIMERS):
        yield Silence(node, "a timer stands in the same function")
        return
    if name in _WHOLE_DEVICE:
        yield Hit(node, "the host waits until the device has finished everything", Level.KNOWN)
    elif name.endswith("distributed.barrier"):
        yield Hit(node, "every rank waits for the slowest one", Level.INFERRED)
    elif "current_stream" in ctx.text(node) or spelled.endswith("stream.synchronize"):
        yield Hit(node, "the host waits until the stream has finished", Level.INFERRED)

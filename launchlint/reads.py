"""What the rules about reading back share: whether an operand is on the device, and where the host already has the value."""

from __future__ import annotations

import ast
import re

from launchlint.facts import torch_operations
from launchlint.model import Level
from launchlint.names import dotted
from launchlint.rule import Context
from launchlint.values.value import Device, Kind, Value

REDUCTIONS = frozenset({"any", "all", "max", "min", "sum", "argmax", "argmin", "amax", "amin", "count_nonzero", "prod", "mean", "norm"})
_TWINS = ("_cpu", "_np", "_list", "_host", "_cpu_upper_bound")
_FUNCTIONAL = ("torch", "torch.nn.functional")


def is_reduction(expr: ast.expr) -> bool:
    """`x.any()`, `torch.max(x)`: a call that makes one number of a tensor."""
    return isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in REDUCTIONS


def operand(call: ast.Call, ctx: Context) -> ast.expr | None:
    """The tensor that `torch.f(x)` or `x.f()` works on."""
    if not isinstance(call.func, ast.Attribute):
        return None
    name = ctx.name(call.func)
    if name.rpartition(".")[0] in _FUNCTIONAL:
        return call.args[0] if call.args else None
    return call.func.value


def is_foreign(call: ast.Call, ctx: Context) -> bool:
    """True for functions of other libraries: `np.unique(x)`, `tl.where(x)`."""
    name = ctx.name(call.func)
    if name and not name.startswith("torch"):
        return True
    root = dotted(call.func).partition(".")[0]
    return root in ("np", "numpy", "cp", "tl", "jnp", "mx", "math")


def in_loop(ctx: Context) -> bool:
    """True inside a loop or comprehension of the same function."""
    return bool(ctx.loops())


def device_level(value: Value, unknown: Level = Level.UNKNOWN) -> Level:
    """How sure we are that a value is on the device."""
    return value.device_level(unknown)


def host_twin(expr: ast.expr, ctx: Context) -> str:
    """A name in this function that holds the same value on the host: `seq_lens_cpu` for `seq_lens.max()`; or an empty string."""
    base = _base_name(expr)
    if not base or ctx.function.node is None:
        return ""
    stem = base.removesuffix("_gpu").removesuffix("_device").removesuffix("_tensor")
    text = ctx.text(ctx.function.node)
    for suffix in _TWINS:
        wanted = stem + suffix
        if wanted != base and re.search(rf"\b{re.escape(wanted)}\b", text):
            return wanted
    return ""


def _base_name(expr: ast.expr) -> str:
    while True:
        match expr:
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
                expr = inner
            case ast.Attribute(attr=name):
                return name
            case ast.Name(id=name):
                return name
            case _:
                return ""


def advice(expr: ast.expr, ctx: Context) -> str:
    """`; the host has it in \\`x_cpu\\`` where it has, else nothing."""
    twin = host_twin(expr, ctx)
    return f"; `{twin}` holds it on the host" if twin else ""


def source_of(value: Value) -> str:
    """Where a value came from, in words, for messages."""
    return f" (from {value.origin.why})" if value.origin.why else ""


def makes_mask(expr: ast.expr, ctx: Context) -> bool:
    """True if `expr` is a mask on the device, or may be one."""
    value = ctx.value(expr)
    return value.is_tensor and value.boolean and value.device is not Device.HOST


def is_operation(name: str) -> bool:
    """True if torch has an operation of this name."""
    return name in torch_operations()


def is_number(value: Value) -> bool:
    """A Python number, or a tensor of no dimensions."""
    return value.kind is Kind.SCALAR or (value.is_tensor and value.scalar)

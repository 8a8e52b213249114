"""Making a host tensor in pinned memory, where the call that makes it is in sight."""

from __future__ import annotations

import ast

from launchlint.fixes.arguments import add_argument
from launchlint.fixes.staging import pin_memory
from launchlint.model import Applicability, Edit, Fix
from launchlint.rule import Context
from launchlint.values import Device, Kind

# Factories that take `pin_memory=`.
FACTORIES = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "arange", "rand", "randn", "randint", "linspace"))
LISTS = frozenset({Kind.LIST, Kind.TUPLE, Kind.SCALAR})


def pin_creation(host: ast.expr, move: ast.Call, ctx: Context) -> tuple[Edit, tuple[str, ...]] | None:
    """The edit that pins what `host`, which `move` copies, is made of, and the imports it needs; None where that is wrong.

    Not in a loop, where one copy for all turns is the cure and pinned memory per turn is not. Not where the host tensor is
    written after the copy has started: the copy from pinned memory may still be reading it.
    """
    made = _creation(host, ctx)
    if isinstance(host, ast.Name) and _is_written_later(host.id, move, ctx):
        return None
    pin = pin_memory(ctx.source, ctx.settings)
    if made is None or pin is None or not pin.text or ctx.loops() or not _can_pin(made, ctx):
        return None
    edit = add_argument(made, f"pin_memory={pin.text}", ctx)
    return (edit, pin.imports) if edit else None


def blocking_to_pinned(move: ast.Call, ctx: Context) -> Fix | None:
    """UNSAFE: `host.to(d)` -> `host.to(d, non_blocking=True)` with the host tensor made in pinned memory."""
    if not isinstance(move.func, ast.Attribute) or ctx.keyword(move, "non_blocking") is not None:
        return None
    pinned = pin_creation(move.func.value, move, ctx)
    waiting = add_argument(move, "non_blocking=True", ctx)
    if pinned is None or waiting is None:
        return None
    return Fix("make the host tensor in pinned memory and copy without waiting", (pinned[0], waiting), Applicability.UNSAFE, pinned[1])


def _is_written_later(name: str, move: ast.Call, ctx: Context) -> bool:
    """True if the memory of the host tensor `name` may be written after `move`, through the name or through a numpy view."""
    function = ctx.function.node
    if function is None:
        return True
    for node in ast.walk(function):
        later = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) > (move.lineno, move.col_offset)
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if _root(owner) == name:
                if attr == "numpy" or (later and attr.endswith("_") and not attr.endswith("__")):
                    return True
            case ast.Subscript(ctx=ast.Store()) if later and _root(node) == name:
                return True
            case ast.AugAssign(target=target) if later and _root(target) == name:
                return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _creation(host: ast.expr, ctx: Context) -> ast.Call | None:
    """The call that makes the host tensor: the expression itself, or what its name is bound to, once."""
    match host:
        case ast.Call():
            return host
        case ast.Name(id=name):
            match ctx.assigned(name):
                case [ast.Assign(targets=[ast.Name()], value=ast.Call() as made)] | [ast.AnnAssign(value=ast.Call() as made)]:
                    return made
    return None


def _can_pin(made: ast.Call, ctx: Context) -> bool:
    name = ctx.name(made.func)
    if any(keyword.arg in (None, "pin_memory", "out") for keyword in made.keywords) or not made.args:
        return False
    device = ctx.keyword(made, "device")
    if device is not None and ctx.device(device) is not Device.HOST:
        return False
    if name == "torch.tensor":  # refuses to pin what it makes from a numpy array or a tensor
        return ctx.value(made.args[0]).kind in LISTS
    return name in FACTORIES

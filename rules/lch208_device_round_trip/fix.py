"""`mask.type(torch.BoolTensor)` -> `mask.bool()`: the same type, and the data stays where it is.

SAFE where the same expression copies the result back to a device through views only, and the conversion is exact on every
device. Elsewhere UNSAFE, since the result is then on the device and no longer on the host.
"""

from __future__ import annotations

import ast

from launchlint import uploads
from launchlint.facts import torch_operations
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.values import Device

METHODS = {
    "BoolTensor": "bool",
    "LongTensor": "long",
    "IntTensor": "int",
    "ShortTensor": "short",
    "CharTensor": "char",
    "ByteTensor": "byte",
    "FloatTensor": "float",
    "DoubleTensor": "double",
    "HalfTensor": "half",
    "BFloat16Tensor": "bfloat16",
}
# A number that a whole type does not hold becomes something else on each device; a mask fits everywhere.
EXACT = frozenset({"bool", "float", "double"})


def rewrite(convert: ast.Call, ctx: Context) -> Fix | None:
    """The fix for `x.type(torch.SomeTensor)`."""
    if not isinstance(convert.func, ast.Attribute):
        return None
    method = METHODS.get(ctx.name(convert.args[0]).rpartition(".")[2])
    value = convert.func.value
    end, start = ctx.source.span(convert).end, _dot(convert, ctx)
    if method is None or start < 0:
        return None
    exact = method in EXACT or ctx.value(value).boolean
    applicability = Applicability.SAFE if exact and _goes_back(convert, ctx) else Applicability.UNSAFE
    return Fix(f"convert on the device: .{method}()", (Edit(Span(start, end), f".{method}()"),), applicability)


def _dot(convert: ast.Call, ctx: Context) -> int:
    """Offset of the dot before `type`; -1 where white space or a comment is in the way."""
    assert isinstance(convert.func, ast.Attribute)
    end = ctx.source.span(convert.func).end
    start = end - len(".type")
    tail = ctx.source.text[end : ctx.source.span(convert).end]
    return start if ctx.source.text[start:end] == ".type" and "#" not in tail else -1


def _goes_back(convert: ast.Call, ctx: Context) -> bool:
    """True if only views stand between the conversion and a copy to a device in the same expression."""
    operations = torch_operations()
    node: ast.expr = convert
    while True:
        attribute = ctx.parent(node)
        if not isinstance(attribute, ast.Attribute):
            return False
        outer = ctx.parent(attribute)
        if not isinstance(outer, ast.Call) or outer.func is not attribute:
            return False
        if attribute.attr in ("to", "cuda"):
            return uploads.destination(outer, ctx) is Device.DEVICE
        operation = operations.get(attribute.attr)
        if operation is None or operation.does != "view":
            return False
        node = outer

"""What an annotation says: `torch.Tensor | None`, `"list[int]"`, `Optional[np.ndarray]`."""

from __future__ import annotations

import ast
from functools import lru_cache

from launchlint.names import dotted
from launchlint.values.value import ARRAY, LIST, NONE, NOTHING, SCALAR, Device, Kind, Origin, Value

TENSORS = frozenset({"Tensor", "Parameter", "LongTensor", "IntTensor", "FloatTensor", "BoolTensor", "HalfTensor", "Buffer"})
_WRAPPERS = frozenset({"Optional", "Annotated", "ClassVar", "Final", "InitVar", "Required", "NotRequired"})
_LISTS = frozenset(
    {"list", "List", "Sequence", "Iterable", "Iterator", "set", "Set", "deque", "Generator", "Collection", "MutableSequence", "frozenset"}
)
_DICTS = frozenset({"dict", "Dict", "Mapping", "defaultdict", "OrderedDict", "MutableMapping"})
_SCALARS = frozenset({"int", "float", "bool", "str", "bytes", "complex"})
_NO_ANSWER = frozenset({"Any", "object", "Self", "Callable", "T", "Type", "type"})
_DEPTH = 6
ON_HOST = "  # cpu"  # behind an annotation: the class says, or shows by what it stores, that the tensor is on the host


def value_of_annotation(annotation: ast.expr | None, depth: int = 0) -> Value:
    """The value that an annotation promises; NOTHING where it promises nothing of interest."""
    if annotation is None or depth > _DEPTH:
        return NOTHING
    match annotation:
        case ast.Constant(value=str(text)):
            return value_of_text(text)
        case ast.Constant(value=None):
            return NONE
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either([value_of_annotation(left, depth + 1), value_of_annotation(right, depth + 1)])
        case ast.Subscript(value=base, slice=inner):
            return _subscript(dotted(base).rpartition(".")[2], inner, depth)
        case ast.Name() | ast.Attribute():
            return _plain(dotted(annotation).rpartition(".")[2])
        case _:
            return NOTHING


@lru_cache(maxsize=8192)
def value_of_text(text: str) -> Value:
    """The same for an annotation that is written as a string."""
    if len(text) > 500:
        return NOTHING
    try:
        found = value_of_annotation(ast.parse(text, mode="eval").body, 1)
        if text.endswith(ON_HOST) and found.kind is Kind.TENSOR:
            return found.but(device=Device.HOST, by_name=True, origin=Origin(0, "its class keeps it on the host"))
        return found
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NOTHING


def _either(values: list[Value]) -> Value:
    for value in values:
        if value.kind is Kind.TENSOR:
            return value
    return next((value for value in values if value.kind not in (Kind.UNKNOWN, Kind.NONE)), NOTHING)


def _plain(name: str) -> Value:
    if name in TENSORS:
        return Value(Kind.TENSOR)
    if name in _SCALARS:
        return SCALAR
    if name in ("ndarray", "NDArray", "ArrayLike"):
        return ARRAY
    if name in _LISTS or name in ("tuple", "Tuple", "range"):
        return LIST
    if name in _DICTS:
        return Value(Kind.DICT)
    if not name or name in _NO_ANSWER:
        return NOTHING
    if name == "device":
        return Value(Kind.DEVICE)
    if name == "dtype":
        return Value(Kind.DTYPE)
    return Value(Kind.OBJECT, class_name=name)


def _subscript(base: str, inner: ast.expr, depth: int) -> Value:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if base in _WRAPPERS:
        return value_of_annotation(parts[0], depth + 1) if parts else NOTHING
    if base in _LISTS:
        return Value(Kind.LIST, element=value_of_annotation(parts[0], depth + 1) if parts else None)
    if base in _DICTS:
        return Value(Kind.DICT, element=value_of_annotation(parts[-1], depth + 1) if len(parts) > 1 else None)
    if base in ("tuple", "Tuple"):
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...:
            return Value(Kind.LIST, element=value_of_annotation(parts[0], depth + 1))
        return Value(Kind.TUPLE, elements=tuple(value_of_annotation(part, depth + 1) for part in parts))
    if base == "Union":
        return _either([value_of_annotation(part, depth + 1) for part in parts])
    return _plain(base) if base in ("ndarray", "NDArray", "Tensor") else NOTHING

"""What an operation says of its operands: code that runs shows what they are.

A tensor on the host can be indexed by tensors of the host only, and what is given as a size is a number. A proof comes with
the operation and holds from there on.
"""

from __future__ import annotations

import ast

from launchlint.names import dotted
from launchlint.values.value import NOTHING, SCALAR, Device, Kind, Origin, Value

SIZED = frozenset({"view", "reshape", "expand"})  # methods that take one size for each dimension
_PLAIN = (ast.Name, ast.Attribute)


def prove_index(base: Value, index: ast.expr, seen: dict[int, Value], env: dict[str, Value]) -> None:
    """`table[ids]`, where the table is on the host: so are the ids, since torch takes no others."""
    for part in index.elts if isinstance(index, ast.Tuple) else (index,):
        known = seen.get(id(part), NOTHING)
        if known.kind is Kind.TENSOR and known.device is Device.UNKNOWN and isinstance(part, _PLAIN):
            spelled = dotted(part)
            origin = Origin(part.lineno, f"{spelled} indexes a tensor on the host")
            seen[id(part)] = env[spelled] = known.but(device=Device.HOST, by_name=base.by_name, origin=origin)


def prove_sizes(sizes: list[ast.expr], seen: dict[int, Value], env: dict[str, Value]) -> None:
    """`x.view(n, self.heads)`: what nothing else is known of is a number. A size that stands alone may be a whole shape."""
    if len(sizes) < 2:
        return
    for size in sizes:
        spelled = dotted(size) if isinstance(size, _PLAIN) else ""
        if spelled and seen.get(id(size), NOTHING).kind is Kind.UNKNOWN:
            env[spelled] = SCALAR


def host_inside(env: dict[str, Value], line: int) -> dict[str, Value]:
    """`with torch.device("cpu"):` is written around work on the host: what has no known device is there, as far as the block goes."""
    origin = Origin(line, "worked on where the default device is the host")
    return {
        name: value.but(device=Device.HOST, by_name=True, origin=origin)
        for name, value in env.items()
        if value.kind is Kind.TENSOR and value.device is Device.UNKNOWN
    }


def none_on_device(test: ast.Call) -> str:
    """`tensors` of `any(t.is_cuda for t in tensors)`, which is empty-handed where none of them is on a device."""
    match test:
        case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() | ast.ListComp() as asked]):
            pass
        case _:
            return ""
    match asked.generators:
        case [ast.comprehension(target=ast.Name(id=each), iter=ast.Name(id=held), ifs=[])] if _asks_for_device(asked.elt, each):
            return held
        case _:
            return ""


def _asks_for_device(test: ast.expr, name: str) -> bool:
    """`t.is_cuda`, `isinstance(t, torch.Tensor) and t.is_cuda`."""
    match test:
        case ast.BoolOp(op=ast.And(), values=[ast.Call(func=ast.Name(id="isinstance")), asked]):
            return _asks_for_device(asked, name)
        case ast.Attribute(value=ast.Name(id=asked_name), attr="is_cuda"):
            return asked_name == name
        case _:
            return False


def whole_on_host(known: Value, origin: Origin) -> Value:
    """A container whose tensors, if it holds any, are on the host."""
    inner = known.element or NOTHING
    if known.kind not in (Kind.LIST, Kind.UNKNOWN) or inner.kind not in (Kind.TENSOR, Kind.UNKNOWN):
        return known
    return Value(Kind.LIST, element=Value(Kind.TENSOR, Device.HOST, by_name=inner.by_name, origin=origin), origin=known.origin)

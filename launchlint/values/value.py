"""The abstract value: a small lattice that says what matters for the cost of a line and nothing else."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from launchlint.model import Level


class Kind(enum.Enum):
    """The sort of thing a value is."""

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    ARRAY = "numpy array"
    LIST = "host list"  # list, set, generator, range, sequence of anything
    TUPLE = "tuple"  # of known elements
    DICT = "dict"
    SCALAR = "host scalar"  # int, float, bool, str
    OBJECT = "object"  # an instance of a known class
    DEVICE = "device"
    DTYPE = "dtype"
    NONE = "None"


class Device(enum.Enum):
    """Where a tensor lives, as far as the source shows it."""

    UNKNOWN = "unknown device"
    HOST = "host"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: a 1-based line (0: nowhere in this file) and what was seen there."""

    line: int
    why: str


NOWHERE = Origin(0, "")


@dataclass(slots=True, eq=True)
class Value:
    """What is known of one expression. Never changed after it was made (it is not `frozen` only because that costs
    three times as much to build, and a flow builds hundreds of thousands).

    `pinned` is None where it is not known. `boolean` is a mask, `scalar` a tensor of no dimensions. `element` is what
    iterating or indexing gives; `elements` the members of a tuple. `by_name` marks knowledge that rests on a name or a
    convention and not on the code.
    """

    kind: Kind = Kind.UNKNOWN
    device: Device = Device.UNKNOWN
    pinned: bool | None = None
    boolean: bool = False
    scalar: bool = False
    by_name: bool = False
    class_name: str = ""
    element: Value | None = None
    elements: tuple[Value, ...] = ()
    origin: Origin = NOWHERE

    def but(self, **changes: Any) -> Value:
        """A copy with changes."""
        copy = Value(
            self.kind,
            self.device,
            self.pinned,
            self.boolean,
            self.scalar,
            self.by_name,
            self.class_name,
            self.element,
            self.elements,
            self.origin,
        )
        for name, change in changes.items():
            setattr(copy, name, change)
        return copy

    @property
    def is_tensor(self) -> bool:
        return self.kind is Kind.TENSOR

    @property
    def is_unknown(self) -> bool:
        return self.kind in _UNKNOWN_KINDS

    @property
    def on_host(self) -> bool:
        """Known to live in host memory: numpy, containers, Python numbers and CPU tensors."""
        return self.kind in HOST_KINDS or (self.kind is Kind.TENSOR and self.device is Device.HOST)

    @property
    def on_device(self) -> bool:
        return self.kind is Kind.TENSOR and self.device is Device.DEVICE

    def device_level(self, unknown: Level = Level.UNKNOWN) -> Level:
        """How sure we are that this is a tensor on the device; `unknown` answers for a value of which nothing is known."""
        if self.kind in _UNKNOWN_KINDS:
            return unknown
        if self.kind is not Kind.TENSOR or self.device is Device.HOST:
            return Level.NO
        return Level.KNOWN if self.device is Device.DEVICE and not self.by_name else Level.INFERRED

    def __str__(self) -> str:
        words = [str(self.kind.value)]
        if self.kind is Kind.TENSOR:
            words.append(f"on the {self.device.value}" if self.device is not Device.UNKNOWN else "of unknown device")
            words += ["pinned"] * (self.pinned is True) + ["pageable"] * (self.pinned is False and self.device is Device.HOST)
            words += ["mask"] * self.boolean + ["0-dim"] * self.scalar
        if self.class_name:
            words.append(self.class_name)
        return " ".join(words)


_UNKNOWN_KINDS = frozenset({Kind.UNKNOWN, Kind.OBJECT, Kind.NONE, Kind.DEVICE, Kind.DTYPE})
HOST_KINDS = frozenset({Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SCALAR})
NOTHING = Value()
SCALAR = Value(Kind.SCALAR)
HOST_TEXT = Value(Kind.SCALAR, Device.HOST)  # the text "cpu", wherever it is bound: as a device it is the host
ARRAY = Value(Kind.ARRAY)
LIST = Value(Kind.LIST)
TENSOR = Value(Kind.TENSOR)
DTYPE = Value(Kind.DTYPE)
NONE = Value(Kind.NONE)


def join(one: Value, other: Value) -> Value:
    """What is known where two ways meet. Nothing known gives way, since most unknown branches are of the same kind."""
    if one is other:
        return one
    if one is HOST_TEXT or other is HOST_TEXT:
        return _not_only_host(other if one is HOST_TEXT else one)
    if other.kind is Kind.UNKNOWN or other.kind is Kind.NONE:
        return one
    if one.kind is Kind.UNKNOWN or one.kind is Kind.NONE:
        return other
    if one.kind is Kind.TENSOR and other.kind is Kind.TENSOR:
        return _join_tensors(one, other)
    if one.kind is Kind.TUPLE and other.kind is Kind.TUPLE and len(one.elements) == len(other.elements):
        return one.but(elements=tuple(map(_join_members, one.elements, other.elements)))
    if one.kind is Kind.OBJECT and not one.class_name:
        return other
    if one.kind is Kind.TENSOR or other.kind is Kind.TENSOR:
        return one if one.kind is Kind.TENSOR else other
    return one


def _not_only_host(other: Value) -> Value:
    """Where another way meets the text "cpu", it names the host no more: whatever the other way has may be asked for."""
    return SCALAR if other.kind in (Kind.UNKNOWN, Kind.NONE) else other


def _join_members(one: Value, other: Value) -> Value:
    """A member of tuples that a function returns on two ways: pinned memory with a pageable fallback is not called pageable."""
    both = join(one, other)
    are_tensors = one.kind is Kind.TENSOR and other.kind is Kind.TENSOR
    return both.but(pinned=None) if are_tensors and one.pinned is not other.pinned else both


def _join_tensors(one: Value, other: Value) -> Value:
    if one.device is other.device:
        device = one.device
    elif one.scalar is not other.scalar and Device.UNKNOWN in (one.device, other.device) and _is_number(one if one.scalar else other):
        device = Device.UNKNOWN  # `torch.tensor(0)` where there is nothing says nothing of what there is
    elif Device.UNKNOWN in (one.device, other.device):
        device = one.device if other.device is Device.UNKNOWN else other.device
    else:
        device = Device.UNKNOWN
    pinned = one.pinned if one.pinned == other.pinned else False if False in (one.pinned, other.pinned) else None
    return one.but(
        device=device,
        pinned=pinned,
        boolean=one.boolean and other.boolean,
        scalar=one.scalar and other.scalar,
        by_name=one.by_name or other.by_name,
    )


def _is_number(value: Value) -> bool:
    """True for a tensor of no dimensions on the host, which operators and indices take like a number."""
    return value.scalar and value.device is Device.HOST


def together(values: list[Value]) -> Value:
    """The result of an operation on several operands: a tensor where one is, on the device all tensors must share."""
    tensors = [value for value in values if value.kind is Kind.TENSOR]
    if not tensors:
        for value in values:
            if value.kind is Kind.ARRAY:
                return ARRAY
        return next((value for value in values if value.kind is not Kind.UNKNOWN), NOTHING)
    sized = [value for value in tensors if not value.scalar] or tensors  # a 0-dim host tensor may meet any device
    devices = {value.device for value in sized}
    if Device.DEVICE in devices:
        device = Device.DEVICE
    elif Device.HOST in devices:
        device = Device.HOST
    else:
        device = Device.UNKNOWN
    leader = next(value for value in sized if value.device is device)
    return Value(
        Kind.TENSOR,
        device,
        False if device is Device.HOST else None,
        any(value.boolean for value in tensors),
        all(value.scalar for value in tensors) and len(tensors) == len([v for v in values if v.kind is not Kind.SCALAR]),
        leader.by_name,
        origin=leader.origin,
    )

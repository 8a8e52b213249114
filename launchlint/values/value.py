"""The abstract value: a small lattice that says what matters for the cost of a line and nothing else."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of one expression.

    `pinned` is None where it is not known. `boolean` is a mask, `scalar` a tensor of no dimensions. `element` is what
    iterating or indexing gives; `elements` the members of a tuple. `by_name` marks knowledge that rests on a name or a
    convention and not on the code. `constant` is the same for the life of the object that holds it.
    """

    kind: Kind = Kind.UNKNOWN
    device: Device = Device.UNKNOWN
    pinned: bool | None = None
    boolean: bool = False
    scalar: bool = False
    constant: bool = False
    by_name: bool = False
    class_name: str = ""
    element: Value | None = None
    elements: tuple[Value, ...] = ()
    origin: Origin = Origin(0, "")

    def but(self, **changes: Any) -> Value:
        """A copy with changes."""
        return replace(self, **changes)

    @property
    def is_tensor(self) -> bool:
        return self.kind is Kind.TENSOR

    @property
    def is_unknown(self) -> bool:
        return self.kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.NONE)

    @property
    def on_host(self) -> bool:
        """Known to live in host memory: numpy, containers, Python numbers and CPU tensors."""
        return self.kind in HOST_KINDS or (self.kind is Kind.TENSOR and self.device is Device.HOST)

    @property
    def on_device(self) -> bool:
        return self.kind is Kind.TENSOR and self.device is Device.DEVICE

    def device_level(self, unknown: Level = Level.UNKNOWN) -> Level:
        """How sure we are that this is a tensor on the device; `unknown` answers for a value of which nothing is known."""
        if self.is_unknown:
            return unknown
        if self.kind is not Kind.TENSOR or self.device is Device.HOST:
            return Level.NO
        return Level.KNOWN if self.device is Device.DEVICE and not self.by_name else Level.INFERRED

    def __str__(self) -> str:
        words = [str(self.kind.value)]
        if self.kind is Kind.TENSOR:
            words.append(f"on {self.device.value}" if self.device is not Device.UNKNOWN else "of unknown device")
            words += ["pinned"] * (self.pinned is True) + ["pageable"] * (self.pinned is False and self.device is Device.HOST)
            words += ["mask"] * self.boolean + ["0-dim"] * self.scalar
        if self.class_name:
            words.append(self.class_name)
        return " ".join(words)


HOST_KINDS = frozenset({Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SCALAR})
NOTHING = Value()

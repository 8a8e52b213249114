"""Facts as data: what each torch operation costs the host when its tensors live on a CUDA device.

`torch.toml` is written by people and is the source; `torch.json` is made from it by `python -m launchlint.facts` and is
what is read at run time, because Python 3.10 has no TOML parser and parsing TOML is ten times slower than JSON.

A fact is looked up by the base name, as it is spelled in source (`fill_`, `cumsum`) or as ATen calls its operator
(`_local_scalar_dense`). Nothing here needs torch.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from dataclasses import dataclass
from typing import Any, Final, Literal

Does = Literal["launch", "view", "allocate", "host", "upload", "download", "move", "wait"]
Lives = Literal["operands", "argument", "receiver", "host"]
Result = Literal["tensor", "pair", "list", "scalar", "host-list", "array", "none"]
Spelling = Literal["function", "method"]

CONDITIONS: Final[dict[str, str]] = {
    "no": "never waits",
    "always": "always waits",
    "device-argument": "waits when it makes a device tensor: the copy of the host data is blocking",
    "blocking-or-pageable": "waits between host and device without non_blocking; with it, pageable memory is not guaranteed asynchronous",
    "other-device": "waits when the result lives on the other side",
    "device-value": "waits when the value is a 0-dim device tensor, which is read back",
    "many-test-elements": "waits when so many elements are tested for that both sides are sorted and made unique",
    "one-argument-or-host-operand": "waits with the condition alone (nonzero), or when a 0-dim host tensor is uploaded",
    "equal-bounds": "waits when min equals max, the default: both are read from the data",
    "mask-or-host-index": "waits for a device mask, or when a list, an array or a host tensor is uploaded as index",
    "mask-store-or-host-index": "waits for a mask and a tensor to store, for a host index, and for a host value",
    "tensor-repeats-without-output-size": "waits when the repeats are a device tensor and output_size is not given",
    "no-num-classes": "waits when the number of classes is not given",
    "multinomial-check": "waits for one sample or without replacement: the probabilities are checked on the host",
    "tensor-std": "waits when the standard deviation is a device tensor, which is checked on the host",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What one operation does, said for tensors on a CUDA device in eager mode.

    `launches` is the approximate number of kernels; it depends on size, dtype and torch version and is exact only where
    it is 0 or 1. `waits` is a key of `CONDITIONS`. `source` is a URL, or a path in the repository pytorch/pytorch.
    """

    name: str
    does: Does = "launch"
    launches: int = 1
    waits: str = "no"
    device: Lives = "operands"
    result: Result = "tensor"
    in_place: bool = False
    boolean: bool = False
    reduces: bool = False
    dynamic: bool = False
    heavy: bool = False
    factory: bool = False
    from_host_data: bool = False
    pin_keeps: bool = False
    spelled: tuple[Spelling, ...] = ("function", "method")
    modules: tuple[str, ...] = ("torch",)
    owner: str = "torch.Tensor"
    since: str = ""
    until: str = ""
    note: str = ""
    source: str = ""

    @property
    def may_wait(self) -> bool:
        """True if there is a way to call it that makes the host wait."""
        return self.waits != "no"

    def holds(self, version: tuple[int, int]) -> bool:
        """True if the fact holds in torch `version`, given as (major, minor)."""
        return (not self.since or release(self.since) <= version) and (not self.until or version < release(self.until))


class FactsError(Exception):
    """The table contradicts itself; the message names the operation."""


def release(text: str) -> tuple[int, int]:
    """`2.13.0+cpu` -> (2, 13)."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@functools.cache
def torch_operations() -> dict[str, Operation]:
    """Every operation that source can spell, by base name. The dictionary is shared: treat it as read-only."""
    return read_groups(_read()["spelled"])


@functools.cache
def aten_operations() -> dict[str, Operation]:
    """Every known operation, those that only ATen names included. The dictionary is shared: treat it as read-only."""
    return torch_operations() | read_groups(_read()["aten"])


def _read() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "torch.json"), encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


def read_groups(groups: list[dict[str, Any]]) -> dict[str, Operation]:
    """Make the operations of the table's groups; raise FactsError for a name that is there twice or a field that is unknown."""
    operations: dict[str, Operation] = {}
    for group in groups:
        fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in group.items()}
        for name in fields.pop("names"):
            if name in operations:
                raise FactsError(f"{name} is in the table twice")
            try:
                operations[name] = Operation(name, **fields)
            except TypeError as error:
                raise FactsError(f"{name}: {error}") from None
    return operations


def check(operations: dict[str, Operation]) -> None:
    """Raise FactsError where the table cannot be right."""
    for operation in operations.values():
        if operation.waits not in CONDITIONS:
            raise FactsError(f"{operation.name}: unknown condition {operation.waits!r}")
        if not operation.source:
            raise FactsError(f"{operation.name}: no source")
        if operation.does in ("view", "host", "wait") and operation.launches:
            raise FactsError(f"{operation.name}: {operation.does} launches nothing")
        for spelling in operation.spelled:
            if spelling not in ("function", "method"):
                raise FactsError(f"{operation.name}: spelled as {spelling!r}")


def as_json(groups: list[dict[str, Any]]) -> str:
    """The text of `torch.json` for the groups of `torch.toml`: a line for each group, without what is a default.

    Names that only ATen has come apart from the others, since a linter never asks for them.
    """
    check(read_groups(groups))
    defaults = {field.name: field.default for field in dataclasses.fields(Operation)}
    lines: dict[bool, list[str]] = {True: [], False: []}
    for group in groups:
        kept = {key: value for key, value in group.items() if _hashable(value) != defaults.get(key, dataclasses.MISSING)}
        lines[bool(group.get("spelled", True))].append(json.dumps(kept, separators=(",", ":")))
    spelled, aten = (",\n".join(lines[key]) for key in (True, False))
    return f'{{"schema":1,"spelled":[\n{spelled}\n],"aten":[\n{aten}\n]}}\n'


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

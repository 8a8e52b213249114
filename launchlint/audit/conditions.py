"""When an operation waits: one function for each condition that the table of facts names.

Each gets the call as ATen sees it and returns what is read back or uploaded, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from launchlint.audit.memory import Memory, marks

MASKS = (torch.bool, torch.uint8)
NONZERO_KERNELS = 3  # about, as in the table of facts


@dataclass(frozen=True, slots=True)
class Call:
    """An ATen call: `args` and `kwargs` as dispatched, `result` as computed on the CPU."""

    args: Sequence[Any]
    kwargs: dict[str, Any]
    result: Any
    overload: str

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or by name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if position < len(self.args) else default


@dataclass(frozen=True, slots=True)
class Cost:
    """What a condition adds: values read back (each waits), blocking uploads of host operands (each waits), and kernels."""

    reads: int = 0
    uploads: int = 0
    note: str = ""
    upload_bytes: int = 0
    launches: int = 0


NOTHING = Cost()


def on_device(value: object) -> bool:
    """True for a tensor that pretends to live on the device."""
    return isinstance(value, torch.Tensor) and marks.of(value) is Memory.DEVICE


def on_host(value: object) -> bool:
    """True for a tensor in host memory."""
    return isinstance(value, torch.Tensor) and marks.of(value) is not Memory.DEVICE


def size_in_bytes(tensors: Sequence[torch.Tensor]) -> int:
    """Bytes of the elements."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def index_read(call: Call) -> Cost:
    """`x[index]`: a device mask is turned into indices; host indices are uploaded."""
    indices = [index for index in call.argument(1, "indices", ()) if index is not None]
    uploads = [index for index in indices if on_host(index)]
    reads = sum(1 for index in indices if index.dtype in MASKS and on_device(index))
    note = "mask turned into indices, their number read back" if reads else "host index uploaded" if uploads else ""
    return Cost(reads, len(uploads), note, size_in_bytes(uploads), reads * NONZERO_KERNELS)


def index_store(call: Call) -> Cost:
    """`x[index] = value`: one mask and one host number is masked_fill_; else a mask waits, and so do host operands."""
    indices = [index for index in call.argument(1, "indices", ()) if index is not None]
    value = call.argument(2, "values")
    masks = [index for index in indices if index.dtype in MASKS]
    number = on_host(value) and value.numel() == 1
    if masks and len(indices) == 1 and number and not call.argument(3, "accumulate", False):
        uploads = [mask for mask in masks if on_host(mask)]
        return Cost(0, len(uploads), "host mask uploaded" if uploads else "", size_in_bytes(uploads))
    uploads = [index for index in indices if on_host(index)]
    uploads += [value] if on_host(value) and value.dim() == 0 else []
    reads = sum(1 for mask in masks if on_device(mask))
    note = "mask turned into indices, their number read back" if reads else "host index or value uploaded" if uploads else ""
    return Cost(reads, len(uploads), note, size_in_bytes(uploads), reads * NONZERO_KERNELS)


def repeats(call: Call) -> Cost:
    """Device repeats without `output_size`: their sum and the check of their sign are read back."""
    if not call.overload.startswith("Tensor") or call.kwargs.get("output_size") is not None:
        return NOTHING
    return Cost(2, note="sum and sign of the repeats read back; output_size= avoids it", launches=2)


def where(call: Call) -> Cost:
    """0-dim host operands of `where` are uploaded."""
    uploads = [value for value in call.args if on_host(value) and value.dim() == 0]
    return Cost(0, len(uploads), "host operand uploaded" if uploads else "", size_in_bytes(uploads))


def device_value(call: Call) -> Cost:
    """`masked_fill` with a 0-dim device tensor reads it back."""
    return Cost(1, note="value read back") if on_device(call.argument(2, "value")) else NOTHING


def equal_bounds(call: Call) -> Cost:
    """`histc` with equal bounds reads the smallest and the largest value."""
    low, high = call.argument(2, "min", 0), call.argument(3, "max", 0)
    return Cost(2, note="bounds read back") if low == high else NOTHING


def multinomial(call: Call) -> Cost:
    """`multinomial` checks its probabilities, except for several samples with replacement."""
    if call.argument(2, "replacement", False) and call.argument(1, "num_samples", 1) > 1:
        return NOTHING
    return Cost(2, note="probabilities checked on the host")


def tensor_std(call: Call) -> Cost:
    """`normal` checks a device tensor of standard deviations."""
    deviation = call.argument(0, "mean") if call.overload.startswith("float_Tensor") else call.argument(1, "std")
    return Cost(1, note="standard deviations checked on the host") if on_device(deviation) else NOTHING


def many_elements(call: Call) -> Cost:
    """`isin` sorts and makes unique when there are many test elements."""
    elements, tests = call.argument(0, "elements"), call.argument(1, "test_elements")
    if not (isinstance(elements, torch.Tensor) and isinstance(tests, torch.Tensor)):
        return NOTHING
    few = tests.numel() < int(10.0 * float(elements.numel()) ** 0.145)
    return NOTHING if few else Cost(2, note="both sides made unique, their sizes read back")


def always(call: Call) -> Cost:
    """Reads one value or size back."""
    return Cost(1, note="size or value read back")


def never(call: Call) -> Cost:
    """Neither reads nor uploads."""
    return NOTHING


CHECKS: dict[str, Callable[[Call], Cost]] = {
    "no": never,
    "always": always,
    "mask-or-host-index": index_read,
    "mask-store-or-host-index": index_store,
    "tensor-repeats-without-output-size": repeats,
    "one-argument-or-host-operand": where,
    "device-value": device_value,
    "equal-bounds": equal_bounds,
    "multinomial-check": multinomial,
    "tensor-std": tensor_std,
    "many-test-elements": many_elements,
}

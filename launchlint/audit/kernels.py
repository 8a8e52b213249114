"""Kernels that torch does not know: custom operators, Triton kernels and bound functions, with what their author says they cost."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from launchlint.audit.state import UnknownKernel, current


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one registered kernel costs. `reference` computes its result on CPU tensors in a dry run."""

    name: str
    launches: int
    reference: Callable[..., Any] | None


_operators: dict[Any, Kernel] = {}  # by OpOverloadPacket or OpOverload
_triton: dict[int, tuple[Any, Kernel]] = {}  # by id; the object is kept


def register_kernel(target: Any, launches: int = 1, reference: Callable[..., Any] | None = None) -> Any:
    """Tell the dry run what a kernel costs, and how to compute it without a GPU.

    `target` is an operator (`torch.ops.lib.name` or one overload of it), a Triton kernel (anything with `run` that is called
    as `kernel[grid](...)`), or a plain Python function, such as one bound from C++. `launches` is the number of kernels of one
    call. `reference` is called with the same arguments on CPU tensors; without it an operator runs its own CPU implementation,
    a Triton kernel computes nothing (its output buffers stay as they are), and a function runs as it is.

    Returns what to call instead: `target` itself for operators and Triton kernels, a wrapper for a function. Raises TypeError
    for anything else.
    """
    if launches < 0:
        raise ValueError(f"launches cannot be negative: {launches}")
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        _operators[target] = Kernel(str(target), launches, reference)
        return target
    if hasattr(target, "run") and hasattr(target, "__getitem__"):
        _triton[id(target)] = (target, Kernel(name_of(target), launches, reference))
        return target
    if callable(target):
        return _wrapped(target, Kernel(name_of(target), launches, reference))
    raise TypeError(f"neither an operator, nor a Triton kernel, nor a function: {target!r}")


def registered(func: Any) -> Kernel | None:
    """The registration of an operator: of the overload, else of its packet."""
    return _operators.get(func) or _operators.get(func.overloadpacket)


def name_of(target: Any) -> str:
    """The name that a reader knows the kernel by."""
    inner = getattr(target, "fn", target)
    return str(getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None) or type(target).__name__)


def _wrapped(function: Callable[..., Any], kernel: Kernel) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = current()
        if state is None or state.muted:
            return function(*args, **kwargs)
        state.record("launch", kernel.name, kernel.launches)
        with state.mute():
            return (kernel.reference or function)(*args, **kwargs)

    return call


class TritonGuard:
    """While a dry run is on, registered Triton kernels are counted and others refused; afterwards all is as before."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Put a counter in the place of `run`, on each registered kernel and on Triton's own class."""
        for target, kernel in _triton.values():
            saved = vars(target).get("run", _MISSING)
            self._saved.append((target, "run", saved))
            target.run = _counting(target, target.run, kernel)
        jit = sys.modules.get("triton.runtime.jit")
        if jit is not None and hasattr(jit, "JITFunction"):
            self._saved.append((jit.JITFunction, "run", jit.JITFunction.run))
            jit.JITFunction.run = _refusing(jit.JITFunction.run)

    def remove(self) -> None:
        """Put everything back."""
        for target, name, saved in reversed(self._saved):
            if saved is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, saved)
        self._saved.clear()


_MISSING = object()


def _counting(target: Any, original: Callable[..., Any], kernel: Kernel) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        state = current()
        if state is None or state.muted:
            return original(*args, **kwargs)
        if kwargs.get("warmup"):
            return None
        state.record("launch", kernel.name, kernel.launches)
        for option in ("grid", "warmup"):
            kwargs.pop(option, None)
        with state.mute():
            return None if kernel.reference is None else kernel.reference(*args, **kwargs)

    return run


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = current()
        if state is None or state.muted:
            return original(self, *args, **kwargs)
        raise UnknownKernel(
            f"Triton kernel {name_of(self)} cannot run in a dry run: tell what it costs with "
            "launchlint.audit.register_kernel(kernel, launches=1, reference=function_on_cpu_tensors)"
        )

    return run

"""Running code before and after a fix on CPU tensors and counting the operators that torch dispatches.

A torch without an accelerator refuses pinned memory. Where a fix writes `pin_memory=True`, the code runs against
`torch` with that one argument dropped: what is compared is the values, and pinning does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PINNABLE = ("tensor", "empty", "zeros", "ones", "full", "arange")


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts dispatched operators."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def pageable() -> Iterator[None]:
    """Factories without their `pin_memory=` argument, where this machine cannot pin."""
    if torch.cuda.is_available():
        yield
        return
    with ExitStack() as patches:
        for name in PINNABLE:
            patches.enter_context(mock.patch.object(torch, name, _unpinned(getattr(torch, name))))
        yield


def _unpinned(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def make(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        return factory(*args, **kwargs)

    return make


def define(text: str, name: str, **names: Any) -> Callable[..., Any]:
    """The function `name` of a module with this text."""
    scope: dict[str, Any] = dict(names)
    exec(compile(text, "<fixed>", "exec"), scope)
    function = scope[name]
    assert callable(function)
    return function  # type: ignore[no-any-return]


def run(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """The result, and how many operators were dispatched."""
    with pageable(), Operators() as operators:
        result = function(*args)
    return result, len(operators.names)


def assert_same(one: torch.Tensor, other: torch.Tensor) -> None:
    """Equal in values, dtype, shape, strides and device."""
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.stride() == other.stride()
    assert one.device == other.device
    assert torch.equal(one, other)

"""Starting and ending a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from launchlint.audit.answers import answering
from launchlint.audit.dispatch import CountOperators
from launchlint.audit.functions import AnswerFunctions
from launchlint.audit.memory import Memory, marks
from launchlint.audit.mode import measures
from launchlint.audit.report import Report
from launchlint.audit.state import State, current, enter


@contextmanager
def dry_run() -> Iterator[Report]:
    """Count what the body of the `with` statement would ask of a GPU; works without one.

    Tensors made inside with a CUDA device pretend to live there; tensors from outside are host tensors unless `on_device`
    says otherwise. A run inside a run counts for both.
    """
    report = Report("dry run", torch.__version__)
    state = current()
    if state is not None:
        state.reports.append(report)
        try:
            yield report
        finally:
            state.reports.remove(report)
        return
    state = State([report])
    with ExitStack() as stack:
        stack.enter_context(answering())
        stack.callback(enter, None)
        enter(state)
        stack.callback(_restore_default, dict(vars(torch._GLOBAL_DEVICE_CONTEXT)))
        stack.enter_context(AnswerFunctions(state))
        stack.enter_context(CountOperators(state))
        yield report


def run_dry(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Call `function` in a dry run with its tensor arguments on the device; the result is in the report.

    Tensors, and parameters and buffers of modules, anywhere in the arguments pretend to live on the device for the length of
    the call, without being copied; wrap what belongs to the host in `on_host`. What the call raises comes through.
    """
    with on_device_for_now((function, args, kwargs)), dry_run() as report:
        args, kwargs = _unwrap(args), _unwrap(kwargs)
        report.result = function(*args, **kwargs)
    return report


class Placed:
    """An argument with the memory that it shall pretend to live in."""

    __slots__ = ("memory", "value")

    def __init__(self, value: Any, memory: Memory) -> None:
        self.value = value
        self.memory = memory

    @property
    def pinned(self) -> bool:
        """True for page-locked host memory."""
        return self.memory is Memory.PINNED


def on_host(value: Any, pinned: bool = False) -> Any:
    """Mark an argument of `audit` as host memory: a tensor, or lists, tuples and dictionaries of tensors."""
    return Placed(value, Memory.PINNED if pinned else Memory.PAGEABLE)


def on_device(value: Any) -> Any:
    """Put tensors on the device for dry runs: a tensor is copied, a module keeps its identity. On a GPU it is `.to("cuda")`."""
    if measures():
        return value.to("cuda")
    state = current()
    with ExitStack() as stack:
        if state is not None:
            stack.enter_context(state.mute())
        if isinstance(value, torch.nn.Module):
            for tensor in tensors_of(value):
                marks.put(tensor, Memory.DEVICE)
            return value
        copy = value.detach().clone().requires_grad_(value.requires_grad)
        marks.put(copy, Memory.DEVICE)
        return copy


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Tensors in nested containers, and parameters and buffers of modules and of methods of modules."""
    found: list[torch.Tensor] = []
    for leaf in tree_leaves(value):
        owner = getattr(leaf, "__self__", leaf)
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif isinstance(owner, torch.nn.Module):
            found += [*owner.parameters(), *owner.buffers()]
    return found


@contextmanager
def on_device_for_now(arguments: Any) -> Iterator[None]:
    """Mark the tensors of `arguments` for the length of the `with` statement, then as they were."""
    before: list[tuple[torch.Tensor, Memory]] = []
    wanted: list[tuple[torch.Tensor, Memory]] = []
    for leaf in tree_leaves(arguments):
        memory = leaf.memory if isinstance(leaf, Placed) else Memory.DEVICE
        wanted += [(tensor, memory) for tensor in tensors_of(leaf.value if isinstance(leaf, Placed) else leaf)]
    for tensor, memory in wanted:
        before.append((tensor, marks.of(tensor)))
        marks.put(tensor, memory)
    try:
        yield
    finally:
        for tensor, memory in reversed(before):
            marks.put(tensor, memory)


def _unwrap(arguments: Any) -> Any:
    if isinstance(arguments, Placed):
        return arguments.value
    if isinstance(arguments, dict):
        return {key: _unwrap(value) for key, value in arguments.items()}
    if type(arguments) in (list, tuple):
        return type(arguments)(_unwrap(value) for value in arguments)
    return arguments


def _restore_default(before: dict[str, Any]) -> None:
    """Undo what the code did to the global default device, down to whether there was one."""
    context = torch._GLOBAL_DEVICE_CONTEXT
    now = getattr(context, "device_context", None)
    if now is not before.get("device_context"):
        torch.set_default_device(None if before.get("device_context") is None else before["device_context"].device)
    if "device_context" not in before:
        vars(context).pop("device_context", None)

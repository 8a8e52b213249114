"""Below autograd: every ATen operator of a dry run, counted by the table of facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from launchlint.audit.conditions import CHECKS, Call, Cost
from launchlint.audit.copies import record_copy
from launchlint.audit.kernels import Kernel, registered
from launchlint.audit.memory import Memory, marks
from launchlint.audit.state import AuditError, State, UnknownKernel
from launchlint.facts import Operation, aten_operations

TORCH_NAMESPACES = frozenset(
    {
        "aten",
        "prim",
        "prims",
        "profiler",
        "inductor",
        "c10d",
        "_c10d_functional",
        "higher_order",
    }
)
CATENATES = frozenset({"cat", "stack"})
INPUTS_PER_CATENATION = 128  # aten/src/ATen/native/cuda/Shape.cu, CAT_ARRAY_BATCH_SIZE
TENSORS_PER_LAUNCH = (110, 64, 48, 36, 30)  # by number of lists; aten/src/ATen/native/cuda/MultiTensorApply.cuh
HOST_OPERANDS_ALLOWED = frozenset(
    {
        "index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "copy_",
        "_copy_from",
        "is_same_size",
        "set_",
        "_to_copy",
    }
)


class CountOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs every operator on the CPU, marks what is new and records what CUDA would have done."""

    def __init__(self, state: State) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.state = state

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        state = self.state
        if state.muted:
            return func(*args, **kwargs)
        inputs = tensors_in(args) + (tensors_in(tuple(kwargs.values())) if kwargs else [])
        runs_on_device = self._runs_on_device(inputs)
        kernel = kernel_of(func) if runs_on_device and func.namespace not in TORCH_NAMESPACES else None
        result = func(*args, **kwargs) if kernel is None else compute(kernel, func, args, kwargs)
        if not runs_on_device and state.creating is None:
            return result
        fresh = self._mark_new(inputs, result, runs_on_device)
        if runs_on_device:
            if fresh:
                state.record("allocation", func.__name__.split(".")[0], fresh)
            with state.mute():
                if kernel is not None:
                    state.record("launch", kernel.name, kernel.launches)
                else:
                    count(state, func, Call(args, kwargs, result, func._overloadname), inputs)
        return result

    def _runs_on_device(self, inputs: Sequence[torch.Tensor]) -> bool:
        if self.state.creating is not None:
            return self.state.creating is Memory.DEVICE
        if not inputs:
            return self.state.adopting
        return any(marks.of(tensor) is Memory.DEVICE for tensor in inputs)

    def _mark_new(self, inputs: Sequence[torch.Tensor], result: Any, runs_on_device: bool) -> int:
        """Mark storages that no input has; return how many there are."""
        outputs = [result] if isinstance(result, torch.Tensor) else tensors_in(result) if isinstance(result, (tuple, list)) else []
        if not outputs:
            return 0
        memory = self.state.creating or (Memory.DEVICE if runs_on_device else Memory.PAGEABLE)
        known = {storage_of(tensor) for tensor in inputs}
        fresh = 0
        for output in outputs:
            storage = storage_of(output)
            if storage not in known:
                known.add(storage)
                marks.put(output, memory)
                fresh += 1
        return fresh


def kernel_of(func: Any) -> Kernel:
    """The registration of a custom operator; raise UnknownKernel if there is none."""
    kernel = registered(func)
    if kernel is None:
        raise UnknownKernel(
            f"operator {func} is not known to the dry run: tell what it costs with "
            f"launchlint.audit.register_kernel(torch.ops.{func.namespace}.{func._opname}, launches=1)"
        )
    return kernel


def compute(kernel: Kernel, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a custom operator on CPU tensors; raise AuditError if nobody can compute it."""
    if kernel.reference is not None:
        return kernel.reference(*args, **kwargs)
    try:
        return func(*args, **kwargs)
    except NotImplementedError:
        raise AuditError(f"operator {func} has no CPU implementation: give register_kernel a reference= on CPU tensors") from None


def storage_of(tensor: torch.Tensor) -> int:
    """The identity of the storage; of the tensor itself where it has none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Tensors among `values` and inside lists and tuples of them."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(tensors_in(value))
    return found


# ---------------------------------------------------------------- what one operator costs


def count(state: State, func: Any, call: Call, inputs: Sequence[torch.Tensor]) -> None:
    """Record what `func`, which runs on the device, launches, waits for and copies."""
    name: str = func._opname
    if is_view(func):
        return
    operation = operation_of(name)
    if operation is None:
        state.assume(f"{func.namespace}.{name}" if func.namespace != "aten" else name)
        operation = Operation(name, waits="always" if needs_data(func) else "no")
    match operation.does:
        case "view" | "host" | "allocate":
            if name.endswith("_copy"):  # the copying form of a view
                state.record("launch", name)
            return
        case "move" if name in ("copy_", "_copy_from"):
            record_copy(state, name, call.args[0], call.args[1], bool(call.argument(2, "non_blocking", False)))
            return
    report_strangers(state, name, inputs, operation)
    cost = CHECKS.get(operation.waits, CHECKS["no"])(call)
    record_cost(state, name, cost)
    launches = launches_of(operation, name, call) + cost.launches
    if launches and not_empty(call.result, inputs):
        state.record("launch", name, launches)


def record_cost(state: State, name: str, cost: Cost) -> None:
    """Record the reads and the blocking uploads that a condition found."""
    if cost.uploads:
        state.record("upload", name, cost.uploads, bytes=cost.upload_bytes, pinned=False, note=cost.note)
        state.record("wait", name, cost.uploads, note=cost.note)
    if cost.reads:
        state.record("download", name, cost.reads, note=cost.note)
        state.record("wait", name, cost.reads, note=cost.note)


def operation_of(name: str) -> Operation | None:
    """The fact for an ATen base name; an in-place form that is not listed costs what the other form does."""
    operations = aten_operations()
    return operations.get(name) or (operations.get(name[:-1]) if name.endswith("_") else None)


def launches_of(operation: Operation, name: str, call: Call) -> int:
    """Kernels of one call: by the table, by the number of inputs for those that work on lists."""
    if name in CATENATES:
        return -(-len(call.args[0]) // INPUTS_PER_CATENATION)
    if name.startswith("_foreach_"):
        lists = [value for value in call.args if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor)]
        if not lists:
            return 0
        depth = len(lists) + (0 if operation.in_place else 1)
        return operation.launches * -(-len(lists[0]) // TENSORS_PER_LAUNCH[min(depth, 5) - 1])
    return operation.launches


def is_view(func: Any) -> bool:
    """True if the schema says that every result is an alias of an argument and nothing is written."""
    cached = _views.get(func)
    if cached is None:
        schema = func._schema
        writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)
        aliases = bool(schema.returns) and all(result.alias_info is not None for result in schema.returns)
        cached = _views[func] = aliases and not writes
    return cached


_views: dict[Any, bool] = {}


def needs_data(func: Any) -> bool:
    """True for an operator that torch itself tags as depending on data or as having a result of dynamic shape."""
    return torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags


def not_empty(result: Any, inputs: Sequence[torch.Tensor]) -> bool:
    """False if there is nothing to compute: CUDA launches no kernel for a result without elements."""
    outputs = [result] if isinstance(result, torch.Tensor) else tensors_in(result) if isinstance(result, (tuple, list)) else []
    tensors = outputs or inputs
    return not tensors or any(tensor.numel() for tensor in tensors)


def report_strangers(state: State, name: str, inputs: Sequence[torch.Tensor], operation: Operation) -> None:
    """Note host tensors of one dimension or more among device operands, which CUDA refuses."""
    if operation.factory or name in HOST_OPERANDS_ALLOWED or name.startswith(("_foreach_", "_fused_")):
        return
    if any(tensor.dim() and marks.of(tensor) is not Memory.DEVICE for tensor in inputs):
        state.problem(f"{name} of a host tensor and a device tensor")

"""Above autograd: the calls of torch's Python interface that name a device, and those that ATen never sees.

A tensor of a dry run has CPU data, so a device argument is taken out of the call and remembered as a mark, and questions for
a device are answered from the mark.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from launchlint.audit.copies import BLOCKING, move
from launchlint.audit.memory import Memory, marks
from launchlint.audit.state import DEVICE, HOST, State, as_device, memory_of

Arguments = tuple[Any, ...]
Options = dict[str, Any]
Handler = Callable[[State, Any, Arguments, Options], Any]

FROM_HOST_DATA = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})


class AnswerFunctions(TorchFunctionMode):
    """Answers for the device, and takes device arguments out of calls."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def __torch_function__(self, func: Any, types: Any, args: Arguments = (), kwargs: Options | None = None) -> Any:
        kwargs = kwargs or {}
        state = self.state
        if state.muted:
            return func(*args, **kwargs)
        handler = handlers().get(func)
        if handler is not None:
            return handler(state, func, args, kwargs)
        if "device" in kwargs or "pin_memory" in kwargs or func in constructors():
            return construct(state, func, args, kwargs)
        if state.adopting or not has_device_tensor(args, kwargs):
            return func(*args, **kwargs)
        state.adopting = True
        try:
            return func(*args, **kwargs)
        finally:
            state.adopting = False


def on_device(value: object) -> bool:
    """True for a tensor that pretends to live on the device."""
    return isinstance(value, torch.Tensor) and marks.of(value) is Memory.DEVICE


def has_device_tensor(args: Arguments, kwargs: Options) -> bool:
    """True if an argument, or the first element of a list argument, pretends to live on the device."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, torch.Tensor) and marks.of(value) is Memory.DEVICE:
            return True
    return False


# ---------------------------------------------------------------- factories


@functools.cache
def constructors() -> frozenset[Any]:
    """Functions that make a tensor of nothing and obey the default device."""
    names = (
        "empty empty_strided empty_permuted ones zeros full eye arange range linspace logspace rand randn randint randperm tril_indices "
        "triu_indices scalar_tensor tensor as_tensor asarray hann_window hamming_window blackman_window bartlett_window kaiser_window"
    )
    found = [getattr(torch, name, None) for name in names.split()]
    return frozenset(function for function in found if function is not None)


def default_device() -> torch.device:
    """The device of a factory without `device=`: of the innermost device context that is on, global ones included."""
    for mode in reversed(_get_current_function_mode_stack()):  # type: ignore[no-untyped-call]
        if isinstance(mode, DeviceContext):
            return torch.device(mode.device)
    return HOST


def construct(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """Call a factory on the CPU and mark what it makes with the memory that was asked for."""
    options = dict(kwargs)
    name = func.__name__
    device = options.pop("device", None)
    pinned = bool(options.pop("pin_memory", False))
    if device is None and func in constructors() and not (name in FROM_HOST_DATA and args and isinstance(args[0], torch.Tensor)):
        device = default_device()
    if device is None:
        if pinned:
            with state.making(Memory.PINNED):
                return func(*args, **options)
        return from_host_data(state, func, args, options, None) if name in FROM_HOST_DATA else func(*args, **options)
    where = as_device(device)
    if where.type not in ("cpu", "cuda"):
        return func(*args, **options, device=where)
    memory = memory_of(where, pinned)
    if name in FROM_HOST_DATA:
        return from_host_data(state, func, args, options, memory)
    with state.making(memory):
        return func(*args, **options, device=HOST)


def from_host_data(state: State, func: Any, args: Arguments, options: Options, memory: Memory | None) -> Any:
    """`tensor`, `as_tensor`, `asarray`, `new_tensor`: a CPU tensor, and for the device a blocking copy of pageable memory."""
    name = func.__name__
    method = name == "new_tensor"
    data = args[1] if method and len(args) > 1 else options.get("data", args[0] if args and not method else options.get("obj"))
    if isinstance(data, torch.Tensor):
        target = memory or marks.of(args[0] if method else data)
        moved = move(state, name, data, target, options.get("dtype"), copy=name in ("tensor", "new_tensor"))
        return moved.detach().requires_grad_(options.get("requires_grad", False)) if name in ("tensor", "new_tensor") else moved
    if memory is None:
        memory = Memory.DEVICE if method and on_device(args[0]) else Memory.PAGEABLE
    reads = device_scalars(data)
    if reads:
        state.record("download", name, reads, note="device values read one by one")
        state.record("wait", name, reads, note="device values read one by one")
    with state.mute():
        made: torch.Tensor = func(*args, **options, device=HOST)
        marks.put(made, memory)
    if memory is Memory.DEVICE:
        state.record("allocation", name)
        state.record("upload", name, bytes=made.numel() * made.element_size(), pinned=False, note=BLOCKING)
        state.record("wait", name, note=BLOCKING)
    return made


def device_scalars(data: Any) -> int:
    """How many device tensors are inside nested lists: each is read back by itself."""
    if isinstance(data, torch.Tensor):
        return 1 if on_device(data) else 0
    return sum(map(device_scalars, data)) if isinstance(data, (list, tuple)) else 0


# ---------------------------------------------------------------- questions


def answer_device(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    return DEVICE if on_device(args[0]) else func(*args)


def answer_is_cuda(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    return on_device(args[0])


def answer_is_cpu(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    return func(*args) and not on_device(args[0])


def answer_get_device(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    return 0 if on_device(args[0]) else func(*args)


def answer_is_pinned(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    return marks.of(args[0]) is Memory.PINNED


def answer_type(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`x.type()` names the type; `x.type(torch.BoolTensor)` moves to the host, as the name says."""
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    tensor = args[0]
    if wanted is None:
        name: str = func(tensor)
        return name.replace("torch.", "torch.cuda.", 1) if on_device(tensor) else name
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    if isinstance(wanted, torch.dtype):
        return move(state, "type", tensor, marks.of(tensor), wanted)
    text = wanted if isinstance(wanted, str) else f"{wanted.__module__}.{wanted.__name__}"
    target = Memory.DEVICE if text.startswith("torch.cuda.") else Memory.PAGEABLE
    with state.mute():
        dtype = torch.empty(0).type(text.replace("torch.cuda.", "torch.")).dtype
    return move(state, "type", tensor, target, dtype, non_blocking)


# ---------------------------------------------------------------- moves


def move_to(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`Tensor.to` in its three forms: a device and a dtype, a dtype, another tensor."""
    tensor, rest = args[0], list(args[1:])
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    other = rest[0] if rest and isinstance(rest[0], torch.Tensor) else kwargs.get("other")
    if isinstance(other, torch.Tensor):
        target, dtype, rest = marks.of(other), other.dtype, rest[1:]
    else:
        if rest and not isinstance(rest[0], torch.dtype):
            device, rest = rest[0], rest[1:]
        if rest and isinstance(rest[0], torch.dtype):
            dtype, rest = rest[0], rest[1:]
        elif rest and rest[0] is None:
            rest = rest[1:]
        if device is not None and as_device(device).type not in ("cpu", "cuda"):
            return func(*args, **kwargs)
        target = marks.of(tensor) if device is None else memory_of(as_device(device))
    non_blocking = bool(rest[0] if rest else kwargs.get("non_blocking", False))
    copy = bool(rest[1] if len(rest) > 1 else kwargs.get("copy", False))
    if target is not Memory.DEVICE and not on_device(tensor):
        return host_to_host(state, tensor, dtype, copy, kwargs.get("memory_format"))
    return move(state, "to", tensor, target, dtype, non_blocking, copy, kwargs.get("memory_format"))


def host_to_host(
    state: State, tensor: torch.Tensor, dtype: torch.dtype | None, copy: bool, memory_format: torch.memory_format | None
) -> torch.Tensor:
    """`.to` between host tensors: torch decides whether it is a copy."""
    with state.mute():
        return tensor.to(dtype or tensor.dtype, copy=copy, memory_format=memory_format or torch.preserve_format)


def move_cuda(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`Tensor.cuda(device, non_blocking)`."""
    device = args[1] if len(args) > 1 else kwargs.get("device")
    if device is not None:
        as_device(device)
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    return move(state, "cuda", args[0], Memory.DEVICE, None, non_blocking, memory_format=kwargs.get("memory_format"))


def move_cpu(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`Tensor.cpu()`."""
    return move(state, "cpu", args[0], Memory.PAGEABLE, memory_format=kwargs.get("memory_format")) if on_device(args[0]) else args[0]


def move_type_as(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`Tensor.type_as(other)`: dtype and memory of the other."""
    return move(state, "type_as", args[0], marks.of(args[1]), args[1].dtype)


def pin(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`Tensor.pin_memory()`: a page-locked copy made by the host."""
    tensor = args[0]
    if on_device(tensor):
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")
    if marks.of(tensor) is Memory.PINNED:
        return tensor
    with state.mute():
        pinned = tensor.clone()
        marks.put(pinned, Memory.PINNED)
    state.record("pin", "pin_memory", bytes=tensor.numel() * tensor.element_size(), note="page-locked allocation and host copy")
    return pinned


# ---------------------------------------------------------------- reads that ATen does not see


def read_all(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`tolist` and the printed form: the whole tensor is copied to the host, which waits."""
    if on_device(args[0]):
        name = func.__name__.strip("_")
        state.record("download", name, bytes=args[0].numel() * args[0].element_size(), pinned=False, note="whole tensor read back")
        state.record("wait", name, note="whole tensor read back")
    with state.mute():
        return func(*args, **kwargs)


def refuse_array(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`numpy()` of a device tensor raises, as it does on CUDA; with `force=True` it is read back."""
    if not on_device(args[0]):
        return func(*args, **kwargs)
    if not kwargs.get("force", False):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    return move(state, "numpy", args[0].detach(), Memory.PAGEABLE).numpy()


def copy_deeply(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`copy.deepcopy`: torch copies the storage, which ATen does not see."""
    with state.mute():
        copied = func(*args, **kwargs)
        memory = marks.of(args[0])
        marks.put(copied, memory)
    if memory is Memory.DEVICE:
        state.record("allocation", "deepcopy")
        state.record("launch", "deepcopy")
    return copied


def one_hot(state: State, func: Any, args: Arguments, kwargs: Options) -> Any:
    """`one_hot`: the CPU branch reads values that CUDA does not; without a number of classes CUDA reads the largest label."""
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    with state.mute():
        hot: torch.Tensor = func(*args, **kwargs)
        device = on_device(args[0])
        marks.put(hot, Memory.DEVICE if device else Memory.PAGEABLE)
    if device:
        state.record("allocation", "one_hot")
        if classes == -1:
            state.record("download", "one_hot", note="largest label read back; give num_classes")
            state.record("wait", "one_hot", note="largest label read back; give num_classes")
        state.record("launch", "one_hot", 2 if classes != -1 else 3)
    return hot


@functools.cache
def handlers() -> dict[Any, Handler]:
    """What to do instead, by the function as torch hands it over; a property comes as its getter, equal but never identical."""
    tensor: Any = torch.Tensor
    return {
        tensor.device.__get__: answer_device,
        tensor.is_cuda.__get__: answer_is_cuda,
        tensor.is_cpu.__get__: answer_is_cpu,
        tensor.get_device: answer_get_device,
        tensor.is_pinned: answer_is_pinned,
        tensor.type: answer_type,
        tensor.to: move_to,
        tensor.cuda: move_cuda,
        tensor.cpu: move_cpu,
        tensor.type_as: move_type_as,
        tensor.pin_memory: pin,
        tensor.new_tensor: construct,
        tensor.tolist: read_all,
        tensor.__repr__: read_all,
        tensor.numpy: refuse_array,
        tensor.__array__: refuse_array,
        tensor.__deepcopy__: copy_deeply,
        torch.nn.functional.one_hot: one_hot,
    }

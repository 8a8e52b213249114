"""torch, numpy and enum as astroid sees them: small synthetic modules, made from the table of operations.

astroid would open the real sources, take seconds for it and still not know what `torch.empty` returns, since that is written
in C++. The synthetic `Tensor` has two subclasses that say where it lives; `tips` adds what signatures cannot say: the device
of a factory, and what annotations promise. Without a device a factory gives a host tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from launchlint.facts import Operation, torch_operations
from launchlint.values.annotations import TENSORS, value_of_text
from launchlint.values.conventions import device_of_name, device_of_string
from launchlint.values.value import Device, Kind

Node = Any  # astroid's nodes; astroid ships no type information
Check = Callable[[], None]

TENSOR_CLASSES = {Device.UNKNOWN: "Tensor", Device.HOST: "HostTensor", Device.DEVICE: "DeviceTensor"}
DEVICE_CLASSES = {Device.UNKNOWN: "device", Device.HOST: "host_device", Device.DEVICE: "cuda_device"}
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_OPERATORS = tuple(f"{side}{name}" for name in _ARITHMETIC for side in ("", "r", "i"))
_COMPARISONS = ("and", "or", "xor", "lshift", "rshift", "eq", "ne", "lt", "gt", "le", "ge")
_DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8",
    "bool", "float", "half", "double", "int", "long", "short", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
_BY_HAND = frozenset({"cpu", "cuda", "pin_memory", "to", "size", "numpy", "tolist", "item", "device", "dim", "stride"})
_PAIR_WITH_DIMENSION = frozenset({"max", "min", "median", "mode"})
_ARRAYS = (
    "array", "asarray", "zeros", "ones", "empty", "full", "arange", "concatenate", "stack", "cumsum", "where", "diff", "repeat", "unique",
    "frombuffer", "zeros_like", "empty_like",
)  # fmt: skip
_LAYERS = (
    "ModuleList", "Sequential", "ModuleDict", "ParameterList", "ParameterDict", "Linear", "Embedding", "Identity",
    "Dropout", "LayerNorm", "RMSNorm", "Conv1d", "Conv2d", "Conv3d",
)  # fmt: skip

_TENSOR = """
class Tensor:
    @property
    def shape(self): return Size()
    @property
    def dtype(self): return dtype()
    @property
    def data(self): return self
    @property
    def T(self): return self
    @property
    def mT(self): return self
    @property
    def grad(self): return self
    @property
    def device(self): return device()
    @property
    def ndim(self): return 1
    @property
    def is_cuda(self): return bool(1)
    @property
    def nbytes(self): return 1
    def size(self, *a): return 1 if a else Size()
    def stride(self, *a): return 1 if a else (1,)
    def dim(self): return 1
    def item(self): return 1
    def tolist(self): return []
    def numpy(self): return ndarray()
    def cpu(self): return HostTensor()
    def cuda(self, *a, **k): return DeviceTensor()
    def pin_memory(self): return HostTensor()
    def to(self, *a, **k): return self
    def __len__(self): return 1
    def __iter__(self): yield self
    def __neg__(self): return self
    def __invert__(self): return self
    def _pair(self): return (self, self)
"""


@functools.cache
def sources() -> dict[str, str]:
    """The synthetic modules: dotted name -> source, in the order they must be built."""
    return {"enum": _enum(), "numpy": _numpy(), "torch": _torch(), "torch.nn": _layers(), "torch.nn.functional": _functional()}


def _torch() -> str:
    lines = [
        "from numpy import ndarray",
        "class device:\n    type: str\n    index: int\n    def __init__(self, *a): ...",
        "class host_device(device): ...\nclass cuda_device(device): ...\nclass dtype:\n    itemsize: int",
        "class Size(tuple):\n    def numel(self): return 1",
        _TENSOR,
    ]
    operations = torch_operations()
    lines += [f"    def __{name}__(self, other): return self" for name in (*_OPERATORS, *_COMPARISONS)]
    methods = [operation for name, operation in operations.items() if _is_method(name, operation)]
    functions = [operation for name, operation in operations.items() if _is_function(name, operation)]
    lines += [f"    def {operation.name}(self, *a, **k): {_returns(operation, 'self')}" for operation in methods]
    lines += ["class HostTensor(Tensor):\n    @property\n    def device(self): return host_device()", "class DeviceTensor(Tensor): ..."]
    lines += [f"class {name}(Tensor): ..." for name in sorted(TENSORS - {"Tensor"})]
    lines += [f"def {operation.name}(*a, **k): {_returns(operation, 'Tensor()')}" for operation in functions]
    lines += [f"{name} = dtype()" for name in _DTYPES]
    lines += ["def get_default_device(): return device()", "import torch.nn as nn"]
    return "\n".join(lines)


def _is_method(name: str, operation: Operation) -> bool:
    return "method" in operation.spelled and name.isidentifier() and name not in _BY_HAND


def _is_function(name: str, operation: Operation) -> bool:
    return "function" in operation.spelled and name.isidentifier() and name not in TENSORS and name not in _DTYPES and name != "device"


def _returns(operation: Operation, tensor: str) -> str:
    match operation.result:
        case "scalar":
            return "return 1"
        case "host-list":
            return "return [1]"
        case "array":
            return "return ndarray()"
        case "list":
            return f"return [{tensor}]"
        case "pair" if operation.name not in _PAIR_WITH_DIMENSION:  # those are told apart by the tip of the call
            return f"return ({tensor}, {tensor})"
        case "none":
            return "return None"
        case _:
            return f"return {tensor}"


def _layers() -> str:
    lines = [
        "from torch import Tensor",
        "class Parameter(Tensor): ...\nclass Buffer(Tensor): ...",
        "class Module:\n    training: bool\n    def __call__(self, *a, **k): return self.forward(*a, **k)",
        "    def parameters(self, *a): yield Parameter()",
    ]
    lines += [f"class {name}(Module): ..." for name in _LAYERS]
    lines += ["import torch.nn.functional as functional"]
    return "\n".join(lines)


def _functional() -> str:
    lines = ["from torch import Tensor"]
    for name, operation in torch_operations().items():
        if name.isidentifier() and "function" in operation.spelled and "torch.nn.functional" in operation.modules:
            lines.append(f"def {name}(*a, **k): {_returns(operation, 'Tensor()')}")
    return "\n".join(lines)


def _numpy() -> str:
    made = [f"def {name}(*a, **k): return ndarray()" for name in _ARRAYS]
    return "\n".join(["class ndarray: ...", *made])


def _enum() -> str:
    derived = ("IntEnum(int, Enum)", "StrEnum(str, Enum)", "Flag(Enum)", "IntFlag(int, Flag)")
    return "\n".join(["class Enum:\n    name: str", *(f"class {name}: ..." for name in derived)])


# ---------------------------------------------------------------- reading the synthetic instances


def device_of_instance(value: Node) -> Device | None:
    """Where an inferred tensor lives; None for anything that is no tensor."""
    if not _is_ours(value):
        return None
    if value.name in TENSORS:
        return Device.UNKNOWN
    return next((device for device, name in TENSOR_CLASSES.items() if name == value.name), None)


def device_of_device(value: Node) -> Device | None:
    """The device that an inferred `torch.device` or literal names; None for anything else."""
    from astroid import nodes

    if isinstance(value, nodes.Const):
        if isinstance(value.value, str):
            return device_of_string(value.value)
        return Device.DEVICE if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    if not _is_ours(value):
        return None
    return next((device for device, name in DEVICE_CLASSES.items() if name == value.name), None)


def is_dtype(value: Node) -> bool:
    """True for `torch.float32` and the like."""
    return _is_ours(value) and value.name == "dtype"


def is_array(value: Node) -> bool:
    """True for a numpy array."""
    from astroid.bases import Instance

    return isinstance(value, Instance) and value.name == "ndarray" and value.root().name == "numpy"


def _is_ours(value: Node) -> bool:
    from astroid.bases import Instance

    return isinstance(value, Instance) and value.root().name in ("torch", "torch.nn")


# ---------------------------------------------------------------- tips


class Tips:
    """What inference is told about calls and annotated names of the modules that it walks through.

    `torch` is the synthetic module. `check` is called at every step and raises when the time is up.
    """

    def __init__(self, torch: Node, check: Check) -> None:
        self.torch = torch
        self.check = check

    def attach(self, module: Node) -> int:
        """Give every call and every annotated name of `module` its tip; the number of nodes."""
        from astroid import nodes
        from astroid.inference_tip import inference_tip

        call, annotated, argument = inference_tip(self._call), inference_tip(self._annotated), inference_tip(self._argument)
        subscript = inference_tip(self._subscript)
        pending: list[Node] = [module]
        count = 0
        while pending:
            node = pending.pop()
            count += 1
            if isinstance(node, nodes.Call):
                call(node)
            elif isinstance(node, nodes.Subscript):
                subscript(node)
            elif isinstance(node, (nodes.AssignName, nodes.AssignAttr)):
                if isinstance(node.parent, nodes.AnnAssign) and node.parent.target is node:
                    annotated(node)
                elif isinstance(node.parent, nodes.Arguments):
                    argument(node)
            pending.extend(node.get_children())
        return count

    def tensor(self, device: Device) -> Node:
        return self.torch.locals[TENSOR_CLASSES[device]][0].instantiate_class()

    def _call(self, node: Node, context: Node = None) -> Iterator[Node]:
        from astroid import nodes
        from astroid.exceptions import UseInferenceDefault

        self.check()
        function = self._callee(node)
        if isinstance(function, nodes.ClassDef) and function.root() is self.torch and function.name == "device":
            where = self.device(node.args[0]) if node.args else Device.UNKNOWN
            return iter([self.torch.locals[DEVICE_CLASSES[where]][0].instantiate_class()])
        if not isinstance(function, nodes.FunctionDef):
            raise UseInferenceDefault
        if function.root().name in ("torch", "torch.nn.functional"):
            made = self._torch_result(node, function)
        else:
            made = self._promised(function.returns)
        if made is None:
            raise UseInferenceDefault
        return iter([made])

    def _callee(self, node: Node) -> Node:
        from astroid import bases

        found = _first(node.func)
        while isinstance(found, bases.UnboundMethod):  # a bound one too, which wraps an unbound one
            found = found._proxied
        return found

    def _torch_result(self, node: Node, function: Node) -> Node | None:
        operation = torch_operations().get(function.name)
        where = next((item.value for item in node.keywords if item.arg == "device"), None)
        is_method = function.parent is not function.root()
        if function.name == "to" and is_method:
            return self._moved(node, where)
        if function.name in _PAIR_WITH_DIMENSION:
            return self._values_and_indices(node, is_method)
        if operation is None or operation.result != "tensor" or is_method:
            return None  # a method: the device of the receiver, as the synthetic source says
        if where is not None:
            return self.tensor(self.device(where))
        if function.name.endswith("_like") or not (operation.factory or operation.from_host_data):
            return self.tensor(self._shared_device(node))
        if any(item.arg is None for item in node.keywords):
            return self.tensor(Device.UNKNOWN)
        return self.tensor(Device.HOST)

    def _values_and_indices(self, node: Node, is_method: bool) -> Node | None:
        """`x.max()` is a tensor, `x.max(0)` a pair of them."""
        own = node.args if is_method else node.args[1:]
        receiver = _first(node.func.expr) if is_method else _first(node.args[0]) if node.args else None
        if receiver is None or device_of_instance(receiver) is None or not (own or node.keywords):
            return None
        return next(next(receiver.igetattr("_pair")).infer_call_result(node), None)

    def _moved(self, node: Node, where: Node | None) -> Node | None:
        """`.to(...)`: a dtype leaves the receiver where it is, another tensor says where to."""
        target = where if where is not None else (node.args[0] if node.args else None)
        if target is None:
            return None
        found = _first(target)
        if is_dtype(found):
            return None
        device = device_of_instance(found)
        return self.tensor(self.device(target) if device is None else device)

    def _shared_device(self, node: Node) -> Device:
        from astroid import nodes

        devices = set()
        for argument in node.args[:3]:
            for part in argument.elts[:4] if isinstance(argument, (nodes.List, nodes.Tuple)) else [argument]:
                device = device_of_instance(_first(part))
                if device is not None:
                    devices.add(device)
        for device in (Device.DEVICE, Device.UNKNOWN, Device.HOST):
            if device in devices:
                return device
        return Device.UNKNOWN

    def device(self, expr: Node) -> Device:
        """The device that an expression names: by its value, else by its name; `x.device` is the device unless x is on the host."""
        found = device_of_device(_first(expr))
        if found is not None and found is not Device.UNKNOWN:
            return found
        name = getattr(expr, "attrname", None) or getattr(expr, "name", "")
        return device_of_name(name) if isinstance(name, str) else Device.UNKNOWN

    def _subscript(self, node: Node, context: Node = None) -> Iterator[Node]:
        """Indexing a tensor or an array gives one."""
        from astroid.exceptions import UseInferenceDefault

        self.check()
        found = _first(node.value)
        if found is None or (device_of_instance(found) is None and not is_array(found)):
            raise UseInferenceDefault
        return iter([found])

    def _annotated(self, node: Node, context: Node = None) -> Iterator[Node]:
        from astroid.exceptions import UseInferenceDefault

        self.check()
        made = self._promised(node.parent.annotation)
        if made is None:
            raise UseInferenceDefault
        if node.parent.value is not None and device_of_instance(found := _first(node.parent.value)) is not None:
            made = found
        return iter([made])

    def _argument(self, node: Node, context: Node = None) -> Iterator[Node]:
        from astroid.exceptions import UseInferenceDefault

        self.check()
        made = self._promised(_annotation_of_argument(node))
        if made is None:
            raise UseInferenceDefault
        return iter([made])

    def _promised(self, annotation: Node | None) -> Node | None:
        """An instance of what an annotation promises: a tensor, a device, or an object of a class that can be found."""
        from astroid import nodes

        if annotation is None:
            return None
        match value_of_text(text_of(annotation)).kind:
            case Kind.TENSOR:
                return self.tensor(Device.UNKNOWN)
            case Kind.DEVICE:
                return self.torch.locals["device"][0].instantiate_class()
            case Kind.OBJECT:
                found = next((part for part in map(_first, _alternatives(annotation)) if isinstance(part, nodes.ClassDef)), None)
                return found.instantiate_class() if found is not None and found.root().name != "builtins" else None
        return None


def text_of(annotation: Node) -> str:
    """The source of an annotation; a string is taken for what it says."""
    from astroid import nodes

    if isinstance(annotation, nodes.Const) and isinstance(annotation.value, str):
        return annotation.value
    return str(annotation.as_string())


def _alternatives(annotation: Node) -> list[Node]:
    from astroid import nodes

    if isinstance(annotation, nodes.BinOp):
        return [*_alternatives(annotation.left), annotation.right]
    if isinstance(annotation, nodes.Subscript):
        inner = annotation.slice
        return list(inner.elts) if isinstance(inner, nodes.Tuple) else [inner]
    return [annotation]


def _annotation_of_argument(node: Node) -> Node | None:
    arguments = node.parent
    for names, promised in (
        (arguments.posonlyargs, arguments.posonlyargs_annotations),
        (arguments.args, arguments.annotations),
        (arguments.kwonlyargs, arguments.kwonlyargs_annotations),
    ):
        for name, annotation in zip(names or (), promised or (), strict=False):
            if name is node:
                return annotation
    return None


def _first(expr: Node) -> Node | None:
    """The first thing that an expression is inferred to be, or None."""
    from astroid.exceptions import InferenceError

    try:
        return next(expr.infer(), None)
    except InferenceError:
        return None

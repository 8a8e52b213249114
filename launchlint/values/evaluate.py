"""What an expression is, given what the names around it are.

Every expression that is evaluated is remembered by node, so that rules ask afterwards without evaluating again. A
result that rests on nothing is NOTHING, never an exception: recursion is bounded and chains of operators are followed
with a loop.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Protocol

from launchlint.facts import Operation, torch_operations
from launchlint.hot.roles import framework_of
from launchlint.names import Names, dotted, last_name
from launchlint.values import proofs
from launchlint.values.annotations import TENSORS, value_of_annotation
from launchlint.values.conventions import device_of_name, device_of_string, value_of_name, value_of_result
from launchlint.values.value import (
    ARRAY,
    DTYPE,
    HOST_KINDS,
    HOST_TEXT,
    LIST,
    NONE,
    NOTHING,
    SCALAR,
    TENSOR,
    Device,
    Kind,
    Origin,
    Value,
    join,
    together,
)

Environment = dict[str, Value]

DEPTH = 60  # expressions nested deeper are generated code; nothing is known of them
DEFAULT_DEVICE = "$device"  # the environment's entry for `with torch.device(...)` and `torch.set_default_device(...)`
RETURNED = "$return"

_DTYPES = frozenset(
    [
        "float",
        "float16",
        "float32",
        "float64",
        "half",
        "double",
        "bfloat16",
        "int",
        "int8",
        "int16",
        "int32",
        "int64",
        "short",
        "long",
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    ]
)
_CONSTANTS: dict[object, Value] = {None: NONE, "cpu": HOST_TEXT}
_TENSOR_ATTRIBUTES = frozenset({"T", "mT", "H", "data", "real", "imag", "grad"})
_POINTWISE = frozenset(
    {"floor", "ceil", "round", "trunc", "abs", "neg", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "clamp", "floor_divide"}
)
_NUMBER_ATTRIBUTES = frozenset({"ndim", "itemsize", "is_cuda", "is_cpu", "nbytes", "requires_grad", "is_sparse", "is_meta", "layout"})
_LIMITS = frozenset({"torch.finfo", "torch.iinfo", "numpy.finfo", "numpy.iinfo"})  # what they hold are numbers
_HOST_CALLS = frozenset(
    {"int", "len", "float", "bool", "str", "round", "isinstance", "hasattr", "any", "all", "id", "hash", "ord", "repr", "type", "callable"}
)
_LIST_CALLS = frozenset({"list", "sorted", "reversed", "tuple", "set", "frozenset", "iter"})
_TRANSFORMS = frozenset({"to", "copy", "is", "async", "maybe", "get", "from", "set", "make", "create", "build", "has", "add", "update"})
_PARAMETER_ATTRIBUTES = frozenset(
    {"weight", "bias", "weight_scale", "input_scale", "weight_scale_inv", "qweight", "scales", "lora_a", "lora_b"}
)

# Methods that tensors have and arrays, containers, files and modules have not: calling one is proof.
TENSOR_ONLY = frozenset(
    [
        "unsqueeze",
        "detach",
        "contiguous",
        "expand",
        "permute",
        "chunk",
        "unflatten",
        "masked_fill",
        "index_select",
        "index_add",
        "numel",
        "dim",
        "data_ptr",
        "is_contiguous",
        "element_size",
        "t",
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "softmax",
        "sigmoid",
        "expand_as",
        "view_as",
        "type_as",
        "bmm",
        "mm",
        "scatter",
        "scatter_add",
        "cumsum_",
        "logsumexp",
        "log_softmax",
        "masked_select",
        "repeat_interleave",
        "narrow",
        "addmm",
        "isnan",
        "isinf",
        "unbind",
        "bfloat16",
        "float",
        "half",
        "double",
        "long",
        "int",
        "bool",
        "requires_grad_",
        "untyped_storage",
        "retain_grad",
        "is_pinned",
        "amax",
        "amin",
        "neg",
        "rsqrt",
        "erf",
        "gelu",
        "relu",
        "topk",
        "nonzero_static",
        "stride",
    ]
)


_ENCODING = "BatchEncoding"  # what tokenizers give


class Outside(Protocol):
    """What lives in other modules. Every answer may be NOTHING."""

    def attribute(self, class_name: str, attribute: str, names: Names) -> Value:
        """An attribute of a class that this file does not define."""

    def method(self, class_name: str, method: str, names: Names) -> Value:
        """What a method of a class that this file does not define returns."""

    def function(self, dotted_name: str) -> Value:
        """What a function of another module returns."""

    def constant(self, dotted_name: str) -> Value:
        """A name of another module."""

    def any_attribute(self, attribute: str) -> Value:
        """What all classes that have this attribute agree on."""


class Evaluator(ABC):
    """Evaluates expressions of one file. `Flow` adds statements, functions and classes."""

    def __init__(self, names: Names, outside: Outside | None = None) -> None:
        self.names = names
        self.outside = outside
        self.operations = torch_operations()
        self.seen: dict[int, Value] = {}
        self.module_values: Environment = {}
        self.class_name = ""  # the class whose method is being evaluated
        self.framework = framework_of(names.module.partition(".")[0])
        self._depth = 0
        self.in_notebook = False
        self._knows_numpy = any(
            target.partition(".")[0] in ("numpy", "pandas", "jax", "cupy", "scipy") for target in names.targets.values()
        )

    # ---------------------------------------------------------------- what Flow answers

    @abstractmethod
    def attribute_of(self, class_name: str, attribute: str) -> Value:
        """What the class keeps under the attribute."""

    @abstractmethod
    def method_result(self, class_name: str, method: str) -> Value:
        """What the method of the class returns."""

    @abstractmethod
    def function_result(self, name: str) -> Value:
        """What the file's function returns."""

    @abstractmethod
    def has_no_device(self, name: str, call: ast.Call) -> bool:
        """True where a call of the file's function gives no device, and the function can take one from nowhere else."""

    @abstractmethod
    def is_class(self, name: str) -> bool:
        """True for a class of the file."""

    @abstractmethod
    def is_stored(self, class_name: str, attribute: str) -> bool:
        """True where a method of the class stores the attribute."""

    @abstractmethod
    def store(self, target: ast.expr, value: Value, env: Environment) -> None:
        """Bind `target` to `value` in `env`."""

    @abstractmethod
    def narrow(self, test: ast.expr, env: Environment, holds: bool) -> None:
        """Take in what a test says of names where it holds, or where it does not."""

    # ---------------------------------------------------------------- expressions

    def evaluate(self, expr: ast.expr, env: Environment) -> Value:
        """The value of `expr`; remembered by node."""
        if self._depth > DEPTH:
            return NOTHING
        self._depth += 1
        try:
            value = self._evaluate(expr, env)
        finally:
            self._depth -= 1
        if value is not NOTHING:
            self.seen[id(expr)] = value
        return value

    def _evaluate(self, expr: ast.expr, env: Environment) -> Value:
        kind = expr.__class__
        if kind is ast.Name:
            return self._name(expr.id, env)  # type: ignore[attr-defined]
        if kind is ast.Constant:
            return _CONSTANTS.get(expr.value, SCALAR)  # type: ignore[attr-defined]
        if kind is ast.Attribute:
            return self._attribute(expr, env)  # type: ignore[arg-type]
        if kind is ast.Call:
            return self._call(expr, env)  # type: ignore[arg-type]
        if kind is ast.Subscript:
            return self._subscript(expr, env)  # type: ignore[arg-type]
        if kind is ast.BinOp:
            return self._binary(expr, env)  # type: ignore[arg-type]
        return self._other(expr, env)

    def _name(self, name: str, env: Environment) -> Value:
        value = env.get(name)
        if value is None:
            value = self.module_values.get(name)
        if value is not None:
            return value
        if name in env:
            return NOTHING
        target = self.names.targets.get(name)
        if target is not None and target.startswith("torch.") and name in _DTYPES:
            return DTYPE
        if self.outside is not None and target is not None and name.isupper():
            return self.outside.constant(target)
        return self.by_convention(name)

    def by_convention(self, name: str) -> Value:
        """What a name promises: by everybody's habits, or by those of the framework that the file belongs to."""
        value = value_of_name(name)
        if name in self.names.host_fields:
            return Value(Kind.TENSOR, Device.HOST, by_name=True, origin=Origin(0, f"the field {name} is kept on the host (keep_on_cpu)"))
        if value is NOTHING and self.framework is not None and self.framework.host_names.match(name):
            return Value(Kind.TENSOR, Device.HOST, by_name=True, origin=Origin(0, f"{self.framework.name} keeps {name} on the host"))
        return value

    def _by_key(self, expr: ast.Subscript) -> Value:
        """`fields["grid_thw"]`, and what is read out of something that is known to hold host data."""
        if self.framework is None and not self.names.host_fields:
            return NOTHING
        if isinstance(expr.slice, ast.Constant) and isinstance(expr.slice.value, str):
            value = self.by_convention(expr.slice.value)
            if value is not NOTHING:
                return value
        if self.framework is None:
            return NOTHING
        spelled = dotted(expr.value)
        if any(spelled == key or spelled.endswith("." + key) for key in self.framework.host_keys):
            return Value(Kind.TENSOR, Device.HOST, by_name=True, origin=Origin(0, f"{self.framework.name} keeps {spelled} on the host"))
        return NOTHING

    def _other(self, expr: ast.expr, env: Environment) -> Value:
        match expr:
            case ast.UnaryOp(op=op, operand=operand):
                value = self.evaluate(operand, env)
                return SCALAR if isinstance(op, ast.Not) else value
            case ast.Compare():
                return self._compare(expr, env)
            case ast.BoolOp(op=op, values=values):
                return self._either(isinstance(op, ast.And), values, env)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.evaluate(test, env)
                return join(self.evaluate(body, env), self.evaluate(orelse, env))
            case ast.Tuple(elts=elements):
                return Value(Kind.TUPLE, elements=tuple(self.evaluate(element, env) for element in elements))
            case ast.List(elts=elements) | ast.Set(elts=elements):
                return self._list(expr, elements, env)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(expr, env)
            case ast.NamedExpr(target=target, value=inner):
                value = self.evaluate(inner, env)
                self.store(target, value, env)
                return value
            case ast.Lambda(args=arguments, body=body):
                self.evaluate(body, {**env, **{argument.arg: value_of_name(argument.arg) for argument in arguments.args}})
                return NOTHING
            case ast.Starred(value=inner) | ast.Await(value=inner):
                return self.evaluate(inner, env)
            case ast.Yield(value=inner):
                if inner is not None:
                    self.evaluate(inner, env)
                return NOTHING
            case ast.YieldFrom(value=inner):
                self.evaluate(inner, env)
                return NOTHING
            case ast.Slice(lower=lower, upper=upper, step=step):
                for bound in (lower, upper, step):
                    if bound is not None:
                        self.evaluate(bound, env)
                return NOTHING
            case ast.Dict(keys=keys, values=values):
                return self._table(keys, values, env)
            case _:
                return self._text(expr, env)

    def _table(self, keys: list[ast.expr | None], values: list[ast.expr], env: Environment) -> Value:
        """A table of tensors and numbers gives the one or the other, as the key says, which is not followed."""
        for key in keys:
            if key is not None:
                self.evaluate(key, env)
        members = tuple([self.evaluate(held, env) for held in values])
        is_mixed = any(member.kind is Kind.SCALAR for member in members) and any(member.is_tensor for member in members)
        return Value(Kind.DICT, element=NOTHING if is_mixed else join_all(members))

    def _either(self, is_and: bool, values: list[ast.expr], env: Environment) -> Value:
        """`and` and `or`: each operand is asked only where those before it were true, or false."""
        inner = dict(env)
        found: list[Value] = []
        for item in values:
            found.append(self.evaluate(item, inner))
            self.narrow(item, inner, is_and)
        for name in inner.keys() - env.keys():  # bound by `:=`
            env[name] = inner[name]
        return join_all(tuple(found))

    def _text(self, expr: ast.expr, env: Environment) -> Value:
        """f-strings and, from Python 3.14 on, template strings: their parts are looked at, the result is host text."""
        for part in getattr(expr, "values", ()):
            self.evaluate(part, env)
        inner = getattr(expr, "value", None)
        if isinstance(inner, ast.expr):
            self.evaluate(inner, env)
        return SCALAR

    def _list(self, expr: ast.expr, elements: list[ast.expr], env: Environment) -> Value:
        result = NOTHING
        for element in elements[:64]:
            result = join(result, self.evaluate(element, env))
        return Value(Kind.LIST, element=result, origin=Origin(expr.lineno, "a list written here"))

    def _comprehension(self, expr: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Environment) -> Value:
        inner = dict(env)
        for generator in expr.generators:
            self.store(generator.target, self.element(self.evaluate(generator.iter, inner)), inner)
            for condition in generator.ifs:
                self.evaluate(condition, inner)
        if isinstance(expr, ast.DictComp):
            self.evaluate(expr.key, inner)
            return Value(Kind.DICT, element=self.evaluate(expr.value, inner))
        return Value(Kind.LIST, element=self.evaluate(expr.elt, inner), origin=Origin(expr.lineno, "a list built here"))

    def _compare(self, expr: ast.Compare, env: Environment) -> Value:
        values = [self.evaluate(expr.left, env), *(self.evaluate(item, env) for item in expr.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in expr.ops):
            return SCALAR
        result = together(values)
        if result.kind is Kind.TENSOR:
            return result.but(boolean=True)
        if result.kind is Kind.ARRAY:
            return result
        if any(value.kind is Kind.UNKNOWN for value in values):
            return NOTHING
        return SCALAR if result.kind in (Kind.SCALAR, Kind.LIST, Kind.TUPLE, Kind.DEVICE, Kind.DTYPE) else NOTHING

    def _binary(self, expr: ast.BinOp, env: Environment) -> Value:
        """A chain `a + b + c + ...` is as deep as it is long, so its left spine is followed with a loop."""
        spine = [expr]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        value = self.evaluate(spine[-1].left, env)
        for node in reversed(spine):
            right = self.evaluate(node.right, env)
            value = self._operate(node, value, right)
            if node is not expr and value is not NOTHING:
                self.seen[id(node)] = value
        return value

    @staticmethod
    def _operate(node: ast.BinOp, left: Value, right: Value) -> Value:
        if left.kind in (Kind.LIST, Kind.TUPLE):
            if isinstance(node.op, ast.Mult) and right.kind is not Kind.ARRAY:  # times a tensor too: its value is read back
                return left if left.kind is Kind.LIST else Value(Kind.LIST, element=join_all(left.elements), origin=left.origin)
            if isinstance(node.op, ast.Add) and right.kind not in (Kind.TENSOR, Kind.ARRAY):
                return left if left.kind is Kind.LIST else LIST
            if isinstance(node.op, ast.Sub) and _is_sliced(node.left) and _is_sliced(node.right):
                return Value(Kind.TENSOR, origin=Origin(node.lineno, "slices that are subtracted, which lists are not"))
        if isinstance(node.op, ast.Mult) and right.kind is Kind.LIST and left.kind is not Kind.TENSOR:
            return right
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return SCALAR
        if isinstance(node.op, ast.Div) and Kind.SCALAR in (left.kind, right.kind) and Kind.TENSOR not in (left.kind, right.kind):
            return SCALAR if left.kind is right.kind else NOTHING
        if Kind.SCALAR in (left.kind, right.kind) and Kind.UNKNOWN in (left.kind, right.kind):
            return NOTHING  # a number and an unknown may still be a tensor
        return together([left, right])

    def _subscript(self, expr: ast.Subscript, env: Environment) -> Value:
        base = self.evaluate(expr.value, env)
        index = self.evaluate(expr.slice, env)
        if base is NOTHING:
            return self._by_key(expr)
        match base.kind:
            case Kind.TENSOR:
                if base.device is Device.HOST:
                    proofs.prove_index(base, expr.slice, self.seen, env)
                return self._index(base, expr.slice, index)
            case Kind.DICT:
                found = self._by_key(expr)
                return found if found is not NOTHING else base.element or NOTHING
            case Kind.LIST:
                return base if isinstance(expr.slice, ast.Slice) else base.element or NOTHING
            case Kind.ARRAY:
                return base
            case Kind.TUPLE:
                return _member(base, expr.slice)
            case _:
                return NOTHING

    def _index(self, base: Value, index: ast.expr, value: Value) -> Value:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        basic = all(
            isinstance(part, (ast.Slice, ast.Constant, ast.UnaryOp))
            or self.seen.get(id(part), NOTHING).kind in (Kind.SCALAR, Kind.UNKNOWN, Kind.NONE)
            for part in parts
        )
        if basic:
            return base
        return base.but(pinned=False if base.device is Device.HOST else None)

    def element(self, value: Value) -> Value:
        """What iterating over `value` gives."""
        match value.kind:
            case Kind.LIST | Kind.DICT:
                return (value.element or NOTHING) if value.kind is Kind.LIST else SCALAR
            case Kind.TENSOR:
                return value
            case Kind.ARRAY:
                return ARRAY
            case Kind.TUPLE:
                return join_all(value.elements)
            case _:
                return NOTHING

    # ---------------------------------------------------------------- attributes

    def _attribute(self, expr: ast.Attribute, env: Environment) -> Value:
        spelled = dotted(expr)
        if spelled:
            value = env.get(spelled)
            if value is not None:
                return value
            known = self._torch_constant(self.names.canonical(expr))
            if known is not None:
                return known
        base = self.evaluate(expr.value, env)
        name = expr.attr
        if isinstance(expr.value, ast.Call) and self.names.canonical(expr.value.func) in _LIMITS and name != "dtype":
            return SCALAR
        if name == "device":
            return Value(Kind.DEVICE, base.device if base.kind is Kind.TENSOR and base.device is Device.HOST else Device.DEVICE)
        match base.kind:
            case Kind.TENSOR:
                return self._tensor_attribute(base, name)
            case Kind.ARRAY:
                return Value(Kind.LIST, element=SCALAR) if name == "shape" else SCALAR if name in ("size", "ndim", "nbytes") else ARRAY
            case Kind.DICT if base.class_name == _ENCODING and base.element is not None and name != "shape":
                return base.element  # its keys are attributes
            case Kind.OBJECT if base.class_name:
                found = self.attribute_of(base.class_name, name)
                if found.kind is not Kind.UNKNOWN and not (found == TENSOR and value_of_name(name) is not NOTHING):
                    return found
        return self._attribute_by_convention(name, base)

    def _torch_constant(self, canonical: str) -> Value | None:
        if not canonical.startswith(("torch.", "numpy.")):
            return None
        last = canonical.rpartition(".")[2]
        if canonical.startswith("numpy."):
            return DTYPE if canonical.count(".") == 1 and (last.rstrip("_0123456789") in ("int", "float", "uint", "bool")) else None
        if last in _DTYPES and canonical.count(".") == 1:
            return DTYPE
        return SCALAR if last in ("inf", "nan", "pi") else None

    @staticmethod
    def _tensor_attribute(base: Value, name: str) -> Value:
        if name in _TENSOR_ATTRIBUTES:
            return base
        if name == "shape":
            return Value(Kind.LIST, element=SCALAR)
        if name == "dtype":
            return DTYPE
        if name in _NUMBER_ATTRIBUTES:
            return SCALAR
        return NOTHING

    def _attribute_by_convention(self, name: str, base: Value) -> Value:
        if name == "shape":
            return Value(Kind.LIST, element=SCALAR)
        origin = Origin(0, f"the attribute .{name}")
        if name == "np":
            return ARRAY.but(by_name=True, origin=origin)
        if name == "cpu":
            return Value(Kind.TENSOR, Device.HOST, True, by_name=True, origin=origin)
        if name == "gpu":
            return Value(Kind.TENSOR, Device.DEVICE, by_name=True, origin=origin)
        named = self.by_convention(name)
        if named is not NOTHING:
            return named
        if name in _PARAMETER_ATTRIBUTES and base.kind in (Kind.UNKNOWN, Kind.OBJECT):
            return Value(Kind.TENSOR, by_name=True, origin=origin)
        if self.outside is not None and base.kind is Kind.UNKNOWN:
            return self.outside.any_attribute(name)
        return NOTHING

    # ---------------------------------------------------------------- devices

    def device(self, expr: ast.expr | None, env: Environment) -> Device:
        """The device that an expression names when it is used as a device argument."""
        match expr:
            case None:
                return Device.UNKNOWN
            case ast.Constant(value=str(text)):
                return device_of_string(text)
            case ast.Constant(value=bool()):
                return Device.UNKNOWN
            case ast.Constant(value=int()):
                return Device.DEVICE
            case ast.JoinedStr(values=[first, *_]):
                return self.device(first, env)
            case ast.FormattedValue(value=inner):
                return self.device(inner, env)
            case ast.IfExp(body=body, orelse=orelse):
                one, other = self.device(body, env), self.device(orelse, env)
                return one if one is other else Device.DEVICE if Device.DEVICE in (one, other) else Device.UNKNOWN
            case ast.BoolOp(values=[*_, last]):
                return self.device(last, env)
            case ast.Call(func=function, args=arguments):
                called = dotted(function).rpartition(".")[2]
                if (called == "device" or self.names.canonical(function) == "torch.device") and arguments:
                    return self.device(arguments[0], env)
                if called in ("current_device", "get_device", "device", "current_accelerator", "get_local_device") or called.endswith(
                    "_device"
                ):
                    return Device.DEVICE if "cpu" not in called else Device.HOST
                return Device.UNKNOWN
            case ast.Name() | ast.Attribute():
                return self._named_device(expr, env)
            case _:
                value = self.seen.get(id(expr), NOTHING)
                return value.device if value.kind is Kind.DEVICE else Device.UNKNOWN

    def _is_named_host(self, where: ast.expr) -> bool:
        """True for `x.device` where only the name of `x` says that it is on the host."""
        return isinstance(where, ast.Attribute) and where.attr == "device" and self.seen.get(id(where.value), NOTHING).by_name

    def _named_device(self, expr: ast.Name | ast.Attribute, env: Environment) -> Device:
        spelled = dotted(expr)
        value = self.seen.get(id(expr)) or (env.get(spelled) if spelled else None) or self.module_values.get(spelled)
        if value is not None and value.kind is Kind.DEVICE and (value.device is not Device.UNKNOWN or value.by_name):
            return value.device
        if value is HOST_TEXT:
            return Device.HOST
        if value is not None and value.kind is Kind.TENSOR:
            return Device.UNKNOWN
        last = expr.attr if isinstance(expr, ast.Attribute) else expr.id
        return device_of_name(last)

    # ---------------------------------------------------------------- calls

    def _call(self, expr: ast.Call, env: Environment) -> Value:
        function = expr.func
        arguments = [self.evaluate(argument, env) for argument in expr.args]
        keywords = {keyword.arg: self.evaluate(keyword.value, env) for keyword in expr.keywords}
        receiver = self.evaluate(function.value, env) if isinstance(function, ast.Attribute) else NOTHING
        canonical = self.names.canonical(function)
        if canonical:
            known = self._library_call(canonical, expr, arguments, keywords, env)
            if known is not None:
                return known
        if (tokens := self._tokens(expr, env)) is not None:
            return tokens
        if "h2d" in last_name(function):  # an upload helper, named after what it does
            return Value(Kind.TENSOR, Device.DEVICE, by_name=True, origin=Origin(expr.lineno, f"{last_name(function)}()"))
        if isinstance(function, ast.Attribute):
            return self._method_call(expr, function, receiver, arguments, env)
        if isinstance(function, ast.Name):
            return self._named_call(expr, function.id, canonical, arguments)
        self.evaluate(function, env)
        return NOTHING

    def _tokens(self, expr: ast.Call, env: Environment) -> Value | None:
        """`tokenizer(text, return_tensors="pt")`: tokenizers and processors give tensors on the host unless told otherwise."""
        asked = keyword(expr, "return_tensors")
        if not isinstance(asked, ast.Constant) or asked.value != "pt" or has_splat(expr):
            return None
        told = keyword(expr, "device")
        origin = Origin(expr.lineno, 'return_tensors="pt"' + (" without a device" if told is None else ""))
        device = Device.HOST if told is None else self.device(told, env)
        element = Value(Kind.TENSOR, device, False if device is Device.HOST else None, by_name=True, origin=origin)
        return Value(Kind.DICT, class_name=_ENCODING, element=element, origin=origin)

    def _library_call(
        self, canonical: str, expr: ast.Call, arguments: list[Value], keywords: dict[str | None, Value], env: Environment
    ) -> Value | None:
        root, _, _ = canonical.partition(".")
        last = canonical.rpartition(".")[2]
        if root == "numpy":
            return SCALAR if last in ("prod", "dtype", "isscalar", "ndim") else ARRAY
        if canonical == "scipy.optimize.linear_sum_assignment":
            return Value(Kind.TUPLE, elements=(ARRAY, ARRAY))
        if root in ("math", "time", "random", "os", "json", "re", "struct"):
            return SCALAR
        if root == "itertools":
            return LIST
        if root != "torch":
            return None
        if canonical == "torch.device":
            found = self.device(expr.args[0] if expr.args else None, env)
            return Value(Kind.DEVICE, found if found is not Device.UNKNOWN else Device.DEVICE)
        if canonical in ("torch.get_default_device", "torch.cuda.current_device", "torch.accelerator.current_accelerator"):
            return Value(Kind.DEVICE, Device.DEVICE)
        if canonical.startswith(("torch.cuda.", "torch.distributed.", "torch.ops.", "torch.utils.", "torch.backends.", "torch.jit.")):
            return NOTHING
        operation = self.operations.get(last)
        if last in ("Parameter", "Buffer"):
            return TENSOR.but(origin=Origin(expr.lineno, f"nn.{last}"))  # moves with its module
        if operation is None:
            return Value(Kind.TENSOR, Device.HOST, False) if last in TENSORS and expr.args else NOTHING
        return self._torch_call(operation, last, expr, arguments, keywords, env)

    def _torch_call(
        self, operation: Operation, last: str, expr: ast.Call, arguments: list[Value], keywords: dict[str | None, Value], env: Environment
    ) -> Value:
        origin = Origin(expr.lineno, f"torch.{last}")
        if operation.from_host_data or operation.factory:
            return self._created(operation, last, expr, arguments, env, origin)
        target = keywords.get("out")
        if target is not None and target.kind is Kind.TENSOR:
            return target  # the result is written into memory that is there already
        tensors = [found for value in [*arguments, *keywords.values()] if (found := self._tensor_in(value)) is not None]
        result = together(tensors) if tensors else TENSOR
        if not tensors and arguments and all(value.kind is Kind.SCALAR for value in arguments):
            result = Value(Kind.TENSOR, Device.HOST, False, scalar=True)  # torch.div(7, 2): of numbers alone, on the host
        device_argument = keyword(expr, "device")
        if device_argument is not None:
            result = Value(Kind.TENSOR, self.device(device_argument, env))
        pinned = is_pinned_by(expr)
        boolean = operation.boolean or (last.endswith("_like") and result.boolean and keyword(expr, "dtype") is None)
        if last in (
            "cat",
            "stack",
            "where",
            "concat",
            "clone",
            "flatten",
            "reshape",
            "roll",
            "flip",
            "index_select",
            "squeeze",
            "unsqueeze",
        ):
            boolean = boolean or (bool(tensors) and all(tensor.boolean for tensor in tensors))
        scalar = operation.reduces and len(expr.args) == 1 and keyword(expr, "dim") is None and keyword(expr, "axis") is None
        scalar = scalar or (last in _POINTWISE and bool(tensors) and all(tensor.scalar for tensor in tensors))
        view = operation.does == "view" and len(tensors) == 1
        result = result.but(
            pinned=pinned if pinned else (result.pinned if view else False if result.device is Device.HOST else None),
            boolean=boolean, scalar=scalar, origin=origin, class_name="",
        )  # fmt: skip
        return self._shape_of_result(operation, last, expr, result, arguments)

    def _created(self, operation: Operation, last: str, expr: ast.Call, arguments: list[Value], env: Environment, origin: Origin) -> Value:
        """A factory: its device is its argument, else the default device, which is the host unless the code says otherwise."""
        dtype = keyword(expr, "dtype")
        boolean = dotted(dtype).rpartition(".")[2] == "bool" if dtype is not None else last == "BoolTensor"
        if last.endswith("_like"):
            source = self._tensor_in(arguments[0]) if arguments else None
            device = (
                self.device(keyword(expr, "device"), env)
                if keyword(expr, "device") is not None
                else source.device
                if source
                else Device.UNKNOWN
            )
            return Value(
                Kind.TENSOR,
                device,
                is_pinned_by(expr) or (False if device is Device.HOST else None),
                boolean or bool(source and source.boolean and dtype is None),
                origin=origin,
            )
        device_argument = keyword(expr, "device")
        scalar = last in ("tensor", "as_tensor", "scalar_tensor") and bool(arguments) and arguments[0].kind is Kind.SCALAR
        if device_argument is not None and not _is_none(device_argument):
            device = self.device(device_argument, env)
            pinned = is_pinned_by(expr) or (False if device is Device.HOST else None)
            by_name = device is Device.HOST and self._is_named_host(device_argument)
            return Value(Kind.TENSOR, device, pinned, boolean, scalar, by_name, origin=origin)
        if last in ("as_tensor", "asarray") and arguments and arguments[0].kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.OBJECT):
            return arguments[0].but(kind=Kind.TENSOR, class_name="", origin=origin)
        if last == "tensor" and arguments and arguments[0].kind is Kind.TENSOR:
            return arguments[0].but(origin=origin)
        if has_splat(expr):
            return Value(Kind.TENSOR, Device.UNKNOWN, None, boolean, scalar, origin=origin)
        default = env.get(DEFAULT_DEVICE) or self.module_values.get(DEFAULT_DEVICE)
        if default is not None and last != "from_numpy":
            return Value(Kind.TENSOR, default.device, None, boolean, scalar, origin=origin)
        return Value(
            Kind.TENSOR,
            Device.HOST,
            is_pinned_by(expr) or False,
            boolean,
            scalar,
            origin=Origin(expr.lineno, f"torch.{last} without a device"),
        )

    def _shape_of_result(self, operation: Operation, last: str, expr: ast.Call, result: Value, arguments: list[Value]) -> Value:
        match operation.result:
            case "scalar":
                return SCALAR
            case "host-list":
                return Value(Kind.LIST, element=SCALAR)
            case "array":
                return ARRAY
            case "none":
                return NONE
            case "list":
                return Value(Kind.LIST, element=result, origin=result.origin)
            case "pair":
                if last in ("max", "min", "median", "mode") and not self._along_dimension(expr, arguments):
                    return result.but(scalar=True)
                return Value(Kind.TUPLE, elements=(result, result))
        if last == "where" and len(expr.args) == 1 and isinstance(expr.func, ast.Attribute) and not expr.keywords:
            return Value(Kind.LIST, element=result.but(boolean=False), origin=result.origin)
        if last == "nonzero":
            plain = result.but(boolean=False)
            as_tuple = keyword(expr, "as_tuple")
            return Value(Kind.LIST, element=plain, origin=result.origin) if as_tuple is not None and not _is_false(as_tuple) else plain
        return result

    def _along_dimension(self, expr: ast.Call, arguments: list[Value]) -> bool:
        if keyword(expr, "dim") is not None or keyword(expr, "axis") is not None:
            return True
        own = 0 if isinstance(expr.func, ast.Attribute) and not self.names.canonical(expr.func).startswith("torch.") else 1
        return len(arguments) > own and arguments[own].kind is Kind.SCALAR

    def _tensor_in(self, value: Value) -> Value | None:
        if value.kind is Kind.TENSOR:
            return value
        if value.kind in (Kind.LIST, Kind.TUPLE):
            inner = self.element(value)
            return inner if inner.kind is Kind.TENSOR else None
        return None

    def _method_call(self, expr: ast.Call, function: ast.Attribute, receiver: Value, arguments: list[Value], env: Environment) -> Value:
        name = function.attr
        origin = Origin(expr.lineno, f".{name}()")
        match name:
            case "cpu" if not expr.args and receiver.kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.OBJECT):
                return Value(Kind.TENSOR, Device.HOST, False, receiver.boolean, receiver.scalar, origin=origin)
            case "numpy" if len(expr.args) == 0:
                return ARRAY.but(origin=origin)
            case "tolist":
                self._read_of_computed(function.value, receiver)
                return Value(Kind.LIST, element=SCALAR, origin=origin)
            case "item" if not expr.args:
                self._read_of_computed(function.value, receiver)
                return SCALAR.but(origin=origin)
            case "cuda":
                return Value(Kind.TENSOR, Device.DEVICE, boolean=receiver.boolean, scalar=receiver.scalar, origin=origin)
            case "pin_memory" if not expr.args:
                return Value(Kind.TENSOR, Device.HOST, True, receiver.boolean, origin=origin)
            case _ if name.endswith(("_cpu", "_np", "_numpy")) and "get_" in name and (kept := value_of_result(name)) is not NOTHING:
                return kept
            case "to" if receiver.kind in (Kind.UNKNOWN, Kind.OBJECT) and keyword(expr, "non_blocking") is not None:
                receiver = TENSOR
        match receiver.kind:
            case Kind.TENSOR:
                return self._tensor_method(expr, name, receiver, arguments, env, origin)
            case Kind.ARRAY:
                return Value(Kind.LIST, element=SCALAR) if name == "tolist" else ARRAY
            case Kind.DICT | Kind.LIST:
                return self._container_method(expr, function, receiver, name, arguments, env)
            case Kind.SCALAR:
                return LIST if name in ("split", "splitlines") else SCALAR
            case Kind.OBJECT if receiver.class_name:
                found = self._object_call(receiver, name)
                if found is not NOTHING:
                    return found
                if self._is_layer_call(function, receiver, arguments):
                    leader = next(value for value in arguments if value.kind is Kind.TENSOR)
                    return Value(Kind.TENSOR, leader.device, by_name=True, origin=Origin(expr.lineno, f"the layer self.{name}"))
        return self._unknown_method(expr, name, receiver, arguments, origin, env)

    def _read_of_computed(self, read: ast.expr, receiver: Value) -> None:
        """`(a == b).tolist()` and `x.max().item()`: what is computed and then read is a tensor where the file knows no numpy."""
        if receiver.kind is not Kind.UNKNOWN or self._knows_numpy:
            return
        computed = (
            isinstance(read, ast.Compare)
            or (self.in_notebook and isinstance(read, ast.Name))  # `loss.item()` at the top level, where nothing is annotated
            or (isinstance(read, ast.Subscript) and _is_position(read.slice))
            or (
                isinstance(read, ast.Call)
                and isinstance(read.func, ast.Attribute)
                and read.func.attr in ("max", "min", "sum", "any", "all", "mean", "argmax", "prod")
            )
        )
        if computed:
            self.seen[id(read)] = TENSOR.but(
                by_name=True,
                scalar=not isinstance(read, ast.Compare),
                origin=Origin(read.lineno, "computed and read back in a file without numpy"),
            )

    def _unknown_method(
        self, expr: ast.Call, name: str, receiver: Value, arguments: list[Value], origin: Origin, env: Environment
    ) -> Value:
        if isinstance(expr.func, ast.Attribute) and receiver.kind is Kind.UNKNOWN and is_proof_of_tensor(expr):
            proven = TENSOR.but(origin=origin)
            self.seen[id(expr.func.value)] = proven
            spelled = dotted(expr.func.value)
            if spelled:
                env[spelled] = proven
            return self._tensor_method(expr, name, proven, arguments, env, origin)
        if name == "to" and expr.args and self.device(expr.args[0], env) is not Device.UNKNOWN and not _is_module_like(expr):
            return Value(Kind.TENSOR, self.device(expr.args[0], env), None, by_name=True, origin=origin)
        operation = self.operations.get(name)
        if operation is not None and name.endswith("_") and not name.startswith("_") and "method" in operation.spelled:
            return TENSOR.but(origin=origin)
        if name.partition("_")[0] not in _TRANSFORMS or (name.startswith("get_") and name.endswith(("_cpu", "_np", "_list"))):
            return value_of_name(name)
        return NOTHING

    def _tensor_method(self, expr: ast.Call, name: str, receiver: Value, arguments: list[Value], env: Environment, origin: Origin) -> Value:
        if name in ("to", "type"):
            return self._moved(expr, receiver, env, origin) if name == "to" else receiver.but(origin=origin)
        if name in proofs.SIZED:
            proofs.prove_sizes(expr.args, self.seen, env)
        if name.startswith("new_"):
            device_argument = keyword(expr, "device")
            device = self.device(device_argument, env) if device_argument is not None else receiver.device
            return Value(Kind.TENSOR, device, is_pinned_by(expr), by_name=receiver.by_name, origin=origin)
        operation = self.operations.get(name)
        if operation is None or (name == "narrow" and len(expr.args) + len(expr.keywords) != 3):
            return NOTHING
        if name.endswith("_") and not name.startswith("_"):
            return receiver  # in place: the same memory
        if name in ("size", "stride") and not expr.args and not expr.keywords:
            return Value(Kind.LIST, element=SCALAR)  # of one dimension a number, of none the whole shape
        if operation.result in ("scalar", "host-list", "array", "none"):
            return self._shape_of_result(operation, name, expr, receiver, arguments)
        keeps_pin = operation.pin_keeps or operation.does == "view"
        if name == "contiguous":
            keeps_pin = True
        scalar = operation.reduces and not expr.args and keyword(expr, "dim") is None and keyword(expr, "axis") is None
        boolean = operation.boolean or (
            receiver.boolean
            and (
                operation.does == "view"
                or name
                in (
                    "clone",
                    "contiguous",
                    "masked_fill",
                    "masked_fill_",
                    "repeat",
                    "fill_",
                    "copy_",
                    "detach",
                    "flip",
                    "roll",
                    "gather",
                    "index_select",
                )
            )
        )
        others = [value for value in arguments if value.kind is Kind.TENSOR]
        result = receiver
        if others and receiver.device is Device.UNKNOWN and operation.device == "operands":
            result = together([receiver, *others])
        pinned = receiver.pinned if keeps_pin else (False if result.device is Device.HOST else None)
        return self._shape_of_result(
            operation, name, expr, result.but(pinned=pinned, boolean=boolean, scalar=scalar, origin=origin), arguments
        )

    def _moved(self, expr: ast.Call, receiver: Value, env: Environment, origin: Origin) -> Value:
        """`.to(...)`: a device, a dtype, another tensor, or several of them."""
        where = keyword(expr, "device") or (expr.args[0] if expr.args else None)
        if where is None:
            return receiver.but(origin=origin)
        device = self.device(where, env)
        other = self.seen.get(id(where), NOTHING)
        if other.kind is Kind.TENSOR:
            device = other.device
            return Value(
                Kind.TENSOR,
                device,
                None if device is not Device.HOST else False,
                receiver.boolean,
                receiver.scalar,
                other.by_name,
                origin=origin,
            )
        if device is Device.UNKNOWN or other.kind is Kind.DTYPE:
            return receiver.but(pinned=False if receiver.device is Device.HOST else None, boolean=False, origin=origin)
        boolean = receiver.boolean and keyword(expr, "dtype") is None and len(expr.args) < 2
        pinned = None
        if device is Device.HOST:  # a non_blocking copy to the host allocates pinned memory itself
            non_blocking = keyword(expr, "non_blocking")
            pinned = receiver.device is not Device.HOST and non_blocking is not None and not _is_false(non_blocking)
        return Value(Kind.TENSOR, device, pinned, boolean, receiver.scalar, origin=origin)

    def _container_method(
        self, expr: ast.Call, function: ast.Attribute, receiver: Value, name: str, arguments: list[Value], env: Environment
    ) -> Value:
        inner = receiver.element or NOTHING
        if receiver.kind is Kind.DICT:
            match name:
                case "get" | "pop" | "setdefault":
                    if (named := self._by_word(expr)) is not NOTHING:
                        return named
                    return inner if inner is not NOTHING or len(arguments) < 2 else arguments[1]
                case "values":
                    return Value(Kind.LIST, element=inner)
                case "keys":
                    return Value(Kind.LIST, element=SCALAR)
                case "items":
                    return Value(Kind.LIST, element=Value(Kind.TUPLE, elements=(SCALAR, inner)))
                case "to" if expr.args and inner.kind is Kind.TENSOR:
                    device = self.device(expr.args[0], env)
                    moved = inner.but(device=device, pinned=None, origin=Origin(expr.lineno, ".to()"))
                    return receiver.but(element=moved) if device is not Device.UNKNOWN else receiver
                case _:
                    return NOTHING
        match name:
            case "copy":
                return receiver
            case "pop":
                return inner
            case "index" | "count":
                return SCALAR
            case "append" | "add" | "insert" if arguments:
                self._grow(function.value, receiver, arguments[-1], env)
            case "extend" if arguments:
                self._grow(function.value, receiver, self.element(arguments[0]), env)
        return NOTHING

    def _by_word(self, expr: ast.Call) -> Value:
        """`fields.get("grid_thw")`"""
        first = expr.args[0] if expr.args else None
        return self.by_convention(first.value) if isinstance(first, ast.Constant) and isinstance(first.value, str) else NOTHING

    @staticmethod
    def _grow(target: ast.expr, receiver: Value, added: Value, env: Environment) -> None:
        spelled = dotted(target)
        if spelled and added is not NOTHING and (receiver.element is None or receiver.element is NOTHING):
            env[spelled] = receiver.but(element=added)

    def _is_layer_call(self, function: ast.Attribute, receiver: Value, arguments: list[Value]) -> bool:
        """`self.norm(x)`: a module called like a function gives a tensor where its input lives."""
        if (
            not isinstance(function.value, ast.Name)
            or function.value.id != "self"
            or not any(value.kind is Kind.TENSOR for value in arguments)
        ):
            return False
        return self.is_stored(receiver.class_name, function.attr)

    def _object_call(self, receiver: Value, name: str) -> Value:
        attribute = self.attribute_of(receiver.class_name, name)
        if attribute.kind is Kind.OBJECT and attribute.class_name:  # self.layer(x): what its forward returns
            for method in ("forward", "__call__"):
                found = self.method_result(attribute.class_name, method)
                if found is not NOTHING:
                    return found
        return self.method_result(receiver.class_name, name)

    def _named_call(self, expr: ast.Call, name: str, canonical: str, arguments: list[Value]) -> Value:
        first = arguments[0] if arguments else NOTHING
        if name == "enumerate":
            return Value(Kind.LIST, element=Value(Kind.TUPLE, elements=(SCALAR, self.element(first))))
        if name == "zip":
            return Value(Kind.LIST, element=Value(Kind.TUPLE, elements=tuple(self.element(value) for value in arguments)))
        if name == "range":
            return Value(Kind.LIST, element=SCALAR, origin=Origin(expr.lineno, "a range"))
        if name in _LIST_CALLS:
            return Value(Kind.LIST, element=self.element(first), origin=Origin(expr.lineno, f"{name}()"))
        if name in ("map", "filter"):
            return LIST
        if name in _HOST_CALLS:
            if name in ("int", "float", "bool") and len(expr.args) == 1 and isinstance(expr.args[0], ast.Call):
                self._read_of_computed(expr.args[0], first)
            return SCALAR
        if name in ("sum", "max", "min", "abs"):
            return self._builtin_reduction(name, arguments)
        if name == "dict":
            return Value(Kind.DICT)
        if name == "getattr" and len(expr.args) >= 2 and isinstance(expr.args[1], ast.Constant) and isinstance(expr.args[1].value, str):
            return self.attribute_of(first.class_name, expr.args[1].value) if first.class_name else value_of_name(expr.args[1].value)
        if self.is_class(name):
            return Value(Kind.OBJECT, class_name=name)
        found = self.function_result(name)
        if found.device is Device.DEVICE and not any(value.is_tensor for value in arguments) and self.has_no_device(name, expr):
            plain = all(value.kind in HOST_KINDS for value in arguments)
            found = found.but(device=Device.HOST if plain else Device.UNKNOWN, pinned=False if plain else None)
        if found is NOTHING and canonical and self.outside is not None:
            found = self.outside.function(canonical)
        taken = value_of_result(name) if first.kind in (Kind.UNKNOWN, Kind.TENSOR) else NOTHING
        if taken is not NOTHING and found.kind in (Kind.UNKNOWN, Kind.TENSOR) and found.device is Device.UNKNOWN:
            return taken
        if found is not NOTHING:
            tensors = [value for value in arguments if value.kind is Kind.TENSOR]
            if found.kind is Kind.TENSOR and found.device is Device.UNKNOWN and tensors and all(t.device is Device.HOST for t in tensors):
                return found.but(device=Device.HOST, pinned=False)  # a helper that is given only host tensors returns one
            return found
        if canonical and name[:1].isupper():
            return Value(Kind.OBJECT, class_name=name)
        return value_of_name(name) if "to_" not in name and name.partition("_")[0] not in _TRANSFORMS else NOTHING

    def _builtin_reduction(self, name: str, arguments: list[Value]) -> Value:
        if len(arguments) == 1:
            first = arguments[0]
            result = self.element(first) if first.kind in (Kind.LIST, Kind.TUPLE) else first
        else:
            result = join_all(tuple(arguments))
        if result.kind is Kind.TENSOR:
            return result.but(scalar=result.scalar or (name == "sum" and len(arguments) == 1))
        return ARRAY if result.kind is Kind.ARRAY else SCALAR if result.kind in (Kind.SCALAR, Kind.LIST, Kind.TUPLE) else NOTHING


def is_proof_of_tensor(call: ast.Call) -> bool:
    """True if a call can only be made on a tensor: a method of its own, `.size(0)`, `.to(torch.int32)`, an in-place operation."""
    if not isinstance(call.func, ast.Attribute):
        return False
    name = call.func.attr
    if name == "narrow" and len(call.args) + len(call.keywords) != 3:
        return False
    if name in ("float", "half", "double", "long", "int", "bool", "t", "dim", "stride"):
        return not call.args or name == "stride"
    return name in TENSOR_ONLY or (name == "size" and len(call.args) <= 1 and not call.keywords)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument of `call`."""
    for item in call.keywords:
        if item.arg == name:
            return item.value
    return None


def has_splat(call: ast.Call) -> bool:
    """True for `f(**options)`: what is not written may still be given."""
    return any(item.arg is None for item in call.keywords)


def is_pinned_by(call: ast.Call) -> bool | None:
    """True if the call asks for pinned memory (by anything but a literal False), else None."""
    asked = keyword(call, "pin_memory")
    return True if asked is not None and not _is_false(asked) and not _is_none(asked) else None


def join_all(values: tuple[Value, ...]) -> Value:
    """The join of several values."""
    result = NOTHING
    for value in values:
        result = join(result, value)
    return result


def annotation_or(value: Value, annotation: ast.expr | None) -> Value:
    """What an annotation promises, refined by what the code shows: an annotated tensor keeps the device that was seen."""
    return promise_or(value, value_of_annotation(annotation))


def promise_or(value: Value, promised: Value) -> Value:
    """The same for a promise that was read before."""
    if promised is NOTHING or promised.kind is Kind.NONE:
        return value
    if promised.kind is Kind.SCALAR and value is HOST_TEXT:
        return value
    if promised.kind is Kind.TENSOR and value.kind in (Kind.SCALAR, Kind.ARRAY) and not value.by_name:
        return value  # the body contradicts its annotation, and the body is what runs
    if promised.kind is Kind.TUPLE and value.kind is Kind.TUPLE:
        return _tuple_or(value, promised)
    if promised.kind is value.kind and value.kind in (Kind.TENSOR, Kind.LIST, Kind.DICT):
        if value.kind is Kind.LIST and value.element is None:
            return promised
        return value
    if value.kind is Kind.TENSOR and promised.kind in (Kind.OBJECT, Kind.LIST, Kind.DICT):
        return promised
    return promised


def _tuple_or(value: Value, promised: Value) -> Value:
    """Member by member, where both have as many."""
    if len(value.elements) != len(promised.elements):
        return value
    return value.but(elements=tuple(map(promise_or, value.elements, promised.elements)))


def _member(base: Value, index: ast.expr) -> Value:
    match index:
        case ast.Constant(value=int(number)) if -len(base.elements) <= number < len(base.elements):
            return base.elements[number]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))) if 0 < number <= len(base.elements):
            return base.elements[-number]
        case ast.Slice():
            return base
        case _:
            return join_all(base.elements)


def _is_sliced(expr: ast.expr) -> bool:
    """`x[1:]`"""
    return isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Slice)


def _is_position(index: ast.expr) -> bool:
    """A literal position: `x[0]`, `x[-1]`."""
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Constant) and isinstance(index.value, int)


def _is_false(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Constant) and expr.value is False


def _is_none(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Constant) and expr.value is None


def _is_module_like(expr: ast.Call) -> bool:
    """`model.to(device)` moves a module in place; its result is no tensor."""
    receiver = expr.func.value if isinstance(expr.func, ast.Attribute) else expr.func
    last = receiver.attr if isinstance(receiver, ast.Attribute) else receiver.id if isinstance(receiver, ast.Name) else ""
    return any(word in last.lower() for word in ("model", "module", "layer", "encoder", "decoder", "network", "transformer", "vae", "pipe"))

"""What the upload rules share: which side is on the host, how sure that is, and where the data goes."""

from __future__ import annotations

import ast

from launchlint.model import Level
from launchlint.names import dotted
from launchlint.rule import Context
from launchlint.trees import walk
from launchlint.values.evaluate import has_splat
from launchlint.values.value import Device, Kind, Value

CONSTRUCTORS = frozenset(
    {"tensor", "as_tensor", "asarray", "Tensor", "LongTensor", "IntTensor", "FloatTensor", "BoolTensor", "HalfTensor", "DoubleTensor"}
)
_DEVICE_WORDS = ("cuda", "device", "gpu")
_CHAIN = 12  # methods, views and names that are followed back


def constructor(node: ast.Call, ctx: Context) -> str:
    """`tensor` for `torch.tensor(...)` and its relatives, else an empty string."""
    name = ctx.name(node.func)
    last = name.rpartition(".")[2]
    return last if last in CONSTRUCTORS and name in (f"torch.{last}", f"torch.cuda.{last}") else ""


def data_of(node: ast.Call) -> ast.expr | None:
    """The host data of a constructor."""
    if node.args:
        return None if isinstance(node.args[0], ast.Starred) else node.args[0]
    return next((item.value for item in node.keywords if item.arg in ("data", "obj")), None)


def goes_to(node: ast.Call, ctx: Context) -> Device | None:
    """The device a constructor is asked for; None if it is asked for none."""
    asked = ctx.keyword(node, "device")
    if asked is not None:
        if isinstance(asked, ast.Constant) and asked.value is None:
            return None
        return ctx.device(asked)
    if has_splat(node):
        options = next(item.value for item in node.keywords if item.arg is None)
        text = ctx.text(options).lower()
        return Device.DEVICE if any(word in text for word in _DEVICE_WORDS) else Device.UNKNOWN
    return None


def host_level(data: ast.expr, value: Value, ctx: Context) -> Level:
    """How sure we are that a constructor's data is on the host."""
    if isinstance(data, (ast.List, ast.Tuple)):
        return Level.INFERRED if any(_may_be_device(element, ctx) for element in data.elts) else Level.KNOWN
    if isinstance(data, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return Level.INFERRED if _may_be_device(data.elt, ctx) else Level.KNOWN
    if value.is_tensor:
        return Level.NO if value.device is not Device.HOST else Level.INFERRED
    if value.kind in (Kind.LIST, Kind.TUPLE):
        inner = value.element
        return Level.INFERRED if inner is not None and inner.is_tensor and inner.device is not Device.HOST else Level.KNOWN
    if value.kind in (Kind.ARRAY, Kind.SCALAR):
        return Level.KNOWN
    return Level.UNKNOWN


def _may_be_device(element: ast.expr, ctx: Context) -> bool:
    value = ctx.value(element)
    return value.is_tensor and value.device is not Device.HOST


def is_non_blocking(node: ast.Call, ctx: Context) -> bool:
    """True if the call asks for an asynchronous copy, by keyword or by position."""
    asked = ctx.keyword(node, "non_blocking")
    if asked is None:
        last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if last == "copy_" and len(node.args) > 1:
            asked = node.args[1]
        elif last == "to" and len(node.args) > 2:
            asked = node.args[2]
    return asked is not None and not (isinstance(asked, ast.Constant) and not asked.value)


def destination(node: ast.Call, ctx: Context) -> Device | None:
    """Where `.to(...)` and `.cuda()` copy to; None where the call changes the dtype only."""
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if last == "cuda":
        return Device.DEVICE
    where = ctx.keyword(node, "device") or (node.args[0] if node.args else None)
    if where is None:
        return None
    value = ctx.value(where)
    if value.is_tensor:
        return value.device
    if value.kind is Kind.DTYPE or _names_dtype(where) or ctx.name(where).startswith("torch."):
        return None
    found = ctx.device(where)
    if found is Device.UNKNOWN and value.kind is Kind.DEVICE:
        return value.device
    return found


def copied_from(node: ast.Call, ctx: Context) -> ast.expr | None:
    """What `target.copy_(source)`, `source.to(device)` and `source.cuda()` copy to the device; None where they do not."""
    match node:
        case ast.Call(func=ast.Attribute(value=target, attr="copy_"), args=[source, *_]):
            return None if ctx.value(target).on_host else source
        case ast.Call(func=ast.Attribute(value=source)) if destination(node, ctx) is Device.DEVICE:
            return source
    return None


def _names_dtype(where: ast.expr) -> bool:
    match where:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return "dtype" in name
        case ast.Call(func=function):
            return "dtype" in ast.unparse(function)
        case ast.Constant(value=value):
            return not isinstance(value, (str, int)) or isinstance(value, bool)
        case _:
            return False


def pageable_level(value: Value) -> Level:
    """How sure we are that a value is a host tensor in pageable memory."""
    if not value.is_tensor or value.device is not Device.HOST or value.pinned:
        return Level.NO
    if value.pinned is False:
        return Level.KNOWN if not value.by_name else Level.UNKNOWN
    return Level.UNKNOWN


def registered_attribute(expr: ast.expr, ctx: Context) -> str:
    """The attribute `x` where `expr` comes from `self.x` and the class registers that as a parameter or buffer; else "".

    Such a tensor moves with its module, so that copying it to the device of the module's input copies nothing.
    """
    owner = ctx.function.class_node
    root = root_of(expr, ctx)
    if owner is None or not isinstance(root, ast.Attribute) or not isinstance(root.value, ast.Name) or root.value.id != "self":
        return ""
    return root.attr if any(_registers(node, root.attr) for node in walk(owner)) else ""


def _registers(node: ast.AST, attribute: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="register_buffer" | "register_parameter"), args=[ast.Constant(value=name), *_]):
            return bool(name == attribute)
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=made)) if name == attribute:
            return dotted(made).rpartition(".")[2] in ("Parameter", "Buffer")
    return False


def root_of(expr: ast.expr, ctx: Context) -> ast.expr:
    """What methods, views and names that are bound once lead back to: a call, an attribute, a parameter, a copy to the host."""
    for _ in range(_CHAIN):
        match expr:
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if not ctx.name(expr.func) and not _is_own_method(inner):
                if method == "cpu" or (method == "to" and destination(expr, ctx) is Device.HOST):
                    return expr
                expr = inner
            case ast.Subscript(value=inner) | ast.Attribute(value=ast.Call() | ast.Subscript() as inner):
                expr = inner
            case ast.Name(id=name):
                match assigned_before(name, expr, ctx):
                    case [ast.Assign(targets=[ast.Name()], value=value)]:
                        expr = value
                    case _:
                        return expr
            case _:
                return expr
    return expr


def assigned_before(name: str, expr: ast.expr, ctx: Context) -> list[ast.stmt]:
    """The statements above `expr` that bind the local `name`."""
    return [statement for statement in ctx.assigned(name) if statement.lineno < expr.lineno]


def _is_own_method(receiver: ast.expr) -> bool:
    return isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")


def is_kept(ctx: Context) -> bool:
    """True where the statement stores into an attribute that is tested before, so that it runs when the object grows.

    `if self.table is not None and n <= self.length: return` before it, or `if n > self.length:` around it with a store
    to `self.length` in the body.
    """
    if not isinstance(ctx.statement, ast.Assign):
        return False
    kept = {dotted(target) for target in ctx.statement.targets if isinstance(target, ast.Attribute)}
    if kept and _returns_early(kept, ctx):
        return True
    return any(isinstance(frame.node, ast.If) and frame.part == "body" and _tests_what_it_stores(frame.node) for frame in ctx.frames())


def _returns_early(kept: set[str], ctx: Context) -> bool:
    function = ctx.function.node
    for statement in function.body if function is not None else ():
        if statement.lineno >= ctx.statement.lineno:
            return False
        if (
            isinstance(statement, ast.If)
            and _attributes_in(statement.test) & kept
            and any(isinstance(node, ast.Return) for node in walk(statement))
        ):
            return True
    return False


def _tests_what_it_stores(node: ast.If) -> bool:
    tested = _attributes_in(node.test)
    stored = {
        dotted(target) for item in node.body if isinstance(item, ast.Assign) for target in item.targets if isinstance(target, ast.Attribute)
    }
    return bool(tested & stored)


def _attributes_in(expr: ast.expr) -> set[str]:
    """`self.x` for every attribute of self in `expr`, also behind `getattr(self, "x", None)`."""
    found: set[str] = set()
    for node in walk(expr):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(f"self.{name}")
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[ast.Name(id="self"), ast.Constant(value=str(name)), *_]):
                found.add(f"self.{name}")
    return found


def rare_branch(ctx: Context) -> str:
    """The test around the statement that says that an argument is missing, or that a tensor is not on the device; else ""."""
    function = ctx.function.node
    arguments = function.args if function is not None else None
    given = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} if arguments is not None else set()
    for frame in ctx.frames():
        if isinstance(frame.node, ast.If):
            match frame.node.test, frame.part:
                case (ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]), "orelse") | (
                    ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]),
                    "body",
                ) if name in given:
                    return f"only where no `{name}` is given"
                case (ast.Attribute(value=held, attr="is_cuda"), "orelse") | (
                    ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=held, attr="is_cuda")),
                    "body",
                ):
                    return f"only where `{dotted(held)}` is not on the device"
    return ""


def becomes_buffer(ctx: Context) -> str:
    """Says that what is copied becomes a buffer of its module, which is made again only when it has to grow; else "".

    The function itself makes it one, or every method of the class that calls it keeps the result and gives it what is kept:
    `self.table = self.extend(x, self.table)`.
    """
    function, owner = ctx.function.node, ctx.function.class_node
    if function is None or owner is None:
        return ""
    kept = "which becomes a buffer of its module"
    statement = ctx.statement
    if isinstance(statement, ast.Assign) and any(_makes_buffer(node, statement.targets) for node in walk(function)):
        return kept
    if not isinstance(statement, ast.Return):
        return ""
    calls = [node for node in walk(owner) if isinstance(node, ast.Assign) and _calls_own(node.value, function.name)]
    return kept if calls and all(_keeps_on(node) for node in calls) else ""


def _makes_buffer(node: ast.AST, made: list[ast.expr]) -> bool:
    """`self.table = nn.Buffer(table)`, `self.register_buffer("table", table)`"""
    match node:
        case ast.Call(func=ast.Attribute(attr="Buffer" | "Parameter"), args=[ast.Name() as value, *_]):
            return any(dotted(target) == value.id for target in made)
        case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[_, ast.Name() as value, *_]):
            return any(dotted(target) == value.id for target in made)
    return False


def _calls_own(value: ast.expr, name: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name and _is_own_method(node.func.value)
        for node in walk(value)
    )


def _keeps_on(node: ast.Assign) -> bool:
    """`self.table = self.extend(x, self.table)`, and `self.table = nn.Buffer(self.extend(x))`"""
    kept = {dotted(target) for target in node.targets if isinstance(target, ast.Attribute)}
    match node.value:
        case ast.Call(func=ast.Attribute(attr="Buffer" | "Parameter")):
            return True
        case ast.Call(args=arguments, keywords=keywords):
            return any(dotted(item) in kept for item in (*arguments, *(keyword.value for keyword in keywords)))
    return False

"""What one file contributes to the call graph: functions, classes, calls; small, picklable, and made without the values.

Trees are not kept (a million lines of them cost a gigabyte). A summary is about a kilobyte a function and can be cached
by the hash of the file.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from launchlint.guards import is_once_test
from launchlint.names import Names, dotted
from launchlint.rule import FunctionNode
from launchlint.scan import CACHES, FUNCTIONS, child_fields, decorator_names, is_kernel, is_kernel_file

ONCE = 1  # the call stands behind a test that lets it run once
IN_TRAINING = 4  # the call stands in a loop that trains
MENTIONED = 2  # named, not called: a callback, a partial, a thread's target

Call = tuple[str, int]  # what is called, as spelled ("f", "self.f", "a.b.f", "super().f", "?.f"), and flags

_SKIP = frozenset({ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Name, ast.arguments})
_LOADERS = ("loader", "batches", "data_iterator")
_ONCE_TESTS = (ast.UnaryOp, ast.Compare, ast.BoolOp)


@dataclass(slots=True)
class FunctionSummary:
    """A function or method: who it is and what it calls."""

    name: str
    qualname: str  # inside the module
    line: int
    end_line: int
    class_index: int = -1  # into FileSummary.classes
    parent_index: int = -1  # the enclosing function
    decorators: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)  # name -> class it is annotated with
    locals: dict[str, str] = field(default_factory=dict)  # name -> what was called to make it
    returns: str = ""  # the class it is annotated to return
    loads: tuple[str, ...] = ()  # attributes of self that the class does not store: perhaps properties
    is_kernel: bool = False
    is_cached: bool = False
    is_stub: bool = False  # only raises, passes or documents
    training_lines: tuple[tuple[int, int], ...] = ()  # loops that train, or walk a data loader


@dataclass(slots=True)
class ClassSummary:
    """A class: its bases as spelled, its methods and what its attributes hold."""

    name: str
    bases: tuple[str, ...]
    methods: dict[str, int] = field(default_factory=dict)  # name -> index into FileSummary.functions
    properties: tuple[str, ...] = ()
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # attribute -> class names, as spelled
    annotations: dict[str, str] = field(default_factory=dict)  # field -> its annotation, as text
    results: dict[str, str] = field(default_factory=dict)  # method -> annotation of what it returns, as text


@dataclass(slots=True)
class FileSummary:
    """One file of the call graph."""

    path: str
    module: str
    imports: dict[str, str]
    functions: list[FunctionSummary] = field(default_factory=list)
    classes: list[ClassSummary] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)  # module-level function -> annotation of its result
    mentions: tuple[str, ...] = ()  # functions named at module level or in a table: registries
    registered: dict[str, str] = field(default_factory=dict)  # operator name -> function that implements it
    imports_torch: bool = False


def summarize(path: str, module: str, is_package: bool, tree: ast.Module, text: str) -> FileSummary:
    """Walk `tree` once."""
    walk = _Walk(path, module, is_package, is_kernel_file(text), ".backward(" in text or ".step(" in text)
    return walk.run(tree)


class _Walk:
    def __init__(self, path: str, module: str, is_package: bool, kernel_file: bool, may_train: bool) -> None:
        self.names = Names(module, is_package)
        self.summary = FileSummary(path, module, self.names.targets)
        self.kernel_file = kernel_file
        self.may_train = may_train
        self.calls: list[dict[Call, None]] = []
        self.loads: list[set[str]] = []
        self.nodes: list[FunctionNode] = []
        self.top_mentions: dict[str, None] = {}
        self.stack: list[tuple[ast.AST, int, int, int]] = []  # node, function, class, flags

    def run(self, tree: ast.Module) -> FileSummary:
        stack = self.stack
        stack.extend((node, -1, -1, 0) for node in reversed(tree.body))
        while stack:
            node, function, owner, flags = stack.pop()
            kind = node.__class__
            if kind in FUNCTIONS:
                self._function(node, function, owner)  # type: ignore[arg-type]
                continue
            if kind is ast.ClassDef:
                self._class(node, function)  # type: ignore[arg-type]
                continue
            if kind is ast.Import or kind is ast.ImportFrom:
                self.names.add(node)  # type: ignore[arg-type]
                continue
            if kind is ast.Call:
                self._call(node, function, flags)  # type: ignore[arg-type]
            elif kind is ast.Attribute:
                if function >= 0 and node.value.__class__ is ast.Name:  # type: ignore[attr-defined]
                    if node.value.id == "self":  # type: ignore[attr-defined]
                        self.loads[function].add(node.attr)  # type: ignore[attr-defined]
                    continue
            elif kind is ast.Assign or kind is ast.AnnAssign:
                self._assign(node, function, owner)  # type: ignore[arg-type]
            elif kind is ast.If:
                if node.test.__class__ in _ONCE_TESTS and is_once_test(node):  # type: ignore[attr-defined,arg-type]
                    self._push(node.body, function, owner, flags | ONCE)  # type: ignore[attr-defined]
                    self._push(node.orelse, function, owner, flags)  # type: ignore[attr-defined]
                    continue
            elif (kind is ast.For or kind is ast.While) and function >= 0:
                if self._loop(node, function):  # type: ignore[arg-type]
                    flags |= IN_TRAINING
            elif kind is ast.Return:
                self._mention(node.value, function)  # type: ignore[attr-defined]
            elif kind is ast.Dict:
                for value in node.values:  # type: ignore[attr-defined]
                    self._mention(value, function)
            for name in child_fields(kind):
                child = getattr(node, name, None)
                if child.__class__ is list:
                    for item in reversed(child):
                        if item.__class__ not in _SKIP and isinstance(item, ast.AST):
                            stack.append((item, function, owner, flags))
                elif child is not None and child.__class__ not in _SKIP and isinstance(child, ast.AST):
                    stack.append((child, function, owner, flags))
        return self._finish()

    def _push(self, nodes: list[ast.stmt], function: int, owner: int, flags: int) -> None:
        self.stack.extend((node, function, owner, flags) for node in reversed(nodes))

    def _function(self, node: FunctionNode, parent: int, owner: int) -> None:
        summary = self.summary
        decorators = tuple(decorator_names(node))
        outer = summary.functions[parent] if parent >= 0 else None
        prefix = f"{outer.qualname}." if outer else f"{summary.classes[owner].name}." if owner >= 0 else ""
        found = FunctionSummary(node.name, prefix + node.name, node.lineno, node.end_lineno or node.lineno, owner, parent, decorators)
        found.is_kernel = self.kernel_file or bool(outer and outer.is_kernel) or (bool(decorators) and is_kernel(node))
        found.is_cached = any(name in CACHES or name.endswith(("lru_cache", "cached_property")) for name in decorators)
        found.is_stub = _is_stub(node)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None and (name := class_of_annotation(argument.annotation)):
                found.parameters[argument.arg] = name
        found.returns = class_of_annotation(node.returns) if node.returns is not None else ""
        index = len(summary.functions)
        summary.functions.append(found)
        self.calls.append({})
        self.loads.append(set())
        if owner >= 0 and parent < 0:
            described = summary.classes[owner]
            described.methods[node.name] = index
            if node.returns is not None:
                described.results[node.name] = _unparse(node.returns)
            if any(name.rpartition(".")[2] in ("property", "cached_property") for name in decorators):
                described.properties += (node.name,)
        elif parent < 0 and node.returns is not None:
            summary.results[node.name] = _unparse(node.returns)
        if parent >= 0:
            self.calls[parent][(node.name, MENTIONED)] = None
        self._register(node)
        self._push(node.body, index, owner, 0)

    def _register(self, node: FunctionNode) -> None:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args and isinstance(decorator.args[0], ast.Constant):
                name = dotted(decorator.func).rpartition(".")[2]
                if name in ("custom_op", "register_custom_op", "triton_op", "impl", "register_kernel") and isinstance(decorator.args[0].value, str):
                    self.summary.registered[decorator.args[0].value.rpartition("::")[2]] = node.name

    def _class(self, node: ast.ClassDef, function: int) -> None:
        bases = tuple(dotted(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        index = len(self.summary.classes)
        described = ClassSummary(node.name, bases)
        self.summary.classes.append(described)
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                described.annotations[item.target.id] = _unparse(item.annotation)
                if name := class_of_annotation(item.annotation):
                    described.attributes[item.target.id] = (name,)
        self._push(node.body, -1, index, 0)

    def _call(self, node: ast.Call, function: int, flags: int) -> None:
        spelled = _spelled(node.func)
        if function < 0:
            self._top_level_call(node, spelled)
            return
        calls = self.calls[function]
        if spelled:
            calls[(spelled, flags)] = None
        for argument in node.args:
            self._mention(argument, function)
        for keyword in node.keywords:
            self._mention(keyword.value, function)
            if keyword.arg in ("op_func", "impl") and spelled.endswith("register_custom_op"):
                self._registered(node, keyword.value)

    def _top_level_call(self, node: ast.Call, spelled: str) -> None:
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            name = dotted(value)
            if name and "." not in name:
                self.top_mentions[name] = None
        if spelled.endswith(("register_custom_op", "custom_op")):
            for keyword in node.keywords:
                if keyword.arg == "op_func":
                    self._registered(node, keyword.value)

    def _registered(self, node: ast.Call, implementation: ast.expr) -> None:
        for keyword in node.keywords:
            if keyword.arg == "op_name" and isinstance(keyword.value, ast.Constant):
                self.summary.registered[str(keyword.value.value)] = dotted(implementation)

    def _mention(self, value: ast.expr | None, function: int) -> None:
        if value.__class__ is ast.Name:
            name = value.id  # type: ignore[union-attr]
        elif value.__class__ is ast.Attribute and value.value.__class__ is ast.Name:  # type: ignore[union-attr]
            name = f"{value.value.id}.{value.attr}"  # type: ignore[union-attr]
            if not name.startswith("self."):
                return
        else:
            return
        if function < 0:
            self.top_mentions[name] = None
        else:
            self.calls[function][(name, MENTIONED)] = None

    def _assign(self, node: ast.Assign | ast.AnnAssign, function: int, owner: int) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if function < 0:
            self._mention(value, function)
            return
        annotated = class_of_annotation(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        for target in targets:
            if target.__class__ is ast.Name:
                made = annotated or _made_by(value)
                if made:
                    self.summary.functions[function].locals[target.id] = made  # type: ignore[attr-defined]
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self" and owner >= 0:
                self._attribute(target.attr, annotated, value, function, owner)

    def _attribute(self, name: str, annotated: str, value: ast.expr | None, function: int, owner: int) -> None:
        attributes = self.summary.classes[owner].attributes
        found = annotated or _made_by(value)
        if not found and isinstance(value, ast.Name):
            parameters = self.summary.functions[function].parameters
            found = parameters.get(value.id) or self.summary.functions[function].locals.get(value.id, "")
        known = attributes.setdefault(name, ())
        if found and found not in known and len(known) < 8:
            attributes[name] = (*known, found)
        self._mention(value, function)

    def _loop(self, node: ast.For | ast.While, function: int) -> bool:
        if _walks_loader(node) or (self.may_train and _is_training(node)):
            found = self.summary.functions[function]
            found.training_lines += ((node.lineno, node.end_lineno or node.lineno),)
            return True
        return False

    def _finish(self) -> FileSummary:
        summary = self.summary
        known = {function.name for function in summary.functions} | set(summary.imports)
        stored: list[set[str]] = [set(described.attributes) for described in summary.classes]
        for function, calls, loads in zip(summary.functions, self.calls, self.loads, strict=True):
            function.calls = tuple(call for call in calls if not call[1] & MENTIONED or "." in call[0] or call[0] in known)
            if function.class_index >= 0:
                function.loads = tuple(sorted(loads - stored[function.class_index]))
        summary.mentions = tuple(name for name in self.top_mentions if name in known)
        summary.imports_torch = self.names.has_torch
        return summary


def class_of_annotation(annotation: ast.expr) -> str:
    """The class that an annotation names, without `Optional` and `| None`; empty for containers and numbers."""
    match annotation:
        case ast.Constant(value=str(text)):
            if len(text) > 120 or "\n" in text:
                return ""
            try:
                return class_of_annotation(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return ""
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return class_of_annotation(left) or class_of_annotation(right)
        case ast.Subscript(value=base, slice=inner):
            name = dotted(base).rpartition(".")[2]
            if name in ("Optional", "Annotated", "Final", "ClassVar"):
                first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
                return class_of_annotation(first)
            if name in ("type", "Type"):
                return ""
            if name in ("list", "List", "Sequence", "Iterable", "Iterator", "tuple"):
                first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
                element = class_of_annotation(first)
                return f"[{element}" if element and not element.startswith("[") else ""
            return ""
        case ast.Name() | ast.Attribute():
            name = dotted(annotation)
            last = name.rpartition(".")[2]
            return name if last[:1].isupper() and last not in _NO_CLASS or last[:1] == "_" else ""
        case _:
            return ""


_NO_CLASS = frozenset({"Tensor", "Any", "Callable", "Optional", "Union", "Parameter", "T", "None", "Path", "List", "Dict", "Tuple", "Sequence", "Self"})


def _made_by(value: ast.expr | None) -> str:
    """`Foo` of `Foo(...)`, `=self.x` for a plain attribute, `()` appended for a call whose result is meant."""
    if isinstance(value, ast.IfExp):
        return _made_by(value.body) or _made_by(value.orelse)
    if isinstance(value, ast.Call):
        spelled = dotted(value.func)
        return f"{spelled}()" if spelled else ""
    if isinstance(value, ast.Attribute):
        return dotted(value)
    return ""


def _spelled(function: ast.expr) -> str:
    name = dotted(function)
    if name:
        return name
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Call) and isinstance(function.value.func, ast.Name) and function.value.func.id == "super":
            return f"super().{function.attr}"
        inner = function.value
        if isinstance(inner, ast.Subscript) and (holder := dotted(inner.value)):
            return f"{holder}[].{function.attr}"
        if isinstance(inner, ast.Call) and (maker := dotted(inner.func)):
            return f"{maker}().{function.attr}"
        return f"?.{function.attr}"
    if isinstance(function, ast.Subscript) and (holder := dotted(function.value)):
        return f"{holder}[]"
    return ""


def _is_stub(node: FunctionNode) -> bool:
    body = node.body[1:] if len(node.body) > 1 and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) else node.body
    return len(body) == 1 and (
        isinstance(body[0], (ast.Pass, ast.Raise)) or (isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
    )


def _walks_loader(node: ast.For | ast.While) -> bool:
    if not isinstance(node, ast.For):
        return False
    walked = node.iter
    if isinstance(walked, ast.Call) and isinstance(walked.func, ast.Name) and walked.func.id in ("enumerate", "iter", "tqdm", "zip") and walked.args:
        walked = walked.args[0]
    return dotted(walked).rpartition(".")[2].lower().endswith(_LOADERS)


def _is_training(node: ast.For | ast.While) -> bool:
    """A loop whose body calls `backward()` or steps an optimizer."""
    pending: list[ast.AST] = list(node.body)
    budget = 4000
    while pending and budget:
        budget -= 1
        item = pending.pop()
        if item.__class__ is ast.Call and item.func.__class__ is ast.Attribute:  # type: ignore[attr-defined]
            attribute = item.func.attr  # type: ignore[attr-defined]
            if attribute == "backward":
                return True
            if attribute == "step" and "optim" in dotted(item.func.value).lower():  # type: ignore[attr-defined]
                return True
        if item.__class__ not in FUNCTIONS and item.__class__ is not ast.ClassDef:
            pending.extend(ast.iter_child_nodes(item))
    return False


def _unparse(annotation: ast.expr) -> str:
    try:
        text = ast.unparse(annotation)
    except (RecursionError, ValueError):
        return ""
    return text if len(text) <= 200 else ""

"""What one file contributes to the call graph: functions, classes, calls; small, picklable, and made without the values.

Trees are not kept (a million lines of them cost a gigabyte). A summary is about a kilobyte a function and can be cached
by the hash of the file.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
import sys
from dataclasses import dataclass, field, fields
from typing import Any

from launchlint.guards import is_kept_for_good, is_of_one_request, is_once_test, rest_is_rare
from launchlint.hot.denoising import walks_time_steps
from launchlint.names import Names, dotted, last_name, spell
from launchlint.rule import FunctionNode
from launchlint.scan import BLOCKS, FUNCTIONS, bodies, child_fields, decorator_names, is_cache, is_kernel, is_kernel_file
from launchlint.trees import children
from launchlint.values.annotations import ON_HOST

ONCE = 1  # the call stands behind a test that lets it run once
IN_TRAINING = 4  # the call stands in a loop that trains, or in the loop of a function that owns one
IN_STEPS = 16  # the call stands in a loop over the time steps of a diffusion process
RARELY = 8  # the call stands behind a test for warm-up, profiling or a dummy run
MENTIONED = 2  # named, not called: a callback, a partial, a thread's target

Call = tuple[str, int]  # what is called, as spelled ("f", "self.f", "a.b.f", "super().f", "?.f"), and flags

_SKIP = frozenset(
    {
        ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Name,
        ast.arguments, str, int, bool, type(None),
    }
)  # fmt: skip
_Waiting = tuple[list[Any], int, int, int]  # nodes, function, class, flags
_NAMED = frozenset({ast.Name, ast.Attribute})
_DEFINING = frozenset({*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom})
_SAYS_HOST = re.compile(
    r"#\s*(?:an? |the )?(?:(?:cpu|host) (?:tensor|copy)|(?:kept |lives |stays |always )?on (?:the )?(?:cpu|host)\b)", re.I
)
_REGISTERING = frozenset({"custom_op", "register_custom_op", "triton_op", "impl", "register_kernel"})
_LOADERS = ("loader", "batches", "data_iterator")
# Functions that hold the loop over tokens themselves: what stands around the loop runs once per request.
LOOP_OWNERS = frozenset({"generate", "_generate", "_sample", "_beam_search", "_assisted_decoding", "_contrastive_search", "_greedy_search"})
_RARE_WORDS = (
    *("warmup", "warm_up", "warming_up", "is_dummy", "dummy_run", "is_profile", "profile_run", "profiling"),
    *("debug", "DEBUG", "test_mode", "is_cpu", "allow_cpu_sync", "nan_check", "in_capture"),
)
_RARE_SETTINGS = ("CANARY", "ORACLE", "SANITY", "SELF_CHECK", "SELFCHECK", "_ASSERT")  # environment variables: the program checks itself
_PERIODS = ("interval", "period", "freq", "every", "log_steps", "logging_steps")
_ONCE_TESTS = (ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute)


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
    training_lines: tuple[tuple[int, int], ...] = ()  # loops that train, or walk a data loader
    step_lines: tuple[tuple[int, int], ...] = ()  # loops over the time steps of a diffusion process


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
    registered: dict[str, str] = field(default_factory=dict)  # operator name -> function that implements it

    def plain(self) -> list[Any]:
        """The summary as JSON can hold it, without its path and its module."""
        functions = [_function_fields(function) for function in self.functions]
        classes = [_class_fields(described) for described in self.classes]
        return [self.imports, functions, classes, self.results, self.registered]

    @classmethod
    def read(cls, path: str, module: str, plain: Any) -> FileSummary:
        """The summary that `plain` was made of; raise ValueError or TypeError where it is none."""
        imports, functions, classes, results, registered = plain
        read_functions = [_read_function(index, fields, len(classes)) for index, fields in enumerate(functions)]
        read_classes = [_read_class(fields, len(functions)) for fields in classes]
        tables = [_table(table) for table in (imports, results, registered)]
        return cls(path, module, tables[0], read_functions, read_classes, tables[1], tables[2])

    def interface(self) -> str:
        """All that the values in other files can depend on: what this file imports, and what it annotates."""
        promised = [(function.qualname, function.returns, function.parameters) for function in self.functions]
        return repr((self.module, self.imports, self.results, promised, [_class_fields(described) for described in self.classes]))


_function_fields = operator.attrgetter(*(item.name for item in fields(FunctionSummary)))
_class_fields = operator.attrgetter(*(item.name for item in fields(ClassSummary)))


def _read_function(index: int, plain: Any, classes: int) -> FunctionSummary:
    name, qualname, line, end, owner, parent, decorators, calls, parameters, made, returns, loads, kernel, cached, lines, turns = plain
    if not (isinstance(line, int) and isinstance(end, int) and -1 <= owner < classes and -1 <= parent < index):
        raise ValueError("no function")
    shared = _shared_calls()
    read_calls = tuple([shared.setdefault(call, call) for call in [(_word(spelled), int(flags)) for spelled, flags in calls]])
    training, stepping = (tuple((int(first), int(last)) for first, last in each) for each in (lines, turns))
    return FunctionSummary(
        *(_word(name), _word(qualname), line, end, owner, parent, _words(decorators), read_calls, _table(parameters), _table(made)),
        *(_word(returns), _words(loads), bool(kernel), bool(cached), training, stepping),
    )


def _read_class(plain: Any, functions: int) -> ClassSummary:
    name, bases, methods, properties, attributes, annotations, results = plain
    if not all(isinstance(index, int) and 0 <= index < functions for index in methods.values()):
        raise ValueError("no class")
    held = {attribute: _words(spelled) for attribute, spelled in attributes.items()}
    return ClassSummary(_word(name), _words(bases), methods, _words(properties), held, _table(annotations), _table(results))


def _word(plain: Any) -> str:
    if plain.__class__ is not str:
        raise TypeError("no text")
    return sys.intern(plain)


def _words(plain: Any) -> tuple[str, ...]:
    return tuple([_word(word) for word in plain])


def _table(plain: Any) -> dict[str, str]:
    for word in plain.values():
        if word.__class__ is not str:
            raise TypeError("no text")
    return plain  # type: ignore[no-any-return]


def summarize(path: str, module: str, is_package: bool, tree: ast.Module, text: str, lean: bool = False) -> FileSummary:
    """Walk `tree` once. `lean` leaves out what functions call, for files that the graph never enters."""
    walk = _Walk(path, module, is_package, is_kernel_file(text), ".backward(" in text or ".step(" in text, lean)
    walk.said_of_host = _lines_on_host(text)
    return walk.run(tree)


class _Walk:
    """The state of one walk. The stack holds nodes of one function at a time, and `outer` the stacks that wait: half of the
    time of a walk is spent on what is pushed for each node."""

    def __init__(self, path: str, module: str, is_package: bool, kernel_file: bool, may_train: bool, lean: bool) -> None:
        self.names = Names(module, is_package)
        self.summary = FileSummary(path, module, self.names.targets)
        self.kernel_file = kernel_file
        self.may_train = may_train
        self.lean = lean
        self.calls: list[dict[Call, None]] = []
        self.loads: list[set[str]] = []
        self.top_calls: dict[Call, None] = {}  # outside functions; the graph asks for none of them
        self.said_of_host: frozenset[int] = frozenset()  # lines whose comment says that something is on the host
        self.stores: dict[tuple[int, str], bool] = {}  # attributes of `self` by their class: stored from the host alone?

    def run(self, tree: ast.Module) -> FileSummary:
        outer: list[_Waiting] = []
        stack: list[Any] = tree.body[::-1]
        function, owner, flags, lean = -1, -1, 0, self.lean
        calls = self.top_calls
        loads: set[str] = set()
        while True:
            while stack:
                node = stack.pop()
                kind = node.__class__
                if kind in _SKIP:
                    continue
                if lean and function >= 0 and kind not in _DEFINING:
                    stack += self._leanly(node, function, owner)
                elif kind is ast.Attribute:
                    holder = node.value
                    if holder.__class__ is not ast.Name:
                        stack.append(holder)
                    elif holder.id == "self":
                        loads.add(node.attr)
                elif kind is ast.Call:
                    called = node.func
                    if called.__class__ is ast.Name:
                        spelled = called.id
                    elif called.__class__ is ast.Attribute and called.value.__class__ is ast.Name:
                        spelled = f"{called.value.id}.{called.attr}"
                        if called.value.id == "self":
                            loads.add(called.attr)
                    else:
                        spelled = _spelled(called)
                        stack.append(called)
                    if function < 0:
                        self._top_level_call(node, spelled)
                    elif spelled:
                        calls[(spelled, flags)] = None
                    for argument in node.args:
                        if argument.__class__ in _NAMED:
                            self._mention(argument, calls)
                    for argument in reversed(node.args):
                        if argument.__class__ not in _SKIP:
                            stack.append(argument)
                    if node.keywords:
                        stack += self._keywords(node, spelled, calls, function)
                elif kind is ast.Assign:
                    self._assign(node.targets, "", node.value, calls, function, owner)
                    for target in reversed(node.targets):
                        if target.__class__ is not ast.Name:
                            stack.append(target)
                    stack.append(node.value)
                elif kind is ast.BinOp:
                    if node.left.__class__ not in _SKIP:
                        stack.append(node.left)
                    if node.right.__class__ not in _SKIP:
                        stack.append(node.right)
                elif kind is ast.Expr or kind is ast.Starred:
                    if node.value.__class__ is not ast.Constant:
                        stack.append(node.value)
                elif kind is ast.Subscript:
                    if node.value.__class__ is not ast.Name:
                        stack.append(node.value)
                    if node.slice.__class__ not in _SKIP:
                        stack.append(node.slice)
                elif kind is ast.If:
                    if node.test.__class__ in _ONCE_TESTS and is_once_test(node):
                        outer.append((stack, function, owner, flags))
                        outer.append((node.body[::-1], function, owner, flags | (RARELY if is_kept_for_good(node) else ONCE)))
                        stack = node.orelse[::-1]
                        continue
                    if _is_rare_test(node.test):
                        outer.append((stack, function, owner, flags))
                        outer.append((node.body[::-1], function, owner, flags | RARELY))
                        stack = node.orelse[::-1]
                        continue
                    stack.append(node.test)
                    stack += node.body[::-1]
                    stack += node.orelse[::-1]
                elif kind is ast.Compare:
                    stack.append(node.left)
                    for compared in reversed(node.comparators):
                        if compared.__class__ not in _SKIP:
                            stack.append(compared)
                elif kind is ast.Tuple or kind is ast.List:
                    for element in reversed(node.elts):
                        if element.__class__ not in _SKIP:
                            stack.append(element)
                elif kind in FUNCTIONS:
                    outer.append((stack, function, owner, flags))
                    function, flags = self._function(node, function, owner), 0
                    stack, calls, loads = node.body[::-1], self.calls[function], self.loads[function]
                    rare = rest_is_rare(node.body, _is_rare_test)
                    if rare < len(stack):
                        outer.append((stack[: len(stack) - rare], function, owner, RARELY))
                        stack = stack[len(stack) - rare :]
                elif kind is ast.ClassDef:
                    self._class(node)
                    outer.append((stack, function, owner, flags))
                    stack, function, owner, flags = node.body[::-1], -1, len(self.summary.classes) - 1, 0
                    calls, loads = self.top_calls, set()
                elif kind is ast.Import or kind is ast.ImportFrom:
                    self.names.add(node)
                elif (kind is ast.For or kind is ast.While) and function >= 0 and (turns := self._loop(node, function)):
                    outer.append((stack, function, owner, flags))
                    stack, flags = _children(node), flags | turns
                else:
                    if kind is ast.Return:
                        self._mention(node.value, calls)
                    elif kind is ast.Dict:
                        for held in node.values:
                            self._mention(held, calls)
                    elif kind is ast.AnnAssign:
                        self._assign([node.target], class_of_annotation(node.annotation), node.value, calls, function, owner)
                    stack += _children(node)
            if not outer:
                return self._finish()
            stack, function, owner, flags = outer.pop()
            calls, loads = (self.calls[function], self.loads[function]) if function >= 0 else (self.top_calls, set())

    def _leanly(self, node: Any, function: int, owner: int) -> list[Any]:
        """Of a statement only what it makes of `self` and of local names; and the statements inside it."""
        if node.__class__ is ast.Assign:
            self._assign(node.targets, "", node.value, {}, function, owner)
        elif node.__class__ is ast.AnnAssign:
            self._assign([node.target], class_of_annotation(node.annotation), node.value, {}, function, owner)
        elif node.__class__ in BLOCKS:
            return [statement for body in bodies(node) for statement in body][::-1]
        return []

    def _function(self, node: FunctionNode, parent: int, owner: int) -> int:
        summary = self.summary
        decorators = tuple(decorator_names(node)) if node.decorator_list else ()
        outer = summary.functions[parent] if parent >= 0 else None
        prefix = f"{outer.qualname}." if outer else f"{summary.classes[owner].name}." if owner >= 0 else ""
        found = FunctionSummary(node.name, prefix + node.name, node.lineno, node.end_lineno or node.lineno, owner, parent, decorators)
        found.is_kernel = self.kernel_file or bool(outer and outer.is_kernel) or (bool(decorators) and is_kernel(node))
        found.is_cached = any(map(is_cache, decorators))
        found.is_cached = found.is_cached or _returns_kept(node)
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
                described.results[node.name] = _promise(node, node.returns)
            if any(name.rpartition(".")[2] in ("property", "cached_property") for name in decorators):
                described.properties += (node.name,)
        elif parent < 0 and node.returns is not None:
            summary.results[node.name] = _promise(node, node.returns)
        if parent >= 0:
            self.calls[parent][(node.name, MENTIONED)] = None
        if decorators:
            self._register(node)
        return index

    def _register(self, node: FunctionNode) -> None:
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(func=called, args=[ast.Constant(value=str(operator)), *_]) if _last(called) in _REGISTERING:
                    self.summary.registered[operator.rpartition("::")[2]] = node.name

    def _class(self, node: ast.ClassDef) -> None:
        bases = tuple(dotted(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        described = ClassSummary(node.name, bases)
        self.summary.classes.append(described)
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                said = ON_HOST if item.end_lineno in self.said_of_host else ""
                described.annotations[item.target.id] = _unparse(item.annotation) + said
                if name := class_of_annotation(item.annotation):
                    described.attributes[item.target.id] = (name,)

    def _keywords(self, node: ast.Call, spelled: str, calls: dict[Call, None], function: int) -> list[Any]:
        """What to push for the keyword arguments of a call."""
        for keyword in node.keywords:
            if keyword.value.__class__ in _NAMED:
                self._mention(keyword.value, calls)
            if keyword.arg in ("op_func", "impl") and function >= 0 and spelled.endswith("register_custom_op"):
                self._registered(node, keyword.value)
        return [keyword.value for keyword in reversed(node.keywords) if keyword.value.__class__ not in _SKIP]

    def _top_level_call(self, node: ast.Call, spelled: str) -> None:
        if spelled.endswith(("register_custom_op", "custom_op")):
            for keyword in node.keywords:
                if keyword.arg == "op_func":
                    self._registered(node, keyword.value)

    def _registered(self, node: ast.Call, implementation: ast.expr) -> None:
        for keyword in node.keywords:
            if keyword.arg == "op_name" and isinstance(keyword.value, ast.Constant):
                self.summary.registered[str(keyword.value.value)] = dotted(implementation)

    @staticmethod
    def _mention(value: Any, calls: dict[Call, None]) -> None:
        if value.__class__ is ast.Name:
            calls[(value.id, MENTIONED)] = None
        elif value.__class__ is ast.Attribute and value.value.__class__ is ast.Name and value.value.id == "self":
            calls[(f"self.{value.attr}", MENTIONED)] = None

    def _assign(
        self, targets: list[ast.expr], annotated: str, value: ast.expr | None, calls: dict[Call, None], function: int, owner: int
    ) -> None:
        if function < 0:
            self._mention(value, calls)
            return
        for target in targets:
            if target.__class__ is ast.Name:
                made = annotated or _made_by(value)
                if made:
                    self.summary.functions[function].locals[target.id] = made
            elif target.__class__ is ast.Attribute and owner >= 0 and target.value.__class__ is ast.Name and target.value.id == "self":
                self._attribute(target.attr, annotated, value, function, owner)
                self._note_store(target.attr, value, owner)
                self._mention(value, calls)
            elif target.__class__ is ast.Tuple and owner >= 0:
                for part in target.elts:
                    if isinstance(part, ast.Attribute) and dotted(part.value) == "self":
                        self.stores[owner, part.attr] = False
            elif target.__class__ is ast.Subscript and owner >= 0 and value.__class__ is ast.Call and (table := _table_of_self(target)):
                self._attribute(table, "", value, function, owner)

    def _attribute(self, name: str, annotated: str, value: ast.expr | None, function: int, owner: int) -> None:
        attributes = self.summary.classes[owner].attributes
        found = annotated or _made_by(value)
        if not found and isinstance(value, ast.Name):
            parameters = self.summary.functions[function].parameters
            found = parameters.get(value.id) or self.summary.functions[function].locals.get(value.id, "")
        known = attributes.setdefault(name, ())
        if found and found not in known and len(known) < 8:
            attributes[name] = (*known, found)

    def _note_store(self, name: str, value: ast.expr | None, owner: int) -> None:
        """Whether an attribute of `self` is only ever given what is made on the host, by the words of the call; None says nothing."""
        if not isinstance(value, ast.Constant) or value.value is not None:
            self.stores[owner, name] = self.stores.get((owner, name), True) and _is_made_on_host(value)

    def _loop(self, node: ast.For | ast.While, function: int) -> int:
        """What the calls in a loop are marked with; the loop is noted with its function."""
        found = self.summary.functions[function]
        lines = ((node.lineno, node.end_lineno or node.lineno),)
        owns = node.__class__ is ast.While and found.name in LOOP_OWNERS
        if owns or _walks_loader(node) or (self.may_train and _is_training(node)):
            found.training_lines += lines
            return IN_TRAINING
        if walks_time_steps(node):
            found.step_lines += lines
            return IN_STEPS
        return 0

    def _finish(self) -> FileSummary:
        summary = self.summary
        known = {function.name for function in summary.functions} | set(summary.imports)
        shared = _shared_calls()
        stored: list[set[str]] = [set(described.attributes) for described in summary.classes]
        for function, calls, loads in zip(summary.functions, self.calls, self.loads, strict=True):
            kept = [call for call in calls if not call[1] & MENTIONED or "." in call[0] or call[0] in known]
            function.calls = tuple([shared.setdefault(call, call) for call in kept])
            if function.class_index >= 0:
                function.loads = tuple(sorted(loads - stored[function.class_index]))
        for (owner, name), on_host in self.stores.items():
            if on_host:
                summary.classes[owner].annotations.setdefault(name, f"torch.Tensor{ON_HOST}")
        return summary


_calls: dict[Call, Call] = {}


def _shared_calls() -> dict[Call, Call]:
    """Calls that were seen before: `len` is called in every file, and need not be kept for each."""
    if len(_calls) > 200_000:
        _calls.clear()
    return _calls


def _children(node: ast.AST) -> list[Any]:
    """What to push for a node of a kind without a line of its own: every field that can hold code, the last on top."""
    found: list[Any] = []
    for name in child_fields(node.__class__):
        child = getattr(node, name, None)
        if child.__class__ is list:
            found += child[::-1]
        else:
            found.append(child)
    return found


def class_of_annotation(annotation: ast.expr) -> str:
    """The class that an annotation names, without `Optional` and `| None`; empty for containers and numbers."""
    if annotation.__class__ is ast.Name:
        return _as_class(annotation.id)
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
        case ast.Attribute():
            return _as_class(dotted(annotation))
        case _:
            return ""


@functools.lru_cache(maxsize=4096)
def _as_class(name: str) -> str:
    last = name.rpartition(".")[2]
    return name if (last[:1].isupper() and last not in _NO_CLASS) or last[:1] == "_" else ""


_NO_CLASS = frozenset(
    {
        "Tensor", "Any", "Callable", "Optional", "Union", "Parameter", "T", "None", "Path", "List", "Dict", "Tuple", "Sequence", "Self",
    }
)  # fmt: skip


def _made_by(value: ast.expr | None) -> str:
    """`Foo` of `Foo(...)`, `=self.x` for a plain attribute, `()` appended for a call whose result is meant."""
    kind = value.__class__
    if kind is ast.Call:
        spelled = dotted(value.func)  # type: ignore[union-attr]
        return f"{spelled}()" if spelled else ""
    if kind is ast.Attribute:
        return dotted(value)  # type: ignore[arg-type]
    if kind is ast.IfExp:
        return _made_by(value.body) or _made_by(value.orelse)  # type: ignore[union-attr]
    return ""


def _spelled(function: ast.expr) -> str:
    if function.__class__ is ast.Name:
        return function.id
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


def _last(called: ast.expr) -> str:
    return dotted(called).rpartition(".")[2]


def _table_of_self(target: ast.Subscript) -> str:
    """`buffers` of `self.buffers[dtype][size] = ...`; empty where a key belongs to one request, whose object is made for it."""
    held: ast.expr = target
    while isinstance(held, ast.Subscript):
        if is_of_one_request(held.slice):
            return ""
        held = held.value
    match held:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case _:
            return ""


def _returns_kept(node: FunctionNode) -> bool:
    """`if self._x is not None: return self._x` at the start: what follows runs once."""
    for statement in node.body[:2]:
        match statement:
            case ast.If(
                test=ast.Compare(
                    left=ast.Attribute(value=ast.Name(id="self"), attr=kept), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]
                ),
                body=[ast.Return(value=ast.Attribute(value=ast.Name(id="self"), attr=given))],
                orelse=[],
            ) if kept == given:
                return True
    return False


def _promise(node: FunctionNode, returns: ast.expr) -> str:
    """The annotation of a result as text; `int` where it says Tensor and every return reads a number back."""
    text = _unparse(returns)
    if "Tensor" not in text:
        return text
    values: list[ast.expr] = []
    pending: list[ast.stmt] = list(node.body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.Return) and statement.value is not None:
            values.append(statement.value)
        elif statement.__class__ in BLOCKS:
            for inner in (inner for body in bodies(statement) for inner in body):
                pending += [inner] if isinstance(inner, ast.stmt) else inner.body  # a handler or a case
    return "int" if values and all(_reads_number(value) for value in values) else text


def _reads_number(value: ast.expr) -> bool:
    """`x.item()`, `int(x)`, `len(x)`."""
    match value:
        case ast.Call(func=ast.Attribute(attr="item"), args=[]) | ast.Call(func=ast.Name(id="int" | "float" | "len")):
            return True
        case _:
            return False


def _lines_on_host(text: str) -> frozenset[int]:
    """The lines whose comment says "CPU tensor" or "on the host"."""
    if _SAYS_HOST.search(text) is None:
        return frozenset()
    return frozenset(number for number, line in enumerate(text.split("\n"), 1) if _SAYS_HOST.search(line))


def _is_made_on_host(value: ast.expr | None) -> bool:
    """`torch.zeros(n, device="cpu")` and `x.cpu()`."""
    match value:
        case ast.Call(func=ast.Attribute(attr="cpu"), args=[]):
            return True
        case ast.Call(func=called, keywords=keywords) if dotted(called).startswith("torch."):
            return any(item.arg == "device" and isinstance(item.value, ast.Constant) and item.value.value == "cpu" for item in keywords)
    return False


def _walks_loader(node: ast.For | ast.While) -> bool:
    if not isinstance(node, ast.For):
        return False
    walked = node.iter
    match walked:
        case ast.Call(func=ast.Name(id="enumerate" | "iter" | "tqdm" | "zip"), args=[first, *_]):
            walked = first
    return dotted(walked).rpartition(".")[2].lower().endswith(_LOADERS)


def _is_rare_test(test: ast.expr) -> bool:
    """`if req.is_warmup and ...`: the names of the test, looked at without a walk."""
    operands = test.values if test.__class__ is ast.BoolOp and test.op.__class__ is ast.And else [test]
    for operand in operands:
        if operand.__class__ is ast.Compare and _is_periodic(operand):
            return True
        name = last_name(operand) or _asked(operand)
        if name and any(word in name for word in _RARE_WORDS):
            return True
        if name.rpartition(".")[2].isupper() and any(word in name for word in _RARE_SETTINGS):
            return True
    return False


def _is_periodic(test: ast.Compare) -> bool:
    """`iteration % args.log_interval == 0`."""
    match test:
        case ast.Compare(left=ast.BinOp(op=ast.Mod(), right=period), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
            return any(word in last_name(period) for word in _PERIODS)
    return False


def _asked(operand: ast.expr) -> str:
    """The setting that `envs.X_DEBUG.get()` and `os.environ.get("X_DEBUG") == "1"` ask for."""
    if operand.__class__ is ast.Compare:
        operand = operand.left
    match operand:
        case ast.Call(args=[ast.Constant(value=str(name)), *_]):
            return name
        case ast.Call(func=ast.Attribute(value=holder, attr="get")):
            return dotted(holder)
        case _:
            return ""


def _is_training(node: ast.For | ast.While) -> bool:
    """A loop whose body calls `backward()` or steps an optimizer."""
    pending: list[ast.AST] = list(node.body)
    budget = 4000
    while pending and budget:
        budget -= 1
        item = pending.pop()
        if item.__class__ is ast.Call and item.func.__class__ is ast.Attribute:
            attribute = item.func.attr
            if attribute == "backward":
                return True
            if attribute == "step" and "optim" in dotted(item.func.value).lower():
                return True
        if item.__class__ not in FUNCTIONS and item.__class__ is not ast.ClassDef:
            pending.extend(children(item))
    return False


def _unparse(annotation: ast.expr) -> str:
    """`ast.unparse`, which takes ten times as long, for the few annotations that are more than names and brackets."""
    text = spell(annotation)
    if not text:
        try:
            text = ast.unparse(annotation)
        except (RecursionError, ValueError):
            return ""
    return text if len(text) <= 200 else ""

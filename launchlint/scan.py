"""One walk over a tree, with an explicit stack, that finds the places a rule may want to look at.

The walk knows nothing of values or of hotness: it hands out, for each function, the sites (node, enclosing frames,
statement) whose node type or called name a rule has asked for. Recursion is not used anywhere, because `ast.parse`
accepts a sum of 2,500 terms on which every recursive visitor dies.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchlint.names import Names, dotted, find_host_fields, find_rebound, last_name
from launchlint.rule import Check, Frame, FunctionNode, Rule

TORCH_WORD = re.compile(rb"torch|\.(?:fill_|zero_|copy_|add_|mul_|item|tolist)\(")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
SKIPPED_FIELDS = frozenset(
    {
        "ctx", "op", "ops", "name", "id", "attr", "names", "annotation", "returns", "type_comment", "decorator_list", "type_params",
        "lineno", "module", "level", "arg", "kind", "conversion",
    }
)  # fmt: skip
KERNEL_DECORATOR = re.compile(r"(^|\.)(jit|kernel|heuristics|autotune|prim_func|script|macro|aggregate|struct|device_function)$")
KERNEL_ROOTS = frozenset(
    {
        "triton", "cute", "cutlass", "tl", "gluon", "ttgl", "tle", "tilelang", "T", "wp", "warp", "pl", "pallas", "dsl_user_op", "numba",
        "cuda", "helion", "hl", "nki", "mojo", "ct", "taichi", "ti",
    }
)  # fmt: skip
KERNEL_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:cutlass|tilelang|quack|nvidia\.cutlass)\b", re.MULTILINE)
KERNEL_LIBRARIES = ("cutlass", "tilelang", "quack")
CACHES = frozenset({"cache", "cached", "memoize", "memoized", "functools.cache"})
_CACHES_AT_THE_END = ("lru_cache", "cached_property", ".cached", ".memoize", ".cachedmethod")



def is_cache(decorator: str) -> bool:
    """True for a decorator that keeps what a function or a property has answered."""
    return decorator in CACHES or decorator.endswith(_CACHES_AT_THE_END)


_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def worth_parsing(data: bytes) -> bool:
    """False where no rule can have anything to say: the file never mentions torch and calls nothing that only tensors have."""
    return TORCH_WORD.search(data) is not None


def is_kernel_file(text: str) -> bool:
    """True for files written in a language for device code."""
    return any(name in text for name in KERNEL_LIBRARIES) and KERNEL_IMPORT.search(text) is not None


def child_fields(node_type: type[ast.AST]) -> tuple[str, ...]:
    """Fields of a node type that can hold code; annotations, names and contexts are left out."""
    fields = _fields.get(node_type)
    if fields is None:
        fields = _fields[node_type] = tuple(name for name in node_type._fields if name not in SKIPPED_FIELDS)
    return fields


@dataclass(slots=True, eq=False)
class Site:
    """A node that at least one check wants to see."""

    node: ast.AST
    checks: Sequence[tuple[Rule, Check]]
    frame: Frame | None
    statement: ast.stmt


@dataclass(slots=True, eq=False)
class Scope:
    """A function (or, for code outside functions, the module) with its sites."""

    qualname: str  # Class.method, outer.inner
    node: FunctionNode | None
    owner: ClassScope | None
    outer: Scope | None
    is_kernel: bool = False
    is_cached: bool = False
    sites: list[Site] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] | None = None  # what holds each node, filled in when somebody asks

    @property
    def name(self) -> str:
        return self.node.name if self.node is not None else ""

    @property
    def outermost(self) -> Scope:
        scope = self
        while scope.outer is not None and scope.outer.node is not None:
            scope = scope.outer
        return scope


@dataclass(slots=True, eq=False)
class ClassScope:
    """A class: its bases as spelled, its methods, its annotated fields and where it stores attributes on `self`."""

    name: str
    node: ast.ClassDef
    bases: tuple[str, ...]
    methods: dict[str, FunctionNode] = field(default_factory=dict)
    properties: set[str] = field(default_factory=set)
    fields: dict[str, ast.expr] = field(default_factory=dict)
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    stores: dict[str, set[str]] = field(default_factory=dict)  # attribute -> names of the methods that assign it


@dataclass(slots=True)
class Scan:
    """What the walk over one file found."""

    names: Names
    module: Scope
    scopes: list[Scope] = field(default_factory=list)
    classes: dict[str, ClassScope] = field(default_factory=dict)
    functions: dict[str, FunctionNode] = field(default_factory=dict)  # at module level
    constants: list[ast.stmt] = field(default_factory=list)  # assignments at module level, in order
    text: str = ""


Interested = tuple[Rule, Check]
When = Callable[[Any], bool]


class Interest:
    """Which checks want which nodes: by node type, and for calls by the last name of what is called.

    `gates` says for each type that is asked for whether a node passes at all; None lets every node pass.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.by_type: dict[type[ast.AST], list[tuple[When | None, Interested]]] = {}
        self.by_call: dict[str, list[Interested]] = {}
        for rule in rules:
            for trigger in rule.triggers:
                if trigger.names:
                    for name in sorted(trigger.names):
                        self.by_call.setdefault(name, []).append((rule, trigger.check))
                else:
                    self.by_type.setdefault(trigger.node_type, []).append((trigger.when, (rule, trigger.check)))
        self.gates = {node_type: _gate([when for when, _ in asked]) for node_type, asked in self.by_type.items()}

    def of(self, node: ast.AST) -> Sequence[Interested]:
        """The checks that want to see `node`."""
        special: Sequence[Interested] = ()
        if isinstance(node, ast.Call):
            special = self.by_call.get(last_name(node.func), ())
        general = self.by_type.get(node.__class__)
        if general is None:
            return special
        return [*special, *(interested for when, interested in general if when is None or when(node))]


def _gate(questions: list[When | None]) -> When | None:
    """One question for all: most types are asked about by one question, however many rules ask it."""
    distinct = set(questions)
    if None in distinct:
        return None
    if len(distinct) == 1:
        return questions[0]
    return lambda node: any(when(node) for when in distinct if when is not None)


def is_kernel(node: FunctionNode) -> bool:
    """True for functions that are compiled for the device: a loop in them is device code."""
    for decorator in node.decorator_list:
        spelled = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if spelled == "jit" or (spelled.partition(".")[0] in KERNEL_ROOTS and KERNEL_DECORATOR.search(spelled)):
            return True
    return False


def decorator_names(node: FunctionNode | ast.ClassDef) -> list[str]:
    """The dotted names of the decorators, arguments left out."""
    return [dotted(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]


Wanted = Callable[[FunctionNode], bool]
Part = tuple[list[Any], Frame | None]  # expressions and the frame they run under


def scan(
    tree: ast.Module,
    text: str,
    interest: Interest,
    module: str = "",
    is_package: bool = False,
    wanted: Wanted | None = None,
    top: bool = False,
) -> Scan:
    """Walk `tree` once. With `wanted` only the functions for which it is true get sites; what the others define is known all the same."""
    names = Names(module, is_package)
    walk = _Walk(interest, Scan(names, Scope("", None, None, None)), is_kernel_file(text), wanted, top)
    walk.found.text = text
    walk.run(tree)
    find_rebound(tree, text, names)
    names.host_fields = find_host_fields(tree, text)
    return walk.found


class _Walk:
    """The state of one walk: a stack of statements, and for each statement a walk over its expressions."""

    def __init__(self, interest: Interest, found: Scan, kernel_file: bool, wanted: Wanted | None, top: bool) -> None:
        self.interest = interest
        self.found = found
        self.kernel_file = kernel_file
        self.wanted = wanted
        self.top = top  # code outside functions is asked for too
        self.silent: set[Scope] = set()  # scopes that get no sites
        self.stack: list[tuple[Any, Scope, ClassScope | None, Frame | None]] = []

    def run(self, tree: ast.Module) -> None:
        found = self.found
        found.scopes.append(found.module)
        if self.wanted is not None and not self.top:
            self.silent.add(found.module)
        for statement in tree.body:
            if statement.__class__ in FUNCTIONS:
                found.functions[statement.name] = statement
            elif statement.__class__ in (ast.Assign, ast.AnnAssign):
                found.constants.append(statement)
        self._push(tree.body, found.module, None, None)
        stack, gates = self.stack, self.interest.gates
        while stack:
            node, scope, owner, frame = stack.pop()
            kind = node.__class__
            if kind in FUNCTIONS:
                self._function(node, scope, owner, frame)
            elif kind is ast.ClassDef:
                self._class(node, scope)
            elif kind is ast.Import or kind is ast.ImportFrom:
                found.names.add(node)
            elif kind in BLOCKS:
                if scope in self.silent:
                    for body in bodies(node):
                        self._push(body, scope, owner, None)
                else:
                    parts = self._block(node, scope, owner, frame)
                    if kind in gates and ((gate := gates[kind]) is None or gate(node)):
                        self._note(node, scope, frame, node)
                    self._expressions(parts, scope, node)
            elif kind not in _LEAVES:
                if owner is not None and kind in _STORING:
                    _note_stores(node, scope, owner)
                if scope not in self.silent:
                    self._expressions([([node], frame)], scope, node)

    def _push(self, nodes: Iterable[ast.AST], scope: Scope, owner: ClassScope | None, frame: Frame | None) -> None:
        self.stack += [(node, scope, owner, frame) for node in nodes]

    def _function(self, node: FunctionNode, scope: Scope, owner: ClassScope | None, frame: Frame | None) -> None:
        prefix = f"{scope.qualname}." if scope.node is not None else f"{owner.name}." if owner is not None else ""
        inner = Scope(prefix + node.name, node, owner, scope)
        inner.is_kernel = scope.is_kernel or self.kernel_file or is_kernel(node)
        inner.is_cached = any(map(is_cache, decorator_names(node)))
        if inner.is_kernel or (self.wanted is not None and not self.wanted(node)):
            self.silent.add(inner)
        self.found.scopes.append(inner)
        self._push(node.body, inner, owner, None)
        if scope not in self.silent:
            self._expressions([([*node.args.defaults, *node.args.kw_defaults], frame)], scope, node)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        owner = describe_class(node)
        self.found.classes[node.name] = owner
        self._push(node.body, self.found.module if scope.node is None else scope, owner, None)

    def _block(self, node: Any, scope: Scope, owner: ClassScope | None, frame: Frame | None) -> list[Part]:
        """Push the statements inside a compound statement; its own expressions, each under its frame."""
        match node:
            case ast.If() | ast.While():
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                if node.orelse:
                    self._push(node.orelse, scope, owner, Frame(node, "orelse", frame))
                return [([node.test], Frame(node, "test", frame))]
            case ast.For() | ast.AsyncFor():
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                if node.orelse:
                    self._push(node.orelse, scope, owner, Frame(node, "orelse", frame))
                return [([node.iter, node.target], frame)]
            case ast.With() | ast.AsyncWith():
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                return [([item.context_expr for item in node.items], frame)]
            case ast.ExceptHandler():
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                return []
            case ast.Raise():
                return [([part for part in (node.exc, node.cause) if part], Frame(node, "body", frame))]
            case ast.Assert():
                return [([node.test], Frame(node, "test", frame)), ([node.msg] if node.msg else [], Frame(node, "message", frame))]
            case ast.Match():
                self._push(node.cases, scope, owner, frame)
                return [([node.subject], frame)]
            case ast.match_case():
                self._push(node.body, scope, owner, frame)
                return [([node.pattern, *([node.guard] if node.guard else [])], frame)]
            case _:  # try
                for body in (node.body, node.handlers, node.orelse, node.finalbody):
                    self._push(body, scope, owner, frame)
                return []

    def _note(self, node: ast.AST, scope: Scope, frame: Frame | None, statement: ast.stmt) -> None:
        checks = self.interest.of(node)
        if checks:
            scope.sites.append(Site(node, checks, frame, statement))

    def _expressions(self, later: list[Part], scope: Scope, statement: ast.stmt) -> None:
        """Find the sites in the expressions of a statement; `later` holds the parts that run under a frame of their own."""
        gates, by_call = self.interest.gates, self.interest.by_call
        while later:
            stack, frame = later.pop()
            while stack:
                node: Any = stack.pop()
                kind = node.__class__
                if kind in _LEAVES:
                    continue
                if kind is ast.Attribute:
                    if node.value.__class__ is not ast.Name:
                        stack.append(node.value)
                    if kind not in gates:
                        continue
                elif kind is ast.Call:
                    called = node.func
                    name = called.attr if called.__class__ is ast.Attribute else called.id if called.__class__ is ast.Name else ""
                    if name in by_call or kind in gates:
                        self._note(node, scope, frame, statement)
                    if called.__class__ is not ast.Name:
                        stack.append(called)
                    stack += node.args
                    for keyword in node.keywords:
                        stack.append(keyword.value)
                    continue
                elif kind in _FRAMED:
                    later += _framed(node, frame, stack)
                else:
                    for field_name in _fields.get(kind) or child_fields(kind):
                        child = getattr(node, field_name, None)
                        if child.__class__ is list:
                            stack += child
                        elif child is not None:
                            stack.append(child)
                if kind in gates and ((gate := gates[kind]) is None or gate(node)):
                    self._note(node, scope, frame, statement)


def bodies(node: Any) -> Iterator[list[Any]]:
    """The statements inside a compound statement, in the order in which `_block` pushes them."""
    for name in ("body", "cases", "handlers", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if body:
            yield body


def _framed(node: Any, frame: Frame | None, stack: list[Any]) -> list[Part]:
    """The parts of an expression that run under a frame of their own; those that run under its frame go to `stack`."""
    inside = Frame(node, "body", frame)
    match node:
        case ast.IfExp():
            stack.append(node.test)
            return [([node.body], inside), ([node.orelse], Frame(node, "orelse", frame))]
        case ast.Lambda():
            return [([node.body], inside)]
        case ast.DictComp():
            parts = [node.key, node.value]
        case _:
            parts = [node.elt]
    stack.append(node.generators[0].iter)
    parts += [generator.iter for generator in node.generators[1:]]
    parts += [condition for generator in node.generators for condition in generator.ifs]
    return [(parts, inside)]


def describe_class(node: ast.ClassDef) -> ClassScope:
    """Bases, methods, properties and fields of a class; attribute stores are filled in by the walk."""
    bases = tuple(dotted(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
    owner = ClassScope(node.name, node, bases)
    for item in node.body:
        match item:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                owner.methods[item.name] = item
                if any(name.rpartition(".")[2] in ("property", "cached_property") for name in decorator_names(item)):
                    owner.properties.add(item.name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                owner.fields[name] = item.annotation
                if item.value is not None:
                    owner.defaults[name] = item.value
            case ast.Assign(targets=[ast.Name(id=name)]):
                owner.defaults[name] = item.value
    return owner


def _note_stores(node: Any, scope: Scope, owner: ClassScope) -> None:
    targets: list[Any] = list(node.targets) if node.__class__ is ast.Assign else [node.target]
    while targets:
        target = targets.pop()
        if target.__class__ is ast.Attribute:
            if target.value.__class__ is ast.Name and target.value.id == "self":
                owner.stores.setdefault(target.attr, set()).add(scope.outermost.name)
        elif target.__class__ is ast.Tuple or target.__class__ is ast.List:
            targets += target.elts


def sites(found: Scan) -> Iterator[tuple[Scope, Site]]:
    """All sites of a file with the scope that holds them."""
    for scope in found.scopes:
        for site in scope.sites:
            yield scope, site


BLOCKS = frozenset(
    {
        ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.ExceptHandler, ast.match_case, ast.Match, ast.Try,
        ast.Raise, ast.Assert,
        *([ast.TryStar] if hasattr(ast, "TryStar") else []),
    }
)  # fmt: skip
_FRAMED = frozenset({ast.IfExp, ast.Lambda, *COMPREHENSIONS})
_STORING = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign})
_LEAVES = frozenset(
    {
        ast.Load, ast.Store, ast.Del, ast.Constant, ast.Name, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal,
        ast.arguments, str, int, float, bool, type(None), ast.Add, ast.Sub, ast.Mult,
    }
)  # fmt: skip

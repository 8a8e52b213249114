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

from launchlint.names import Names, dotted, find_rebound
from launchlint.rule import Check, Frame, FunctionNode, Rule

TORCH_WORD = re.compile(rb"torch|\.(?:fill_|zero_|copy_|add_|mul_|item|tolist)\(")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
SKIPPED_FIELDS = frozenset(
    "ctx op ops name id attr names annotation returns type_comment decorator_list type_params lineno module level arg kind conversion".split()
)
KERNEL_DECORATOR = re.compile(r"(^|\.)(jit|kernel|heuristics|autotune|prim_func|script|macro|aggregate|struct|device_function)$")
KERNEL_ROOTS = frozenset(
    "triton cute cutlass tl gluon ttgl tle tilelang T wp warp pl pallas dsl_user_op numba cuda helion hl nki mojo ct taichi ti".split()
)
KERNEL_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:cutlass|tilelang|quack|nvidia\.cutlass)\b", re.MULTILINE)
KERNEL_LIBRARIES = ("cutlass", "tilelang", "quack")
CACHES = frozenset({"lru_cache", "cache", "cached_property", "functools.lru_cache", "functools.cache", "functools.cached_property"})

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


Interested = tuple[Rule, Check]


class Interest:
    """Which checks want which nodes: by node type, and for calls by the last name of what is called."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.by_type: dict[type[ast.AST], list[tuple[Callable[[Any], bool] | None, Interested]]] = {}
        self.by_call: dict[str, list[Interested]] = {}
        for rule in rules:
            for trigger in rule.triggers:
                if trigger.names:
                    for name in sorted(trigger.names):
                        self.by_call.setdefault(name, []).append((rule, trigger.check))
                else:
                    self.by_type.setdefault(trigger.node_type, []).append((trigger.when, (rule, trigger.check)))

    def of(self, node: ast.AST) -> Sequence[Interested]:
        """The checks that want to see `node`."""
        if node.__class__ is ast.Call:
            function = node.func  # type: ignore[attr-defined]
            kind = function.__class__
            special = self.by_call.get(function.attr if kind is ast.Attribute else function.id if kind is ast.Name else "", ())
        else:
            special = ()
        general = self.by_type.get(node.__class__)
        if general is None:
            return special
        return [*special, *(interested for when, interested in general if when is None or when(node))]


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


def scan(tree: ast.Module, text: str, interest: Interest, module: str = "", is_package: bool = False) -> Scan:
    """Walk `tree` once."""
    names = Names(module, is_package)
    walk = _Walk(interest, Scan(names, Scope("", None, None, None)), is_kernel_file(text))
    walk.run(tree)
    find_rebound(tree, text, names)
    return walk.found


Entry = tuple[ast.AST, Scope, "ClassScope | None", "Frame | None", "ast.stmt | None"]


class _Walk:
    """The state of one walk."""

    def __init__(self, interest: Interest, found: Scan, kernel_file: bool) -> None:
        self.interest = interest
        self.found = found
        self.kernel_file = kernel_file
        self.stack: list[Entry] = []

    def run(self, tree: ast.Module) -> None:
        found = self.found
        found.scopes.append(found.module)
        for statement in tree.body:
            if statement.__class__ in FUNCTIONS:
                found.functions[statement.name] = statement  # type: ignore[attr-defined]
            elif statement.__class__ in (ast.Assign, ast.AnnAssign):
                found.constants.append(statement)
        self._push(tree.body, found.module, None, None)
        stack, interest_of = self.stack, self.interest.of
        by_type = self.interest.by_type
        while stack:
            node, scope, owner, frame, statement = stack.pop()
            kind = node.__class__
            if statement is None:
                statement = node  # type: ignore[assignment]
            if kind in FUNCTIONS:
                self._function(node, scope, owner, frame)  # type: ignore[arg-type]
                continue
            if kind is ast.ClassDef:
                self._class(node, scope)  # type: ignore[arg-type]
                continue
            if kind is ast.Import or kind is ast.ImportFrom:
                found.names.add(node)  # type: ignore[arg-type]
                continue
            if kind is ast.Call or kind in by_type:
                checks = interest_of(node)
                if checks and not scope.is_kernel:
                    scope.sites.append(Site(node, checks, frame, statement))  # type: ignore[arg-type]
            if kind in _FRAMED:
                self._framed(node, kind, scope, owner, frame, statement)  # type: ignore[arg-type]
                continue
            if owner is not None and kind in _STORING:
                _note_stores(node, scope, owner)
            for name in _fields.get(kind) or child_fields(kind):
                child = getattr(node, name, None)
                if child.__class__ is list:
                    for item in child:
                        if item.__class__ not in _LEAVES:
                            stack.append((item, scope, owner, frame, None if isinstance(item, ast.stmt) else statement))
                elif child is not None and child.__class__ not in _LEAVES:
                    stack.append((child, scope, owner, frame, statement))

    def _push(
        self, nodes: Iterable[ast.AST], scope: Scope, owner: ClassScope | None, frame: Frame | None, statement: ast.stmt | None = None
    ) -> None:
        for node in nodes:
            if node.__class__ not in _LEAVES:
                self.stack.append((node, scope, owner, frame, statement))

    def _function(self, node: FunctionNode, scope: Scope, owner: ClassScope | None, frame: Frame | None) -> None:
        prefix = f"{scope.qualname}." if scope.node is not None else f"{owner.name}." if owner is not None else ""
        inner = Scope(prefix + node.name, node, owner, scope)
        inner.is_kernel = scope.is_kernel or self.kernel_file or is_kernel(node)
        inner.is_cached = any(name in CACHES or name.endswith(("lru_cache", "cached_property")) for name in decorator_names(node))
        self.found.scopes.append(inner)
        self._push(node.body, inner, owner, None)
        self._push([*node.args.defaults, *(item for item in node.args.kw_defaults if item)], scope, owner, frame, node)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        owner = describe_class(node)
        self.found.classes[node.name] = owner
        self._push(node.body, self.found.module if scope.node is None else scope, owner, None)

    def _framed(
        self, node: ast.AST, kind: type[ast.AST], scope: Scope, owner: ClassScope | None, frame: Frame | None, statement: ast.stmt
    ) -> None:
        match node:
            case ast.For() | ast.AsyncFor():
                self._push([node.iter, node.target], scope, owner, frame, statement)
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                self._push(node.orelse, scope, owner, Frame(node, "orelse", frame))
            case ast.While():
                self._push([node.test], scope, owner, Frame(node, "test", frame), statement)
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                self._push(node.orelse, scope, owner, Frame(node, "orelse", frame))
            case ast.If():
                self._push([node.test], scope, owner, Frame(node, "test", frame), statement)
                self._push(node.body, scope, owner, Frame(node, "body", frame))
                self._push(node.orelse, scope, owner, Frame(node, "orelse", frame))
            case ast.IfExp():
                self._push([node.test], scope, owner, frame, statement)
                self._push([node.body], scope, owner, Frame(node, "body", frame), statement)
                self._push([node.orelse], scope, owner, Frame(node, "orelse", frame), statement)
            case ast.With() | ast.AsyncWith():
                self._push([item.context_expr for item in node.items], scope, owner, frame, statement)
                self._push(node.body, scope, owner, Frame(node, "body", frame))
            case ast.ExceptHandler():
                self._push(node.body, scope, owner, Frame(node, "body", frame))
            case ast.Raise():
                self._push([part for part in (node.exc, node.cause) if part], scope, owner, Frame(node, "body", frame), statement)
            case ast.Assert():
                self._push([node.test], scope, owner, Frame(node, "test", frame), statement)
                self._push([node.msg] if node.msg else [], scope, owner, Frame(node, "message", frame), statement)
            case ast.Lambda():
                self._push([node.body], scope, owner, Frame(node, "body", frame), statement)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, scope, owner, frame, statement)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
        owner: ClassScope | None,
        frame: Frame | None,
        statement: ast.stmt,
    ) -> None:
        inside = Frame(node, "body", frame)
        for index, generator in enumerate(node.generators):
            self._push([generator.iter], scope, owner, frame if index == 0 else inside, statement)
            self._push(generator.ifs, scope, owner, inside, statement)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._push(parts, scope, owner, inside, statement)


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


def _note_stores(node: ast.AST, scope: Scope, owner: ClassScope) -> None:
    targets: list[ast.expr] = list(node.targets) if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
    method = scope.outermost.name
    while targets:
        match targets.pop():
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                owner.stores.setdefault(name, set()).add(method)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                targets.extend(elements)


def sites(found: Scan) -> Iterator[tuple[Scope, Site]]:
    """All sites of a file with the scope that holds them."""
    for scope in found.scopes:
        for site in scope.sites:
            yield scope, site


_FRAMED = frozenset(
    {
        ast.For, ast.AsyncFor, ast.While, ast.If, ast.IfExp, ast.With, ast.AsyncWith, ast.ExceptHandler, ast.Raise, ast.Assert,
        ast.Lambda, *COMPREHENSIONS,
    }
)  # fmt: skip
_STORING = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign})
_LEAVES = frozenset(
    {
        ast.Load, ast.Store, ast.Del, ast.Constant, ast.Name, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal,
        ast.arguments, str, int, float, bool, type(None), ast.Add, ast.Sub, ast.Mult,
    }
)  # fmt: skip

"""A Context for tests of rewrites that knows imports, annotations of parameters and literals, and nothing else.

With it a rewrite is judged by what it does with little knowledge; whole runs through the engine are tested elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from launchlint.model import Confidence, Finding, Fix, Heat
from launchlint.names import Names
from launchlint.rule import Frame, FunctionFacts, FunctionNode, Loop
from launchlint.settings import Settings
from launchlint.source import Source
from launchlint.values import Device, Kind, Value

KINDS = {"list": Kind.LIST, "tuple": Kind.TUPLE, "int": Kind.SCALAR, "float": Kind.SCALAR, "np": Kind.ARRAY, "torch": Kind.TENSOR}
Rewrite = Callable[[ast.AST, "PlainContext"], Fix | None]


@dataclass
class PlainContext:
    """The context of one function."""

    source: Source
    settings: Settings
    function: FunctionFacts
    place: ast.AST | None = None
    frame: Frame | None = None
    statement: ast.stmt = field(default_factory=ast.Pass)

    @classmethod
    def of(cls, source: Source, function: FunctionNode, settings: Settings) -> PlainContext:
        return cls(source, settings, FunctionFacts(function.name, function, None, Heat.ROLE, "a test", ()))

    @property
    def node(self) -> FunctionNode:
        assert self.function.node is not None
        return self.function.node

    def value(self, expr: ast.expr) -> Value:
        match expr:
            case ast.List() | ast.ListComp():
                return Value(Kind.LIST)
            case ast.Tuple():
                return Value(Kind.TUPLE)
            case ast.Constant():
                return Value(Kind.SCALAR)
            case ast.Name(id=name):
                for part in ast.walk(self.node):
                    if isinstance(part, ast.arg) and part.arg == name and part.annotation is not None:
                        return Value(KINDS.get(ast.unparse(part.annotation).partition("[")[0].partition(".")[0], Kind.UNKNOWN))
        return Value()

    def device(self, expr: ast.expr | None) -> Device:
        return Device.HOST if isinstance(expr, ast.Constant) and expr.value == "cpu" else Device.UNKNOWN

    def name(self, expr: ast.expr) -> str:
        names = Names()
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names.add(node)
        return names.canonical(expr)

    def keyword(self, call: ast.Call, name: str) -> ast.expr | None:
        return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)

    def loops(self) -> list[Loop]:
        """Statements around the place; comprehensions are left out."""
        holders = [node for node in ast.walk(self.node) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
        return [node for node in reversed(holders) if any(part is self.place for part in ast.walk(node)) and node is not self.place]

    def frames(self) -> Iterator[Frame]:
        return iter(())

    def parent(self, node: ast.AST) -> ast.AST | None:
        return next((part for part in ast.walk(self.node) if any(child is node for child in ast.iter_child_nodes(part))), None)

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source.segment(node)

    def is_constant(self, expr: ast.expr) -> bool:
        return isinstance(expr, ast.Constant)

    def assigned(self, name: str) -> list[ast.stmt]:
        statements = [node for node in ast.walk(self.node) if isinstance(node, ast.stmt) and node is not self.node]
        found = [
            node for node in statements if any(_binds(child, name) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        ]
        return sorted(found, key=lambda node: node.lineno)


def _binds(expr: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in ast.walk(expr))


def checker(
    code: str, rewrite: Callable[..., Fix | None], node_type: type[ast.AST], settings: Settings
) -> Callable[[Source], list[Finding]]:
    """A check that offers the fix of every node of a type in every function."""

    def check(source: Source) -> list[Finding]:
        found: list[Finding] = []
        for function in ast.walk(source.tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            context = PlainContext.of(source, function, settings)
            for node in ast.walk(function):
                context.place = node
                if isinstance(node, node_type) and isinstance(node, ast.expr | ast.stmt) and (fix := rewrite(node, context)):
                    found.append(Finding(code, source.span(node), "test", Confidence.HIGH, fix=fix))
        return found

    return check

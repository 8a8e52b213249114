"""The answers that a rule gets about the place it looks at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.names import dotted
from launchlint.rule import Frame, FunctionFacts, Loop
from launchlint.scan import COMPREHENSIONS, LOOPS, ClassScope, Scan, Scope, Site
from launchlint.settings import Settings
from launchlint.source import Source
from launchlint.trees import children
from launchlint.values.evaluate import keyword
from launchlint.values.flow import Flow
from launchlint.values.value import NOTHING, Device, Value

_ONCE_METHODS = frozenset({"__init__", "__post_init__", "__new__"})


class SiteContext:
    """`rule.Context` for one site; made by the engine."""

    def __init__(
        self, source: Source, settings: Settings, found: Scan, flow: Flow, scope: Scope, function: FunctionFacts, site: Site
    ) -> None:
        self.source = source
        self.settings = settings
        self.found = found
        self.flow = flow
        self.scope = scope
        self.function = function
        self.frame = site.frame
        self.statement = site.statement

    def value(self, expr: ast.expr) -> Value:
        return self.flow.seen.get(id(expr), NOTHING)

    def device(self, expr: ast.expr | None) -> Device:
        return self.flow.device(expr, {})

    def name(self, expr: ast.expr) -> str:
        return self.found.names.canonical(expr)

    def keyword(self, call: ast.Call, name: str) -> ast.expr | None:
        return keyword(call, name)

    def frames(self) -> Iterator[Frame]:
        frame = self.frame
        while frame is not None:
            yield frame
            frame = frame.outer

    def loops(self) -> list[Loop]:
        found: list[Loop] = []
        for frame in self.frames():
            if isinstance(frame.node, COMPREHENSIONS) or (isinstance(frame.node, LOOPS) and frame.part in ("body", "test")):
                found.append(frame.node)
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        parents = self.scope.parents
        if parents is None:
            parents = self.scope.parents = {}
            root = self.scope.node or self.source.tree
            pending: list[ast.AST] = [root]
            while pending:
                current = pending.pop()
                below = children(current)
                pending += below
                for child in below:
                    parents[child] = current
        return parents.get(node)

    def frame_of(self, node: ast.AST) -> Frame | None:
        """The branches and loops around another place of the function, as `frame` has them around this one."""
        around: list[tuple[ast.AST, str]] = []
        child, parent = node, self.parent(node)
        while parent is not None and parent is not self.scope.node:
            if isinstance(parent, (ast.If, ast.IfExp)):
                around.append((parent, _part(parent, child)))
            elif isinstance(parent, (*LOOPS, *COMPREHENSIONS)):
                around.append((parent, "body"))
            child, parent = parent, self.parent(parent)
        frame: Frame | None = None
        for parent, part in reversed(around):
            frame = Frame(parent, part, frame)
        return frame

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source.segment(node)

    def is_constant(self, expr: ast.expr) -> bool:
        pending = [expr]
        while pending:
            node = pending.pop()
            match node:
                case ast.Constant():
                    continue
                case ast.UnaryOp(operand=operand):
                    pending.append(operand)
                case ast.BinOp(left=left, right=right):
                    pending += [left, right]
                case ast.List(elts=elements) | ast.Tuple(elts=elements):
                    pending += elements
                case ast.Attribute() | ast.Name():
                    if not self._is_constant_name(node):
                        return False
                case _:
                    return False
        return True

    def _is_constant_name(self, node: ast.Attribute | ast.Name) -> bool:
        spelled = dotted(node)
        parts = spelled.split(".")
        if isinstance(node, ast.Name):
            return node.id.isupper() and len(node.id) > 1
        if parts[0] == "self" and len(parts) >= 2:
            owner = self.scope.owner
            if len(parts) > 2:
                return "config" in parts[1] or "cfg" in parts[1] or parts[1] == "args"
            return owner is not None and self._set_once(owner, parts[1])
        if parts[0] in ("config", "cfg", "args"):
            return True
        return self.found.names.canonical(node).startswith(("torch.", "numpy.")) or parts[-1].isupper()

    @staticmethod
    def _set_once(owner: ClassScope, attribute: str) -> bool:
        stores = owner.stores.get(attribute)
        if stores is None:
            return attribute in owner.defaults
        return stores <= _ONCE_METHODS

    def assigned(self, name: str) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        root = self.scope.node
        pending: list[ast.AST] = list(reversed(root.body)) if root is not None else []
        while pending:
            node = pending.pop()
            if isinstance(node, ast.stmt):
                if _binds(node, name):
                    found.append(node)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    continue
                pending.extend(
                    reversed(
                        [child for child in children(node) if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))]
                    )
                )
            elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
                pending.extend(reversed(node.body))
        return found


def _part(branch: ast.If | ast.IfExp, child: ast.AST) -> str:
    """The part of a branch that holds one of its children."""
    if child is branch.test:
        return "test"
    if isinstance(branch, ast.If):
        return "body" if child in branch.body else "orelse"
    return "body" if child is branch.body else "orelse"


def _binds(node: ast.stmt, name: str) -> bool:
    targets: list[ast.expr] = []
    match node:
        case ast.Assign(targets=several):
            targets = list(several)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            targets = [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            targets = [item.optional_vars for item in items if item.optional_vars is not None]
    while targets:
        current = targets.pop()
        if isinstance(current, ast.Name) and current.id == name:
            return True
        if isinstance(current, (ast.Tuple, ast.List)):
            targets.extend(current.elts)
        elif isinstance(current, ast.Starred):
            targets.append(current.value)
    return False

"""Whether the value that a loop leaves in a name can still be read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.rule import FunctionNode

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
REFLECTION = frozenset({"locals", "vars", "eval", "exec", "dir"})


class Liveness:
    """Reads of names in one function."""

    def __init__(self, function: FunctionNode) -> None:
        self.function = function
        self.parents: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [function]
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                stack.append(child)

    def outer(self, node: ast.AST) -> Iterator[ast.AST]:
        """What holds `node`, innermost first, the function last."""
        while node is not self.function and node in self.parents:
            node = self.parents[node]
            yield node

    def is_read_after(self, names: frozenset[str], loop: ast.stmt) -> bool:
        """True if a value that `loop` gave to one of `names` may be read outside `loop`.

        Errs to True: for a name that another scope reads or that is global, and where the function reflects on its names.
        """
        inside = set(ast.walk(loop))
        shared: list[ast.AST] = [node for node in self.outer(loop) if isinstance(node, LOOPS)]
        for node in self.parents:
            if isinstance(node, ast.Global | ast.Nonlocal) and names & set(node.names):
                return True
            if isinstance(node, ast.Name) and node.id in REFLECTION:
                return True
            if node not in inside and (name := _read(node)) in names and self._may_see(node, name, loop, shared):
                return True
        return False

    def _may_see(self, read: ast.AST, name: str, loop: ast.stmt, shared: list[ast.AST]) -> bool:
        around = list(self.outer(read))
        if any(isinstance(node, COMPREHENSIONS) and _binds(node.generators, name) for node in around):
            return False
        if any(isinstance(node, SCOPES) for node in around[:-1]):
            return True
        after = _position(read) > _position(loop)
        if not after and not any(node in shared for node in around):
            return False
        return not self._is_covered(read, name, loop, after)

    def _is_covered(self, read: ast.AST, name: str, loop: ast.stmt, after: bool) -> bool:
        """True if on every way from the loop to `read` the name is bound again."""
        holders = set(self.outer(loop))
        child = read
        for parent in self.outer(read):
            if isinstance(parent, ast.For) and child in parent.body and _binds_name(parent.target, name) and parent not in holders:
                return True
            for block in _lists(parent):
                if child in block:
                    before = block[: block.index(child)]
                    if after and parent in holders:  # only what comes between the loop and the read counts
                        before = [node for node in before if _position(node) > _position(loop)]
                    if any(_assigns(node, name) for node in before):
                        return True
            if parent in holders and (after or isinstance(parent, LOOPS)):
                return False  # what is further out ran before the loop
            child = parent
        return False


def _read(node: ast.AST) -> str:
    match node:
        case ast.Name(ctx=ast.Load() | ast.Del()):
            return node.id
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
    return ""


def _position(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _lists(node: ast.AST) -> Iterator[list[ast.AST]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _assigns(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
        case ast.AnnAssign(target=ast.Name(id=target_name), value=ast.expr()):
            return target_name == name
    return False


def _binds(generators: list[ast.comprehension], name: str) -> bool:
    return any(_binds_name(generator.target, name) for generator in generators)


def _binds_name(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))

"""Imports that fixed code needs: is one there, is its name free, and where does a new one go."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from launchlint.model import Edit, Span
from launchlint.source import Source

Import = ast.Import | ast.ImportFrom


def read(statement: str) -> Import:
    """Parse one import statement of one name; raise ValueError for anything else."""
    match ast.parse(statement).body:
        case [ast.Import(names=[_]) | ast.ImportFrom(names=[_]) as node]:
            return node
    raise ValueError(f"not an import of one name: {statement!r}")


def binds(node: Import) -> list[tuple[str, str]]:
    """What an import binds: (local name, what it stands for)."""
    match node:
        case ast.Import():
            return [(alias.asname or alias.name.partition(".")[0], f"{alias.name}:{alias.asname or ''}") for alias in node.names]
        case _:
            module = "." * node.level + (node.module or "")
            return [(alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names]


def bound_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every name that any scope of the file binds; the meaning is empty where it is not an import."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from binds(node)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id, ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, ""
            case ast.arg():
                yield node.arg, ""
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, ""
            case ast.MatchMapping(rest=str(name)):
                yield name, ""
        stack.extend(ast.iter_child_nodes(node))


def module_names(tree: ast.Module) -> set[str]:
    """Names that the statements of the module bind at its top level, imports and definitions in branches included."""
    names: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        match node:
            case ast.Import() | ast.ImportFrom():
                names.update(name for name, _ in binds(node))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
        stack.extend(ast.iter_child_nodes(node))
    return names


def is_builtin(name: str, tree: ast.Module) -> bool:
    """True if `name` is Python's own and the module does not rebind it."""
    return hasattr(builtins, name) and name not in module_names(tree)


def is_present(wanted: Import, tree: ast.Module) -> bool:
    """True if a statement at the top level of the module, in no branch, imports the same under the same name."""
    target = binds(wanted)[0]
    return any(target in binds(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def is_free(wanted: Import, tree: ast.Module) -> bool:
    """True if no scope of the file gives the name of `wanted` another meaning."""
    name, meaning = binds(wanted)[0]
    return all(other != name or its in (meaning, *_same_root(wanted, its)) for other, its in bound_names(tree))


def _same_root(wanted: Import, meaning: str) -> tuple[str, ...]:
    """`import a.b` and `import a.c` bind the same `a`."""
    if isinstance(wanted, ast.Import) and not wanted.names[0].asname:
        root = wanted.names[0].name.partition(".")[0]
        if meaning.endswith(":") and meaning.rstrip(":").partition(".")[0] == root:
            return (meaning,)
    return ()


def add(source: Source, statements: list[str]) -> Edit | None:
    """One edit that adds what is missing of `statements`, after the docstring and the `__future__` imports."""
    missing = [statement for statement in statements if not is_present(read(statement), source.tree)]
    if not missing:
        return None
    offset = _place(source)
    text = "".join(f"{statement}\n" for statement in missing)
    if offset == len(source.text) and not source.text.endswith(("\n", "\r")):
        text = "\n" + text.rstrip("\n")
    return Edit(Span(offset, offset), text)


def _place(source: Source) -> int:
    """The start of the line after the docstring, the `__future__` imports and the imports that follow them directly."""
    body = source.tree.body
    heads = int(bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
    while heads < len(body) and isinstance(body[heads], ast.Import | ast.ImportFrom):
        heads += 1
    if heads == 0:
        return source.line_starts[_first_line(body[0]) - 1] if body else 0
    last_line = _end_line(body[heads - 1])
    for node in body[heads:]:  # statements behind a semicolon on the same line
        if node.lineno > last_line:
            break
        last_line = max(last_line, _end_line(node))
    return source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _end_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno

"""The same code, written differently: what a rule says about it must not change.

A variant is a function from a case to another text, or to None where it makes no sense for that code.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from launchlint.source import Source
from tests.cases.case import Case, Expect

WIDE = "zażółć 火 🔥"  # one to four bytes in UTF-8; the last takes two UTF-16 units
OTHER_MODULE = "tinygrad"  # an array library that is not torch, with some names in common


@dataclass(frozen=True, slots=True)
class Written:
    """A variant's text, how many lines it has on top, and whether all findings must be gone."""

    text: str
    lines_on_top: int = 0
    silent: bool = False


Variant = Callable[[Case, Mapping[str, str]], Written | None]


def crlf(case: Case, codes: Mapping[str, str]) -> Written | None:
    """Lines end as on Windows."""
    return Written(case.code.replace("\n", "\r\n"))


def alias(case: Case, codes: Mapping[str, str]) -> Written | None:
    """`import torch as t`."""
    text = with_alias(case.code, free_alias(case.code))
    return None if text is None else Written(text)


def members(case: Case, codes: Mapping[str, str]) -> Written | None:
    """`from torch import tensor, arange`."""
    text = with_members(case.code)
    return None if text is None else Written(text)


def wide(case: Case, codes: Mapping[str, str]) -> Written | None:
    """Text outside ASCII above the code and, where a marked line starts with a simple statement, before it."""
    first: dict[int, ast.stmt] = {}
    for node in ast.walk(ast.parse(case.code)):
        if isinstance(node, ast.stmt) and (node.lineno not in first or node.col_offset < first[node.lineno].col_offset):
            first[node.lineno] = node
    lines = case.code.split("\n")
    for number in {mark.line for mark in case.marks}:
        if number in first and not hasattr(first[number], "body"):
            column = first[number].col_offset  # bytes, but nothing outside blanks can stand before a first statement
            lines[number - 1] = f'{lines[number - 1][:column]}"{WIDE}"; {lines[number - 1][column:]}'
    return Written(f"# {WIDE}\n" + "\n".join(lines), lines_on_top=1)


def noqa(case: Case, codes: Mapping[str, str]) -> Written | None:
    """A `noqa` with the code on every line that fires: silence."""
    wanted: dict[int, set[str]] = {}
    for mark in case.marks:
        if mark.expect is not Expect.TODO_ERROR:
            wanted.setdefault(mark.line, set()).add(codes[mark.rule])
    if not wanted:
        return None
    lines = case.code.split("\n")
    for number, names in wanted.items():
        lines[number - 1] += f"  # noqa: {', '.join(sorted(names))}"
    text = "\n".join(lines)
    return Written(text, silent=True) if _same_tree(text, case.code) else None


def twin(case: Case, codes: Mapping[str, str]) -> Written | None:
    """Another module under torch's name: silence."""
    tree = ast.parse(case.code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and _is_of_torch(node)]
    if not imports:
        return None
    edits = [(node, _of_other_module(node)) for node in imports]
    return Written(_replaced(case.code, edits), silent=True)


VARIANTS: Mapping[str, Variant] = {
    "crlf": crlf,
    "alias": alias,
    "members": members,
    "wide": wide,
    "noqa": noqa,
    "twin": twin,
}


def free_alias(*codes: str) -> str:
    """A short name for torch that none of the texts uses."""
    taken = set().union(*(names_in(ast.parse(code)) for code in codes))
    return next(name for name in ("t", "th", "pt", "torch_module") if name not in taken)


def with_alias(code: str, name: str) -> str | None:
    """The code with `import torch as name`; None where torch does not come by one plain `import torch`."""
    tree = ast.parse(code)
    statement = _plain_import(tree)
    if statement is None:
        return None
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "torch"]
    return _replaced(code, [(statement, f"import torch as {name}"), *((node, name) for node in uses)])


def with_members(code: str) -> str | None:
    """The code with `from torch import ...`; None where torch is used otherwise than as `torch.name`."""
    tree = ast.parse(code)
    statement = _plain_import(tree)
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "torch"]
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_torch(node.value)]
    if statement is None or not attributes or len(attributes) != len(uses):
        return None
    taken = names_in(tree) | set(dir(builtins))
    members = sorted({node.attr for node in attributes})
    local = {name: f"torch_{name}" if name in taken or keyword.iskeyword(name) else name for name in members}
    imported = ", ".join(name if local[name] == name else f"{name} as {local[name]}" for name in members)
    edits: list[tuple[ast.expr | ast.stmt, str]] = [(node, local[node.attr]) for node in attributes]
    return _replaced(code, [(statement, f"from torch import {imported}"), *edits])


def names_in(tree: ast.AST) -> set[str]:
    """Every identifier that the code binds or reads; attributes are none."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names |= {each.asname or each.name.split(".")[0] for each in imported}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
    return names


def _plain_import(tree: ast.Module) -> ast.stmt | None:
    """The one `import torch`, if nothing else binds the name."""
    plain: list[ast.stmt] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=[ast.alias(name="torch", asname=None)]):
                plain.append(node)
            case ast.Import(names=names) if any(each.name.split(".")[0] == "torch" and not each.asname for each in names):
                return None
            case ast.Name(id="torch", ctx=ast.Store() | ast.Del()) | ast.arg(arg="torch") | ast.ClassDef(name="torch"):
                return None
            case ast.Constant(value=str(text)) if re.search(r"\btorch\.", text):  # a quoted annotation
                return None
    return plain[0] if len(plain) == 1 else None


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _is_of_torch(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").split(".")[0] == "torch"
    return any(each.name.split(".")[0] == "torch" for each in node.names)


def _of_other_module(node: ast.Import | ast.ImportFrom) -> str:
    def renamed(name: str) -> str:
        return re.sub(r"^torch\b", OTHER_MODULE, name)

    if isinstance(node, ast.ImportFrom):
        names = (each.name + (f" as {each.asname}" if each.asname else "") for each in node.names)
        return f"from {renamed(node.module or '')} import {', '.join(names)}"
    parts: list[str] = []
    for each in node.names:
        if each.asname or each.name.split(".")[0] != "torch":
            parts.append(renamed(each.name) + (f" as {each.asname}" if each.asname else ""))
        else:  # `import torch.distributed` binds torch
            parts.append(f"{OTHER_MODULE} as torch")
    return f"import {', '.join(parts)}"


def _replaced(code: str, edits: Iterable[tuple[ast.expr | ast.stmt, str]]) -> str:
    source = Source("", code)
    for node, text in sorted(edits, key=lambda edit: source.span(edit[0]), reverse=True):
        span = source.span(node)
        code = code[: span.start] + text + code[span.end :]
    return code


def _same_tree(text: str, other: str) -> bool:
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(other))
    except SyntaxError:
        return False

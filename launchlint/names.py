"""From a spelled name to the dotted name it stands for: `t.tensor` -> `torch.tensor` after `import torch as t`.

Nothing is imported: only the file's own import statements are read. A name that the file also binds in another way
(a parameter, an assignment, a class called `torch`) stands for nothing.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, field

from launchlint.trees import walk


def dotted(expr: ast.AST) -> str:
    """`a.b.c` as it is spelled, or an empty string where the expression is anything but names and dots.

    A call inside the chain gives an empty string: `f().x` is not `f.x`.
    """
    if expr.__class__ is ast.Name:
        return expr.id
    spelled = ""
    while expr.__class__ is ast.Attribute:
        spelled = f".{expr.attr}{spelled}"
        expr = expr.value
    return f"{expr.id}{spelled}" if expr.__class__ is ast.Name else ""


def last_name(expr: ast.AST) -> str:
    """The last name of what is called or named, whatever stands before it: `f(x).item` -> `item`."""
    match expr:
        case ast.Attribute():
            return expr.attr
        case ast.Name():
            return expr.id
        case _:
            return ""


def spell(annotation: ast.expr) -> str:
    """The text of the usual annotations, as `ast.unparse` writes it; empty for all others."""
    kind = annotation.__class__
    if kind is ast.Name:
        return annotation.id  # type: ignore[attr-defined, no-any-return]
    if kind is ast.Attribute:
        return dotted(annotation)
    if kind is ast.Constant and annotation.value is None:  # type: ignore[attr-defined]
        return "None"
    if kind is ast.Subscript:
        holder = spell(annotation.value)  # type: ignore[attr-defined]
        inside = annotation.slice  # type: ignore[attr-defined]
        parts = [spell(part) for part in inside.elts] if inside.__class__ is ast.Tuple else [spell(inside)]
        return f"{holder}[{', '.join(parts)}]" if holder and len(parts) > (inside.__class__ is ast.Tuple) and all(parts) else ""
    return ""


@dataclass(slots=True)
class Names:
    """What the imports of one file make of its names."""

    module: str = ""  # the dotted name of the file itself, for relative imports
    is_package: bool = False
    targets: dict[str, str] = field(default_factory=dict)  # local name -> dotted name
    host_fields: frozenset[str] = frozenset()  # fields that a table in the file keeps on the host
    rebound: set[str] = field(default_factory=set)  # imported names that the file binds otherwise too

    def add(self, node: ast.Import | ast.ImportFrom) -> None:
        """Take in an import statement."""
        match node:
            case ast.Import():
                for alias in node.names:
                    if alias.asname:
                        self.targets[alias.asname] = alias.name
                    else:
                        root = alias.name.partition(".")[0]
                        self.targets.setdefault(root, root)
            case ast.ImportFrom():
                base = self._base(node)
                for alias in node.names:
                    self.targets[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".") if self.module else []
        drop = node.level - (1 if self.is_package else 0)
        parts = parts[: len(parts) - drop] if drop <= len(parts) else []
        return ".".join([*parts, node.module] if node.module else parts)

    def canonical(self, expr: ast.AST) -> str:
        """The dotted name that `expr` stands for, or an empty string if its root is not an imported name."""
        spelled = dotted(expr)
        if not spelled:
            return ""
        root, _, rest = spelled.partition(".")
        target = self.targets.get(root)
        if target is None or root in self.rebound:
            return ""
        return f"{target}.{rest}" if rest else target

    @property
    def has_torch(self) -> bool:
        """True if an import of the file reaches torch itself."""
        return any(target == "torch" or target.startswith("torch.") for target in self.targets.values())

    @property
    def torch_is_foreign(self) -> bool:
        """True if the name `torch` means something else in this file: then nothing here is known to be a tensor."""
        if "torch" in self.rebound:
            return True
        target = self.targets.get("torch")
        return target is not None and target != "torch" and not target.startswith("torch.")


def find_host_fields(tree: ast.Module, text: str) -> frozenset[str]:
    """Fields that a table of the file declares with `keep_on_cpu=True`, and never without, in singular and plural."""
    if "keep_on_cpu" not in text:
        return frozenset()
    kept: set[str] = set()
    moved: set[str] = set()
    for node in walk(tree):
        match node:
            case ast.keyword(arg=str(name), value=ast.Call() as made):
                if _is_field(made):
                    (kept if _keeps(made) else moved).add(name)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Call) and _is_field(value):
                        (kept if _keeps(value) else moved).add(key.value)
    found = kept - moved
    return frozenset(found | {name.removesuffix("s") for name in found})


def _is_field(made: ast.Call) -> bool:
    return "FieldConfig" in dotted(made.func)


def _keeps(made: ast.Call) -> bool:
    return any(item.arg == "keep_on_cpu" and isinstance(item.value, ast.Constant) and item.value.value is True for item in made.keywords)


@functools.cache
def _is_bound_again(name: str) -> re.Pattern[str]:
    """The pattern starts with the name itself, which lets the regular expression engine skip through a text quickly."""
    escaped = re.escape(name)
    return re.compile(rf"{escaped}(?<![\w.]{escaped})(?:(?<=class {escaped})\b|(?<=def {escaped})\b|\s*(?::[^=\n]*)?=(?!=))")


def find_rebound(tree: ast.Module, text: str, names: Names) -> None:
    """Fill `names.rebound`: imported array libraries whose name the file also binds by `=`, `def`, `class` or a parameter.

    Most files bind such a name once, by its import, so the text is asked first and the tree is walked only on suspicion.
    """
    suspects = {
        name
        for name, target in names.targets.items()
        if target.partition(".")[0] in ("torch", "numpy") and _is_bound_again(name).search(text)
    }
    if "torch" not in names.targets and _is_bound_again("torch").search(text):
        suspects.add("torch")
    if not suspects:
        return
    for node in walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in suspects:
                names.rebound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if name in suspects:
                names.rebound.add(name)

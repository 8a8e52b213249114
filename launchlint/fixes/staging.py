"""How host data goes to the device in fixed code, as the project is configured.

With `h2d-helper = "package.module.function"` the fixed code calls `function(data, dtype=..., device=...)`, which must
accept whatever `torch.tensor` accepts and return a tensor on `device`. Otherwise the data is built in pinned memory,
with `pin_memory=` the configured expression, and copied without waiting. `pin-memory = "off"` leaves the memory
pageable, for platforms that have no pinned memory.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from launchlint.fixes import imports
from launchlint.fixes.layout import Call, call
from launchlint.rule import Context
from launchlint.settings import Settings
from launchlint.source import Source

OFF = frozenset({"", "off", "False", "false"})


@dataclass(frozen=True, slots=True)
class Named:
    """Code that can be used in a file, and the imports that it needs there."""

    text: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Staged:
    """The expression of the uploaded tensor."""

    code: Call
    imports: tuple[str, ...]


def torch_module(source: Source) -> Named:
    """How this file spells the module torch; with an import where it only has parts of it."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname):
                    return Named(alias.asname or "torch")
    return Named("torch", ("import torch",))


def helper(settings: Settings) -> Named | None:
    """The configured upload helper, or None."""
    return _dotted(settings.h2d_helper) if settings.h2d_helper else None


def pin_memory(source: Source, settings: Settings) -> Named | None:
    """The expression for `pin_memory=`; empty text where pinning is off, None where the file cannot evaluate it.

    A dotted name whose first part the file does not know is imported from its module.
    """
    text = settings.pin_memory.strip()
    if text in OFF:
        return Named("")
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    known = imports.module_names(source.tree)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if all(name in known or imports.is_builtin(name, source.tree) for name in names):
        return Named(text)
    is_dotted = isinstance(tree, ast.Attribute) and all(part.isidentifier() for part in text.split("."))
    return _dotted(text) if is_dotted else None


def _dotted(name: str) -> Named:
    module, _, last = name.rpartition(".")
    return Named(last, (f"from {module} import {last}",)) if module else Named(last)


def stage(ctx: Context, data: str, dtype: str, device: str, is_list: bool) -> Staged | None:
    """The tensor of host `data` on `device`, of `dtype` (empty: inferred); None where the configuration does not fit this file.

    An empty `device` stands for the default device, where nothing is copied. `torch.tensor` refuses to pin what it makes
    from a numpy array or a tensor, so data that `is_list` does not vouch for is made a list first.
    """
    torch = torch_module(ctx.source)
    if not device:
        return Staged(call(f"{torch.text}.tensor", data, dtype=dtype), torch.imports)
    if own := helper(ctx.settings):
        if not own.imports and own.text not in imports.module_names(ctx.source.tree):
            return None
        return Staged(call(own.text, data, dtype=dtype, device=device), own.imports)
    pin = pin_memory(ctx.source, ctx.settings)
    if pin is None:
        return None
    listed = data if is_list or not pin.text else f"list({data})"
    host = call(f"{torch.text}.tensor", listed, dtype=dtype, pin_memory=pin.text)
    return Staged(call(host, device, method="to", non_blocking="True"), torch.imports + pin.imports)

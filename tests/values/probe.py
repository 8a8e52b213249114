"""Pieces of code whose values are asked for: every `probe(x)` in them gives the value of `x`, in the order of the source."""

from __future__ import annotations

import ast
import textwrap

from launchlint.scan import Interest, scan
from launchlint.source import Source
from launchlint.values.evaluate import Outside
from launchlint.values.flow import Flow
from launchlint.values.value import NOTHING, Value

HEAD = "import torch\nimport numpy as np\nfrom torch import nn\n"


def flow_of(code: str, outside: Outside | None = None) -> tuple[Source, Flow]:
    """The evaluated flow of a file that imports torch and numpy and holds `code`."""
    source = Source("sample.py", HEAD + textwrap.dedent(code))
    found = scan(source.tree, source.text, Interest([]), "sample")
    flow = Flow(found, outside)
    for scope in found.scopes:
        if scope.node is not None and scope.outer is found.module and not flow.is_finished(scope.node):
            flow.function(scope.node, scope.owner)
    return source, flow


def probes(code: str, outside: Outside | None = None) -> list[Value]:
    """The values of all probes."""
    source, flow = flow_of(code, outside)
    calls = [
        node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "probe"
    ]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    return [flow.seen.get(id(call.args[0]), NOTHING) for call in calls]


def described(code: str, outside: Outside | None = None) -> list[str]:
    """What the probes are, in words."""
    return [str(value) for value in probes(code, outside)]


def in_function(body: str, parameters: str = "x: torch.Tensor, n: int, device") -> str:
    """The only probe of a function with this body, in words."""
    code = f"def f({parameters}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    (found,) = described(code)
    return found

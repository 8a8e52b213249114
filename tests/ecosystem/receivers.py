"""How many method receivers does the value flow resolve? `python -m tests.ecosystem.receivers ROOT [--files N] [--seed S] [--show N]`

ROOT is an unpacked wheel. Files that import torch are drawn with a fixed seed; for every method call in a function the
receiver is counted as tensor, host (array, list, dict, number), other (object, device, dtype) or unknown. `--show` prints a
random sample of resolved receivers with what is claimed, to be checked by eye: agreement with a name is not truth.
"""

from __future__ import annotations

import argparse
import ast
import collections
import random
import sys
from pathlib import Path

from launchlint.engine import read_source
from launchlint.scan import Interest, scan
from launchlint.source import Source, SourceError
from launchlint.values.flow import Flow
from launchlint.values.value import NOTHING, Kind, Value

HOST = (Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SCALAR)
CONTAINER_METHODS = ("append", "extend", "items", "keys", "values", "get", "join", "format", "split", "startswith", "endswith", "update")


def kind_of(value: Value) -> str:
    """tensor | host | other | unknown"""
    if value.kind is Kind.TENSOR:
        return "tensor"
    if value.kind in HOST:
        return "host"
    return "unknown" if value.kind is Kind.UNKNOWN else "other"


def receivers(source: Source) -> list[tuple[ast.Call, Value]]:
    """Every method call on something other than an imported module, with the value of its receiver."""
    found = scan(source.tree, source.text, Interest([]))
    if not found.names.has_torch:
        return []
    flow = Flow(found)
    for scope in found.scopes:
        if scope.node is not None and scope.outer is found.module and not scope.is_kernel and not flow.is_finished(scope.node):
            flow.function(scope.node, scope.owner)
    kernels = {id(node) for scope in found.scopes if scope.is_kernel and scope.node is not None for node in ast.walk(scope.node)}
    result = []
    for scope in found.scopes:
        if scope.node is None or scope.outer is not found.module or scope.is_kernel:
            continue
        for node in ast.walk(scope.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and id(node) not in kernels:
                if found.names.canonical(node.func) or _is_self(node.func.value):
                    continue
                result.append((node, flow.seen.get(id(node.func.value), NOTHING)))
    return result


def _is_self(expr: ast.expr) -> bool:
    return (isinstance(expr, ast.Name) and expr.id in ("self", "cls")) or (
        isinstance(expr, ast.Call) and isinstance(expr.func, ast.Name) and expr.func.id == "super"
    )


def main(arguments: list[str]) -> int:
    """Print the shares, and a sample if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args(arguments)
    random_files = random.Random(options.seed)
    paths = [
        path for path in sorted(options.root.rglob("*.py")) if b"import torch" in path.read_bytes() or b"from torch" in path.read_bytes()
    ]
    counts: collections.Counter[str] = collections.Counter()
    shown: list[str] = []
    for path in random_files.sample(paths, min(options.files, len(paths))):
        try:
            source = read_source(str(path))
            rows = receivers(source)
        except SourceError:
            continue
        for node, value in rows:
            counts[kind_of(value)] += 1
            if value.kind is not Kind.UNKNOWN:
                assert isinstance(node.func, ast.Attribute)
                text = source.segment(node.func.value).replace("\n", " ")[:70]
                claim = f"is a {value}{' (by name)' if value.by_name else ''}"
                shown.append(f"{path.relative_to(options.root)}:{node.lineno}  {text}  .{node.func.attr}  {claim}")
    total = sum(counts.values())
    for kind in ("tensor", "host", "other", "unknown"):
        print(f"{kind:8} {counts[kind]:6} {counts[kind] / max(1, total):6.1%}")
    for line in random_files.sample(shown, min(options.show, len(shown))):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

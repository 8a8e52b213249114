"""What a preset changes on the sources of its framework: `python -m tests.adopt.wheels ROOT PRESET [--show]`

ROOT is an unpacked wheel. It is checked without a preset and with it, by the same code in one process. Findings are compared by
place and code. Guarded lines are looked up in the syntax tree here, apart from what launchlint thinks of them: bodies of
`with gpu_sync_allowed():` (also as one side of a conditional), functions decorated with it, and lines with `# gpu-sync-ok`.
Exits with 1 if a finding stands on a guarded line, or if a region silenced something outside of one.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from launchlint import discover, engine, registry, settings
from launchlint.engine import read_source
from launchlint.model import FileReport, Finding

GUARD = "gpu_sync_allowed"
WAIVER = "# gpu-sync-ok"
Place = tuple[str, int, str]  # path, line, code


def guarded_lines(path: str) -> set[int]:
    """Lines of a file that its project says are meant to wait."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    if GUARD not in text and WAIVER not in text:
        return set()
    lines = {number for number, line in enumerate(text.split("\n"), 1) if WAIVER in line}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(_names_guard(item.context_expr) for item in node.items):
            lines.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(map(_names_guard, node.decorator_list)):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _names_guard(expr: ast.expr) -> bool:
    return any(getattr(node, "id", getattr(node, "attr", "")) == GUARD for node in ast.walk(expr))


@dataclass
class Counts:
    """A run over a tree."""

    files: int
    findings: set[Place]
    silenced: Counter[str]
    on_guarded: list[Place]
    outside: list[Place]


def measure(root: str, preset: str | None) -> Counts:
    """Check all of `root`, which becomes the working directory."""
    os.chdir(root)
    chosen = settings.load(root, isolated=True, preset=preset)
    files = discover.find(["."], chosen).files
    report = engine.check_files(files, registry.select(chosen), chosen)
    counts = Counts(len(files), set(), Counter(), [], [])
    for file in report.files:
        if not file.findings and not file.silenced:
            continue
        guarded = guarded_lines(file.path)
        for finding in file.findings:
            place = _place(file, finding)
            counts.findings.add(place)
            if place[1] in guarded:
                counts.on_guarded.append(place)
        for finding, reason in file.silenced:
            counts.silenced[reason.split(":")[0]] += 1
            if reason.startswith("region") and _place(file, finding)[1] not in guarded:
                counts.outside.append(_place(file, finding))
    return counts


def _place(file: FileReport, finding: Finding) -> Place:
    return file.path, read_source(file.path).position(finding.span.start).line, finding.code


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("preset")
    parser.add_argument("--show", action="store_true", help="also name the findings that only one of the two has")
    options = parser.parse_args()
    root = os.path.abspath(options.root)
    plain, with_preset = measure(root, None), measure(root, options.preset)
    for name, counts in (("no preset", plain), (f"preset {options.preset}", with_preset)):
        silenced = ", ".join(f"{number} by {what}" for what, number in sorted(counts.silenced.items())) or "nothing"
        guarded = f"on guarded lines: {len(counts.on_guarded)}"
        print(f"{name}: {counts.files} files, {len(counts.findings)} findings, silenced: {silenced}, {guarded}")
    gone, new = sorted(plain.findings - with_preset.findings), sorted(with_preset.findings - plain.findings)
    print(f"only without: {len(gone)}, only with: {len(new)}")
    for place in (*gone, *new) if options.show else ():
        print(f"  {'-' if place in plain.findings else '+'} {place[0]}:{place[1]} {place[2]}")
    wrong = [*plain.on_guarded, *with_preset.on_guarded, *plain.outside, *with_preset.outside]
    for path, line, code in wrong:
        print(f"wrong: {path}:{line} {code}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

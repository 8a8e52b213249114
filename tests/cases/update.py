"""Takes what fixes give over into the `fixed` blocks of a page; touches nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from launchlint.dev.markdown import replace_block
from tests.cases.case import Fixed


def rewrite(path: Path, changes: Iterable[tuple[Fixed, str]]) -> bool:
    """Write the page with new texts for some of its `fixed` blocks; False where nothing had to change."""
    text = path.read_text(encoding="utf-8")
    new = text
    for fixed, after in sorted(changes, key=lambda change: change[0].block.line, reverse=True):
        new = replace_block(new, fixed.block, after)
    if new == text:
        return False
    path.write_text(new, encoding="utf-8", newline="\n")
    return True

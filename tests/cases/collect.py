"""Finds the pages of cases: one in each rule's folder."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from tests.cases.case import Case, CaseError, read
from tests.cases.variants import VARIANTS

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "rules"


@dataclass(frozen=True, slots=True)
class Pageful:
    """The cases of one rule, or why there are none."""

    folder: Path
    cases: tuple[Case, ...] = ()
    error: str = ""

    @property
    def rule(self) -> str:
        """The rule's name, as the folder spells it."""
        return rule_name(self.folder)


def folders() -> list[Path]:
    """The folder of every rule, by code."""
    return sorted(path for path in RULES.glob("lch[0-9]*_*") if path.is_dir())


def rule_name(folder: Path) -> str:
    """`slice-fill-loop` for `lch101_slice_fill_loop`."""
    return folder.name.partition("_")[2].replace("_", "-")


@functools.cache
def pages() -> tuple[Pageful, ...]:
    """All cases. A page that cannot be read is told by the test of that page and does not stop the others."""
    found: list[Pageful] = []
    for folder in folders():
        try:
            found.append(Pageful(folder, tuple(read(folder / "cases.md", frozenset(VARIANTS)))))
        except (CaseError, OSError) as error:
            found.append(Pageful(folder, error=str(error)))
    return tuple(found)

"""Applying fixes: edits to a fixed point, as a diff, and onto the disk without ever leaving a half-written file.

What applies fixes is imported when it is asked for: a rule that only writes one imports other modules of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchlint.fixes.diff import unified_diff
    from launchlint.fixes.disk import WriteError, write
    from launchlint.fixes.rounds import MAX_ROUNDS, Fixed, applicability, fix_source

_HOMES = {
    "unified_diff": "diff",
    "WriteError": "disk",
    "write": "disk",
    "MAX_ROUNDS": "rounds",
    "Fixed": "rounds",
    "applicability": "rounds",
    "fix_source": "rounds",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


__all__ = ["MAX_ROUNDS", "Fixed", "WriteError", "applicability", "fix_source", "unified_diff", "write"]

"""Regular expressions that are compiled when they are first asked.

Compiling costs a hundred times as much as asking, and checking one file asks few of the patterns that the modules hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any


class Pattern:
    """What `re.compile` gives, later. After the first question the methods are those of the compiled pattern itself."""

    match: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in ("match", "search", "fullmatch", "finditer"):
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self.flags)
            for each in ("match", "search", "fullmatch", "finditer"):
                setattr(self, each, getattr(compiled, each))
            return getattr(compiled, name)

"""From the paths in a recording to the files that are checked.

The profiler cuts the beginning off a path where it is an entry of `sys.path`, and a recording may come from another
machine: a path in it means the file whose path ends the same way and that has such a function on such a line.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from launchlint.source import SourceError
from launchlint.trace.code import Frame, Function, Module


@dataclass(frozen=True, slots=True)
class Place:
    """A function of a file that is checked."""

    path: str
    function: Function


class Places:
    """The functions of the files that are checked; a file is parsed when the recording first names it."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.by_name: defaultdict[str, list[tuple[str, list[str]]]] = defaultdict(list)
        for path in paths:
            parts = _parts(os.path.realpath(path))
            self.by_name[parts[-1]].append((path, parts))
        self.modules: dict[str, Module | None] = {}
        self.found: dict[Frame, Place | None] = {}
        self.changed: set[str] = set()  # files of that name without such a function on that line: changed since, or others
        self.ambiguous: set[str] = set()  # paths in the recording that mean more than one file

    def find(self, frame: Frame) -> Place | None:
        """The function that a frame of the recording means; None where it belongs to no file that is checked."""
        if frame not in self.found:
            self.found[frame] = self._find(frame)
        return self.found[frame]

    def _find(self, frame: Frame) -> Place | None:
        candidates = self._candidates(frame.path)
        modules = ((path, self._module(path)) for path in candidates)
        fits = [Place(path, function) for path, module in modules if module and (function := module.function(frame))]
        if len(fits) == 1:
            return fits[0]
        if fits:
            self.ambiguous.add(frame.path)
        elif candidates:
            self.changed.add(candidates[0])
        return None

    def _candidates(self, path: str) -> list[str]:
        """The files that a path may mean: those with the most folders in common."""
        wanted = _parts(path)
        whole = not _is_absolute(path)
        fits: list[tuple[int, str]] = []
        for own, parts in self.by_name.get(wanted[-1], ()):
            common = _common_end(parts, wanted)
            if common == len(wanted) or (not whole and common >= 2):
                fits.append((common, own))
        best = max((common for common, _ in fits), default=0)
        return [own for common, own in fits if common == best]

    def _module(self, path: str) -> Module | None:
        from launchlint import engine

        if path not in self.modules:
            try:
                self.modules[path] = Module(engine.read_source(path).tree)
            except SourceError:
                self.modules[path] = None  # the check has already said what is wrong with it
        return self.modules[path]


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")] or [path]


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or path[1:3] in (":/", ":\\")


def _common_end(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count

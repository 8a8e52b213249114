"""From what was named on the command line to the files that are checked.

A folder is walked for `*.py`, `*.pyi` and notebooks; a file that is named is checked whatever it is called. Only ordinary files
are ever opened: a FIFO, a socket or a device is passed over, and so is a folder called `x.py`, which is walked
instead. Links to folders are not followed, so a loop of links ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from launchlint.model import Problem
from launchlint.settings import Settings

SUFFIXES = (".py", ".pyi", ".ipynb")
# Folders that hold what tools made or fetched. Names only, so that no pattern has to be matched for them.
EXCLUDED = frozenset(
    (
        *(".bzr", ".git", ".hg", ".svn", ".direnv", ".venv", "venv", ".nox", ".tox", "node_modules", "site-packages"),
        *(".eggs", "__pypackages__", "_build", "build", "dist", "__pycache__", ".ipynb_checkpoints"),
        *(".mypy_cache", ".pytest_cache", ".pytype", ".ruff_cache", ".launchlint_cache"),
    )
)


@dataclass(slots=True)
class Found:
    """Files to check in order, things that are not there, and what was passed over and why."""

    files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def find(paths: Sequence[str], settings: Settings) -> Found:
    """The files below `paths`, each once, in an order that does not depend on the file system."""
    return _Search(settings).run(paths)


def is_excluded(path: str, settings: Settings) -> bool:
    """Whether the file or any folder above it, up to the root of the settings, is excluded by name or pattern."""
    search = _Search(settings)
    parts = settings.relative(path).split("/")
    if ".." in parts or os.path.isabs(parts[0] or os.sep):
        parts = parts[-1:]  # outside the project only the file's own name is looked at
    return any(search.excludes("/".join(parts[: end + 1]), parts[end], end + 1 < len(parts)) for end in range(len(parts)))


class _Search:
    """One search: the compiled patterns, what was seen, what was found."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.names = frozenset() if settings.exclude else EXCLUDED
        patterns = (*settings.exclude, *settings.extend_exclude)
        self.patterns = _compile(patterns) if patterns else None
        self.seen: set[str] = set()
        self.ignores: dict[str, Any] = {}
        self.found = Found()

    def run(self, paths: Sequence[str]) -> Found:
        for path in paths:
            shown = os.path.normpath(path)
            if self.settings.force_exclude and is_excluded(shown, self.settings):
                self.found.skipped.append((shown, "excluded"))
                continue
            try:
                mode = os.stat(shown).st_mode
            except (OSError, ValueError) as error:
                self.found.problems.append(Problem(shown, _reason(error)))
                continue
            if stat.S_ISDIR(mode):
                self.walk(shown)
            else:
                self.take(shown, mode)
        return self.found

    def take(self, path: str, mode: int) -> None:
        if not stat.S_ISREG(mode):
            self.found.skipped.append((path, "not an ordinary file"))
            return
        real = os.path.realpath(path)
        if real not in self.seen:
            self.seen.add(real)
            self.found.files.append(path)

    def walk(self, root: str) -> None:
        """Take what lies below `root`. What was named is wanted: patterns and ignore rules that hide `root` do not count."""
        patterns, self.patterns = self.patterns, None if self.hides(root) else self.patterns
        try:
            self._walk(root)
        finally:
            self.patterns = patterns

    def hides(self, path: str) -> bool:
        """Whether a pattern of the settings excludes a folder or one that it lies in."""
        relative = self.settings.relative(path)
        return self.patterns is not None and not relative.startswith(("/", "..")) and bool(self.patterns.match_file(relative + "/"))

    def _walk(self, root: str) -> None:
        gitignore = self.settings.respect_gitignore
        above = self._ignores_above(root) if gitignore else []
        if above and _is_ignored(above, os.path.abspath(root), True):
            above, gitignore = [], False
        stack = [(root, above)]
        while stack:
            folder, specs = stack.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self.found.problems.append(Problem(folder, _reason(error)))
                continue
            if gitignore:
                specs = specs + self._ignores_in(folder)
            below: list[tuple[str, list[tuple[str, Any]]]] = []
            for entry in entries:
                path = entry.name if folder == os.curdir else os.path.join(folder, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    if not self._hidden(path, entry.name, specs, True):
                        below.append((path, specs))
                elif entry.name.endswith(SUFFIXES) and not self._hidden(path, entry.name, specs, False):
                    self._take_entry(path, entry)
            stack.extend(reversed(below))

    def _take_entry(self, path: str, entry: os.DirEntry[str]) -> None:
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            self.found.skipped.append((path, _reason(error)))  # a dangling link, met while walking
            return
        if not stat.S_ISDIR(mode):  # a link to a folder that is called x.py
            self.take(path, mode)

    def _hidden(self, path: str, name: str, specs: list[tuple[str, Any]], folder: bool) -> bool:
        if self.excludes(self.settings.relative(path) if self.patterns else "", name, folder):
            return True
        return bool(specs) and _is_ignored(specs, os.path.abspath(path), folder)

    def excludes(self, relative: str, name: str, folder: bool) -> bool:
        """Whether the built-in names or the patterns of the settings exclude one file or folder."""
        if folder and name in self.names:
            return True
        return self.patterns is not None and bool(self.patterns.match_file(relative + "/" * folder))

    # ------------------------------------------------------------ .gitignore

    def _ignores_above(self, root: str) -> list[tuple[str, Any]]:
        """The ignore files from the top of the git repository down to, but without, `root`; none outside a repository."""
        folder = os.path.abspath(root)
        if os.path.exists(os.path.join(folder, ".git")):
            return _read_ignores(folder, os.path.join(".git", "info", "exclude"))
        chain: list[str] = []
        while (parent := os.path.dirname(folder)) != folder:
            folder = parent
            chain.append(folder)
            if os.path.exists(os.path.join(folder, ".git")):
                found = _read_ignores(folder, os.path.join(".git", "info", "exclude"))
                for place in reversed(chain):
                    found += self._ignores_in(place)
                return found
        return []

    def _ignores_in(self, folder: str) -> list[tuple[str, Any]]:
        full = os.path.abspath(folder)
        if full not in self.ignores:
            self.ignores[full] = _read_ignores(full, ".gitignore")
        return list(self.ignores[full])


def _read_ignores(folder: str, name: str) -> list[tuple[str, Any]]:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return []
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [(folder, _compile(file.read().splitlines()))]
    except OSError:
        return []


def _is_ignored(specs: list[tuple[str, Any]], full: str, folder: bool) -> bool:
    """What the deepest ignore file that says something about the path says."""
    for base, spec in reversed(specs):
        relative = os.path.relpath(full, base).replace(os.sep, "/")
        if relative == "." or relative.startswith("../"):
            continue
        verdict = spec.check_file(relative + "/" * folder).include
        if verdict is not None:
            return bool(verdict)
    return False


def _compile(patterns: Sequence[str]) -> Any:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(patterns)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

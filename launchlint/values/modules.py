"""What lives in modules that are not part of the run: found on disk beside the linted file, read, never imported.

`make_outside` gives the value flow its answers: first what the run itself knows, then, where that is nothing, what astroid
infers from the files of the same package. A linted file of an installed package sees that package only, never its neighbours
in `site-packages`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launchlint.modules import module_of
from launchlint.names import Names
from launchlint.settings import Settings
from launchlint.values.evaluate import Outside
from launchlint.values.value import Kind, Value

if TYPE_CHECKING:
    from launchlint.values.astroid_session import Session
    from launchlint.values.astroid_values import AstroidValues

_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class Package:
    """Where the modules of a linted file's own project begin on disk."""

    root: str  # the folder that holds the top-level package
    top: str  # the name of that package
    is_installed: bool = False  # the root is shared with other projects

    def file_of(self, module: str) -> str | None:
        """The file of a module of this project, or None."""
        parts = module.split(".")
        if not all(part.isidentifier() for part in parts) or (self.is_installed and parts[0] != self.top):
            return None
        return _file_at(os.path.join(self.root, *parts))

    def split(self, dotted_name: str) -> tuple[str, list[str]] | None:
        """The module that a dotted name begins with, and the names inside it."""
        parts = dotted_name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:count])
            if self.file_of(module) is not None:
                return module, parts[count:]
        return None


def _file_at(stem: str) -> str | None:
    for path in (os.path.join(stem, "__init__.py"), f"{stem}.py"):
        if os.path.isfile(path):
            return path
    return None


def package_of(path: str) -> Package | None:
    """The project of a file; None where the file does not lie where its module name says."""
    module, is_package = module_of(path)
    full = os.path.abspath(path)
    stem = os.path.dirname(full) if is_package else os.path.splitext(full)[0]
    parts = module.split(".")
    folders = stem.split(os.sep)
    if folders[-len(parts) :] != parts or len(folders) <= len(parts):
        return None
    root = os.sep.join(folders[: -len(parts)]) or os.sep
    return Package(root, parts[0], os.path.basename(root) in _INSTALLED)


class Chain:
    """Answers of the run itself, and of astroid where those are nothing. What asks astroid is imported with the first such question."""

    def __init__(self, first: Outside, package: Package, session: Session | None) -> None:
        self.first = first
        self.package = package
        self.session = session

    @functools.cached_property
    def second(self) -> AstroidValues:
        return _astroid(self.package, self.session)

    def attribute(self, class_name: str, attribute: str, names: Names) -> Value:
        return _or(self.first.attribute(class_name, attribute, names), lambda: self.second.attribute(class_name, attribute, names))

    def method(self, class_name: str, method: str, names: Names) -> Value:
        return _or(self.first.method(class_name, method, names), lambda: self.second.method(class_name, method, names))

    def function(self, dotted_name: str) -> Value:
        return _or(self.first.function(dotted_name), lambda: self.second.function(dotted_name))

    def constant(self, dotted_name: str) -> Value:
        return _or(self.first.constant(dotted_name), lambda: self.second.constant(dotted_name))

    def any_attribute(self, attribute: str) -> Value:
        return self.first.any_attribute(attribute)


def _or(value: Value, ask: Callable[[], Value]) -> Value:
    return ask() if value.kind is Kind.UNKNOWN else value


def _astroid(package: Package, session: Session | None) -> AstroidValues:
    from launchlint.values.astroid_values import AstroidValues

    return AstroidValues(package, session or _session_of_run())


@functools.cache
def _session_of_run() -> Session:
    from launchlint.values.astroid_session import Session

    return Session()


def make_outside(project_values: Outside, path: str, settings: Settings, session: Session | None = None) -> Outside:
    """What the flow of the file `path` asks about other modules. `session` bounds the whole run; by default the process has one."""
    package = package_of(path)
    return project_values if package is None else Chain(project_values, package, session)


def bases_of(path: str, class_name: str, session: Session | None = None) -> list[str]:
    """The dotted names of all classes that a class of the file `path` derives from, across modules, nearest first.

    A base of another project ends its branch with the name that it is imported by. Empty where the file or class is unknown.
    """
    package = package_of(path)
    return [] if package is None else _astroid(package, session).bases(module_of(path)[0], class_name)

"""A place of our own inside astroid: its process-wide state is put aside for the time of a question and put back after.

astroid keeps one cache of modules for the whole process and looks every import up on `sys.path`. Both are exchanged while a
question is answered: the cache for one that holds our synthetic torch and the modules of the linted package, the lookup for a
gate that lets only those through, built from their files when astroid first wants them. Nothing is imported or run, no other
package is opened, and a host that uses astroid itself (pylint in the same process) finds its state as it was.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launchlint.source import Source, SourceError
from launchlint.values.astroid_torch import Tips, sources

if TYPE_CHECKING:
    from launchlint.values.modules import Package

Node = Any
_NEVER = frozenset({"torch", "numpy", "enum", "builtins"})  # ours, whatever lies beside the linted file
_SWAPPED = ("astroid_cache", "_mod_file_cache", "_failed_import_hooks", "module_denylist")
_lock = threading.RLock()


class OutOfTimeError(BaseException):
    """The time for a question is up. Not an `Exception`: astroid swallows those and goes on."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be spent. What counts modules and steps gives the same answers on every machine and for any number of
    processes; seconds of CPU time are a last resort, far above what real code needs."""

    file_modules: int = 100  # that may be looked into for one linted file
    file_steps: int = 100_000  # calls and annotated names that inference meets for one linted file
    file_seconds: float = 5.0
    run_seconds: float = 60.0  # in one process
    kept_nodes: int = 150_000  # of trees that are kept for the next question, about 400 bytes a node
    module_bytes: int = 400_000  # a larger file is generated, or not worth its time


class Allowance:
    """What is left for one linted file."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.modules: set[str] = set()
        self.steps = bounds.file_steps
        self.seconds = bounds.file_seconds

    @property
    def is_spent(self) -> bool:
        return self.steps <= 0 or self.seconds <= 0

    def admits(self, module: str) -> bool:
        """True if one more module may be looked into, whether it is in the cache or not."""
        if module not in self.modules and len(self.modules) >= self.bounds.file_modules:
            return False
        self.modules.add(module)
        return True


class Session:
    """The modules that were built, and what is left of a run's time."""

    def __init__(self, bounds: Bounds | None = None, clock: Callable[[], float] = time.thread_time) -> None:
        self.bounds = bounds or Bounds()
        self.clock = clock
        self.spent = 0.0
        self.built = 0
        self.nodes: collections.OrderedDict[str, int] = collections.OrderedDict()  # module -> nodes, the oldest first
        self._stamps: dict[str, tuple[str, int, int]] = {}
        self._cache: dict[str, Node] = {}  # what stands in for astroid's cache of modules
        self._tips: Tips | None = None
        self._package: Package | None = None
        self._allowance = Allowance(self.bounds)
        self._deadline = 0.0

    @property
    def is_spent(self) -> bool:
        """True when nothing more may be asked in this run."""
        return self.spent >= self.bounds.run_seconds

    @contextlib.contextmanager
    def opened(self, package: Package, allowance: Allowance) -> Iterator[None]:
        """astroid sees only `package` and our synthetic modules, as far as the allowance of the linted file reaches."""
        with _lock:
            before = self.clock()
            self._allowance = allowance
            self._deadline = before + min(allowance.seconds, self.bounds.run_seconds - self.spent)
            try:
                with _put_aside(self), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._start(package)
                    yield
            finally:
                self._forget()
                seconds = self.clock() - before
                self.spent += seconds
                allowance.seconds -= seconds

    def check(self) -> None:
        """Take one step; raise OutOfTimeError when nothing is left."""
        self._allowance.steps -= 1
        if self._allowance.steps < 0 or self.clock() > self._deadline:
            raise OutOfTimeError

    # ---------------------------------------------------------------- modules

    def module(self, name: str) -> Node | None:
        """A module of the package or one of ours, built when it is first wanted."""
        return self._cache.get(name) if self.provide(name) else None

    def provide(self, name: str) -> bool:
        """True if astroid may see the module `name`, which is then in its cache."""
        if name in ("", "builtins") or name.partition(".")[0] in _NEVER:
            return name in self._cache
        package = self._package
        path = package.file_of(name) if package is not None else None
        if path is None or not self._allowance.admits(name):
            return False
        stamp = _stamp(path)
        if name in self._cache and self._stamps.get(name) == stamp:
            if name in self.nodes:
                self.nodes.move_to_end(name)
            return True
        return self._build(name, path, stamp)

    def _build(self, name: str, path: str, stamp: tuple[str, int, int]) -> bool:
        self.check()
        if stamp[2] > self.bounds.module_bytes:
            return False
        try:
            with open(path, "rb") as file:
                text = Source.from_bytes(path, file.read(self.bounds.module_bytes + 1)).text
        except (OSError, SourceError):
            return False
        self.built += 1
        self._stamps[name] = stamp
        module = _built(text, name, path)
        assert self._tips is not None
        self.nodes[name] = self._tips.attach(module)
        self._cache[name] = module
        return True

    def _start(self, package: Package) -> None:
        if self._package != package:
            for name in list(self.nodes):
                self._drop(name)
            self._package = package
        if self._tips is None:
            self._cache.update(_synthetic())
            self._tips = Tips(self._cache["torch"], self.check)

    def _forget(self) -> None:
        """Keep no more trees than agreed, and nothing that a question left behind."""
        while self.nodes and sum(self.nodes.values()) > self.bounds.kept_nodes:
            self._drop(next(iter(self.nodes)))
        known = {*self.nodes, *sources(), "builtins"}
        for name in [name for name in self._cache if name not in known]:
            self._cache.pop(name, None)

    def _drop(self, name: str) -> None:
        self.nodes.pop(name, None)
        self._stamps.pop(name, None)
        self._cache.pop(name, None)


class _Gate(set[str]):
    """Stands in for astroid's list of modules that it must not open: every module that is not provided here."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def __contains__(self, name: object) -> bool:
        return not (isinstance(name, str) and self.session.provide(name))


@contextlib.contextmanager
def _put_aside(session: Session) -> Iterator[None]:
    """Exchange astroid's process-wide state. Every `AstroidManager()` reads it anew from the class."""
    from astroid import context
    from astroid.builder import AstroidBuilder
    from astroid.manager import AstroidManager

    inference_tip: Any = importlib.import_module("astroid.inference_tip")  # the package binds the name to the function in it
    AstroidBuilder(AstroidManager())  # astroid builds its picture of the builtins once, before anything is exchanged
    brain: dict[str, Any] = AstroidManager.brain
    kept = {name: brain[name] for name in _SWAPPED}
    inferred, tips = context._INFERENCE_CACHE, inference_tip._cache
    session._cache["builtins"] = kept["astroid_cache"]["builtins"]
    brain.update(astroid_cache=session._cache, _mod_file_cache={}, _failed_import_hooks=[], module_denylist=_Gate(session))
    context._INFERENCE_CACHE, inference_tip._cache = {}, collections.OrderedDict()
    try:
        yield
    finally:
        brain.update(kept)
        context._INFERENCE_CACHE, inference_tip._cache = inferred, tips
        _clear_lookups()


def _clear_lookups() -> None:
    """Two caches of astroid hold nodes, and with them whole trees; they only save time."""
    from astroid.nodes import ClassDef, Name

    for method in (Name.lookup, ClassDef._metaclass_lookup_attribute):
        clear = getattr(method, "cache_clear", None)
        if clear is not None:
            clear()


def _built(text: str, name: str, path: str) -> Node:
    """The tree of a module, without the transforms of astroid's plugins: they open the modules of every base class at once."""
    from astroid.manager import AstroidManager

    return _builder()(AstroidManager(), apply_transforms=False).string_build(text, name, path or None)


@functools.cache
def _builder() -> type[Any]:
    """A builder of trees in which a module says nothing about the classes of another: what is built first must not matter."""
    from astroid import nodes
    from astroid.builder import AstroidBuilder

    class Builder(AstroidBuilder):  # type: ignore[misc]
        def delayed_assattr(self, node: Node) -> None:
            if isinstance(node.expr, nodes.Name) and node.expr.name in ("self", "cls"):
                super().delayed_assattr(node)

    return Builder


@functools.cache
def _synthetic() -> dict[str, Node]:
    """The trees of our own modules, which all sessions share."""
    return {name: _built(text, name, "") for name, text in sources().items()}


def _stamp(path: str) -> tuple[str, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (path, 0, 0)
    return (path, status.st_mtime_ns, status.st_size)

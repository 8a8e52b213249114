"""Which functions run every step: a walk outward from the roots over resolved calls, with the chain that leads to each.

Calls are resolved only where the walk arrives: names through imports and re-exports, `self.m()` over base classes and all
overrides, attributes through what constructors and annotations say they hold, objects by the class that made them.
What stays unresolved falls back on a method's name where at most three classes define it; such an edge is weaker.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from launchlint.hot import roles
from launchlint.hot.roles import BaseRoot, Framework, Globs, Root
from launchlint.hot.summary import IN_STEPS, IN_TRAINING, LOOP_OWNERS, MENTIONED, ONCE, RARELY, ClassSummary, FileSummary, FunctionSummary
from launchlint.model import Heat
from launchlint.patterns import Pattern

FALLBACK_CLASSES = 3
TRAINING = Root("it holds a training loop", "iteration")
GENERATION = "generation"  # `per` of what runs once around a loop over tokens or over time steps
_AROUND = 2  # calls inside one file between a function that runs once and the loop over time steps
_WAY = 4  # calls between a pipeline and the loop over time steps in another file
_WIDE = 500  # functions that are looked at on that way
_PIPELINE = Pattern(r"Pipeline(Mixin)?$")
_TRANSFORMS = Pattern(r"(^|/)transforms/")
_EVALUATOR = Pattern(r"Evaluator\w*$|Evaluation$|Validator$")
_AT_FIRST = Pattern(r"^_?(prepare|preprocess|build|encode|postprocess)(_|$)")  # what a pipeline does ahead of its loop and behind it
_COLD_CALLERS = 16  # callers of callers that are asked whether they run rarely
_FUNCTIONS = 1 << 20  # more than a file holds
_FAMILY_LIMIT = 400
_BASE_LIMIT = 12

# Methods of tensors, containers, files and numbers: a bare name says nothing about who is meant.
GENERIC = frozenset(
    {
        "get", "append", "update", "items", "keys", "values", "pop", "add", "extend", "copy", "format", "join", "split",
        "strip", "remove", "insert", "clear", "sort", "index", "count", "read", "write", "close", "open", "put", "send",
        "recv", "run", "start", "stop", "wait", "set", "reset", "info", "debug", "warning", "error", "exception", "view",
        "reshape", "to", "cpu", "cuda", "numpy", "item", "tolist", "size", "sum", "max", "min", "mean", "any", "all", "cat",
        "stack", "zeros", "ones", "empty", "float", "long", "int", "bool", "clone", "detach", "contiguous", "unsqueeze",
        "squeeze", "transpose", "permute", "expand", "flatten", "fill_", "zero_", "copy_", "startswith", "endswith",
        "replace", "lower", "upper", "result", "submit", "cache_clear", "acquire", "release", "record", "synchronize",
        "device", "dtype", "shape", "type", "name", "apply_", "encode", "decode", "load", "save", "parse", "main",
        "to_bytes", "from_bytes", "group", "groups", "match", "search", "findall", "sub", "exists", "mkdir", "resolve",
        "cancel", "done", "add_done_callback", "gather", "scatter", "norm", "add_", "mul_", "div_", "sub_", "backward",
        "step", "zero_grad", "register_buffer", "parameters", "named_parameters", "modules", "children", "state_dict",
        "pin_memory", "is_set", "notify", "flush", "seek", "tell", "poll", "terminate", "kill", "communicate",
        "encode_plus", "apply", "map", "filter", "reduce", "choice", "shuffle", "random", "uniform", "log", "exp", "sqrt",
        "abs", "round", "flip", "argsort", "topk", "softmax", "matmul", "mm", "bmm", "dot", "mul", "div",
        "pow", "eq", "ne", "lt", "gt", "le", "ge", "chunk", "repeat", "view_as", "expand_as", "index_select", "masked_fill",
        "forward", "__call__", "__init__", "build", "gate", "pool", "call", "empty_like", "create", "make", "setup", "init",
        "execute", "process", "handle", "query", "elapsed_time", "connect", "disconnect", "listen", "accept", "bind",
    }
)  # fmt: skip

# Those among them that sound like a step and that every container has.
_OF_CONTAINERS = frozenset({"get", "update", "add", "extend", "copy", "count", "sort", "split", "read", "write", "send", "recv"})
_MANY_FILES = 50  # a whole package: what nothing in it calls is a door for others, or forgotten
MANY_CALLERS = 8  # a function that more call is a helper for everybody


class Key(tuple[int, int]):
    """A function: index of its file, index in the file."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the graph knows of one function."""

    heat: Heat
    reason: str
    chain: tuple[str, ...] = ()
    per: str = "step"
    lines: tuple[tuple[int, int], ...] = ()  # where only these loops are hot
    steps: tuple[tuple[int, str], ...] = ()  # the links of the chain in the same file: line of the definition, name
    turns: tuple[tuple[int, int], ...] | None = None  # the only loops that make what runs once run often; None: any loop
    doubt: str = ""  # why it may run never


class Graph:
    """The call graph of a set of files."""

    def __init__(self, files: Iterable[FileSummary], hot: tuple[str, ...] = (), cold: tuple[str, ...] = ()) -> None:
        self.files = list(files)
        self.hot_globs = roles._globs(list(hot))
        self.cold_globs = roles._globs(list(cold))
        self.by_module: dict[str, int] = {}
        self.classes: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)  # bare name -> (file, class)
        self.subclasses: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
        self.methods: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)  # method name -> functions
        self.registered: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
        self._top: list[dict[str, int]] = []
        self._has_globs = bool(hot or cold)
        self._packages = [file.module.partition(".")[0] for file in self.files]
        self._cold_paths = [roles.cold_path(file.path, file.module) for file in self.files]
        self._cold: dict[tuple[int, int], str] = {}
        self._families: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._module_like: dict[tuple[int, int], bool] = {}
        self._resolved: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self._ancestors: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._base_names: dict[tuple[int, int], tuple[tuple[str, str], ...]] = {}
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        self._callers: dict[int, dict[str, list[int]]] = {}
        self._by_name: dict[str, list[tuple[int, int]]] | None = None
        self.parents: dict[tuple[int, int], tuple[tuple[int, int] | None, str]] = {}
        self.entries: dict[tuple[int, int], tuple[int, int]] = {}  # a root that another hot function calls
        self.callers: dict[tuple[int, int], dict[tuple[int, int], None]] = {}  # the hot functions that call a function
        self.mentioned: set[tuple[int, int]] = set()  # functions that are handed on as values
        self._constructions: dict[str, list[tuple[int, int]]] | None = None
        self._calling: dict[str, list[int] | None] | None = None
        self._last_imported: frozenset[str] | None = None
        self._lines: dict[int, dict[tuple[int, str], int]] = {}
        self._index()
        self.roots = self._find_roots()
        self._around = self._find_around()
        pipelines = self._pipelines_around()
        self._around |= pipelines
        self._forget_habits()
        if pipelines:
            self._forget_parts_of_pipelines()
        self._late: set[tuple[int, int]] = set()  # reached only from what runs once around a loop
        self._spread()

    # ---------------------------------------------------------------- index

    def _index(self) -> None:
        for number, file in enumerate(self.files):
            self.by_module[file.module] = number
            top: dict[str, int] = {}
            for index, function in enumerate(file.functions):
                if function.class_index < 0 and function.parent_index < 0:
                    top[function.name] = index
            self._top.append(top)
            for index, described in enumerate(file.classes):
                self.classes[described.name].append((number, index))
                for base in described.bases:
                    self.subclasses[base.rpartition(".")[2]].append((number, index))
                for name, method in described.methods.items():
                    self.methods[name].append((number, method))
            for operator, implementation in file.registered.items():
                if implementation in top:
                    self.registered[operator].append((number, top[implementation]))

    def function(self, key: tuple[int, int]) -> FunctionSummary:
        return self.files[key[0]].functions[key[1]]

    def index_at(self, file: int, line: int, name: str) -> int | None:
        """The number of the function `name` that starts on a line of a file."""
        lines = self._lines.get(file)
        if lines is None:
            functions = self.files[file].functions
            lines = self._lines[file] = {(function.line, function.name): index for index, function in enumerate(functions)}
        return lines.get((line, name))

    def class_at(self, place: tuple[int, int]) -> ClassSummary:
        return self.files[place[0]].classes[place[1]]

    def qualified(self, key: tuple[int, int]) -> str:
        """module.Class.method"""
        return f"{self.files[key[0]].module}.{self.function(key).qualname}"

    # ---------------------------------------------------------------- cold

    def cold_reason(self, key: tuple[int, int]) -> str:
        """Why a function is a wall, or an empty string; enclosing functions count."""
        known = self._cold.get(key)
        if known is None:
            known = self._cold[key] = self._decide_cold(key)
        return known

    def _decide_cold(self, key: tuple[int, int]) -> str:
        function, package = self.function(key), self._packages[key[0]]
        if self._has_globs:
            qualified = self.qualified(key)
            if self.hot_globs.match(qualified):
                return ""
            if self.cold_globs.match(qualified):
                return "the setting `cold` names it"
        if reason := self._cold_paths[key[0]]:
            return reason
        if any(exact and pattern.match(self.qualified(key)) for pattern, _, exact in _patterns_for(package, function.name)):
            return ""
        if _is_exception(package, function.name):
            return self._enclosing_cold(key)
        if _is_wall(package, function.name):
            return f"{function.name} runs rarely, by its name"
        if function.class_index >= 0 and self._is_cold_class(key) and self._root_by_base(key, function) is None:
            return f"{self.class_at((key[0], function.class_index)).name} works outside the step, by its name"
        return self._enclosing_cold(key)

    def _enclosing_cold(self, key: tuple[int, int]) -> str:
        parent = self.function(key).parent_index
        return self.cold_reason((key[0], parent)) if parent >= 0 else ""

    def _is_cold_class(self, key: tuple[int, int]) -> bool:
        place = (key[0], self.function(key).class_index)
        return _sounds_cold(self._packages[key[0]], self.class_at(place).name) and not self.is_module(place)

    def is_weak(self, key: tuple[int, int]) -> bool:
        """True for names that are hot only when a hot function calls them outside a once-only test."""
        return _is_weak(self._packages[key[0]], self.function(key).name)

    # ---------------------------------------------------------------- classes

    def resolve_class(self, file: int, spelled: str) -> list[tuple[int, int]]:
        """The classes a spelled name may mean in a file: through its imports, else by its bare name if few are called so."""
        known = self._resolved.get((file, spelled))
        if known is None:
            known = self._resolved[(file, spelled)] = self._resolve(file, spelled)
        return known

    def _resolve(self, file: int, spelled: str) -> list[tuple[int, int]]:
        root, _, rest = spelled.partition(".")
        last = spelled.rpartition(".")[2]
        candidates = self.classes.get(last)
        if not candidates:
            return []
        here = [place for place in candidates if place[0] == file]
        if here and not rest:
            return here[:1]
        target = self.files[file].imports.get(root)
        if target is not None and len(candidates) > 1:
            full = f"{target}.{rest}" if rest else target
            module = full.rpartition(".")[0]
            exact = [place for place in candidates if self.files[place[0]].module == module]
            if exact:
                return exact
            near = [place for place in candidates if self.files[place[0]].module.startswith(module + ".")]
            if near:
                return near
        return candidates if len(candidates) <= 2 else []

    def ancestors(self, place: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """The class itself and the classes it derives from, nearest first."""
        known = self._ancestors.get(place)
        if known is None:
            seen: dict[tuple[int, int], None] = {}
            pending = collections.deque([place])
            while pending and len(seen) < _BASE_LIMIT:
                current = pending.popleft()
                if current in seen:
                    continue
                seen[current] = None
                for base in self.class_at(current).bases:
                    pending.extend(self.resolve_class(current[0], base))
            known = self._ancestors[place] = tuple(seen)
        return known

    def base_names(self, place: tuple[int, int]) -> tuple[tuple[str, str], ...]:
        """(bare name, dotted target of the import) of all bases, also of those that lie outside the tree."""
        known = self._base_names.get(place)
        if known is None:
            known = self._base_names[place] = tuple(self._name_bases(place))
        return known

    def _name_bases(self, place: tuple[int, int]) -> Iterator[tuple[str, str]]:
        for current in self.ancestors(place):
            file = self.files[current[0]]
            for base in self.class_at(current).bases:
                root, _, rest = base.partition(".")
                target = file.imports.get(root, "")
                full = f"{target}.{rest}" if target and rest else target or f"{file.module}.{base}"
                yield base.rpartition(".")[2], full

    def family(self, place: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """A class, its ancestors and everything below it: where `self.m()` may end up."""
        known = self._families.get(place)
        if known is None:
            found = dict.fromkeys(self.ancestors(place))
            pending = [place]
            while pending and len(found) < _FAMILY_LIMIT:
                name = self.class_at(pending.pop()).name
                for child in self.subclasses.get(name, ()):
                    if child not in found:
                        found[child] = None
                        pending.append(child)
            known = self._families[place] = tuple(found)
        return known

    def is_module(self, place: tuple[int, int]) -> bool:
        """True for classes that derive from torch.nn.Module."""
        known = self._module_like.get(place)
        if known is None:
            table = roles.framework_of(self.files[place[0]].module.partition(".")[0])
            known = any(
                name == "Module" or full.startswith("torch.nn") or (table is not None and table.intermediate.get(name) == "Module")
                for name, full in self.base_names(place)
            )
            self._module_like[place] = known
        return known

    # ---------------------------------------------------------------- roots

    def _find_roots(self) -> dict[tuple[int, int], Root]:
        found: dict[tuple[int, int], Root] = {}
        for number, file in enumerate(self.files):
            tables = roles.tables_of(file.module)
            for index, function in enumerate(file.functions):
                if function.is_kernel:
                    continue
                key = (number, index)
                root = self._root(key, function, tables)
                if root is not None and root.off_launch_path:
                    self._cold[key] = f"off the launch path: {root.reason}"
                elif root is not None and not self.cold_reason(key):
                    found[key] = root
        return found

    def _root(self, key: tuple[int, int], function: FunctionSummary, tables: tuple[Framework, ...]) -> Root | None:
        if self._has_globs and self.hot_globs.match(self.qualified(key)):
            return Root("the setting `hot` names it")
        for decorator in function.decorators:
            last = decorator.rpartition(".")[2]
            for table in tables:
                if last in table.decorators:
                    return table.decorators[last]
        for pattern, root, _ in _patterns_for(self._packages[key[0]], function.name):
            if pattern.match(self.qualified(key)):
                return root
        if function.class_index >= 0 and function.parent_index < 0:
            root_of_base = self._root_by_base(key, function)
            if root_of_base is not None:
                return root_of_base
        if self.is_weak(key):
            return None
        return self._root_by_convention(key, function)

    def _root_by_base(self, key: tuple[int, int], function: FunctionSummary) -> Root | None:
        place = (key[0], function.class_index)
        for table, wanted in _bases_for(function.name):
            names = dict(self.base_names(place))
            names.setdefault(self.class_at(place).name, f"{self.files[key[0]].module}.{self.class_at(place).name}")
            for entry in wanted:
                for name, full in names.items():
                    is_base = name == entry.base or table.intermediate.get(name) == entry.base
                    known = table.name != "common" and table.intermediate.get(name) == entry.base
                    at_home = entry.home is None or entry.home.match(full) or known
                    if is_base and (at_home or name == "Module"):
                        return entry.root
        return None

    def _root_by_convention(self, key: tuple[int, int], function: FunctionSummary) -> Root | None:
        if function.training_lines and function.parent_index < 0 and function.name not in LOOP_OWNERS:
            return None if self._evaluates(key, function) else TRAINING
        if function.name in LOOP_OWNERS and not function.training_lines:
            return None  # hands the loop to somebody else
        if function.parent_index >= 0 or (function.class_index >= 0 and self._transforms_data(key[0], function.class_index)):
            return None
        if roles.ROOT_FUNCTION.match(function.name):
            return Root(f"{function.name} runs every step, by its name", is_habit=True)
        if function.class_index >= 0 and roles.ROOT_METHOD.match(function.name):
            described = self.class_at((key[0], function.class_index))
            once = _PIPELINE.search(described.name) and _AT_FIRST.match(function.name)
            for name in (described.name, *(base.rpartition(".")[2] for base in described.bases)):
                if roles.ROOT_CLASS.search(name):
                    if once:
                        return Root(f"{function.name} of {_article(described.name)} runs once for a generation", GENERATION)
                    return Root(f"{function.name} of {_article(name)} runs every step, by convention", is_habit=True)
        return None

    def _transforms_data(self, file: int, owner: int) -> bool:
        """True for a class of a folder of transforms that is no module: it changes samples while they are loaded."""
        return _TRANSFORMS.search(self.files[file].path) is not None and not self.is_module((file, owner))

    def _evaluates(self, key: tuple[int, int], function: FunctionSummary) -> bool:
        """True for a loop over a loader that measures what another has trained, by the name of its class."""
        return function.class_index >= 0 and bool(_EVALUATOR.search(self.class_at((key[0], function.class_index)).name))

    # ---------------------------------------------------------------- walk

    def _find_around(self) -> set[tuple[int, int]]:
        """Functions with a loop over time steps, and those in their file that lead to one: they run once for all its turns."""
        found: set[tuple[int, int]] = set()
        for number, file in enumerate(self.files):
            around = {index for index, function in enumerate(file.functions) if function.step_lines}
            if around:  # a diffusion at every token is no prologue
                inside = {spelled.removeprefix("self.") for each in file.functions for spelled, flags in each.calls if flags & IN_TRAINING}
                around = {index for index in around if file.functions[index].name not in inside}
            for _ in range(_AROUND if around else 0):
                names = {file.functions[index].name for index in around}
                around |= {index for index, function in enumerate(file.functions) if _calls_once(function, names)}
            found |= {(number, index) for index in around}
        return found

    def _pipelines_around(self) -> set[tuple[int, int]]:
        """The way from a pipeline, by the name of its class, to a loop over time steps in another file: so large a part of the work
        stands there that what a pipeline does beside it runs once."""
        found: set[tuple[int, int]] = set()
        for key in self.roots if self._around else ():
            function = self.function(key)
            owner = self.class_at((key[0], function.class_index)).name if function.class_index >= 0 else ""
            if key not in self._around and _PIPELINE.search(owner):
                found |= self._way_around(key)
        return found

    def _way_around(self, start: tuple[int, int]) -> set[tuple[int, int]]:
        """The functions on the shortest ways from one to those around a loop over time steps; nothing where there is none nearby."""
        before: dict[tuple[int, int], tuple[int, int] | None] = {start: None}
        ring, found = [start], set[tuple[int, int]]()
        for _ in range(_WAY):
            following: list[tuple[int, int]] = []
            for key in ring:
                for target, kind in self._edges(key):
                    if kind == "call" and target not in before:
                        before[target] = key
                        (found.add if target in self._around else following.append)(target)
            if found or len(before) > _WIDE:
                break
            ring = following
        passed: set[tuple[int, int]] = set()
        for end in found:
            step = before[end]
            while step is not None:
                passed.add(step)
                step = before[step]
        return passed

    def _forget_habits(self) -> None:
        """Take out roots by habit whose callers, as far as their file shows them, all run once around a loop: `prepare_rows` that a
        pipeline calls ahead of its time steps."""
        once = self._around | {key for key, root in self.roots.items() if root.per == GENERATION}
        for number in sorted({number for number, _ in once}):
            functions = self.files[number].functions
            habits = [index for index in range(len(functions)) if (root := self.roots.get((number, index))) and root.is_habit]
            for _ in range(_AROUND):
                for index in habits:
                    name = functions[index].name
                    callers = [caller for caller in self._callers_in(number).get(name, ()) if _calls(functions[caller], name)]
                    if callers and all((number, caller) in once and _calls_once(functions[caller], {name}) for caller in callers):
                        once.add((number, index))
                        self.roots.pop((number, index), None)

    def _forget_parts_of_pipelines(self) -> None:
        """The same across files: `forward_prefix` of a model that only pipelines call, ahead of their time steps."""
        once = self._around | {key for key, root in self.roots.items() if root.per == GENERATION}
        habits = [key for key, root in self.roots.items() if root.is_habit and self.function(key).name not in GENERIC]
        for _ in range(_AROUND):
            for key in habits:
                if key in self.roots and self._only_once_called(key, once):
                    once.add(key)
                    del self.roots[key]

    def _only_once_called(self, key: tuple[int, int], once: set[tuple[int, int]]) -> bool:
        """True if something calls a function, and all that call it by its name run once and do so outside their loops."""
        name = self.function(key).name
        callers = [caller for caller in self.calling(name, MANY_CALLERS) or () if caller != key]
        for caller in callers:
            flags = [flags for spelled, flags in self.function(caller).calls if spelled.rpartition(".")[2] == name]
            if caller not in once or any(each & (IN_STEPS | IN_TRAINING | MENTIONED) for each in flags):
                return False
        return bool(callers)

    def _runs_once(self, key: tuple[int, int]) -> bool:
        """True for a function that runs once around a loop over tokens or over time steps."""
        return key in self._around or (key in self.roots and self.roots[key].per == GENERATION)

    def _spread(self) -> None:
        for key in self.roots:
            self.parents[key] = (None, "root")
        late: list[tuple[int, int]] = []
        self._walk(self.roots, late)
        self._late = set(self.parents)
        self._walk(late, None)  # so that whatever also runs more often is known by that
        self._late = set(self.parents) - self._late

    def _walk(self, roots: Iterable[tuple[int, int]], late: list[tuple[int, int]] | None) -> None:
        """Walk outward; what a function calls once around a loop is left for `late`."""
        pending = collections.deque(roots)
        while pending:
            key = pending.popleft()
            runs_once = late is not None and self._runs_once(key)
            if late is not None and runs_once:
                late.append(key)
            for target, kind in self._edges_at_first(key) if runs_once else self._edges(key):
                if kind == "mention":
                    self.mentioned.add(target)
                else:
                    self.callers.setdefault(target, {})[key] = None
                if target in self.roots and target != key and self.function(key).class_index >= 0:
                    self.entries.setdefault(target, key)
                if target in self.parents or self.function(target).is_kernel or self.cold_reason(target):
                    continue
                if kind != "call" and self.is_weak(target):
                    continue
                self.parents[target] = (key, kind)
                pending.append(target)

    def _edges_at_first(self, key: tuple[int, int]) -> Iterator[tuple[tuple[int, int], str]]:
        """What a function that runs once around a loop calls in that loop, and what leads there."""
        yield from self._edges(key, IN_STEPS)
        yield from ((target, kind) for target, kind in self._edges(key) if target in self._around)

    @staticmethod
    def _owns_loop(function: FunctionSummary, root: Root) -> bool:
        """True where only the loop of a root is hot: it trains, or it is the loop over tokens."""
        return root is TRAINING or (bool(function.training_lines) and function.name in LOOP_OWNERS)

    def _edges(self, key: tuple[int, int], only: int = 0) -> Iterator[tuple[tuple[int, int], str]]:
        """What a function leads to, and how; with `only` what stands in a loop of that kind."""
        file_number = key[0]
        function = self.function(key)
        only_loop = key in self.roots and self._owns_loop(function, self.roots[key])
        for spelled, flags in function.calls:
            if flags & RARELY or (only_loop and not flags & IN_TRAINING) or flags & only != only:
                continue
            kind = "once" if flags & ONCE else "mention" if flags & MENTIONED else "call"
            for target, how in self._targets(file_number, key, function, spelled, bool(flags & MENTIONED)):
                if kind == "once" and (self.is_weak(target) or self.function(target).name == "__init__"):
                    continue
                yield target, how if how != "call" else kind if kind != "once" else "call"
        if function.class_index >= 0 and not only:
            for name in function.loads:
                for target in self._members((file_number, function.class_index), name, overrides=False):
                    if name in self.class_at((target[0], self.function(target).class_index)).properties:
                        yield target, "property"

    def _targets(
        self, file: int, key: tuple[int, int], function: FunctionSummary, spelled: str, mentioned: bool
    ) -> Iterator[tuple[tuple[int, int], str]]:
        root, _, rest = spelled.partition(".")
        if not rest:
            yield from ((target, "call") for target in self._plain(file, key, function, spelled, mentioned))
            return
        method = spelled.rpartition(".")[2]
        if root == "self" and function.class_index >= 0:
            yield from self._self_call(file, function, spelled, method, mentioned)
            return
        if root == "super()":
            place = (file, function.class_index)
            if function.class_index >= 0:
                ancestors = iter(self.ancestors(place))
                next(ancestors, None)
                for ancestor in ancestors:
                    if method in self.class_at(ancestor).methods:
                        yield (ancestor[0], self.class_at(ancestor).methods[method]), "call"
                        return
            return
        if mentioned:
            return
        if spelled == f"self.{method}":  # a function of its own that calls an object `self`
            yield from ((target, "call") for place in self._callers_of_operator(file, function) for target in self._members(place, method))
            return
        holder = spelled[: -len(method) - 1]
        found = False
        for place in self._classes_of(file, function, holder):
            for target in self._members(place, method):
                found = True
                yield target, "call"
        if found:
            return
        if root in self.files[file].imports:
            yield from ((target, "call") for target in self._imported(file, spelled))
            if holder == root and root in function.parameters:
                pass
            else:
                return
        yield from self._fallback(method, holder)

    def _callers_of_operator(self, file: int, function: FunctionSummary) -> list[tuple[int, int]]:
        """The classes of a file that call the operator which `function` implements: `self = layers[name]` in its body is one of them."""
        described = self.files[file]
        operators = {name for name, implementation in described.registered.items() if implementation == function.name}
        found: dict[tuple[int, int], None] = {}
        for caller in described.functions if operators else ():
            for spelled, _ in caller.calls:
                if caller.class_index >= 0 and spelled.startswith("torch.ops.") and spelled.rpartition(".")[2] in operators:
                    found[(file, caller.class_index)] = None
        return list(found)

    def _plain(self, file: int, key: tuple[int, int], function: FunctionSummary, name: str, mentioned: bool) -> Iterator[tuple[int, int]]:
        for index in self._nested(file, key, name):
            yield (file, index)
            return
        if name in self._top[file]:
            yield (file, self._top[file][name])
            return
        places = self.resolve_class(file, name) if name[:1].isupper() or name[:1] == "_" else []
        if places:
            if not mentioned and not self._is_kept(file, function, name):
                yield from self._constructed(places)
            return
        if name in self.files[file].imports:
            yield from self._imported(file, name)
            return
        made = function.locals.get(name)
        if made and not mentioned:  # x(...) where x holds an object
            for place in self._classes_of(file, function, name):
                for method in ("forward", "__call__"):
                    yield from self._members(place, method)

    def _is_kept(self, file: int, function: FunctionSummary, name: str) -> bool:
        """True where the class of `function` keeps an object of the class `name`: then it is not built every step."""
        if function.class_index < 0:
            return False
        held = self.class_at((file, function.class_index)).attributes
        return any(f"{name}()" in spelled for spelled in held.values())

    def _constructed(self, places: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        for place in places[:1]:
            if self.is_module(place):
                continue
            for method in ("__init__", "__post_init__", "__call__"):
                index = self.class_at(place).methods.get(method)
                if index is not None and method != "__call__":
                    yield (place[0], index)

    def _nested(self, file: int, key: tuple[int, int], name: str) -> Iterator[int]:
        functions = self.files[file].functions
        holder = key[1]
        while holder >= 0:
            end = functions[holder].end_line
            for index in range(holder + 1, len(functions)):
                if functions[index].line > end:
                    break
                if functions[index].parent_index == holder and functions[index].name == name:
                    yield index
                    return
            holder = functions[holder].parent_index

    def _self_call(
        self, file: int, function: FunctionSummary, spelled: str, method: str, mentioned: bool
    ) -> Iterator[tuple[tuple[int, int], str]]:
        place = (file, function.class_index)
        parts = spelled.split(".")
        if len(parts) == 2:
            found = list(self._members(place, method))
            yield from ((target, "call") for target in found)
            if not found and not mentioned:  # self.layer(x)
                for holder in self._classes_of(file, function, spelled):
                    for call in ("forward", "__call__"):
                        yield from ((target, "call") for target in self._members(holder, call))
            return
        if mentioned:
            return
        found_any = False
        for holder in self._classes_of(file, function, spelled[: -len(method) - 1]):
            for target in self._members(holder, method):
                found_any = True
                yield target, "call"
        if not found_any:
            yield from self._fallback(method, spelled[: -len(method) - 1])

    def _members(self, place: tuple[int, int], method: str, overrides: bool = True) -> Iterator[tuple[int, int]]:
        """`method` of a class: its own or inherited one, every override below it, and what a method binds to that name."""
        yield from self._bound(place, method)
        candidates = self.methods.get(method)
        if not candidates:
            return
        for ancestor in self.ancestors(place):
            index = self.class_at(ancestor).methods.get(method)
            if index is not None:
                yield (ancestor[0], index)
                break
        if overrides and len(candidates) > 1:
            family = self.family(place)
            for current in family:
                index = self.class_at(current).methods.get(method)
                if index is not None:
                    yield (current[0], index)

    def _bound(self, place: tuple[int, int], name: str) -> Iterator[tuple[int, int]]:
        """`update_rows` where a method stores `self.update = self.update_rows`: called by the name of the attribute."""
        for ancestor in self.ancestors(place):
            for spelled in self.class_at(ancestor).attributes.get(name, ()):
                root, _, method = spelled.partition(".")
                if root == "self" and method != name and method in self.methods:
                    yield from self._methods_named(ancestor, method)

    def _methods_named(self, place: tuple[int, int], method: str) -> Iterator[tuple[int, int]]:
        """`method` as a class has it or inherits it."""
        for ancestor in self.ancestors(place):
            index = self.class_at(ancestor).methods.get(method)
            if index is not None:
                yield (ancestor[0], index)
                return

    def _classes_of(self, file: int, function: FunctionSummary, holder: str) -> list[tuple[int, int]]:
        """The classes that `a.b.c` may hold, followed attribute by attribute."""
        parts = holder.replace("[]", ".[]").split(".")
        places: list[tuple[int, int]]
        root = parts[0]
        if root == "self" and function.class_index >= 0:
            places = [(file, function.class_index)]
        elif root.endswith("()"):
            places = self._made(file, function, root, 0)
        elif root in function.parameters:
            places = self._typed(file, function.parameters[root])
        elif root in function.locals:
            places = self._made(file, function, function.locals[root], 0)
        elif root[:1].isupper():
            places = self.resolve_class(file, root)
        else:
            places = []
        for part in parts[1:]:
            if part == "[]":
                continue
            places = self._attribute(places, part)
        if not places:
            places = self._meant(file, parts[-1] if parts[-1] != "[]" else parts[-2])
        return places

    def _typed(self, file: int, spelled: str) -> list[tuple[int, int]]:
        return self.resolve_class(file, spelled.lstrip("["))

    def _made(self, file: int, function: FunctionSummary, spelled: str, depth: int) -> list[tuple[int, int]]:
        if depth > 3:
            return []
        if not spelled.endswith("()"):
            if spelled.startswith("self."):
                return self._classes_of(file, function, spelled)
            if spelled.startswith("["):
                return self._typed(file, spelled)
            return self.resolve_class(file, spelled) if spelled.rpartition(".")[2][:1].isupper() else []
        called = spelled[:-2]
        places = self.resolve_class(file, called)
        if places:
            return places
        for target, _ in self._targets_of_maker(file, function, called):
            returns = self.function(target).returns
            if returns:
                return self._typed(target[0], returns)
        return []

    def _targets_of_maker(self, file: int, function: FunctionSummary, called: str) -> Iterator[tuple[tuple[int, int], str]]:
        if called.startswith("self.") and called.count(".") == 1 and function.class_index >= 0:
            yield from ((target, "call") for target in self._members((file, function.class_index), called[5:], overrides=False))
        elif called in self._top[file]:
            yield (file, self._top[file][called]), "call"
        elif called.partition(".")[0] in self.files[file].imports:
            yield from ((target, "call") for target in self._imported(file, called))

    def _attribute(self, places: list[tuple[int, int]], name: str) -> list[tuple[int, int]]:
        found: dict[tuple[int, int], None] = {}
        for place in places[:3]:
            for ancestor in self.ancestors(place):
                described = self.class_at(ancestor)
                for spelled in described.attributes.get(name, ()):
                    for target in self._typed_or_made(ancestor, spelled):
                        found[target] = None
                if name in described.properties:
                    returns = self.files[ancestor[0]].functions[described.methods[name]].returns
                    for target in self._typed(ancestor[0], returns) if returns else ():
                        found[target] = None
                if found:
                    break
        return list(found)

    def _typed_or_made(self, place: tuple[int, int], spelled: str) -> list[tuple[int, int]]:
        if spelled.endswith("()"):
            called = spelled[:-2]
            places = self.resolve_class(place[0], called)
            if places:
                return places
            if called.partition(".")[0] in self.files[place[0]].imports or called in self._top[place[0]]:
                for target, _ in self._targets_of_maker(place[0], FunctionSummary("", "", 0, 0), called):
                    if self.function(target).returns:
                        return self._typed(target[0], self.function(target).returns)
            return []
        if spelled.rpartition(".")[2][:1].isupper() or spelled.startswith("["):
            return self._typed(place[0], spelled)
        return []

    def _meant(self, file: int, name: str) -> list[tuple[int, int]]:
        """What a project calls its attributes by habit: `self.impl` is an attention implementation."""
        table = roles.framework_of(self.files[file].module.partition(".")[0])
        if table is None or name not in table.means:
            return []
        return [place for wanted in table.means[name] for place in self.classes.get(wanted, ())[:2]]

    def _imported(self, file: int, spelled: str, depth: int = 0) -> Iterator[tuple[int, int]]:
        root, _, rest = spelled.partition(".")
        target = self.files[file].imports.get(root)
        if target is None or depth > 4:
            return
        full = f"{target}.{rest}" if rest else target
        if full.startswith("torch.ops."):
            yield from self.registered.get(full.rpartition(".")[2], ())
            return
        module, _, name = full.rpartition(".")
        number = self.by_module.get(module)
        if number is not None:
            index = self._top[number].get(name)
            if index is not None:
                yield (number, index)
            elif name in self.files[number].imports and number != file:
                yield from self._imported(number, name, depth + 1)  # a re-export
            else:
                places = [place for place in self.classes.get(name, ()) if place[0] == number]
                yield from self._constructed(places)
            return
        holder, _, class_name = module.rpartition(".")
        number = self.by_module.get(holder)  # module.Class.method
        if number is not None:
            for place in self.classes.get(class_name, ()):
                if place[0] == number:
                    yield from self._members(place, name, overrides=False)

    def _fallback(self, method: str, holder: str) -> Iterator[tuple[tuple[int, int], str]]:
        if method in GENERIC or holder == "self" or len(method) < 4:
            return
        candidates = self.methods.get(method, ())
        if 0 < len(candidates) <= FALLBACK_CLASSES:
            yield from ((target, "by name") for target in candidates)

    # ---------------------------------------------------------------- constructions

    def built_as(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        """The classes whose construction runs the constructor of a class; empty where one below it has a constructor of its own."""
        found = [place]
        for current in found:
            for child in self.subclasses.get(self.class_at(current).name, ()):
                if "__init__" in self.class_at(child).methods:
                    return []
                if child not in found:
                    found.append(child)
        return found

    def constructions(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        """The functions, hot and cold, that build an object whose constructor is that of a class."""
        if self._constructions is None:
            self._constructions = collections.defaultdict(list)
            for number, file in enumerate(self.files):
                for index, function in enumerate(file.functions):
                    for name in {last for spelled, _ in function.calls if (last := spelled.rpartition(".")[2])[:1].isupper()}:
                        self._constructions[name].append((number, index))
        found: dict[tuple[int, int], None] = {}
        for built in self.built_as(place):
            for caller in self._constructions.get(self.class_at(built).name, ()):
                spelled = [name for name, _ in self.function(caller).calls if name.rpartition(".")[2] == self.class_at(built).name]
                if any(built in self.resolve_class(caller[0], name) for name in spelled):
                    found[caller] = None
        return list(found)

    def calling(self, name: str, most: int) -> list[tuple[int, int]] | None:
        """The functions, hot and cold, that call something of this last name, whoever is meant, tests and the like left out; None
        where there are more than `most`. What is known of a name stays small: it is kept for every function of the tree."""
        if self._calling is None:
            self._calling = self._index_calls(most)
        found = self._calling.get(name, ())
        return None if found is None else [divmod(place, _FUNCTIONS) for place in found]

    def _index_calls(self, most: int) -> dict[str, list[int] | None]:
        found: dict[str, list[int] | None] = {name: [] for name in self.methods}
        found |= {name: [] for top in self._top for name in top}
        for number, file in enumerate(self.files):
            for index, function in enumerate(file.functions if not self._cold_paths[number] else ()):
                for spelled, _ in function.calls:
                    name = spelled.rpartition(".")[2]
                    places = found.get(name)
                    if places is None or (places and places[-1] == number * _FUNCTIONS + index):
                        continue
                    places.append(number * _FUNCTIONS + index)
                    if len(places) > most:
                        found[name] = None
        return {name: places for name, places in found.items() if places or places is None}

    # ---------------------------------------------------------------- answers

    def chain(self, key: tuple[int, int]) -> tuple[str, ...]:
        """The calls that lead to a function, root first."""
        return tuple(self.function(step).qualname for step in self.way(key))

    def way(self, key: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """The functions on the way to one, root first; beyond a root as long as a method of the same file calls it."""
        steps: list[tuple[int, int]] = []
        current: tuple[int, int] | None = key
        while current is not None and current not in steps and len(steps) < 40:
            steps.append(current)
            before = self.parents[current][0] if current in self.parents else None
            if before is None:
                entry = self.entries.get(current)
                before = entry if entry is not None and entry[0] == current[0] else None
            current = before
        steps.reverse()
        return tuple(steps)

    def _steps(self, key: tuple[int, int]) -> tuple[tuple[int, str], ...]:
        """The links of the chain that stand in the same file, the function itself left out."""
        here = [step for step in self.way(key) if step[0] == key[0] and step != key]
        return tuple((self.function(step).line, self.function(step).qualname) for step in here[-3:])

    def root_of(self, key: tuple[int, int]) -> Root | None:
        """The root that a hot function is reached from."""
        current: tuple[int, int] | None = key
        while current is not None:
            if current in self.roots:
                return self.roots[current]
            current = self.parents[current][0] if current in self.parents else None
        return None

    def _per(self, key: tuple[int, int]) -> str:
        """How often a hot function runs."""
        if self._runs_once(key):
            return GENERATION
        if key in self._late:
            steps = any(self.function(step).name.endswith("_step") for step in self.way(key))
            return "step" if steps else GENERATION  # `decode_step`, of another loop than the one that is known
        root = self.root_of(key)
        return root.per if root is not None and root.per != GENERATION else "step"

    def _turns(self, key: tuple[int, int]) -> tuple[tuple[int, int], ...] | None:
        """The loops over time steps of a function that runs once around one, or is called by such; None for all others."""
        way = self.way(key)
        return self.function(key).step_lines if any(step in self._around for step in way) else None

    def verdict(self, key: tuple[int, int]) -> Verdict:
        """Heat, reason and chain of a function."""
        known = self._verdicts.get(key)
        if known is None:
            known = self._verdicts[key] = self._decide(key)
        return known

    def _decide(self, key: tuple[int, int]) -> Verdict:
        function = self.function(key)
        if function.is_kernel:
            return Verdict(Heat.COLD, "it is compiled for the device")
        if reason := self.cold_reason(key):
            return Verdict(Heat.COLD, reason)
        if function.is_cached:
            return Verdict(Heat.COLD, "its result is cached")
        if key in self.roots:
            root = self.roots[key]
            lines = function.training_lines if self._owns_loop(function, root) else ()
            return Verdict(Heat.ROLE, root.reason, self.chain(key), self._per(key), lines, self._steps(key), self._turns(key))
        if key in self.parents:
            found = self.root_of(key)
            chain = self.chain(key)
            reason = f"reached from {chain[0]}" + (f", since {found.reason}" if found is not None and found.reason else "")
            return Verdict(Heat.REACHED, reason, chain, self._per(key), (), self._steps(key), self._turns(key))
        if self.is_weak(key):
            return Verdict(Heat.COLD, f"{function.name} runs rarely, by its name, and nothing hot calls it")
        if roles.HOT_NAME.match(function.name):
            if caller := self._only_cold_callers(key):
                return Verdict(Heat.COLD, f"only {caller} calls it")
            if self._evaluates(key, function):
                return Verdict(Heat.NOTHING, f"{function.name} sounds like a step, but what only measures is called in validation")
            if function.class_index >= 0 and self._transforms_data(key[0], function.class_index):
                return Verdict(Heat.NOTHING, f"{function.name} sounds like a step, but transforms change samples while they are loaded")
            if roles.measures(self.files[key[0]].path, self.files[key[0]].module):
                return Verdict(Heat.NOTHING, f"{function.name} sounds like a step, but what only measures is called in validation")
            if caller := self._only_around_loops(key):
                return Verdict(Heat.NAMED, f"{function.name} sounds like a step, and {caller} calls it", per=GENERATION, turns=())
            reason = f"{function.name} sounds like a step, and nothing in sight calls it"
            return Verdict(Heat.NAMED, reason, doubt=self._doubt(key, function))
        return Verdict(Heat.NOTHING, "nothing hot in sight calls it")

    def _doubt(self, key: tuple[int, int], function: FunctionSummary) -> str:
        """Why a function that sounds like a step may be none: every container has a method of that name, or nothing in a whole package
        mentions the name. Decorators may enter it into a table, and a base from elsewhere may call it."""
        if function.class_index >= 0:
            if function.name in _OF_CONTAINERS:
                return f"any container has a method called `{function.name}`"
            if any(base.rpartition(".")[2] not in self.classes for base in self.class_at((key[0], function.class_index)).bases):
                return ""
        if len(self.files) < _MANY_FILES or function.decorators or function.parent_index >= 0:
            return ""
        if self.calling(function.name, MANY_CALLERS) != [] or function.name in self._names_imported():
            return ""
        return f"nothing in these {len(self.files)} files calls `{function.name}` by its name"

    def _names_imported(self) -> frozenset[str]:
        """The last names that files import; the `__init__.py` of a package only hands them on."""
        if self._last_imported is None:
            files = [file for file in self.files if not file.path.endswith("__init__.py")]
            self._last_imported = frozenset(name.rpartition(".")[2] for file in files for name in file.imports.values())
        return self._last_imported

    def _only_cold_callers(self, key: tuple[int, int]) -> str:
        """The name of a rare caller, if the function has callers (in its own file, else anywhere by its name) and all are rare, or
        are themselves called by rare ones alone."""
        found, pending, seen = "", [key], {key}
        while pending:
            current = pending.pop()
            name, callers = self.function(current).name, [other for other in self._callers_named(current) if other != current]
            if not callers:
                return ""
            for other in callers:
                caller = self.function(other)
                is_constructor = caller.name in ("__init__", "__post_init__")
                if (is_constructor or not self.cold_reason(other)) and _only_mentions(caller, name):
                    return ""  # handed to a thread, or kept: who calls it is not in sight
                is_rare = self.cold_reason(other) or self.is_weak(other) or is_constructor
                if is_rare or _calls_rarely(caller, name):
                    found = caller.qualname if is_rare else f"{caller.qualname}, behind a test that rarely holds,"
                elif other in self.parents or len(seen) > _COLD_CALLERS:
                    return ""
                elif other not in seen:
                    seen.add(other)
                    pending.append(other)
        return found

    def _callers_named(self, key: tuple[int, int]) -> list[tuple[int, int]]:
        """Who calls something of this name, in the function's own file, or else anywhere."""
        name = self.function(key).name
        return [(key[0], index) for index in self._callers_in(key[0]).get(name, ())] or self._callers_by_name().get(name, [])

    def _only_around_loops(self, key: tuple[int, int]) -> str:
        """The name of a caller, if the function has some and each runs once around a loop over tokens or over time steps, and calls it
        outside that loop."""
        name, found = self.function(key).name, ""
        for other in self._callers_named(key):
            caller = self.function(other)
            flags = [flags for spelled, flags in caller.calls if spelled.rpartition(".")[2] == name]
            if not self._runs_once(other) or any(each & (IN_STEPS | IN_TRAINING | MENTIONED) for each in flags):
                return ""
            found = caller.qualname
        return found

    def _callers_by_name(self) -> dict[str, list[tuple[int, int]]]:
        """Who calls what under which last name, for functions that nothing hot reaches and whose name sounds like a step."""
        if self._by_name is None:
            wanted = {
                function.name
                for number, file in enumerate(self.files)
                for index, function in enumerate(file.functions)
                if (number, index) not in self.parents and function.name not in GENERIC and roles.HOT_NAME.match(function.name)
            }
            self._by_name = collections.defaultdict(list)
            for number, file in enumerate(self.files):
                for index, function in enumerate(file.functions):
                    for name in wanted.intersection([spelled.rpartition(".")[2] for spelled, _ in function.calls]):
                        self._by_name[name].append((number, index))
        return self._by_name

    def _callers_in(self, file: int) -> dict[str, list[int]]:
        """The functions of a file by what they call as `f` or as `self.f`."""
        known = self._callers.get(file)
        if known is None:
            known = self._callers[file] = collections.defaultdict(list)
            for index, function in enumerate(self.files[file].functions):
                for name in {spelled.removeprefix("self.") for spelled, _ in function.calls}:
                    known[name].append(index)
        return known


def _calls_once(caller: FunctionSummary, names: set[str]) -> bool:
    """True if `caller` calls one of these functions of its file, and not in a loop over time steps."""
    flags = [flags for spelled, flags in caller.calls if not flags & (MENTIONED | RARELY) and spelled.removeprefix("self.") in names]
    return bool(flags) and not any(each & (IN_STEPS | IN_TRAINING) for each in flags)


def _calls(caller: FunctionSummary, name: str) -> bool:
    """True if `caller` calls a function of its file or a method of its class by this name."""
    return any(not flags & MENTIONED and spelled.removeprefix("self.") == name for spelled, flags in caller.calls)


def _only_mentions(caller: FunctionSummary, name: str) -> bool:
    return all(flags & MENTIONED for spelled, flags in caller.calls if spelled.rpartition(".")[2] == name)


def _calls_rarely(caller: FunctionSummary, name: str) -> bool:
    """True if `caller` calls `name` only behind tests that let it run once, or when debugging."""
    return all(flags & RARELY for spelled, flags in caller.calls if spelled.rpartition(".")[2] == name)


# ---------------------------------------------------------------- what a name says, once for each name of a package


@functools.lru_cache(maxsize=65536)
def _patterns_for(package: str, name: str) -> tuple[tuple[Globs, Root, bool], ...]:
    """The patterns of whole functions that a function of this name may match, in order."""
    ending = f".{name}"
    return tuple(entry for entry in _patterns_of(package) if not entry[2] or entry[0].patterns[0].endswith(ending))


@functools.cache
def _patterns_of(package: str) -> tuple[tuple[Globs, Root, bool], ...]:
    """All patterns of whole functions, each of one glob."""
    return tuple(entry for table in roles.tables_of(package) for entry in table.functions)


@functools.lru_cache(maxsize=65536)
def _is_exception(package: str, name: str) -> bool:
    return any(table.exceptions.match(name) for table in roles.tables_of(package))


@functools.lru_cache(maxsize=65536)
def _is_wall(package: str, name: str) -> bool:
    return any(table.walls.match(name) for table in roles.tables_of(package))


@functools.lru_cache(maxsize=65536)
def _is_weak(package: str, name: str) -> bool:
    if _is_exception(package, name):
        return False
    return bool(roles.COLD_NAME.match(name)) or any(table.weak.match(name) for table in roles.tables_of(package))


@functools.lru_cache(maxsize=65536)
def _sounds_cold(package: str, class_name: str) -> bool:
    return bool(roles.COLD_CLASS.search(class_name)) or any(table.classes.match(class_name) for table in roles.tables_of(package))


@functools.lru_cache(maxsize=65536)
def _bases_for(method: str) -> tuple[tuple[Framework, tuple[BaseRoot, ...]], ...]:
    """The bases of which a method of this name is a root, table by table."""
    exact, wild = _methods_of_bases()
    wanted = sorted({*exact.get(method, ()), *(place for place in wild if _base_at(place).methods.match(method))})
    tables = list(roles.frameworks().values())
    return tuple((tables[number], tuple(map(_base_at, group))) for number, group in itertools.groupby(wanted, key=lambda place: place[0]))


_BasePlace = tuple[int, int]  # which table, which of its bases


@functools.cache
def _methods_of_bases() -> tuple[dict[str, list[_BasePlace]], list[_BasePlace]]:
    """The bases by each method that they name, and those that name methods by a pattern."""
    exact: dict[str, list[_BasePlace]] = collections.defaultdict(list)
    wild: list[_BasePlace] = []
    for number, table in enumerate(roles.frameworks().values()):
        for index, entry in enumerate(table.bases):
            for method in entry.methods.exact:
                exact[method].append((number, index))
            if entry.methods.is_wild:
                wild.append((number, index))
    return exact, wild


def _base_at(place: _BasePlace) -> BaseRoot:
    return list(roles.frameworks().values())[place[0]].bases[place[1]]


def _article(name: str) -> str:
    return f"an {name}" if name[:1] in "AEIOU" else f"a {name}"

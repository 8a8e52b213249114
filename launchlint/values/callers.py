"""What the callers of a function, in whatever file of the run, give to its parameters.

A second look asks this, for functions that hold a finding: most parameters say nothing by themselves of where their tensors
live, and the callers do. Only calls that the call graph has followed from hot functions count, and for a constructor every
construction in sight. One caller that cannot be read leaves the parameter unknown, and so does a function that is handed
on as a value. Callers are parsed again, a few at a time, each evaluated by itself: the answer for a function depends on
nothing that was asked before.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from launchlint.hot.graph import MANY_CALLERS, Graph
from launchlint.model import Heat
from launchlint.modules import module_of
from launchlint.names import last_name
from launchlint.rule import FunctionNode
from launchlint.scan import ClassScope, Interest, Scan, Scope, decorator_names, scan
from launchlint.source import SourceError
from launchlint.trees import branches
from launchlint.values.annotations import value_of_annotation
from launchlint.values.conventions import device_of_name
from launchlint.values.evaluate import Environment, Outside
from launchlint.values.flow import Flow, defaults_of
from launchlint.values.parameters import LEFT_OUT, NOTHING_GIVEN, Given, argument_of
from launchlint.values.settled import NOTHING_SETTLED, Settled, settle
from launchlint.values.value import HOST_KINDS, NOTHING, Device, Kind, Origin, Value

Key = tuple[int, int]

DEPTH = 2  # the caller of a caller is the last one asked
MANY_CONSTRUCTIONS = 4
_KEPT_FILES = 4  # trees kept at a time
_KEPT_FLOWS = 4
_CONSTRUCTORS = ("__init__", "__post_init__")
_NOTHING_ASKED = Interest([])


class CallSites:
    """Answers for all files of a run."""

    def __init__(self, graph: Graph, outside: Outside) -> None:
        self.graph = graph
        self.outside = outside
        self._given: dict[tuple[Key, int], Given] = {}
        self._settled: dict[Key, Settled] = {}
        self._flows: collections.OrderedDict[tuple[FunctionNode, int], Flow] = collections.OrderedDict()
        self._scans: collections.OrderedDict[str, Scan | None] = collections.OrderedDict()

    def of(self, number: int, depth: int = 0) -> FileCallers:
        """The answers for one file, by its number in the graph."""
        return FileCallers(self, number, depth)

    def lend(self, path: str, found: Scan) -> None:
        """Take the scan of a file that is being checked: most callers of a function stand in its own file."""
        self._keep(path, found)

    def given(self, key: Key, node: FunctionNode, depth: int = 0) -> Given:
        """What is given to the parameters of a function."""
        known = self._given.get((key, depth))
        if known is None:
            self._given[key, depth] = NOTHING_GIVEN  # ends recursion in the linted code
            known = self._given[key, depth] = self._ask(key, node, depth)
        return known

    def consulted(self, asked: Iterable[Key]) -> list[Key]:
        """The callers whose code an answer about some functions depends on, and theirs."""
        level = list(asked)
        found = dict.fromkeys(other for key in level for other in self._all_callers(key, self._names_of(key)))
        for _ in range(DEPTH):
            level = [caller for key in level for caller in self._callers_of(key)]
            found |= dict.fromkeys(level)
        return sorted(found)

    def _ask(self, key: Key, node: FunctionNode, depth: int) -> Given:
        names = self._names_of(key)
        sites: list[_Site] = []
        shift, given = self._shift(node), NOTHING_GIVEN
        for caller in self._nearest_first(key):
            found = list(self._sites(caller, names, depth))
            sites += found
            given = _join(node, shift, sites) if found else NOTHING_GIVEN  # else it is called under another name
            if not given:
                return NOTHING_GIVEN
        return given

    def _nearest_first(self, key: Key) -> list[Key]:
        """The callers, those in the file of the function first: that file is at hand."""
        return sorted(self._callers_of(key), key=lambda caller: (caller[0] != key[0], caller))

    def _callers_of(self, key: Key) -> list[Key]:
        """The functions that call one; none where others may call it that are not in sight."""
        graph, function = self.graph, self.graph.function(key)
        if function.parent_index >= 0 or key in graph.mentioned:
            return []
        if function.name in _CONSTRUCTORS:
            builders = graph.constructions((key[0], function.class_index)) if function.class_index >= 0 else []
            return builders if len(builders) <= MANY_CONSTRUCTIONS else []
        callers = list(graph.callers.get(key, ())) if key not in graph.roots else []
        return callers if len(callers) <= MANY_CALLERS else []

    def _names_of(self, key: Key) -> frozenset[str]:
        """The last names under which a function is called."""
        function = self.graph.function(key)
        if function.name not in _CONSTRUCTORS:
            return frozenset({function.name})
        place = (key[0], function.class_index)
        return frozenset(self.graph.class_at(current).name for current in self.graph.built_as(place))

    @staticmethod
    def _shift(node: FunctionNode) -> int:
        """How many parameters a call does not write: `self`."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        is_static = any(name.endswith("staticmethod") for name in decorator_names(node))
        return 1 if arguments and arguments[0].arg in ("self", "cls") and not is_static else 0

    def settled(self, key: Key, node: FunctionNode) -> Settled:
        """What the calls in sight, those by functions that run rarely left out, settle of the parameters of a function; nothing where
        one of them cannot be read."""
        known = self._settled.get(key)
        if known is None:
            names = self._names_of(key)
            calls: list[tuple[ast.Call, FunctionNode]] = []
            for caller in self._all_callers(key, names):
                if self.graph.verdict(caller).heat is Heat.COLD:
                    continue  # what runs for it alone runs rarely
                scope, _, found = self._calls_in(caller, names)
                if scope is None or scope.node is None or not found:
                    calls = []
                    break
                calls += [(call, scope.node) for call in found]
            known = self._settled[key] = settle(node, self._shift(node), calls)
        return known

    def _all_callers(self, key: Key, names: frozenset[str]) -> list[Key]:
        """The callers of a function and all that may be; none where others may call it, or too many do."""
        found = dict.fromkeys(self._nearest_first(key))
        for name in sorted(names) if found else ():
            others = self.graph.calling(name, MANY_CALLERS)
            if others is None:
                return []
            found |= dict.fromkeys(others)
        return list(found) if len(found) <= MANY_CALLERS else []

    def _calls_in(self, caller: Key, names: frozenset[str]) -> tuple[Scope | None, Scan | None, list[ast.Call]]:
        """A caller, its file, and its calls under some names."""
        function = self.graph.function(caller)
        found = self._scan(self.graph.files[caller[0]].path)
        scope = _scope_of(found, function.line, function.name) if found is not None else None
        if scope is None or scope.node is None:
            return None, found, []
        return scope, found, [call for call in _calls(scope.node) if last_name(call.func) in names]

    def _sites(self, caller: Key, names: frozenset[str], depth: int) -> Iterator[_Site]:
        """The calls in one caller, with the values of their arguments."""
        scope, found, calls = self._calls_in(caller, names)
        if not calls or found is None or scope is None or scope.outermost.node is None:
            return
        function, path = self.graph.function(caller), self.graph.files[caller[0]].path
        flow = self._flow(caller[0], scope.outermost.node, scope.outermost.owner, found, depth)
        for call in calls:
            yield _Site(call, flow, f"{function.qualname} ({path}:{call.lineno})")

    def _flow(self, number: int, node: FunctionNode, owner: ClassScope | None, found: Scan, depth: int) -> Flow:
        """The flow of one function by itself; the few that were asked for last are kept, since a caller calls several functions."""
        key = (node, depth)
        flow = self._flows.pop(key, None)
        if flow is None:
            above = self.of(number, depth + 1) if depth + 1 < DEPTH else None
            if above is not None:
                above.wants(node, None, found)
            flow = Flow(found, self.outside, above)
            flow.function(node, owner)
        self._flows[key] = flow
        if len(self._flows) > _KEPT_FLOWS:
            self._flows.popitem(last=False)
        return flow

    def _scan(self, path: str) -> Scan | None:
        """A file, parsed and scanned; the few that were asked for last are kept."""
        if path in self._scans:
            self._scans.move_to_end(path)
            return self._scans[path]
        from launchlint.engine import read_source

        found: Scan | None = None
        try:
            source = read_source(path)
            found = scan(source.tree, source.text, _NOTHING_ASKED, *module_of(path), wanted=lambda _: False)
        except (SourceError, RecursionError, MemoryError):
            pass  # the file's own check says so
        self._keep(path, found)
        return found

    def _keep(self, path: str, found: Scan | None) -> None:
        self._scans[path] = found
        self._scans.move_to_end(path)
        if len(self._scans) > _KEPT_FILES:
            self._scans.popitem(last=False)


class FileCallers:
    """The answers for one file, as a flow asks for them: for constructors, and for the functions that are named to `wants`."""

    def __init__(self, sites: CallSites, number: int, depth: int = 0) -> None:
        self.sites = sites
        self.number = number
        self.depth = depth
        self.asked: set[int] = set()
        self._wanted: set[FunctionNode] = set()

    def wants(self, node: FunctionNode, owner: ClassScope | None, found: Scan) -> bool:
        """Answer for this function too; False where nothing is known of its parameters, or of those of its class's constructor."""
        self._wanted.add(node)
        self.sites.lend(self.sites.graph.files[self.number].path, found)
        constructors = [owner.methods[name] for name in _CONSTRUCTORS if name in owner.methods] if owner is not None else []
        return any(self.given(item) for item in (node, *constructors))

    def settled(self, node: FunctionNode, found: Scan) -> Settled:
        """What the calls in sight settle of the parameters of a function of the file."""
        index = self.sites.graph.index_at(self.number, node.lineno, node.name)
        if index is None:
            return NOTHING_SETTLED
        self.asked.add(index)
        self.sites.lend(self.sites.graph.files[self.number].path, found)
        return self.sites.settled((self.number, index), node)

    def given(self, node: FunctionNode) -> Given:
        """What is given to the parameters of a function of the file."""
        index = self.sites.graph.index_at(self.number, node.lineno, node.name)
        is_constructor = self.depth == 0 and node.name in _CONSTRUCTORS
        if index is None or not (is_constructor or node in self._wanted):
            return NOTHING_GIVEN
        self.asked.add(index)
        return self.sites.given((self.number, index), node, self.depth)


@dataclass(frozen=True, slots=True)
class _Site:
    call: ast.Call
    flow: Flow
    where: str


def _calls(node: FunctionNode) -> Iterator[ast.Call]:
    pending: list[ast.AST] = list(node.body)
    while pending:
        current = pending.pop()
        if current.__class__ is ast.Call:
            yield current
        pending += branches(current)


def _scope_of(found: Scan, line: int, name: str) -> Scope | None:
    for scope in found.scopes:
        if scope.node is not None and scope.node.lineno == line and scope.node.name == name:
            return scope
    return None


def _join(node: FunctionNode, shift: int, sites: list[_Site]) -> Given:
    """What all calls agree on, parameter by parameter."""
    values: dict[str, Value] = {}
    defaults = {argument.arg: default for argument, default in defaults_of(node)}
    positional = [*node.args.posonlyargs, *node.args.args]
    for index, argument in enumerate([*positional, *node.args.kwonlyargs]):
        if index < shift:
            continue
        place = index - shift if index < len(positional) else -1
        given = [argument_of(site.call, argument.arg, place) for site in sites]
        if any(expr is None for expr in given):
            continue  # hidden behind `*args` or `**options`
        read = [_read(site, expr, argument.arg, defaults) for site, expr in zip(sites, given, strict=True)]
        agreed = _agreed(read)
        if agreed is not NOTHING and not _says_as_much(argument, agreed):
            more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
            values[argument.arg] = agreed.but(origin=Origin(0, f"what {sites[0].where}{more} gives"))
    return values


def _says_as_much(argument: ast.arg, given: Value) -> bool:
    """True where the annotation of a parameter leaves nothing to learn: `width: int` is a number, whoever calls."""
    promised = value_of_annotation(argument.annotation)
    return promised.kind is given.kind and given.kind not in (Kind.TENSOR, Kind.DEVICE)


def _read(site: _Site, expr: ast.expr | None, name: str, defaults: dict[str, ast.expr]) -> Value:
    """The value of an argument, as the caller has it."""
    empty: Environment = {}
    if expr is LEFT_OUT or expr is None:
        expr = defaults.get(name)
        if not isinstance(expr, ast.Constant):
            return NOTHING
    if device_of_name(name) is not Device.UNKNOWN:
        device = site.flow.device(expr, empty)
        return Value(Kind.DEVICE, device) if device is not Device.UNKNOWN else NOTHING
    if isinstance(expr, ast.Constant):
        return Value(Kind.NONE if expr.value is None else Kind.SCALAR)
    return site.flow.seen.get(id(expr), NOTHING)


def _agreed(values: Iterable[Value]) -> Value:
    """The value where all are on the host; NOTHING where one is not, or is not known.

    That all are on the device is not passed on. Read by hand, half of the findings that it added were worth it: functions that
    are handed a tensor by one caller of another file are mostly prologues and deliberate reads.
    """
    known = [value for value in values if value.kind is not Kind.NONE]
    if not known:
        return NOTHING
    by_name = any(value.by_name for value in known)
    first = known[0]
    if all(value.kind is Kind.DEVICE for value in known):
        return first if all(value.device is Device.HOST for value in known) else NOTHING
    if all(value.on_host for value in known):
        if all(value.kind is first.kind for value in known):
            pinned = first.pinned if all(value.pinned is first.pinned for value in known) else None
            return first.but(by_name=by_name, pinned=pinned)
        if all(value.kind in HOST_KINDS or value.kind is Kind.TENSOR for value in known):
            return Value(Kind.TENSOR, Device.HOST, by_name=by_name)
    return NOTHING

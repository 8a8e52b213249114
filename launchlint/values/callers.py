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

from launchlint.hot.graph import Graph
from launchlint.names import last_name
from launchlint.rule import FunctionNode
from launchlint.scan import ClassScope, Interest, Scan, Scope, decorator_names, scan
from launchlint.source import Source, SourceError
from launchlint.trees import branches
from launchlint.values.conventions import device_of_name
from launchlint.values.evaluate import Environment, Outside, has_splat, keyword
from launchlint.values.flow import Flow
from launchlint.values.parameters import NOTHING_GIVEN, Given
from launchlint.values.value import HOST_KINDS, NOTHING, Device, Kind, Origin, Value

Key = tuple[int, int]

DEPTH = 2  # the caller of a caller is the last one asked
MANY_CALLERS = 8  # a function that more call is a helper for everybody
_KEPT_FILES = 6  # trees kept at a time
_CONSTRUCTORS = ("__init__", "__post_init__")
_NOTHING_ASKED = Interest([])


class CallSites:
    """Answers for all files of a run."""

    def __init__(self, graph: Graph, outside: Outside) -> None:
        self.graph = graph
        self.outside = outside
        self._given: dict[tuple[Key, int], Given] = {}
        self._scans: collections.OrderedDict[str, Scan | None] = collections.OrderedDict()

    def of(self, number: int, depth: int = 0) -> FileCallers:
        """The answers for one file, by its number in the graph."""
        return FileCallers(self, number, depth)

    def given(self, key: Key, node: FunctionNode, depth: int = 0) -> Given:
        """What is given to the parameters of a function."""
        known = self._given.get((key, depth))
        if known is None:
            self._given[key, depth] = NOTHING_GIVEN  # ends recursion in the linted code
            known = self._given[key, depth] = self._ask(key, node, depth)
        return known

    def _ask(self, key: Key, node: FunctionNode, depth: int) -> Given:
        names = self._names_of(key)
        sites: list[_Site] = []
        for caller in self._callers_of(key):
            found = list(self._sites(caller, names, depth))
            if not found:
                return NOTHING_GIVEN  # it is called under another name
            sites += found
        return _join(node, self._shift(key, node), sites) if sites else NOTHING_GIVEN

    def _callers_of(self, key: Key) -> list[Key]:
        """The functions that call one; none where others may call it that are not in sight."""
        graph, function = self.graph, self.graph.function(key)
        if function.parent_index >= 0 or key in graph.mentioned:
            return []
        if function.name in _CONSTRUCTORS:
            callers = graph.constructions((key[0], function.class_index)) if function.class_index >= 0 else []
        elif key in graph.roots:
            return []
        else:
            callers = list(graph.callers.get(key, ()))
        return callers if len(callers) <= MANY_CALLERS else []

    def _names_of(self, key: Key) -> frozenset[str]:
        """The last names under which a function is called."""
        function = self.graph.function(key)
        if function.name not in _CONSTRUCTORS:
            return frozenset({function.name})
        place = (key[0], function.class_index)
        return frozenset(self.graph.class_at(current).name for current in self.graph.built_as(place))

    @staticmethod
    def _shift(key: Key, node: FunctionNode) -> int:
        """How many parameters a call does not write: `self`."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        is_static = any(name.endswith("staticmethod") for name in decorator_names(node))
        return 1 if arguments and arguments[0].arg in ("self", "cls") and not is_static else 0

    def _sites(self, caller: Key, names: frozenset[str], depth: int) -> Iterator[_Site]:
        """The calls in one caller, with the values of their arguments."""
        function = self.graph.function(caller)
        file = self.graph.files[caller[0]]
        found = self._scan(file.path)
        scope = _scope_of(found, function.line, function.name) if found is not None else None
        if found is None or scope is None or scope.node is None or scope.outermost.node is None:
            return
        calls = [call for call in _calls(scope.node) if last_name(call.func) in names]
        if not calls:
            return
        above = self.of(caller[0], depth + 1) if depth + 1 < DEPTH else None
        if above is not None:
            above.wants(scope.outermost.node, scope.outermost.owner)
        flow = Flow(found, self.outside, above)
        flow.function(scope.outermost.node, scope.outermost.owner)
        for call in calls:
            yield _Site(call, flow, f"{function.qualname} ({file.path}:{call.lineno})")

    def _scan(self, path: str) -> Scan | None:
        """A file, parsed and scanned; the few that were asked for last are kept."""
        if path in self._scans:
            self._scans.move_to_end(path)
            return self._scans[path]
        from launchlint.engine import read_source

        found: Scan | None = None
        try:
            source = read_source(path)
            found = self._scan_of(source)
        except (SourceError, RecursionError, MemoryError):
            pass  # the file's own check says so
        self._scans[path] = found
        if len(self._scans) > _KEPT_FILES:
            self._scans.popitem(last=False)
        return found

    def _scan_of(self, source: Source) -> Scan:
        from launchlint.modules import module_of

        return scan(source.tree, source.text, _NOTHING_ASKED, *module_of(source.path), wanted=lambda _: False)


class FileCallers:
    """The answers for one file, as a flow asks for them: for constructors, and for the functions that are named to `wants`."""

    def __init__(self, sites: CallSites, number: int, depth: int = 0) -> None:
        self.sites = sites
        self.number = number
        self.depth = depth
        self.asked: set[Key] = set()
        functions = sites.graph.files[number].functions
        self._lines = {(function.line, function.name): index for index, function in enumerate(functions)}
        self._wanted: set[FunctionNode] = set()

    def wants(self, node: FunctionNode, owner: ClassScope | None) -> bool:
        """Answer for this function too; False where nothing is known of its parameters, or of those of its class's constructor."""
        self._wanted.add(node)
        constructors = [owner.methods[name] for name in _CONSTRUCTORS if name in owner.methods] if owner is not None else []
        return any(self.given(item).values for item in (node, *constructors))

    def given(self, node: FunctionNode) -> Given:
        """What is given to the parameters of a function of the file."""
        index = self._lines.get((node.lineno, node.name))
        if index is None or not (node in self._wanted or node.name in _CONSTRUCTORS):
            return NOTHING_GIVEN
        self.asked.add((self.number, index))
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
    always: set[str] = set()
    defaults = _defaults(node)
    positional = [*node.args.posonlyargs, *node.args.args]
    for index, argument in enumerate([*positional, *node.args.kwonlyargs]):
        if index < shift:
            continue
        place = index - shift if index < len(positional) else -1
        given = [_argument(site, argument.arg, place) for site in sites]
        if any(expr is None for expr in given):
            continue  # hidden behind `*args` or `**options`
        read = [_read(site, expr, argument.arg, defaults) for site, expr in zip(sites, given, strict=True)]
        if all(expr is not _LEFT_OUT for expr in given) and not any(value.kind in (Kind.UNKNOWN, Kind.NONE) for value in read):
            always.add(argument.arg)
        agreed = _agreed(read)
        if agreed is not NOTHING:
            more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
            values[argument.arg] = agreed.but(origin=Origin(0, f"what {sites[0].where}{more} gives"))
    return Given(values, frozenset(always))


_LEFT_OUT = ast.Constant(value=...)


def _argument(site: _Site, name: str, place: int) -> ast.expr | None:
    """What a call gives to a parameter; `_LEFT_OUT` for its default, None where the call does not show it."""
    found = keyword(site.call, name)
    if found is not None:
        return found
    before = site.call.args[: place + 1] if place >= 0 else []
    if any(isinstance(argument, ast.Starred) for argument in before):
        return None
    if 0 <= place < len(site.call.args):
        return site.call.args[place]
    hidden = has_splat(site.call) or any(isinstance(argument, ast.Starred) for argument in site.call.args)
    return None if hidden else _LEFT_OUT


def _defaults(node: FunctionNode) -> dict[str, ast.expr]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found = {argument.arg: value for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False)}
    found |= {argument.arg: value for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None}
    return found


def _read(site: _Site, expr: ast.expr | None, name: str, defaults: dict[str, ast.expr]) -> Value:
    """The value of an argument, as the caller has it."""
    empty: Environment = {}
    if expr is _LEFT_OUT or expr is None:
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

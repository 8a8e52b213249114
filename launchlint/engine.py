"""From files to findings: summaries first, then the call graph, then values and rules where something may be hot.

Two passes, because a function's callers may live in any file: the first pass parses every file and keeps a summary, the
second parses again the files that hold a place worth looking at in a function that may run every step. No tree is kept.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from launchlint import suppress
from launchlint.alternatives import fallback_definitions
from launchlint.context import SiteContext
from launchlint.conversions import guards_of_conversions
from launchlint.generation import guards_of_generation
from launchlint.guards import (
    Guard,
    guards_before,
    guards_of,
    guards_of_constructor,
    guards_of_debug_mode,
    guards_of_returns,
    guards_of_switches,
)
from launchlint.hot import FileSummary, Graph, Verdict, summarize
from launchlint.hot.roles import cold_path, kernel_path, other_device
from launchlint.model import Confidence, FileReport, Finding, Fix, Heat, Hot, Level, Problem, Related, Span
from launchlint.modules import module_of
from launchlint.names import dotted
from launchlint.patterns import Pattern
from launchlint.remarks import remarks_on
from launchlint.rule import Check, FunctionFacts, FunctionNode, Hit, Outcome, Rule, Silence
from launchlint.scan import Interest, Scan, Scope, Site, Wanted, decorator_names, scan, worth_parsing
from launchlint.settings import Settings
from launchlint.source import Source, SourceError
from launchlint.spent import Spent, stage_of
from launchlint.trees import walk
from launchlint.validation import guards_of_validation
from launchlint.values.callers import CallSites, FileCallers
from launchlint.values.evaluate import Outside
from launchlint.values.flow import Flow
from launchlint.values.outside import ProjectValues
from launchlint.values.settled import dead_branch, tested

if TYPE_CHECKING:
    from launchlint.cache import Cache

Progress = Callable[[int], None]
_COLD = Verdict(Heat.COLD, "device code")
_UNKNOWN = Verdict(Heat.NOTHING, "not part of a function")
_UPLOADS = "uploads"
_LAUNCHES = "launches"
REPLACING = Pattern(r"use_\w*_implementation$|use_kernel\w*$|\w*_from_hub$|register_\w*_implementation$")
COMPILING = Pattern(r"(^|_)torch_compile$|^torch\.compile$")
CLOSER_FILES = 50  # below, functions with a finding are looked at again with what unchecked modules of the package say
FEW_FILES = 50  # below, neither more processes nor a cache would pay


@dataclass(slots=True)
class Report:
    """What a run found: a report for each file, in the order the files were given, and figures about the run."""

    files: list[FileReport] = field(default_factory=list)
    stats: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """Why one rule did or did not report at one place; kept only when somebody asks."""

    code: str
    name: str
    span: Span
    level: Level | None
    heat: Heat
    confidence: Confidence | None
    reason: str


class Project:
    """The call graph of the files of a run, asked by file and line."""

    def __init__(self, summaries: Iterable[FileSummary], settings: Settings) -> None:
        self.graph = Graph(summaries, settings.hot, settings.cold)
        self.values = ProjectValues(self.graph)
        self.call_sites = CallSites(self.graph, self.values)
        self.looks_closer = len(self.graph.files) < CLOSER_FILES
        self._files = {file.path: number for number, file in enumerate(self.graph.files)}

    def verdict(self, path: str, scope: Scope) -> Verdict:
        """What is known about the function `scope` of the file `path`."""
        return _UNKNOWN if scope.node is None else self.verdict_at(path, scope.node.lineno, scope.node.name)

    def verdict_at(self, path: str, line: int, name: str) -> Verdict:
        """What is known about the function `name` that starts on a line of the file `path`."""
        if path not in self._files:
            return _UNKNOWN
        number = self._files[path]
        index = self.graph.index_at(number, line, name)
        return self.graph.verdict((number, index)) if index is not None else _UNKNOWN

    def callers(self, path: str) -> FileCallers | None:
        """The callers of the functions of a file, where there is more than this file to ask."""
        return self.call_sites.of(self._files[path]) if path in self._files and len(self._files) > 1 else None

    def callers_digest(self, path: str, asked: Sequence[int], digests: Mapping[str, str]) -> str:
        """What the answers of the callers of some functions of a file depend on, as text: who they are, and their files' digests."""
        if not asked:
            return ""
        keys = self.call_sites.consulted((self._files[path], index) for index in asked)
        files = self.graph.files
        heat = self.graph.verdict
        return repr([(files[number].path, index, heat((number, index)).heat, digests.get(files[number].path)) for number, index in keys])

    def module(self, path: str) -> str:
        """Dotted name of a file of this project."""
        return self.graph.files[self._files[path]].module if path in self._files else module_of(path)[0]

    def heat_of(self, path: str) -> str:
        """The verdicts of a file that a report can depend on, as text."""
        number = self._files[path]
        functions = self.graph.files[number].functions
        verdicts = (self.graph.verdict((number, index)) for index in range(len(functions)))
        return repr([(index, verdict) for index, verdict in enumerate(verdicts) if verdict.heat > Heat.NOTHING])

    def may_report(self, path: str) -> bool:
        """False where no function of the file can be reported, so that it need not be parsed again."""
        number = self._files.get(path)
        if number is None:
            return False
        graph = self.graph
        return any(graph.verdict((number, index)).heat > Heat.NOTHING for index in range(len(graph.files[number].functions)))


# ---------------------------------------------------------------- one file


def check_source(
    source: Source,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project | None = None,
    trace: list[Decision] | None = None,
    spent: Spent | None = None,
    fixes: bool = True,
) -> FileReport:
    """Check one file. Without `project` the file is its own call graph: it says what one file can show. Without `fixes` none is
    written, for those who could not show one."""
    report = FileReport(source.path)
    settings = settings.for_file(source.path)
    alone = project is None and trace is None
    stage = stage_of(spent)
    try:
        with stage("parsing"):
            tree = source.tree
        if alone and _says_nothing(source, settings):
            project = Project([], settings)
        elif project is None:
            with stage("summaries"):
                summary = summarize_source(source, tree)
            with stage("graph"):
                project = Project([summary], settings)
        found, below, allowed, report.asked = _findings(source, tree, rules, settings, project, trace, spent, fixes)
    except SourceError as error:
        report.problems.append(Problem(source.path, error.reason, error.line))
        return report
    except (RecursionError, MemoryError):
        report.problems.append(Problem(source.path, "nested too deeply to be analysed"))
        return report
    with stage("suppression"):
        kept, report.silenced = suppress.apply(source, found, settings, below)
        report.findings = source.confine(kept)
    report.silenced += allowed
    if source.fault:
        report.problems.append(Problem(source.path, source.fault))
    return report


def _says_nothing(source: Source, settings: Settings) -> bool:
    """True for a file that needs no summary, since by its text or its path nothing in it can be reported when it is alone."""
    if not worth_parsing(source.text.encode("utf-8", "surrogatepass")):
        return True
    if source.runs_at_top or settings.hot:  # a cell of a notebook stands in no function, and a setting beats the path
        return False
    module = module_of(source.path)[0]
    return bool(cold_path(source.path, module) or kernel_path(source.path, module) or other_device(source.path, module, settings.devices))


def summarize_source(source: Source, tree: ast.Module, lean: bool = False) -> FileSummary:
    """The summary of a parsed file. With `lean`, what the functions of a file call is left out where its path says that it is cold."""
    module, is_package = module_of(source.path)
    return summarize(source.path, module, is_package, tree, source.text, lean and bool(cold_path(source.path, module)))


def _findings(
    source: Source,
    tree: ast.Module,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project,
    trace: list[Decision] | None,
    spent: Spent | None,
    fixes: bool,
) -> tuple[list[Finding], list[Finding], list[tuple[Finding, str]], tuple[int, ...]]:
    """The findings of a file, those below the asked confidence, those in a region that allows them, and whose callers had a say."""
    if trace is None and not source.runs_at_top and not project.may_report(source.path):
        return [], [], [], ()
    module, is_package = module_of(source.path)
    wanted: Wanted | None = None
    if trace is None:
        wanted = lambda node: project.verdict_at(source.path, node.lineno, node.name).heat > Heat.NOTHING  # noqa: E731
    with stage_of(spent)("walk"):
        found = scan(tree, source.text, _interest(rules), module, is_package, wanted, source.runs_at_top)
    if found.names.torch_is_foreign or kernel_path(source.path, module) or other_device(source.path, module, settings.devices):
        return [], [], [], ()
    if spent is None:
        check = _FileCheck(source, settings, found, project, trace)
    else:
        check = _TimedCheck(source, settings, found, project, trace, spent)
    check.fixes = fixes
    for scope in found.scopes:
        if scope.sites and not scope.is_kernel:
            check.scope(scope)
    kept = [finding for finding in check.findings if finding.confidence >= settings.min_confidence]
    below = [finding for finding in check.findings if finding.confidence < settings.min_confidence]
    allowed = [(finding, reason) for finding, reason in check.allowed.values() if finding.confidence >= settings.min_confidence]
    return kept, below, allowed, tuple(sorted(check.callers.asked)) if check.callers is not None else ()


_interests: dict[tuple[str, ...], Interest] = {}


def _interest(rules: Sequence[Rule]) -> Interest:
    key = tuple(rule.meta.code for rule in rules)
    if key not in _interests:
        _interests[key] = Interest(rules)
    return _interests[key]


@dataclass(slots=True)
class _Candidate:
    """A hit that passed the policy."""

    rule: Rule
    hit: Hit
    confidence: Confidence
    span: Span
    group: str


class _FileCheck:
    """The state of checking one file."""

    def __init__(self, source: Source, settings: Settings, found: Scan, project: Project, trace: list[Decision] | None) -> None:
        self.source = source
        self.settings = settings
        self.found = found
        self.project = project
        self.trace = trace
        self.findings: list[Finding] = []
        self.fixes = True
        self.allowed: dict[Span, tuple[Finding, str]] = {}  # what a region such as `with gpu_sync_allowed():` silences
        self.callers = project.callers(source.path)
        self._flow: Flow | None = None
        self._closer_flow: Flow | None = None
        self._fallbacks: dict[int, str] | None = None
        self._evaluated: list[Scope] = []
        self._noted = 0  # how much of the trace is about earlier functions

    @property
    def flow(self) -> Flow:
        if self._flow is None:
            self._flow = Flow(self.found, self.project.values)
        return self._flow

    def _closer_look(self, scope: Scope, verdict: Verdict, first: list[_Candidate]) -> list[_Candidate]:
        """The candidates of a function in the light of what is found out for it alone, because the first look has something to say.

        In a run over few files, modules of the package that are not part of the run are asked. They are read, never run. In any
        run, the callers of the function are asked; what they know counts against a finding, never for one.
        """
        node, owner = scope.outermost.node, scope.outermost.owner
        is_told = self.callers is not None and node is not None and self.callers.wants(node, owner, self.found)
        if not is_told and not self.project.looks_closer:
            return first
        if self.trace is not None:
            del self.trace[self._noted :]
        closer = self._candidates(scope, verdict, self._closer(is_told))
        return closer if self.project.looks_closer else _not_surer(closer, first)

    def _closer(self, is_told: bool) -> Flow:
        """A flow that asks more. Where callers are asked it takes the functions in the order of the first flow, so that only what
        they give makes a difference; asking modules that are not part of the run costs too much for functions without a finding."""
        if is_told or self._closer_flow is None:
            self._closer_flow = Flow(self.found, self._outside(), self.callers)
            for earlier in self._evaluated if is_told and not self.project.looks_closer else ():
                self._evaluate(earlier, self._closer_flow)
        return self._closer_flow

    def _outside(self) -> Outside:
        if not self.project.looks_closer:
            return self.project.values
        from launchlint.values.modules import make_outside

        return make_outside(self.project.values, self.source.path, self.settings)

    def scope(self, scope: Scope) -> None:
        """Check the sites of one function."""
        verdict = self._top() if scope.node is None else self.project.verdict(self.source.path, scope)
        if verdict.heat <= Heat.NOTHING and self.trace is None:
            return
        self._noted = len(self.trace or ())
        candidates = self._candidates(scope, verdict, self.flow)
        if any(candidate.confidence >= self.settings.min_confidence for candidate in candidates):
            candidates = self._closer_look(scope, verdict, candidates)
        self._evaluated.append(scope)
        self.findings.extend(self._grouped(candidates, verdict))

    def _top(self) -> Verdict:
        """Code outside functions: in a notebook its loops are what runs often, in a module it runs once."""
        lines = tuple(
            (node.lineno, node.end_lineno or node.lineno) for node in self.source.tree.body if isinstance(node, (ast.For, ast.While))
        )
        if not self.source.runs_at_top or not lines:
            return _UNKNOWN
        return Verdict(Heat.ROLE, "a loop at the top level of a notebook", (), "iteration", lines)

    def _candidates(self, scope: Scope, verdict: Verdict, flow: Flow) -> list[_Candidate]:
        """What the rules report in one function, by the values of `flow`."""
        self._evaluate(scope, flow)
        owner = scope.owner.node if scope.owner is not None else None
        qualname = f"{self.project.module(self.source.path)}.{scope.qualname}"
        facts = FunctionFacts(
            qualname,
            scope.node,
            owner,
            verdict.heat,
            verdict.reason,
            verdict.chain,
            verdict.per,
            verdict.turns,
            self._doubt(scope, verdict),
        )
        candidates: list[_Candidate] = []
        for site in sorted(scope.sites, key=lambda site: (site.node.lineno, site.node.col_offset)):  # type: ignore[attr-defined]
            heat = _heat_at(verdict, site)
            context = SiteContext(self.source, self.settings, self.found, flow, scope, facts, site)
            for rule, check in site.checks:
                for outcome in self._ask(rule, check, site, context):
                    candidate = self._judge(rule, outcome, heat, site, context)
                    if candidate is not None:
                        candidates.append(candidate)
        return candidates

    def _doubt(self, scope: Scope, verdict: Verdict) -> str:
        """Why a function may run never, unless the top level of its file hands it on: `register(name, pad_rows)`."""
        name = scope.node.name if scope.node is not None and verdict.doubt else ""
        if not name:
            return ""
        top = [node for node in self.source.tree.body if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        handed_on = any(isinstance(item, ast.Name) and item.id == name for node in top for item in walk(node))
        return "" if handed_on else verdict.doubt

    def _ask(self, rule: Rule, check: Check, site: Site, context: SiteContext) -> list[Outcome]:
        """What a check says; a check that fails is our own fault and is named with the line that it failed on."""
        try:
            return list(check(site.node, context) or ())
        except (RecursionError, MemoryError, SourceError):
            raise
        except Exception as error:
            line = site.node.lineno  # type: ignore[attr-defined]
            raise SourceError(
                f"{rule.meta.code} failed here, which is a fault of launchlint: {type(error).__name__}: {error}", line
            ) from error

    def _evaluate(self, scope: Scope, flow: Flow) -> None:
        outermost = scope.outermost
        if outermost.node is None:
            flow.top_level(self.source.tree.body)
        if outermost.node is not None and not flow.is_finished(outermost.node):
            flow.function(outermost.node, outermost.owner)

    def _judge(self, rule: Rule, outcome: Hit | Silence, heat: Heat, site: Site, context: SiteContext) -> _Candidate | None:
        if isinstance(outcome, Silence):
            if self.trace is not None:
                self._note(rule, self.source.span(outcome.node), None, heat, None, outcome.reason)
            return None
        confidence = rule.meta.policy.confidence(outcome.level, heat)
        if confidence is None and self.trace is None:
            return None
        span = outcome.span or self.source.span(outcome.node)
        if confidence is None:
            self._note(rule, span, outcome.level, heat, None, f"the policy has no cell for value {outcome.level} and heat {heat}")
            return None
        around = guards_of(site.frame, self.settings.allow_regions, _functions_around(context.scope))
        earlier = guards_of_returns(context.scope.node, site.statement.lineno)
        unwatched = guards_of_debug_mode(context.scope.node, site.statement.lineno)
        lowered = f", {outcome.doubt}" if outcome.doubt else ""
        confidence = Confidence.LOW if outcome.doubt else confidence
        inside = context.scope
        of_function = itertools.chain(self._replaced(inside), self._fallback(inside), self._compiled(rule, inside), _for_host(rule, inside))
        owner = context.scope.owner
        switches = guards_of_switches(site.frame, owner.methods.get("__init__"), owner.stores) if owner is not None else ()
        built = guards_of_constructor(owner.methods.get("__init__")) if owner is not None else ()
        elsewhere = self._elsewhere(outcome, context) if outcome.made is not None else ()
        around_tokens = guards_of_generation(context, context.scope.node, site.statement.lineno)
        said = remarks_on(self.source, site.statement, site.frame, _definitions_around(context.scope))
        is_upload = rule.meta.group == _UPLOADS
        converted = guards_of_conversions(outcome.node, site.frame, context.scope.node, site.statement.lineno) if is_upload else ()
        before = guards_before(outcome.node, site.statement)
        dead = itertools.chain(self._dead(context), self._doubted(context), guards_of_validation(site.frame, context.scope.node))
        said_of_it = (around, before, earlier, unwatched, of_function, around_tokens, switches, built, said, converted, elsewhere, dead)
        for guard in itertools.chain(*said_of_it):
            if guard.effect == "allow":
                self._note(rule, span, outcome.level, heat, None, guard.reason)
                self.allowed.setdefault(span, (Finding(rule.meta.code, span, outcome.message, confidence), f"region: {guard.name}"))
                return None
            if guard.effect == "mute" or (guard.effect == "host" and (rule.meta.group != _UPLOADS or _goes_to(outcome.node, guard.name))):
                self._note(rule, span, outcome.level, heat, None, guard.reason)
                return None
            if guard.effect == "lower":
                confidence, lowered = Confidence.LOW, lowered or f", {guard.reason}"
        result = "reported" if confidence >= self.settings.min_confidence else f"below the asked confidence{lowered}"
        self._note(rule, span, outcome.level, heat, confidence, result)
        return _Candidate(rule, outcome, confidence, span, outcome.group or self._group(rule, context))

    def _elsewhere(self, hit: Hit, context: SiteContext) -> Iterator[Guard]:
        """What the tests around the place say that makes what a hit is about."""
        frame = context.frame_of(hit.made) if hit.made is not None else None
        yield from guards_of(frame, self.settings.allow_regions)
        owner = context.scope.owner
        if owner is not None:
            yield from guards_of_switches(frame, owner.methods.get("__init__"), owner.stores)

    @staticmethod
    def _replaced(scope: Scope) -> Iterator[Guard]:
        """A class whose decorator swaps in another implementation: what is written is the reference."""
        if scope.owner is not None:
            for name in decorator_names(scope.owner.node):
                if REPLACING.search(name):
                    yield Guard("lower", f"the reference that @{name} replaces")

    def _fallback(self, scope: Scope) -> Iterator[Guard]:
        """A function that the file defines again for installations without some library, or one that is called a fallback."""
        if self._fallbacks is None:
            self._fallbacks = fallback_definitions(self.source.tree)
        for node in _functions_around(scope):
            if reason := self._fallbacks.get(node.lineno):
                yield Guard("lower", reason)
            elif node.name.endswith("_fallback"):
                yield Guard("lower", f"`{node.name}` is a fallback, by its name")

    def _dead(self, context: SiteContext) -> Iterator[Guard]:
        """A branch that no caller in sight lets run; asked only where a test is about a parameter."""
        function = context.scope.node
        if function is None or self.callers is None:
            return
        arguments = function.args
        names = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        if names & tested(context.frame) and (reason := dead_branch(context.frame, function, self.callers.settled(function, self.found))):
            yield Guard("lower", reason)

    @staticmethod
    def _doubted(context: SiteContext) -> Iterator[Guard]:
        if context.function.doubt:
            yield Guard("lower", context.function.doubt)

    def _compiled(self, rule: Rule, scope: Scope) -> Iterator[Guard]:
        """`@torch.compile` unrolls the loop and launches what it makes of all its turns; on a class it compiles the module. Numbers
        that are uploaded become constants of its kernels."""
        if rule.meta.group in (_LAUNCHES, _UPLOADS):
            for name in self._compiled_around(scope):
                if rule.meta.group == _LAUNCHES:
                    yield Guard("mute", f"`{name}` is compiled, which unrolls its loops")
                else:
                    yield Guard("lower", f"`{name}` is compiled, which may make a constant of it")

    def _compiled_around(self, scope: Scope) -> Iterator[str]:
        if scope.owner is not None and any(COMPILING.search(name) for name in decorator_names(scope.owner.node)):
            yield scope.owner.node.name
        for node in _functions_around(scope):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if self.found.names.canonical(called) == "torch.compile":
                    yield node.name

    def _note(self, rule: Rule, span: Span, level: Level | None, heat: Heat, confidence: Confidence | None, reason: str) -> None:
        if self.trace is not None:
            self.trace.append(Decision(rule.meta.code, rule.meta.name, span, level, heat, confidence, reason))

    @staticmethod
    def _group(rule: Rule, context: SiteContext) -> str:
        loops = context.loops()
        return f"{rule.meta.code[:4]}:{loops[0].lineno}:{loops[0].col_offset}" if loops else ""

    def _grouped(self, candidates: list[_Candidate], verdict: Verdict) -> Iterable[Finding]:
        """One finding for each call and for each loop and family; what is folded away becomes a related place."""
        best: dict[Span, _Candidate] = {}
        for candidate in candidates:
            key = candidate.span
            known = best.get(key)
            if known is None or _says_more(candidate, known):
                best[key] = candidate
        kept = [candidate for candidate in best.values() if not self._gives_way(candidate, best.values())]
        groups: dict[str, list[_Candidate]] = {}
        for index, candidate in enumerate(sorted(kept, key=lambda item: (item.span, item.rule.meta.code))):
            groups.setdefault(candidate.group or f"#{index}", []).append(candidate)
        for members in groups.values():
            leader = max(members, key=lambda item: item.confidence) if len(members) > 1 else members[0]
            yield self._finding(leader, [item for item in members if item is not leader], verdict)

    def _gives_way(self, candidate: _Candidate, others: Iterable[_Candidate]) -> bool:
        """True for a hit about a whole loop in which another rule has something more exact to say."""
        if not candidate.hit.gives_way:
            return False
        whole = self.source.span(candidate.hit.node)
        return any(
            other is not candidate
            and not other.hit.gives_way
            and whole.start <= other.span.start < whole.end
            and other.confidence >= self.settings.min_confidence
            for other in others
        )

    def _finding(self, leader: _Candidate, folded: list[_Candidate], verdict: Verdict) -> Finding:
        hit = leader.hit
        related = [Related(where if isinstance(where, Span) else self._related_span(where), note) for where, note in hit.related]
        related += [Related(item.span, f"also {item.hit.message}") for item in folded]
        related += [Related(self._definition(line), f"on the way here: {name}") for line, name in verdict.steps]
        hot = Hot(verdict.reason, verdict.chain) if verdict.heat >= Heat.NAMED else None
        return Finding(
            leader.rule.meta.code,
            leader.span,
            hit.message,
            leader.confidence,
            hot,
            tuple(dict.fromkeys(related)),
            self._fix(hit),
            leader.group,
        )

    def _definition(self, line: int) -> Span:
        """The first line of a definition, without its indentation."""
        start, text = self.source.line_starts[line - 1], self.source.line(line)
        return Span(start + len(text) - len(text.lstrip()), start + len(text))

    def _related_span(self, node: ast.expr | ast.stmt) -> Span:
        return self.source.header(node) if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.With)) else self.source.span(node)

    def _fix(self, hit: Hit) -> Fix | None:
        return hit.fix() if self.fixes and hit.fix is not None else None


class _TimedCheck(_FileCheck):
    """The same with a clock, for statistics."""

    def __init__(
        self, source: Source, settings: Settings, found: Scan, project: Project, trace: list[Decision] | None, spent: Spent
    ) -> None:
        super().__init__(source, settings, found, project, trace)
        self.spent = spent

    def scope(self, scope: Scope) -> None:
        with self.spent.stage("rules"):
            super().scope(scope)

    def _closer_look(self, scope: Scope, verdict: Verdict, first: list[_Candidate]) -> list[_Candidate]:
        with self.spent.stage("second look"):
            return super()._closer_look(scope, verdict, first)

    def _evaluate(self, scope: Scope, flow: Flow) -> None:
        with self.spent.stage("values" if flow is self._flow else "second look"):
            super()._evaluate(scope, flow)

    def _ask(self, rule: Rule, check: Check, site: Site, context: SiteContext) -> list[Outcome]:
        with self.spent.rule(rule.meta.code):
            return super()._ask(rule, check, site, context)

    def _finding(self, leader: _Candidate, folded: list[_Candidate], verdict: Verdict) -> Finding:
        with self.spent.rule(leader.rule.meta.code):  # which writes its fix now
            return super()._finding(leader, folded, verdict)


def _functions_around(scope: Scope) -> Iterator[FunctionNode]:
    """The function of a scope and those that it is nested in, innermost first."""
    current: Scope | None = scope
    while current is not None and current.node is not None:
        yield current.node
        current = current.outer


def _definitions_around(scope: Scope) -> Iterator[FunctionNode | ast.ClassDef]:
    """The functions around a place, and the class that they belong to."""
    yield from _functions_around(scope)
    if scope.owner is not None:
        yield scope.owner.node


def _goes_to(node: ast.AST, device: str) -> bool:
    """True for an upload to `device`, which the branch around it says is the host."""
    if not device or not isinstance(node, ast.Call):
        return False
    return any(dotted(value) == device for value in (*node.args, *(item.value for item in node.keywords)))


def _says_more(one: _Candidate, other: _Candidate) -> bool:
    """Which of two hits on one call is reported: the rule that outranks the other, the surer one, the lower code."""
    if other.rule.meta.code in one.rule.meta.outranks:
        return True
    if one.rule.meta.code in other.rule.meta.outranks:
        return False
    return (one.confidence, other.rule.meta.code) > (other.confidence, one.rule.meta.code)


def _for_host(rule: Rule, scope: Scope) -> Iterator[Guard]:
    """`def gather_cpu(...)`: the implementation for the host launches nothing."""
    if rule.meta.group == _LAUNCHES and scope.node is not None and scope.node.name.endswith("_cpu"):
        yield Guard("lower", f"`{scope.node.name}` is for the host, by its name")


def _not_surer(closer: list[_Candidate], first: list[_Candidate]) -> list[_Candidate]:
    """The candidates of a second look, none surer than it was: callers are asked for what speaks against a finding."""
    known = {(candidate.rule.meta.code, candidate.span): candidate.confidence for candidate in first}
    for candidate in closer:
        before = known.get((candidate.rule.meta.code, candidate.span), candidate.confidence)
        candidate.confidence = min(before, candidate.confidence)
    return closer


def _heat_at(verdict: Verdict, site: Site) -> Heat:
    """A training function is hot inside its loops only."""
    if not verdict.lines:
        return verdict.heat
    line = site.node.lineno  # type: ignore[attr-defined]
    return verdict.heat if any(first <= line <= last for first, last in verdict.lines) else Heat.NOTHING


# ---------------------------------------------------------------- many files


def check_files(
    paths: Sequence[str],
    rules: Sequence[Rule],
    settings: Settings,
    jobs: int = 1,
    progress: Progress | None = None,
    cache: Cache | None = None,
    timed: bool = False,
) -> Report:
    """Check files; the result depends neither on `jobs`, the largest number of processes, nor on `cache`.

    With `timed` the figures also say what each stage and each rule took.
    """
    from launchlint import run

    with paused_collector():
        return run.check(paths, rules, settings, jobs, progress, cache, timed)


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Without the cycle collector: trees have no cycles, and walking a growing heap again and again costs half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_source(path: str) -> Source:
    """Read and decode a file; raise SourceError with one clear reason whatever goes wrong."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from None
    return Source.from_bytes(path, data)


def summarize_file(path: str, lean: bool = False, spent: Spent | None = None) -> tuple[FileSummary | None, Problem | None, bool]:
    """First pass over one file: its summary, what is wrong with it, and whether a rule may have something to say."""
    stage = stage_of(spent)
    try:
        with stage("reading"):
            source = read_source(path)
        with stage("parsing"):
            tree = source.tree
        with stage("summaries"):
            summary = summarize_source(source, tree, lean)
        problem = Problem(path, source.fault) if source.fault else None
        return summary, problem, worth_parsing(source.text.encode("utf-8", "surrogatepass"))
    except SourceError as error:
        return None, Problem(path, error.reason, error.line), False
    except (RecursionError, MemoryError):
        return None, Problem(path, "nested too deeply to be analysed"), False


def check_file(path: str, rules: Sequence[Rule], settings: Settings, project: Project, spent: Spent | None = None) -> FileReport:
    """Second pass over one file."""
    try:
        with stage_of(spent)("reading"):
            source = read_source(path)
    except SourceError as error:
        return FileReport(path, problems=[Problem(path, error.reason, error.line)])
    return check_source(source, rules, settings, project, spent=spent)


__all__ = ["Decision", "Guard", "Project", "Report", "check_file", "check_files", "check_source"]

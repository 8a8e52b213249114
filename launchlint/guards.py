"""What the tests around a place say about how often it runs, and whether its cost is meant.

A guard is read from the frames that enclose a place. Only an explicit allow-region mutes by itself what a project
meant; a guard that merely smells of debugging lowers the confidence instead, because such guesses have hidden real
costs (`is_target_verify()` is a speculative hot path, not a verification).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from launchlint.names import dotted, last_name
from launchlint.rule import Frame, FunctionNode
from launchlint.trees import children, walk

ALLOW_CONTEXTS = ("gpu_sync_allowed", "allow_gpu_sync", "sync_allowed", "allow_sync", "gpu_sync_ok")

_DEBUG = re.compile(
    r"debug|verbose|nan_check|check_nan|sanity|dump|trace_enabled|log_level|print_|collect_stats|enable_metrics|log_stats|detect_anomaly",
    re.I,
)
_RARE = re.compile(
    r"profil|skipped_iter|found_inf|benchmark|warmup|warm_up|dummy|isEnabledFor|should_log|is_logging|is_compiling|is_tracing|is_exporting|is_in_onnx_export|is_scripting|is_fx|is_torchdynamo",
    re.I,
)
_CAPTURE = re.compile(r"capturing|is_capture|capture_mode|in_capture", re.I)
_CPU = re.compile(
    r"\bis_cpu\b|== ['\"]cpu['\"]|is_mps\b|\bcpu_only\b|== ['\"]mps['\"]|use_cpu\b|"
    r"== ['\"](\w+[-_])?(ascend|npu|xpu|hpu|musa)['\"]|\b(xpu|hpu|npu|mps|musa)\.\w+\(|"
    r"_is_cpu\b|is_xpu\b|is_npu\b|is_hpu\b|_is_npu\b|_is_xpu\b|is_tpu\b|_is_hip_cpu"
)
_NOT_CPU = re.compile(r"device(\.type)? != ['\"]cpu|\bis_cuda\b|is_cuda\(\)|device(\.type)? == ['\"]cuda")
_LIBRARY = re.compile(r"^(HAVE|HAS)_[A-Z0-9_]+$|\b_?is_\w+_(available|min_version)\(")
_ONCE = re.compile(
    r"(init|initialized|initialised|ready|built|loaded|done|cached|captured|compiled|warmed|setup|prepared|registered|allocated|created)(_up)?$|^is_(init|ready|built|loaded|setup)\w*$"
)
_UNDONE = re.compile(r"(un|not_?)(initiali[sz]ed|built|loaded|set|prepared)|(^|_)(is_)?first(_|$)|needs?_(init|setup|build)|(^|_)lazy")
_SIZE = re.compile(r"height|width|(^|_)[hw]$|size|resolution|grid|device|dtype")
_MAKES = re.compile(r"^_*(build|create|make|init|capture|compute|prepare|allocate|register)(_|$)")
_TERM = re.compile(r"weight|scale|coef|lambda|alpha|beta|gamma|prob|ratio|dropout")
_FIRST = re.compile(r"(^|[\W_])is_first_(step|chunk|token|iteration|call|frame|forward)$")
_INFINITE = re.compile(
    r"(^|\W)(isnan|isinf)\(|not [\w.]*isfinite\(|"
    r"(^|\W)(\w+_)?(nans?|infs?)(_mask|_rows)?\.(any|sum)\(|(^|\W)(has|any|is)_(nan|inf)s?$"
)
_PER_REQUEST = re.compile(r"(?<![a-z])(req|request|rid|uid|uuid|session|seq_id|sequence_id)", re.I)
_COUNTER = re.compile(r"step|iter|epoch|batch_idx|count|tick", re.I)
_PERIOD = re.compile(r"interval|every|period|freq|log_steps|logging_steps|steps_per")


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that a frame says. `effect`: allow (mutes, and is counted) | mute | lower | host (mutes all but uploads) | capture."""

    effect: str
    reason: str
    name: str = ""  # what allows, or for the host's branch the device that is tested


def guards_of(frame: Frame | None, allowed: tuple[str, ...], functions: Iterable[FunctionNode] = ()) -> Iterator[Guard]:
    """Every guard around a place, innermost first; `functions` are those that enclose it, whose decorators may allow it too."""
    while frame is not None:
        guard = _guard(frame, allowed)
        if guard is not None:
            yield guard
        frame = frame.outer
    for function in functions:
        for decorator in function.decorator_list:
            if name := _allows(decorator, allowed):
                yield Guard("allow", f"inside `{function.name}`, whose decorator `@{name}` says that this wait is meant", name)


def calls_in_regions(tree: ast.Module, allowed: tuple[str, ...]) -> dict[str, str]:
    """The private names that a file uses in allow-regions only, with the name of such a region."""
    regions: dict[str, str] = {}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, region = pending.pop()
        if isinstance(node, (ast.With, ast.AsyncWith)) and (guard := _region(node, allowed)) is not None and guard.effect == "allow":
            region = guard.name
        elif isinstance(node, (ast.Name, ast.Attribute)) and (used := last_name(node)).startswith("_"):
            regions[used] = region and regions.get(used, region)
        pending.extend((child, region) for child in children(node))
    return {name: region for name, region in regions.items() if region}


def guards_of_switches(frame: Frame | None, init: FunctionNode | None, stores: Mapping[str, set[str]]) -> Iterator[Guard]:
    """`if self.use_token:` where the constructor stores False, and nothing in the file anything else; a class below it may."""
    while frame is not None and init is not None:
        match frame.node, frame.part:
            case ast.If(test=ast.Attribute(value=ast.Name(id="self"), attr=name)), "body" if stores.get(name) == {"__init__"}:
                values = [node.value for node in _walk(init.body) if isinstance(node, ast.Assign) and _is_stored(node, name)]
                if values and all(isinstance(value, ast.Constant) and value.value in (False, None) for value in values):
                    yield Guard("lower", f"only when `self.{name}`, which the constructor switches off")
        frame = frame.outer


def guards_of_constructor(init: FunctionNode | None) -> Iterator[Guard]:
    """`if not is_cpu: raise ...` in a constructor: objects of the class exist on the host only."""
    for statement in init.body if init is not None else []:
        match statement:
            case ast.If(test=test, body=[*_, ast.Raise()], orelse=[]):
                refused = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
                for asked in refused:
                    text = text_of(asked.operand) if isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not) else ""
                    if "cpu" in text and _CPU.search(text):
                        yield Guard("host", f"its class is built only when `{_shorten(text)}`")


def _is_stored(node: ast.Assign, name: str) -> bool:
    return any(dotted(target) == f"self.{name}" for target in node.targets)


def guards_of_returns(function: FunctionNode | None, line: int) -> Iterator[Guard]:
    """What the early returns above a line say: after `if not debug: return` all that follows is for debugging."""
    body = function.body if function is not None else []
    for index, statement in enumerate(body):
        if statement.lineno >= line:
            return
        if container := _returns_kept(body, index):
            yield Guard("mute", f"runs once for a key: `{_shorten(container)}` is a cache")
        match statement:
            case ast.Try(body=[*_, ast.Return()], handlers=[_, *_], orelse=[]) if (statement.end_lineno or 0) < line:
                yield Guard("lower", "what is left when an exception was caught")
            case ast.If(test=test, body=[*_, ast.Return() as leave], orelse=[]):
                negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
                text = text_of(test.operand if isinstance(test, ast.UnaryOp) and negated else test)
                if not negated and leave.value is None and (once := _stays_set(test, body[index + 1 :])):
                    yield Guard("mute", f"runs once: it returns at once when `{_shorten(once)}`")
                if negated and (_DEBUG.search(text) or _RARE.search(text)):
                    yield Guard("lower", f"only when `{_shorten(text)}`")
                elif leave.value is None and (switch := _clears_itself(test, body[index + 1 :])):
                    yield Guard("mute", f"runs once: it clears `{switch}`, without which it returns at once")
                elif not negated and (statement.end_lineno or 0) < line and (empty := _nothing_there(statement, test, True)):
                    yield Guard("lower", empty)
                elif leave.value is not None and not negated and (statement.end_lineno or 0) < line and _NOT_CPU.search(text):
                    yield Guard("lower", f"what is left when `{_shorten(text)}` has returned")
                elif leave.value is not None and re.search(r"_cpu\(|_from_cpu|_on_host\(", text_of(leave.value)):
                    yield Guard("lower", "the host's own copy is used first")


def _clears_itself(test: ast.expr, rest: list[ast.stmt]) -> str:
    """`_dump_path` of `if _dump_path is None: return`, where the function sets it to None and to nothing else."""
    match test:
        case ast.Compare(left=ast.Name() | ast.Attribute() as switch, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            spelled = dotted(switch)
            assigned = [node for node in _walk(rest) if isinstance(node, ast.Assign)]
            stored = [node.value for node in assigned if any(dotted(target) == spelled for target in node.targets)]
            if stored and all(isinstance(value, ast.Constant) and value.value is None for value in stored):
                return spelled
    return ""


def _stays_set(test: ast.expr, rest: list[ast.stmt]) -> str:
    """`hasattr(self, "rows")` and `self.is_ready`, where the rest of the function makes it true; empty for anything else."""
    match test:
        case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id="self"), ast.Constant(value=str(name))]) if _binds(rest, name):
            return text_of(test)
        case ast.Attribute(value=ast.Name(id="self")) if _sets_flag(rest, test):
            return text_of(test)
    return ""


def _binds(body: list[ast.stmt], name: str) -> bool:
    """`self.rows = ...`, `setattr(self, "rows", ...)`, `object.__setattr__(self, "rows", ...)`."""
    for statement in body:
        match statement:
            case ast.Assign(targets=targets) if any(dotted(target) == f"self.{name}" for target in targets):
                return True
            case ast.Expr(value=ast.Call(func=function, args=[ast.Name(id="self"), ast.Constant(value=bound), *_])):
                if bound == name and last_name(function) in ("setattr", "__setattr__"):
                    return True
    return False


def guards_of_debug_mode(function: FunctionNode | None, line: int) -> Iterator[Guard]:
    """`torch.cuda.set_sync_debug_mode(0)` above a line: who switches the alarm off knows of the wait."""
    for node in _walk(function.body if function is not None else []):
        match node:
            case ast.Expr(value=ast.Call(func=called, args=[ast.Constant(value=0 | "default")])) if node.lineno < line:
                if last_name(called) == "set_sync_debug_mode":
                    yield Guard("allow", "behind `set_sync_debug_mode`, which switches the alarm for waits off", "set_sync_debug_mode")
                    return


def guards_before(node: ast.AST, statement: ast.stmt) -> Iterator[Guard]:
    """What stands before `node` in the same `and`: `if not x.is_cuda and torch.equal(x, y)`."""
    for group in _ands(statement):
        for index, operand in enumerate(group.values):
            if index and any(item is node for item in walk(operand)):
                for earlier in group.values[:index]:
                    text = text_of(earlier)
                    negated = isinstance(earlier, ast.UnaryOp) and isinstance(earlier.op, ast.Not)
                    if (negated and _NOT_CPU.search(text)) or (not negated and _CPU.search(text)):
                        yield Guard("host", f"only when `{_shorten(text)}`")
                    elif not negated and (_RARE.search(text) or _DEBUG.search(text)):
                        yield Guard("lower", f"only when `{_shorten(text)}`")


def _ands(statement: ast.stmt) -> Iterator[ast.BoolOp]:
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            yield node
        pending.extend(child for child in children(node) if isinstance(child, ast.expr))


def _guard(frame: Frame, allowed: tuple[str, ...]) -> Guard | None:
    node = frame.node
    match node:
        case ast.With() | ast.AsyncWith() if frame.part == "body":
            return _region(node, allowed)
        case ast.If() | ast.IfExp() if frame.part in ("body", "orelse"):
            return _branch(node, frame.part, frame.outer)
        case ast.ExceptHandler():
            return Guard("mute", "only runs after an exception")
        case ast.Raise():
            return Guard("mute", "only runs when an error is raised")
        case ast.Assert() if frame.part == "message":
            return Guard("mute", "only runs when an assertion fails")
        case _:
            return None


def _region(node: ast.With | ast.AsyncWith, allowed: tuple[str, ...]) -> Guard | None:
    for item in node.items:
        context = item.context_expr
        either = (context.body, context.orelse) if isinstance(context, ast.IfExp) else (context,)
        for choice in either:  # `with nullcontext() if pinned else gpu_sync_allowed():` says so where it matters
            if name := _allows(choice, allowed):
                return Guard("allow", f"inside `with {name}(...)`, which says that this wait is meant", name)
        called = context.func if isinstance(context, ast.Call) else context
        name = last_name(called)
        if name in ("graph", "graph_capture", "capture") and isinstance(context, ast.Call):
            return Guard("capture", f"inside `with {dotted(called)}(...)`, a graph capture")
    return None


def _allows(expr: ast.expr, allowed: tuple[str, ...]) -> str:
    """The name of the allow-region that a context manager or decorator is, or an empty string."""
    called = expr.func if isinstance(expr, ast.Call) else expr
    name = last_name(called)
    return name if name in allowed or name in ALLOW_CONTEXTS or dotted(called) in allowed else ""


def _branch(node: ast.If | ast.IfExp, part: str, outer: Frame | None) -> Guard | None:
    test, negated = node.test, part == "orelse"
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    if isinstance(node, ast.If):
        if part == "body" and node.body and isinstance(node.body[-1], ast.Raise):
            return Guard("mute", "on the way to raising an error")
        if part == "body" and (reason := _once(node)):
            return Guard("mute", reason)
    if (empty := _nothing_there(node, test, negated)) and not _is_walked(test, outer):
        return Guard("lower", empty)
    text = text_of(test)
    if not negated and isinstance(node, ast.If) and (term := _switched_off(test, node.body)):
        return Guard("lower", f"only when `{_shorten(term)}` switches it off")
    if (_INFINITE.search(text) and not negated) or (negated and text.endswith(")") and re.match(r"[\w.]*isfinite\(", text)):
        return Guard("lower", f"only for numbers that are not finite (`{_shorten(text)}`)")
    if _is_periodic(test, text) and not negated:
        return Guard("mute", f"only when `{_shorten(text)}`")
    if _CPU.search(text):
        return Guard("host", f"in the branch for the host (`{_shorten(text)}`)", _tested_device(test)) if not negated else None
    if negated and _NOT_CPU.search(text) and not isinstance(test, ast.BoolOp):
        return Guard("host", f"in the branch for the host (not `{_shorten(text)}`)")
    if negated and _LIBRARY.search(text) and not isinstance(test, ast.BoolOp):
        return Guard("lower", f"for installations without `{_shorten(text)}`")
    if negated:
        return None
    if _FIRST.search(text) and not isinstance(test, ast.Compare):
        return Guard("lower", f"only in the first of all steps (`{_shorten(text)}`)")
    if _CAPTURE.search(text):
        return Guard("mute", f"only while a graph is captured (`{_shorten(text)}`)")
    if _RARE.search(text):
        return Guard("mute", f"only when `{_shorten(text)}`")
    if _DEBUG.search(text):
        return Guard("lower", f"only when `{_shorten(text)}`")
    return None


def _nothing_there(node: ast.If | ast.IfExp, test: ast.expr, negated: bool) -> str:
    """The branch for an empty collection: `x.max() if len(x) > 0 else torch.tensor(0)`, `if len(x) == 0:`, and the branch behind
    `if self.parts: return self.parts[0]`, whose body shows that it is one."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len"), args=[held]) | ast.Call(func=ast.Attribute(value=held, attr="numel"), args=[]),
            ops=[asked],
            comparators=[ast.Constant(value=0)],
        ):
            if not isinstance(asked, (ast.Gt, ast.NotEq, ast.Eq)):
                return ""
            negated = negated is not isinstance(asked, ast.Eq)
        case ast.Name() | ast.Attribute() if _indexes_first(node.orelse if test is not node.test else node.body, test):
            held = test
        case _:
            return ""
    return f"only without any of `{_shorten(text_of(held))}`" if negated else ""


def _switched_off(test: ast.expr, body: list[ast.stmt]) -> str:
    """`if self.loss_scale == 0.0: return torch.tensor(0.0)`: a term that the configuration leaves out."""
    match test, body:
        case ast.Compare(left=ast.Attribute(attr=name) as term, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]), [ast.Return()]:
            return text_of(test) if dotted(term).startswith("self.") and _TERM.search(name) else ""
        case _:
            return ""


def _is_walked(test: ast.expr, frame: Frame | None) -> bool:
    """True where a test is about the item of a loop around it: that one item of many is empty is nothing rare."""
    while frame is not None:
        match frame.node:
            case ast.For(target=target) | ast.AsyncFor(target=target):
                targets = [target]
            case ast.ListComp(generators=generators) | ast.SetComp(generators=generators) | ast.GeneratorExp(generators=generators):
                targets = [generator.target for generator in generators]
            case _:
                targets = []
        walked = {item.id for target in targets for item in walk(target) if isinstance(item, ast.Name)}
        if any(isinstance(item, ast.Name) and item.id in walked for item in walk(test)):
            return True
        frame = frame.outer
    return False


def _indexes_first(branch: list[ast.stmt] | ast.expr, held: ast.expr) -> bool:
    """True if a branch takes `held[0]`."""
    spelled = dotted(held)
    for root in branch if isinstance(branch, list) else [branch]:
        for node in walk(root):
            match node:
                case ast.Subscript(value=value, slice=ast.Constant(value=0)) if dotted(value) == spelled:
                    return True
    return False


def _tested_device(test: ast.expr) -> str:
    """`device` of `device.type == "cpu"` and of `device == "cpu"`: inside that branch it names the host."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()]):
            return dotted(left).removesuffix(".type")
        case _:
            return ""


def is_once_test(node: ast.If) -> bool:
    """True for tests that let their body run once: a cache miss, a flag that is then set, `not hasattr`."""
    return bool(_once(node))


def is_kept_for_good(node: ast.If) -> bool:
    """True for once-only tests that show where the result stays: in a table under a key, as a flag of `self` that is set, or
    as a buffer of its module.

    An attribute that is filled when it is None is not enough: batches and their metadata do so, and live for one step.
    """
    match node.test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute() as flag):
            return _sets_flag(node.body, flag)
        case ast.Attribute() as flag:
            return _clears_flag(node.body, flag)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=name)])):
            return _registers(node.body, name)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return any(dotted(value) == name for _, value in _table_stores(node.body))
        case ast.Compare(ops=[ast.NotIn()], comparators=[container]):
            return any(dotted(holder) == dotted(container) for holder, _ in _table_stores(node.body)) or bool(_builds_entry(node))
        case ast.BoolOp(op=ast.Or(), values=values):
            return all(is_kept_for_good(ast.If(test=value, body=node.body, orelse=[])) for value in values)
        case _:
            return False


def rest_is_rare(body: list[ast.stmt], is_rare_test: Callable[[ast.expr], bool]) -> int:
    """From which statement on a function runs rarely: behind `if key in cache: return cache[key]`, or `if not debug: return`."""
    for index, statement in enumerate(body):
        match statement:
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=[*_, ast.Return()], orelse=[]) if is_rare_test(test):
                return index + 1
            case ast.If() if _returns_kept(body, index):
                return index + 1
    return len(body)


def _returns_kept(body: list[ast.stmt], index: int) -> str:
    """The table that a statement answers from if it holds the key, where what follows it puts the answer into that table."""
    if kept := _kept_for(body, index) or _kept_attribute(body, index):
        return kept
    container, result = _looked_up(body, index)
    if container is None or result is None or not any(isinstance(node, ast.Name) for node in walk(result)):
        return ""
    spelled = dotted(container)
    return spelled if any(dotted(holder) == spelled for holder, _ in _table_stores(body[index + 1 :])) else ""


def _looked_up(body: list[ast.stmt], index: int) -> tuple[ast.expr | None, ast.expr | None]:
    """The table and the result of `if key in table: return table[key]` and of `if (found := table.get(key)) is not None: return found`."""
    match body[index]:
        case ast.If(test=ast.Compare(ops=[ast.In()], comparators=[container]), body=[ast.Return(value=result)], orelse=[]):
            return (container, result) if result is not None and _mentions(result, dotted(container)) else (None, None)
        case ast.If(test=ast.NamedExpr(target=ast.Name(id=name), value=asked), body=[*_, ast.Return(value=result)], orelse=[]):
            if result is not None and _mentions(result, name):
                return _table_of(asked), result
        case ast.If(
            test=ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]),
            body=[*_, ast.Return(value=result)],
            orelse=[],
        ):
            name = dotted(left.target) if isinstance(left, ast.NamedExpr) else dotted(left)
            source = left.value if isinstance(left, ast.NamedExpr) else _bound_before(body[:index], name)
            if result is not None and name and _mentions(result, name):
                return _table_of(source), result
    return None, None


def _kept_for(body: list[ast.stmt], index: int) -> str:
    """`self.bundle` behind `kept = self.bundle` and `if kept is not None and kept[0] == id(pool): return kept[1]`, where it is then set.

    An identity, since a number that is kept beside a result may well be that of the step.
    """
    match body[index]:
        case ast.If(
            test=ast.BoolOp(op=ast.And(), values=[ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()]), ast.Compare() as same]),
            body=[ast.Return(value=result)],
            orelse=[],
        ) if result is not None and _mentions(result, name):
            source = dotted(_bound_before(body[:index], name) or result)
            asks = any(isinstance(node, ast.Call) and last_name(node.func) == "id" for node in walk(same))
            return source if asks and source.startswith("self.") and _stores(body[index + 1 :], ast.parse(source, mode="eval").body) else ""
    return ""


def _kept_attribute(body: list[ast.stmt], index: int) -> str:
    """`self.rows` of `if hasattr(self, "rows") and len(self.rows) == n: return self.rows`, where it is then set."""
    match body[index]:
        case ast.If(test=ast.BoolOp(op=ast.And(), values=values), body=[ast.Return(value=ast.expr() as result)], orelse=[]):
            for value in values:
                match value:
                    case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id="self"), ast.Constant(value=str(name))]):
                        kept = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
                        if _mentions(result, f"self.{name}") and _stores(body[index + 1 :], kept):
                            return f"self.{name}"
    return ""


def _mentions(expr: ast.expr, spelled: str) -> bool:
    """True if a part of `expr` is the name or attribute `spelled`."""
    return any(isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == spelled for node in walk(expr))


def _bound_before(body: list[ast.stmt], name: str) -> ast.expr | None:
    for statement in reversed(body):
        match statement:
            case ast.Assign(targets=[target], value=value) if dotted(target) == name:
                return value
    return None


def _table_of(value: ast.expr | None) -> ast.expr | None:
    """`table` of `table.get(key)`."""
    match value:
        case ast.Call(func=ast.Attribute(value=container, attr="get"), args=[_, *_]):
            return container
        case _:
            return None


def is_of_one_request(key: ast.expr) -> bool:
    """True for keys such as `request.rid`: what is kept under them is made again for the next request."""
    return bool(_PER_REQUEST.search(text_of(key)))


def _table_stores(body: list[ast.stmt]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`table[key] = value` for tables that outlive the call and keys that are not of one request: the table and the value."""
    for node in _walk(body):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Subscript) and _outlives(target.value) and not is_of_one_request(target.slice):
                        yield target.value, value
                        yield from ((target.value, other) for other in targets if other is not target)


def _outlives(container: ast.expr) -> bool:
    """True for a table of `self` or of the class, a global, or one called a cache."""
    root, _, rest = dotted(container).partition(".")
    if rest:
        return root in ("self", "cls") or root[:1].isupper()
    return bool(root) and ("cache" in root.lower() or root.isupper() or root.startswith("_"))


def _builds_entry(node: ast.If) -> str:
    """`rows` of `if size not in self.rows: self._build_rows(size, ...)`: a method that is named for making what is missing for the key."""
    match node.test, node.body:
        case (
            ast.Compare(left=ast.Name(id=key), ops=[ast.NotIn()], comparators=[ast.Attribute(value=ast.Name(id="self")) as table]),
            [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name), args=arguments)), *_],
        ) if _MAKES.search(name) and not is_of_one_request(node.test.left):
            is_given = any(isinstance(argument, ast.Name) and argument.id == key for argument in arguments)
            return dotted(table) if is_given else ""
    return ""


def _clears_flag(body: list[ast.stmt], flag: ast.Attribute) -> bool:
    """`self.is_uninitialized = False` among the statements behind `if self.is_uninitialized`; what else is cleared may be set each step."""
    return bool(_UNDONE.search(flag.attr)) and _sets_flag(body, flag, False)


def _sets_flag(body: list[ast.stmt], flag: ast.Attribute, to: bool = True) -> bool:
    """`self.checked = True` among the statements behind `if not self.checked`."""
    spelled = dotted(flag)
    if not spelled.startswith("self."):
        return False
    for statement in body:
        match statement:
            case ast.Assign(targets=[target], value=ast.Constant(value=bool() as value)) if dotted(target) == spelled and value is to:
                return True
    return False


def _once(node: ast.If) -> str:
    """The reason why the body of `node` runs once for an object or a key, or an empty string."""
    test = node.test
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr"))):
            return "runs once: behind `if not hasattr(...)`"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            name = last_name(operand)
            if name and (_ONCE.search(name) or (isinstance(operand, ast.Attribute) and _sets_flag(node.body, operand))):
                return f"runs once: behind `if not {name}`"
        case ast.Attribute(attr=name) as flag if _clears_flag(node.body, flag):
            return f"runs once: behind `if {name}`, which it clears"
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            if _is_kept(left) and (_stores(node.body, left) or _fills(node.body, left)):
                return f"runs once: `{_shorten(text_of(left))}` is kept"
            if isinstance(left, ast.Name) and _kept_after(node.body, left.id):
                return f"runs once: `{left.id}` is put into a cache"
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=held, attr="numel"), args=[]), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
        ) if dotted(held).startswith("self.") and _stores(node.body, held):
            return f"runs once: `{_shorten(text_of(held))}` is kept"
        case ast.Compare(left=ast.Attribute() as kept, ops=[ast.NotEq()], comparators=[ast.Name() as asked]):
            if _SIZE.search(kept.attr) and _remembers(node.body, kept, asked):
                return f"runs once for a size: `{_shorten(text_of(kept))}` remembers the last one"
        case (
            ast.Compare(left=ast.Name() as asked, ops=[ast.Gt() | ast.GtE()], comparators=[ast.Attribute() as kept])
            | ast.Compare(left=ast.Attribute() as kept, ops=[ast.Lt() | ast.LtE()], comparators=[ast.Name() as asked])
        ) if _remembers(node.body, kept, asked):
            return f"runs when it grows: `{_shorten(text_of(kept))}` remembers the largest"
        case ast.Compare(ops=[ast.NotIn()], comparators=[container]):
            if _is_kept(container) and (_stores(node.body, container) or _builds_entry(node)):
                return f"runs once for a key: `{_shorten(text_of(container))}` is a cache"
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            inner = ast.If(test=first, body=node.body, orelse=[])
            return _once(inner)
    return ""


def _is_kept(expr: ast.expr) -> bool:
    """An attribute, a global or something called a cache: it outlives the call."""
    spelled = dotted(expr)
    return bool(spelled) and ("." in spelled or "cache" in spelled.lower() or spelled.isupper() or spelled.startswith("_"))


def _stores(body: list[ast.stmt], kept: ast.expr) -> bool:
    spelled = dotted(kept)
    holder, _, name = spelled.rpartition(".")
    hidden = f"{holder}._{name}" if holder == "self" else spelled  # what a property gives: `self.step_index` of `self._step_index`
    for node in _walk(body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                base = target.value if isinstance(target, ast.Subscript) else target
                if dotted(base) in (spelled, hidden):
                    return True
    return False


def _remembers(body: list[ast.stmt], kept: ast.Attribute, asked: ast.Name) -> bool:
    """`self.height = height`."""
    for node in _walk(body):
        match node:
            case ast.Assign(targets=[target], value=ast.Name(id=name)) if name == asked.id and dotted(target) == dotted(kept):
                return True
    return False


def _registers(body: list[ast.stmt], name: object) -> bool:
    """`self.register_buffer("table", ...)`"""
    for node in body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=registered), *_])):
                if registered == name:
                    return True
    return False


def _fills(body: list[ast.stmt], kept: ast.expr) -> bool:
    """`if self.step_index is None: self._init_step_index(t)`: a method that is named after what it fills."""
    match kept, body:
        case ast.Attribute(value=ast.Name(id="self"), attr=name), [ast.Expr(value=ast.Call(func=ast.Attribute() as called))]:
            filling = called.attr.strip("_")
            return dotted(called.value) == "self" and name.strip("_") in filling and filling != name.strip("_")
    return False


def _kept_after(body: list[ast.stmt], name: str) -> bool:
    """`if cached is None: cached = ...; self._cache[key] = cached`."""
    for node in _walk(body):
        match node:
            case ast.Assign(targets=targets, value=value):
                holders = [target for target in targets if isinstance(target, (ast.Subscript, ast.Attribute))]
                if holders and (dotted(value) == name or any(dotted(target) == name for target in targets)):
                    return True
                if any(dotted(target) == name for target in targets) and "cache" in name.lower() and holders:
                    return True
    return False


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.stmt):
            pending.extend(child for child in children(node) if isinstance(child, ast.stmt))


def _is_periodic(test: ast.expr, text: str) -> bool:
    match test:
        case ast.Compare(left=ast.BinOp(left=counted, op=ast.Mod(), right=period), comparators=[ast.Constant(value=int())]):
            return bool(_COUNTER.search(last_name(counted)) or _PERIOD.search(text_of(period))) and not isinstance(period, ast.Constant)
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_is_periodic(value, text) for value in values)
    return "% " in text and bool(_PERIOD.search(text))


def text_of(expr: ast.expr) -> str:
    """The source of a test as Python writes it; empty for one too large to be told."""
    try:
        return ast.unparse(expr) if _size(expr) < 200 else ""
    except (RecursionError, ValueError):
        return ""


def _size(expr: ast.expr) -> int:
    count, pending = 0, [expr]
    while pending and count < 200:
        node = pending.pop()
        count += 1
        pending.extend(child for child in children(node) if isinstance(child, ast.expr))
    return count


def _shorten(text: str) -> str:
    return text if len(text) <= 48 else text[:45] + "..."

"""Value flow through one function at a time, with the class and the module around it.

Statements are taken in order; where two ways meet, what is known is joined. A loop body is taken once: what a second turn
could add is a value that changes kind within a loop, which device code does not do. Functions and classes are evaluated
when something asks for them, once, and never while they are being evaluated (so recursion in the linted code ends).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from launchlint.names import dotted, spell
from launchlint.rule import FunctionNode
from launchlint.scan import FUNCTIONS, ClassScope, Scan, child_fields, decorator_names
from launchlint.trees import LEAVES, branches, walk
from launchlint.values import fields
from launchlint.values.annotations import value_of_annotation
from launchlint.values.evaluate import DEFAULT_DEVICE, RETURNED, Environment, Evaluator, Outside, annotation_or, is_proof_of_tensor, keyword
from launchlint.values.parameters import Callers, refine
from launchlint.values.proofs import host_inside, none_on_device, prove_index, whole_on_host
from launchlint.values.value import ARRAY, HOST_TEXT, LIST, NONE, NOTHING, SCALAR, TENSOR, Device, Kind, Origin, Value, join

_TAKES_LISTS = frozenset(
    [
        "cat",
        "stack",
        "concat",
        "hstack",
        "vstack",
        "block_diag",
        "broadcast_tensors",
        "meshgrid",
        "cartesian_prod",
        "is_tensor",
        "result_type",
        "where",
    ]
)
_CALLER_DEPTH = 2  # how far callers are followed for what they give
_CALL_DEPTH = 4  # how far helpers of the same file are followed
_BASE_DEPTH = 6
_TRIES: tuple[type[ast.stmt], ...] = (ast.Try, *(getattr(ast, name) for name in ("TryStar",) if hasattr(ast, name)))
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Flow(Evaluator):
    """The values of one file."""

    def __init__(self, found: Scan, outside: Outside | None = None, callers: Callers | None = None) -> None:
        super().__init__(found.names, outside)
        self.found = found
        self.callers = callers
        self.attributes: dict[str, Environment] = {}
        self.results: dict[FunctionNode, Value] = {}
        self._asking: dict[FunctionNode, bool] = {}
        self._running: set[FunctionNode] = set()
        self._finished: set[FunctionNode] = set()
        self._cut: set[FunctionNode] = set()  # of the finished: those for which something was not followed, being too far
        self._cuts = 0
        self._declared: dict[tuple[str, str], Value] = {}  # fields of classes that only declare them
        self._calls = 0
        self._at_top = False
        self._sites: dict[str, list[tuple[ast.Call, FunctionNode, ClassScope | None]]] = {}
        self._calls_of: dict[FunctionNode, dict[str, list[ast.Call]]] = {}
        self._module()

    def _module(self) -> None:
        for statement in self.found.constants:
            self._statement(statement, self.module_values)

    def top_level(self, body: list[ast.stmt]) -> None:
        """Evaluate the statements of a module outside functions, once."""
        if not self._at_top:
            self._at_top = self.in_notebook = True
            self._block([node for node in body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))], self.module_values)
            self.in_notebook = False

    # ---------------------------------------------------------------- what the evaluator asks

    def is_class(self, name: str) -> bool:
        return name in self.found.classes

    def is_stored(self, class_name: str, attribute: str) -> bool:
        """True if a class of this file assigns the attribute and defines no method of that name."""
        owner = self.found.classes.get(class_name)
        return owner is not None and attribute in owner.stores and attribute not in owner.methods

    def attribute_of(self, class_name: str, attribute: str) -> Value:
        """`self.x`: joined over every method that stores it, then the annotated fields, then the base classes."""
        for name, owner in self._lineage(class_name):
            if owner is not None:
                value = self._own_attribute(owner, attribute)
            else:
                value = self.outside.attribute(name, attribute, self.names) if self.outside is not None else NOTHING
            if value is not NOTHING:
                return value
        return NOTHING

    def _lineage(self, class_name: str) -> Iterator[tuple[str, ClassScope | None]]:
        """A class and what it derives from, nearest first; a class of another file is named and not followed."""
        seen: set[str] = set()
        pending = [class_name]
        while pending and len(seen) < _BASE_DEPTH:
            name = pending.pop(0)
            if name in seen:
                continue
            seen.add(name)
            owner = self.found.classes.get(name)
            yield name, owner
            if owner is not None:
                pending.extend(base.rpartition(".")[2] for base in owner.bases)

    def _own_attribute(self, owner: ClassScope, attribute: str) -> Value:
        if attribute in owner.stores:
            self._prime(owner, attribute)
        value = self.attributes.get(owner.name, {}).get(attribute, NOTHING)
        if value is not NOTHING:
            return value
        if attribute in owner.fields:
            return self._field(owner, attribute)
        if attribute in owner.properties:
            return self._result_of(owner.methods[attribute], owner)
        return NOTHING

    def _field(self, owner: ClassScope, attribute: str) -> Value:
        """A declared field: a tensor lives on the host where every construction in this file gives it from there."""
        promised = value_of_annotation(owner.fields[attribute])
        if promised.kind is not Kind.TENSOR or attribute in owner.stores or not fields.is_plain(owner):
            return promised
        known = self._declared.get((owner.name, attribute))
        if known is None:
            self._declared[owner.name, attribute] = promised  # ends recursion in the linted code
            cuts = self._cuts
            on_host = self._is_given_host(owner, attribute)
            known = promised.but(device=Device.HOST, by_name=True) if on_host else fields.beside_copy(promised, attribute, owner.fields)
            if self._cuts == cuts:
                self._declared[owner.name, attribute] = known
            else:
                del self._declared[owner.name, attribute]
        return known

    def _is_given_host(self, owner: ClassScope, attribute: str) -> bool:
        sites = self._call_sites(owner.name)
        for _, caller, caller_owner in sites:
            if self.is_finished(caller) or caller in self._running:
                continue
            if self._calls >= _CALLER_DEPTH:
                self._cuts += 1
                return False
            self._calls += 1
            self.function(caller, caller_owner)
            self._calls -= 1
        found = list(fields.given([call for call, _, _ in sites], owner, attribute))
        return bool(found) and all(expr is not None and _is_host_data(self.seen.get(id(expr), NOTHING)) for expr in found)

    def _prime(self, owner: ClassScope, attribute: str) -> None:
        """Evaluate the methods that store `attribute`, the constructor first."""
        for name in sorted(owner.stores[attribute], key=lambda name: (name not in ("__init__", "__post_init__"), name)):
            method = owner.methods.get(name)
            if method is None or method in self._finished:
                continue
            if self._calls >= _CALL_DEPTH or method in self._running:
                self._cuts += 1
            else:
                self._calls += 1
                self.function(method, owner)
                self._calls -= 1

    def method_result(self, class_name: str, method: str) -> Value:
        for name, owner in self._lineage(class_name):
            if owner is not None and method in owner.methods:
                return self._result_of(owner.methods[method], owner)
            if owner is None and self.outside is not None:
                value = self.outside.method(name, method, self.names)
                if value is not NOTHING:
                    return value
        return NOTHING

    def function_result(self, name: str) -> Value:
        node = self.found.functions.get(name)
        return NOTHING if node is None else self._result_of(node, None)

    def has_no_device(self, name: str, call: ast.Call) -> bool:
        node = self.found.functions.get(name)
        if node is None or any(item.arg in (None, "device") for item in call.keywords):
            return False
        if any(isinstance(item, ast.Starred) for item in call.args):
            return False
        arguments = (*node.args.posonlyargs, *node.args.args)
        defaults = dict(zip(reversed(arguments), reversed(node.args.defaults), strict=False))
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        defaults |= {item: default for item, default in named if default is not None}
        for index, item in enumerate((*arguments, *node.args.kwonlyargs)):
            if item.arg == "device":
                given = index < len(call.args) and index < len(arguments)
                default = defaults.get(item)
                return not given and isinstance(default, ast.Constant) and default.value is None and not self._asks_for_device(node)
        return False

    def _asks_for_device(self, node: FunctionNode) -> bool:
        """True for a function that takes a device from something it has: `x.device`."""
        known = self._asking.get(node)
        if known is None:
            known = self._asking[node] = any(isinstance(each, ast.Attribute) and each.attr == "device" for each in walk(node))
        return known

    def _result_of(self, node: FunctionNode, owner: ClassScope | None) -> Value:
        known = self.results.get(node)
        if known is not None:
            return known
        promised = value_of_annotation(node.returns)
        if not _leaves_a_device_open(promised):
            return promised
        if node in self._running or self._calls >= _CALL_DEPTH:
            self._cuts += 1
            return promised
        self._calls += 1
        self.function(node, owner)
        self._calls -= 1
        return self.results.get(node, promised)

    # ---------------------------------------------------------------- functions

    def is_finished(self, node: FunctionNode) -> bool:
        """True if a function has been evaluated, from here as far as it goes."""
        return node in self._finished and not (node in self._cut and self._calls == 0)

    def function(self, node: FunctionNode, owner: ClassScope | None, outer: Environment | None = None) -> Environment:
        """Evaluate a function once; the environment at its end."""
        if node in self._running:
            return {}
        self._running.add(node)
        cuts = self._cuts
        before, self.class_name = self.class_name, owner.name if owner is not None else ""
        depth, self._depth = self._depth, 0
        env = self._parameters(node, owner, outer or {})
        self._prove_parameters(node, env)
        self._host_parameters(node, env)
        self._parameters_of_callers(node, owner, env)
        self._parameters_given(node, env)
        self._block(node.body, env)
        returned = env.get(RETURNED, NOTHING)
        self.results[node] = annotation_or(returned, node.returns)
        self._finished.add(node)
        if self._calls and self._cuts > cuts:
            self._cut.add(node)
        else:
            self._cut.discard(node)
        self._running.discard(node)
        self.class_name, self._depth = before, depth
        return env

    def _parameters(self, node: FunctionNode, owner: ClassScope | None, outer: Environment) -> Environment:
        env = dict(outer)
        env.pop(RETURNED, None)
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            env[argument.arg] = self._parameter(argument)
        for argument, default in defaults_of(node):
            if self._is_host(default):
                origin = Origin(argument.lineno, "the default is the host, and callers may ask for another")
                env[argument.arg] = Value(Kind.DEVICE, by_name=True, origin=origin)
        if arguments.vararg is not None:
            env[arguments.vararg.arg] = Value(Kind.LIST, element=value_of_annotation(arguments.vararg.annotation))
        if arguments.kwarg is not None:
            env[arguments.kwarg.arg] = Value(Kind.DICT, element=value_of_annotation(arguments.kwarg.annotation))
        for name in [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]:
            if env[name].kind is Kind.TENSOR:
                env[name] = fields.beside_copy(env[name], name, env)
        first = [*arguments.posonlyargs, *arguments.args][:1]
        is_method = owner is not None and not any(name.endswith("staticmethod") for name in decorator_names(node))
        if owner is not None and is_method and first and (not outer or first[0].arg in ("self", "cls")):
            env[first[0].arg] = Value(Kind.OBJECT, class_name=owner.name)
        return env

    def _is_host(self, default: ast.expr) -> bool:
        """True for a default that names the host: `"cpu"`, a constant of the module that holds it, `torch.device("cpu")`."""
        match default:
            case ast.Constant(value="cpu"):
                return True
            case ast.Name(id=name):
                return self.module_values.get(name) is HOST_TEXT
            case ast.Call(func=function, args=[ast.Constant(value="cpu")]):
                return self.names.canonical(function) == "torch.device"
            case _:
                return False

    def _prove_parameters(self, node: FunctionNode, env: Environment) -> None:
        """A parameter without a telling annotation is a tensor if the function does with it what is only done with tensors."""
        names = {name for name, value in env.items() if value is NOTHING}
        if not names:
            return
        proof = _Proof(names)
        pending: list[ast.AST] = list(node.body)
        while pending and proof.open:
            current = pending.pop()
            kind = current.__class__
            if kind is ast.Call:
                proof.call(current, self._given_to_torch(current))  # type: ignore[arg-type]
            elif not self._knows_numpy:
                if kind is ast.Attribute:
                    proof.attribute(current)  # type: ignore[arg-type]
                elif kind is ast.Assign:
                    proof.assign(current)  # type: ignore[arg-type]
                elif kind is ast.Subscript:
                    proof.subscript(current)  # type: ignore[arg-type]
            for field in child_fields(kind):
                child: Any = getattr(current, field, None)
                if child.__class__ is list:
                    pending += [item for item in child if item.__class__ not in LEAVES]
                elif child.__class__ not in LEAVES:
                    pending.append(child)
        for name, (line, why) in proof.finish().items():
            env[name] = TENSOR.but(by_name=True, origin=Origin(line, why))

    def _parameters_of_callers(self, node: FunctionNode, owner: ClassScope | None, env: Environment) -> None:
        """A tensor whose device nothing shows lives where every caller in this file has it."""
        positions = {argument.arg: index for index, argument in enumerate([*node.args.posonlyargs, *node.args.args])}
        names = [name for name in positions if env[name].kind is Kind.TENSOR and env[name].device is Device.UNKNOWN]
        if not names:
            return
        given: dict[str, list[Value]] = {name: [] for name in names}
        for call, caller, caller_owner in self._call_sites(node.name):
            if caller is node or (owner is not None) is not isinstance(call.func, ast.Attribute):
                continue
            if not self.is_finished(caller) and caller not in self._running:
                if self._calls >= _CALLER_DEPTH:
                    self._cuts += 1
                    return
                self._calls += 1
                self.function(caller, caller_owner)
                self._calls -= 1
            shift = 1 if owner is not None else 0
            for name in names:
                argument = keyword(call, name) or next(iter(call.args[positions[name] - shift : positions[name] - shift + 1]), None)
                if argument is not None:
                    given[name].append(self.seen.get(id(argument), NOTHING))
        for name, values in given.items():
            if values and all(_is_host_data(value) for value in values):
                env[name] = env[name].but(
                    device=Device.HOST, by_name=True, origin=Origin(0, "every caller in this file has it on the host")
                )
            elif values and all(value.on_device for value in values):
                origin = Origin(values[0].origin.line, "every caller in this file has it on the device")
                env[name] = env[name].but(device=Device.DEVICE, by_name=any(value.by_name for value in values), origin=origin)

    def _parameters_given(self, node: FunctionNode, env: Environment) -> None:
        """What callers in other files give, where this flow may ask."""
        if self.callers is None:
            return
        for name, value in self.callers.given(node).items():
            env[name] = refine(env.get(name, NOTHING), value)

    def _call_sites(self, name: str) -> list[tuple[ast.Call, FunctionNode, ClassScope | None]]:
        """Calls of `name(...)` and `self.name(...)` in this file; only functions whose text holds such a call are walked."""
        known = self._sites.get(name)
        if known is None:
            known = self._sites[name] = []
            lines = _lines_calling(self.found.text, name)
            for scope in self.found.scopes if lines else ():
                node = scope.node
                if node is None or scope.outer is not self.found.module or scope.is_kernel:
                    continue
                if any(node.lineno <= line <= (node.end_lineno or line) for line in lines):
                    known += [(call, node, scope.owner) for call in self._calls_in(node).get(name, ())]
        return known

    def _calls_in(self, node: FunctionNode) -> dict[str, list[ast.Call]]:
        """Calls in a function of what this file may define, by name."""
        known = self._calls_of.get(node)
        if known is None:
            known = self._calls_of[node] = {}
            pending: list[ast.AST] = list(node.body)
            while pending:
                current = pending.pop()
                if current.__class__ is ast.Call:
                    called = _called_here(current)
                    if called:
                        known.setdefault(called, []).append(current)
                pending += branches(current)
        return known

    def _host_parameters(self, node: FunctionNode, env: Environment) -> None:
        """`y = f(x).to(device)`: what is moved to the device under another name lives on the host until then."""
        names = {name for name, value in env.items() if value.kind is Kind.TENSOR and value.device is Device.UNKNOWN}
        if not names:
            return
        for statement in walk_statements(node.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(func=ast.Attribute(value=moved, attr="to")) as call):
                    name = _root_name(moved)
                    where = keyword(call, "device") or (call.args[0] if call.args else None)
                    if name in names and name != target and where is not None and self.device(where, env) is Device.DEVICE:
                        env[name] = env[name].but(
                            device=Device.HOST, by_name=True, origin=Origin(statement.lineno, f"{name} is moved to the device here")
                        )
                        names.discard(name)

    def _given_to_torch(self, call: ast.Call) -> str:
        """The name that a torch function works on: `x` of `torch.zeros_like(x)`; empty where it may be a number or a list."""
        if not call.args or not isinstance(call.args[0], ast.Name):
            return ""
        canonical = self.names.canonical(call.func)
        if not canonical.startswith(("torch.", "torch.nn.functional.")):
            return ""
        operation = self.operations.get(canonical.rpartition(".")[2])
        takes_tensor = operation is not None and operation.device == "operands" and not operation.from_host_data
        return call.args[0].id if takes_tensor and canonical.rpartition(".")[2] not in _TAKES_LISTS else ""

    def _parameter(self, argument: ast.arg) -> Value:
        promised = value_of_annotation(argument.annotation)
        named = self.by_convention(argument.arg)
        if promised.kind is Kind.TENSOR and named.kind is Kind.TENSOR:
            return named.but(origin=Origin(argument.lineno, f"parameter {argument.arg}"))
        if promised is NOTHING:
            return named
        return promised.but(origin=Origin(argument.lineno, f"parameter {argument.arg}: {_short(argument.annotation)}"))

    # ---------------------------------------------------------------- statements

    def _block(self, body: list[ast.stmt], env: Environment) -> None:
        for statement in body:
            self._statement(statement, env)

    def _statement(self, node: ast.stmt, env: Environment) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.evaluate(value, env)
                for target in targets:
                    self.store(target, found, env)
            case ast.AnnAssign(target=target, annotation=annotation, value=maybe):
                found = annotation_or(self.evaluate(maybe, env) if maybe is not None else NOTHING, annotation)
                self.store(target, found, env)
            case ast.AugAssign():
                self._augment(node, env)
            case ast.Expr(value=value):
                self.evaluate(value, env)
                self._default_device_call(value, env)
            case ast.Return(value=maybe):
                if maybe is not None:
                    env[RETURNED] = join(env.get(RETURNED, NOTHING), self.evaluate(maybe, env))
            case ast.If():
                self._if(node, env)
            case (
                ast.For(target=target, iter=iterated, body=body, orelse=orelse)
                | ast.AsyncFor(target=target, iter=iterated, body=body, orelse=orelse)
            ):
                self.store(target, self.element(self.evaluate(iterated, env)), env)
                before = dict(env)
                self._block(body, env)
                _join_into(env, before)
                self._block(orelse, env)
            case ast.While(test=test, body=body, orelse=orelse):
                self.evaluate(test, env)
                before = dict(env)
                self._block(body, env)
                _join_into(env, before)
                self._block(orelse, env)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                self._with(items, body, env)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                owner = self.found.classes.get(self.class_name)
                self.function(node, owner if "self" in env else None, env)
                env[node.name] = NOTHING
            case ast.Assert(test=test, msg=message):
                self.evaluate(test, env)
                self.narrow(test, env, True)
                if held := _asserted_on_host(test):
                    env[held] = Value(Kind.TENSOR, Device.HOST, origin=Origin(test.lineno, "an assertion that it is on the host"))
                if message is not None:
                    self.evaluate(message, env)
            case ast.Raise(exc=error):
                if error is not None:
                    self.evaluate(error, env)
            case ast.Match(subject=subject, cases=cases):
                self._match(subject, cases, env)
            case _ if isinstance(node, _TRIES):
                self._try(node, env)

    def _try(self, node: Any, env: Environment) -> None:
        """`try` and, from Python 3.11 on, `try ... except*`, which is a type of its own."""
        self._block(node.body, env)
        tried = dict(env)
        for handler in node.handlers:
            self._block(handler.body, env)
        for name, value in tried.items():  # `except: device = "cpu"` is one way of two
            if env.get(name) is HOST_TEXT:
                env[name] = join(HOST_TEXT, value)
        self._block(node.orelse, env)
        self._block(node.finalbody, env)

    def _augment(self, node: ast.AugAssign, env: Environment) -> None:
        added = self.evaluate(node.value, env)
        before = self.evaluate(node.target, env)
        if before is not NOTHING:
            self.seen[id(node.target)] = before
        if before.kind is Kind.TENSOR or added is NOTHING:
            result = before
        elif before.kind is Kind.LIST:
            result = before if before.element is not None else before.but(element=self.element(added))
        else:
            result = Evaluator._operate(ast.BinOp(node.target, node.op, node.value), before, added)
        if not isinstance(node.target, ast.Subscript):
            self.store(node.target, result, env)

    def _if(self, node: ast.If, env: Environment) -> None:
        """An `elif` chain may be thousands long: it is followed with a loop, joining from the end."""
        ways: list[Environment] = []
        current = node
        entry = dict(env)
        while True:
            self.evaluate(current.test, entry)
            taken = dict(entry)
            self.narrow(current.test, taken, True)
            self.narrow(current.test, entry, False)
            self._block(current.body, taken)
            if not _leaves(current.body):
                ways.append(taken)
            elif RETURNED in taken:
                entry[RETURNED] = join(entry.get(RETURNED, NOTHING), taken[RETURNED])
            if len(current.orelse) == 1 and isinstance(current.orelse[0], ast.If):
                current = current.orelse[0]
                continue
            self._block(current.orelse, entry)
            if not (current.orelse and _leaves(current.orelse)) or not ways:
                ways.append(entry)
            elif RETURNED in entry:
                ways[0][RETURNED] = join(ways[0].get(RETURNED, NOTHING), entry[RETURNED])
            break
        first, *rest = ways
        env.clear()
        env.update(first)
        for way in rest:
            _join_into(env, way)

    def _with(self, items: list[ast.withitem], body: list[ast.stmt], env: Environment) -> None:
        before = env.get(DEFAULT_DEVICE)
        marked: Environment = {}
        for item in items:
            value = self.evaluate(item.context_expr, env)
            if item.optional_vars is not None:
                self.store(item.optional_vars, NOTHING, env)
            if value.kind is Kind.DEVICE:  # `with torch.device(...)` or `with self.device`
                env[DEFAULT_DEVICE] = value
                marked = host_inside(env, item.context_expr.lineno) if value.device is Device.HOST else {}
        taken = {name: env[name] for name in marked}
        env.update(marked)
        self._block(body, env)
        env.update({name: taken[name] for name, value in marked.items() if env.get(name) is value})
        if before is None:
            env.pop(DEFAULT_DEVICE, None)
        else:
            env[DEFAULT_DEVICE] = before

    def _default_device_call(self, value: ast.expr, env: Environment) -> None:
        match value:
            case ast.Call(func=function, args=[device]) if self.names.canonical(function) == "torch.set_default_device":
                env[DEFAULT_DEVICE] = Value(Kind.DEVICE, self.device(device, env))

    def _match(self, subject: ast.expr, cases: list[ast.match_case], env: Environment) -> None:
        self.evaluate(subject, env)
        ways = []
        for case in cases:
            way = dict(env)
            if case.guard is not None:
                self.evaluate(case.guard, way)
            self._block(case.body, way)
            if not _leaves(case.body):
                ways.append(way)
        for way in ways:
            _join_into(env, way)

    # ---------------------------------------------------------------- narrowing

    def narrow(self, test: ast.expr, env: Environment, holds: bool) -> None:
        """What a test says about a name where it holds, or where it does not."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.narrow(operand, env, not holds)
            case ast.BoolOp(op=ast.And(), values=values) if holds:
                for value in values:
                    self.narrow(value, env, True)
            case ast.BoolOp(op=ast.Or(), values=values) if not holds:
                for value in values:
                    self.narrow(value, env, False)
            case ast.BoolOp(op=ast.And(), values=[ast.Name(id=flag), asked]) if not holds and "PIN" in flag.upper():
                self.narrow(asked, env, False)  # where memory can be pinned at all
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="is_pinned"), args=[]) if holds:
                if (known := env.get(name, NOTHING)).kind is Kind.TENSOR:
                    env[name] = known.but(device=Device.HOST, pinned=True)
            case ast.Call(func=ast.Name(id="any")) if not holds and (held := none_on_device(test)):
                env[held] = whole_on_host(env.get(held, NOTHING), Origin(test.lineno, f"none of {held} is on the device"))
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]):
                self._narrow_type(name, kinds, env, holds)
            case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[ast.Name(id=name)]) if holds:
                if env.get(name, NOTHING).kind is not Kind.TENSOR:
                    env[name] = TENSOR
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                if isinstance(op, ast.Is) is holds:
                    env[name] = NONE
            case ast.Attribute(value=ast.Name(id=name), attr="is_cuda"):
                self._narrow_device(name, Device.DEVICE if holds else Device.HOST, env)
            case ast.Attribute(value=ast.Name(id=name), attr="is_cpu"):
                self._narrow_device(name, Device.HOST if holds else Device.DEVICE, env)
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=str(text))]) if text in ("cpu", "cuda"):
                equal = isinstance(op, ast.Eq) if holds else isinstance(op, ast.NotEq)
                name = _device_holder(left)
                if name and isinstance(op, (ast.Eq, ast.NotEq)):
                    self._narrow_device(name, Device.HOST if (text == "cpu") is equal else Device.DEVICE, env)
            case ast.Compare(ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Name() | ast.Attribute() | ast.Call()]):
                self._narrow_to_device_of(test, env, holds)

    def _narrow_to_device_of(self, test: ast.Compare, env: Environment, holds: bool) -> None:
        """`x.device == cpu_device`, where the other side names a device."""
        name = _device_holder(test.left)
        found = self.device(test.comparators[0], env) if name else Device.UNKNOWN
        if found is Device.HOST and (isinstance(test.ops[0], ast.Eq) is holds):
            self._narrow_device(name, Device.HOST, env)

    @staticmethod
    def _narrow_device(name: str, device: Device, env: Environment) -> None:
        value = env.get(name, NOTHING)
        if value.kind in (Kind.TENSOR, Kind.UNKNOWN):
            env[name] = value.but(kind=Kind.TENSOR, device=device, by_name=False)

    @staticmethod
    def _narrow_type(name: str, kinds: ast.expr, env: Environment, holds: bool) -> None:
        spelled = [dotted(item) for item in (kinds.elts if isinstance(kinds, ast.Tuple) else [kinds])]
        value = env.get(name, NOTHING)
        is_tensor = any(item.rpartition(".")[2].endswith("Tensor") for item in spelled)
        if not holds:
            if is_tensor and value.kind is Kind.TENSOR:
                env[name] = NOTHING
            return
        if is_tensor and len(spelled) == 1:
            if value.kind is not Kind.TENSOR:
                env[name] = TENSOR
        elif all(item in ("int", "float", "bool", "str") for item in spelled):
            env[name] = SCALAR
        elif all(item in ("list", "tuple", "set", "List", "Sequence") for item in spelled):
            if value.kind not in (Kind.LIST, Kind.TUPLE):
                env[name] = LIST
        elif all(item.endswith("ndarray") for item in spelled):
            env[name] = ARRAY
        elif len(spelled) == 1 and (last := spelled[0].rpartition(".")[2])[:1].isupper() and value.kind in (Kind.UNKNOWN, Kind.OBJECT):
            env[name] = Value(Kind.OBJECT, class_name=last)

    # ---------------------------------------------------------------- stores

    def store(self, target: ast.expr, value: Value, env: Environment) -> None:
        """Bind a target: a name, a tuple of names, an attribute, a place in a container."""
        match target:
            case ast.Name(id=name):
                if value is NOTHING or value.kind is Kind.NONE or (value.kind is Kind.TENSOR and value.device is Device.UNKNOWN):
                    named = self.by_convention(name)
                    if named is not NOTHING and (value is NOTHING or named.kind is Kind.TENSOR):
                        value = named if value is NOTHING else named.but(boolean=value.boolean, scalar=value.scalar, origin=value.origin)
                env[name] = value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._store_all(elements, value, env)
            case ast.Starred(value=inner):
                self.store(inner, Value(Kind.LIST, element=self.element(value)), env)
            case ast.Attribute(value=base, attr=attribute):
                self.evaluate(base, env)
                spelled = dotted(target)
                if spelled:  # another way may leave the attribute as it was, so the text "cpu" is not kept
                    env[spelled] = SCALAR if value is HOST_TEXT else value
                if isinstance(base, ast.Name) and base.id in ("self", "cls") and self.class_name and value is not NOTHING:
                    known = self.attributes.setdefault(self.class_name, {})
                    known[attribute] = join(known.get(attribute, NOTHING), value)
            case ast.Subscript(value=base, slice=index):
                holder = self.evaluate(base, env)
                self.evaluate(index, env)
                if holder.kind is Kind.TENSOR and holder.device is Device.HOST:
                    prove_index(holder, index, self.seen, env)
                if holder.kind is Kind.DICT and (holder.element is None or holder.element is NOTHING) and dotted(base):
                    env[dotted(base)] = holder.but(element=value)

    def _store_all(self, elements: list[ast.expr], value: Value, env: Environment) -> None:
        for position, element in enumerate(elements):
            if value.kind is Kind.TUPLE and len(value.elements) == len(elements) and not isinstance(element, ast.Starred):
                self.store(element, value.elements[position], env)
            else:
                self.store(element, self.element(value) if value.kind is not Kind.TUPLE else NOTHING, env)


class _Proof:
    """Collects what proves that a name holds a tensor, in a function of a file that may know no other kind of array."""

    def __init__(self, names: set[str]) -> None:
        self.open = names
        self.found: dict[str, tuple[int, str]] = {}
        self._masks: dict[str, str] = {}  # a name that holds a comparison -> what was compared
        self._indexed: list[tuple[str, str, int]] = []  # container, index, line

    def _prove(self, name: str, line: int, why: str) -> None:
        if name in self.open:
            self.open.discard(name)
            self.found[name] = (line, why)

    def call(self, node: ast.Call, given: str) -> None:
        """`x.unsqueeze(0)`, `torch.zeros_like(x)`."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name in self.open and is_proof_of_tensor(node):
                self._prove(name, node.lineno, f"{name}.{method}(), which only tensors have")
        if given:
            self._prove(given, node.lineno, f"{given} is given to a torch function")

    def attribute(self, node: ast.Attribute) -> None:
        """`x.shape`, where nothing but tensors has a shape."""
        if node.attr in ("shape", "device", "is_cuda") and isinstance(node.value, ast.Name):
            self._prove(node.value.id, node.lineno, f"{node.value.id}.{node.attr}, in a file without numpy")

    def assign(self, node: ast.Assign) -> None:
        """`mask = x == e`."""
        match node:
            case ast.Assign(targets=[ast.Name(id=mask)], value=ast.Compare(left=ast.Name(id=compared))):
                self._masks[mask] = compared

    def subscript(self, node: ast.Subscript) -> None:
        """`y[mask]`."""
        match node:
            case ast.Subscript(value=ast.Name(id=container), slice=ast.Name(id=index)):
                self._indexed.append((container, index, node.lineno))

    def finish(self) -> dict[str, tuple[int, str]]:
        """What is proven, indexing by a comparison included: neither lists nor dicts can do that."""
        for container, index, line in self._indexed:
            if index in self._masks:
                for name in (container, self._masks[index]):
                    self._prove(name, line, f"{container}[{index}] is indexed by a comparison")
        return self.found


def defaults_of(node: FunctionNode) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters of a function that have a default, each with it."""
    arguments = node.args
    yield from zip(reversed([*arguments.posonlyargs, *arguments.args]), reversed(arguments.defaults), strict=False)
    yield from ((argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default)


def walk_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a body, those of nested blocks included, nested functions left out."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, name, None)
            if inner.__class__ is list:
                pending.extend(reversed(inner))


def _leaves_a_device_open(promised: Value) -> bool:
    """True where the body of a function says more than its annotation: where the tensors live that it returns."""
    if promised.kind in (Kind.UNKNOWN, Kind.TENSOR, Kind.NONE):
        return True
    return promised.kind is Kind.TUPLE and any(element.kind is Kind.TENSOR for element in promised.elements)


def _is_host_data(value: Value) -> bool:
    """A number, an array or a host tensor; a list says nothing of the tensors in it."""
    return value.kind in (Kind.ARRAY, Kind.SCALAR) or (value.kind is Kind.TENSOR and value.device is Device.HOST)


def _lines_calling(text: str, name: str) -> list[int]:
    """The lines that may hold `name(...)`, `self.name(...)` or `cls.name(...)`."""
    lines: list[int] = []
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    line, start = 1, 0
    called = f"{name}("
    found = text.find(called)
    while found >= 0:
        before = text[max(0, found - 5) : found]
        if before.endswith(("self.", "cls.")) or not (before.endswith(("def ", ".", "_")) or before[-1:].isalnum()):
            line += text.count("\n", start, found)
            start = found
            lines.append(line)
        found = text.find(called, found + 1)
    return lines


def _called_here(call: ast.Call) -> str:
    """`f` of `f(...)`, `self.f(...)` and `cls.f(...)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
        case _:
            return ""


def _root_name(expr: ast.expr) -> str:
    """`x` of `x.cumsum(0)[1:]`."""
    while True:
        match expr:
            case ast.Call(func=ast.Attribute(attr="type" | "cpu" | "to" | "numpy")):
                return ""  # moved already
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner) | ast.Attribute(value=inner):
                expr = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _LEAVES)


def _join_into(env: Environment, other: Environment) -> None:
    for name, value in other.items():
        mine = env.get(name)
        if mine is not value:
            env[name] = value if mine is None else join(mine, value)


def _device_holder(expr: ast.expr) -> str:
    """`x` of `x.device` and `x.device.type`."""
    while isinstance(expr, ast.Attribute) and expr.attr in ("device", "type"):
        expr = expr.value
        if isinstance(expr, ast.Name):
            return expr.id
    return ""


def _asserted_on_host(test: ast.expr) -> str:
    """`batch.flags` of `assert batch.flags.device.type == "cpu"` and of `assert batch.flags.is_cpu`."""
    match test:
        case ast.Compare(left=ast.Attribute() as left, ops=[ast.Eq()], comparators=[ast.Constant(value="cpu")]):
            spelled = dotted(left)
            return spelled.removesuffix(".type").removesuffix(".device") if spelled.endswith((".device", ".device.type")) else ""
        case ast.Attribute(value=ast.Attribute() as held, attr="is_cpu"):
            return dotted(held)
    return ""


def _short(annotation: ast.expr | None) -> str:
    try:
        return (spell(annotation) or ast.unparse(annotation))[:60] if annotation is not None else ""
    except (RecursionError, ValueError):
        return ""


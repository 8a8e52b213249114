"""Answers of astroid about the modules of the linted file's own package, as values of ours.

An annotation answers first; where it is silent, or says tensor and not where, the body is inferred. What astroid gives up on
in one of several ways makes the rest uncertain: then only a tensor is believed, since a number may just be a default.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from launchlint.names import Names
from launchlint.values.annotations import value_of_text
from launchlint.values.astroid_session import Allowance, OutOfTimeError, Session
from launchlint.values.astroid_torch import device_of_device, device_of_instance, is_array, is_dtype, text_of
from launchlint.values.fields import beside_copy
from launchlint.values.value import ARRAY, DTYPE, NONE, NOTHING, SCALAR, Device, Kind, Origin, Value, join

if TYPE_CHECKING:
    from launchlint.values.modules import Package

Node = Any
_INFERRED = 16  # how many of the things that something may be are looked at
_ELEMENTS = 8
_NESTED = 3
_PLAIN_DECORATORS = frozenset(
    {
        "property", "cached_property", "staticmethod", "classmethod", "lru_cache", "cache", "override", "abstractmethod",
        "no_grad", "inference_mode", "compile", "nvtx_range", "deprecated", "final", "wraps",
    }
)  # fmt: skip
_BUILTINS = {"int": Kind.SCALAR, "float": Kind.SCALAR, "bool": Kind.SCALAR, "str": Kind.SCALAR, "bytes": Kind.SCALAR, "list": Kind.LIST,
             "set": Kind.LIST, "frozenset": Kind.LIST, "generator": Kind.LIST, "dict": Kind.DICT}  # fmt: skip


class AstroidValues:
    """Answers for `values.evaluate.Outside` about one linted file."""

    def __init__(self, package: Package, session: Session) -> None:
        self.package = package
        self.session = session
        self.asked = 0  # questions that astroid was opened for
        self.answered = 0
        self._known: dict[tuple[str, str], Value] = {}
        self._homes: dict[str, str] = {}  # class name -> dotted name, for classes that an answer has named
        self._allowance = Allowance(session.bounds)

    # ---------------------------------------------------------------- what the flow asks

    def attribute(self, class_name: str, attribute: str, names: Names) -> Value:
        """A field, a property or what the constructor and the other methods assign, of a class or its bases."""
        return self._member(class_name, attribute, names, self._attribute)

    def method(self, class_name: str, method: str, names: Names) -> Value:
        """What a method returns."""
        return self._member(class_name, method, names, self._method)

    def function(self, dotted_name: str) -> Value:
        """What a function returns; an object for a class."""
        return self._answer("function", dotted_name, self._called)

    def constant(self, dotted_name: str) -> Value:
        """What a module's name is bound to."""
        return self._answer("constant", dotted_name, self._bound)

    def any_attribute(self, attribute: str) -> Value:
        return NOTHING

    def bases(self, module: str, class_name: str) -> list[str]:
        """Dotted names of everything that a class derives from, nearest first."""
        found: list[str] = []

        def ask() -> Value:
            described = next(iter(self._inferred(module, [class_name])), None)
            if _is_class(described):
                found.extend(dict.fromkeys(_lineage(described)))
            return NOTHING

        self._open(ask)
        return found

    # ---------------------------------------------------------------- bounds

    def _member(self, class_name: str, name: str, names: Names, ask: Callable[[Node, str], Value]) -> Value:
        home = names.targets.get(class_name) or self._homes.get(class_name)
        if home is None:
            return NOTHING

        def of_class(module: str, parts: list[str]) -> Value:
            described = next(iter(self._inferred(module, parts)), None)
            return ask(described, name) if _is_class(described) else NOTHING

        return self._answer(f"{ask.__name__}:{name}", home, of_class)

    def _answer(self, question: str, dotted_name: str, ask: Callable[[str, list[str]], Value]) -> Value:
        key = (question, dotted_name)
        known = self._known.get(key)
        if known is not None:
            return known
        place = self.package.split(dotted_name)
        value = NOTHING if place is None else self._open(lambda: ask(*place))
        self._known[key] = value
        return value

    def _open(self, ask: Callable[[], Value]) -> Value:
        """Ask astroid, within the bounds. Whatever goes wrong inside it is no answer."""
        if self._allowance.is_spent or self.session.is_spent:
            return NOTHING
        self.asked += 1
        try:
            with self.session.opened(self.package, self._allowance):
                value = ask()
        except OutOfTimeError:
            value = NOTHING
        except Exception:  # astroid raises what it likes on code that it does not expect: KeyError, AttributeError, RecursionError
            value = NOTHING
        self.answered += value is not NOTHING
        return value

    # ---------------------------------------------------------------- asking astroid

    def _inferred(self, module: str, parts: list[str]) -> list[Node]:
        """What a name of a module is, followed through its imports and through classes."""
        found = self.session.module(module)
        for part in parts:
            if found is None or not hasattr(found, "igetattr"):
                return []
            results = list(_found(found, part))
            if part == parts[-1] or not results:
                return results
            found = results[-1]
        return [] if found is None else [found]

    def _called(self, module: str, parts: list[str]) -> Value:
        for target in self._inferred(module, parts):
            if _is_class(target):
                return self._object(target)
            if _is_function(target):
                return self._result(target, target)
        return NOTHING

    def _bound(self, module: str, parts: list[str]) -> Value:
        return self._joined(self._inferred(module, parts), f"{module}.{'.'.join(parts)}")

    def _attribute(self, described: Node, name: str) -> Value:
        origin = f"{described.qname()}.{name}"
        for owner in (described, *_ancestors(described)):
            for node in (*owner.locals.get(name, ()), *owner.instance_attrs.get(name, ())):
                promised = self._annotated(getattr(node.parent, "annotation", None))
                if promised is not NOTHING:
                    if promised.kind is not Kind.TENSOR:
                        return promised
                    return beside_copy(self._tensor_of(promised, described, name, origin), name, owner.locals)
                if _is_function(node) and _is_property(node):
                    return self._result(node, next(described.instantiate_class().getattr(name).__iter__()))
        return self._assigned(described, name, origin)

    def _assigned(self, described: Node, name: str, origin: str) -> Value:
        """What the methods of a class store. What a layer makes without a device moves with the layer: who knows where to."""
        found = self._joined(_found(described.instantiate_class(), name), origin)
        moves = found.kind is Kind.TENSOR and found.device is Device.HOST and any(base.name == "Module" for base in _ancestors(described))
        return found.but(device=Device.UNKNOWN) if moves else found

    def _tensor_of(self, promised: Value, described: Node, name: str, origin: str) -> Value:
        """A field that is annotated as a tensor: where it lives, if what is assigned to it shows that."""
        found = self._assigned(described, name, origin)
        return found if found.kind is Kind.TENSOR else promised

    def _method(self, described: Node, name: str) -> Value:
        for owner in (described, *_ancestors(described)):
            for node in owner.locals.get(name, ()):
                if _is_function(node):
                    return self._result(node, next(described.instantiate_class().igetattr(name)))
        return NOTHING

    def _result(self, function: Node, callee: Node) -> Value:
        """What a function returns: what it promises, with the device that its body shows."""
        promised = self._annotated(function.returns)
        if promised.kind not in (Kind.UNKNOWN, Kind.TENSOR):
            return promised if promised.kind is not Kind.NONE else NOTHING
        if _is_async(function) or not _is_plain(function):
            return promised
        found = self._joined(_inferences(lambda: callee.infer_call_result(None)), function.qname())
        return promised if promised.kind is Kind.TENSOR and found.kind is not Kind.TENSOR else found

    def _annotated(self, annotation: Node | None) -> Value:
        if annotation is None:
            return NOTHING
        value = value_of_text(text_of(annotation))
        if value.kind is Kind.OBJECT:
            self._remember(value.class_name, annotation)
        return value

    def _remember(self, class_name: str, annotation: Node) -> None:
        """Where the class of an answer lives, since the asking file may know it only by this answer."""
        if class_name not in self._homes:
            for found in itertools.islice(_found(annotation.root(), class_name), 1):
                if _is_class(found):
                    self._homes[class_name] = found.qname()

    def _object(self, described: Node) -> Value:
        self._homes.setdefault(described.name, described.qname())
        return Value(Kind.OBJECT, class_name=described.name)

    # ---------------------------------------------------------------- values

    def _joined(self, results: Any, why: str) -> Value:
        from astroid.util import UninferableBase

        value, uncertain = NOTHING, False
        for result in results:
            if isinstance(result, UninferableBase):
                uncertain = True
            else:
                value = join(value, self._value(result, _NESTED))
        if value.kind is Kind.NONE or (uncertain and value.kind is not Kind.TENSOR):
            return NOTHING
        return value if value is NOTHING else value.but(origin=Origin(0, f"inferred from {why}"))

    def _value(self, result: Node, depth: int) -> Value:
        from astroid import bases, nodes

        device = device_of_instance(result)
        if device is not None:
            return Value(Kind.TENSOR, device)
        match result:
            case nodes.Const(value=None):
                return NONE
            case nodes.Const():
                return SCALAR
            case nodes.Tuple(elts=elements) if depth:
                return Value(Kind.TUPLE, elements=tuple(self._part(element, depth) for element in elements))
            case nodes.List(elts=elements) | nodes.Set(elts=elements) if depth:
                return Value(Kind.LIST, element=self._shared(elements, depth))
            case nodes.Dict(items=items) if depth:
                return Value(Kind.DICT, element=self._shared([value for _, value in items], depth))
            case bases.Generator():
                return Value(Kind.LIST)
            case bases.Instance():
                return self._instance(result)
        return NOTHING

    def _instance(self, result: Node) -> Value:
        where = device_of_device(result)
        if where is not None:
            return Value(Kind.DEVICE, where)
        if is_dtype(result):
            return DTYPE
        if is_array(result):
            return ARRAY
        module, _, name = result.pytype().rpartition(".")
        if module == "builtins":
            return Value(_BUILTINS[name]) if name in _BUILTINS else NOTHING
        if any(base.root().name == "builtins" and base.name in ("int", "str", "float") for base in result._proxied.ancestors()):
            return SCALAR
        return self._object(result._proxied)

    def _part(self, element: Node, depth: int) -> Value:
        found = next(element.infer(), None)
        return NOTHING if found is None else self._value(found, depth - 1)

    def _shared(self, elements: list[Node], depth: int) -> Value | None:
        value = NOTHING
        for element in elements[:_ELEMENTS]:
            value = join(value, self._part(element, depth))
        return value if value is not NOTHING else None


def _found(owner: Node, name: str) -> Iterator[Node]:
    return _inferences(lambda: owner.igetattr(name))


def _inferences(ask: Callable[[], Iterator[Node]]) -> Iterator[Node]:
    """The first few results. astroid often gives up only after some of them: then the last one is its `Uninferable`."""
    from astroid.exceptions import AstroidError
    from astroid.util import Uninferable

    try:
        yield from itertools.islice(ask(), _INFERRED)
    except AstroidError:
        yield Uninferable


def _is_class(node: Node) -> bool:
    from astroid import nodes

    return isinstance(node, nodes.ClassDef)


def _is_function(node: Node) -> bool:
    from astroid import nodes

    return isinstance(node, nodes.FunctionDef)


def _is_async(node: Node) -> bool:
    from astroid import nodes

    return isinstance(node, nodes.AsyncFunctionDef)


def _decorators(function: Node) -> list[str]:
    from astroid import nodes

    if function.decorators is None:
        return []
    spelled = [item.func if isinstance(item, nodes.Call) else item for item in function.decorators.nodes]
    return [item.as_string().rpartition(".")[2] for item in spelled]


def _is_property(function: Node) -> bool:
    return any(name in ("property", "cached_property") for name in _decorators(function))


def _is_plain(function: Node) -> bool:
    """True if no decorator changes what calling the function gives."""
    return all(name in _PLAIN_DECORATORS for name in _decorators(function))


def _ancestors(described: Node) -> Iterator[Node]:
    return itertools.islice(described.ancestors(), _INFERRED)


def _lineage(described: Node) -> Iterator[str]:
    """The names of all ancestors, and of the bases that lie in other projects."""
    for owner in (described, *_ancestors(described)):
        if owner is not described and owner.root().name != "builtins":
            yield str(owner.qname())
        for base in owner.bases:
            spelled = base.value if hasattr(base, "slice") else base
            if outside := _imported_name(owner, spelled.as_string()):
                yield outside


def _imported_name(owner: Node, spelled: str) -> str:
    """The dotted name of a base that is imported into the module of its class; empty if it is defined there."""
    from astroid import nodes

    root, _, rest = spelled.partition(".")
    for statement in owner.root().locals.get(root, ()):
        if isinstance(statement, nodes.ImportFrom):
            module = statement.root().relative_to_absolute_name(statement.modname, statement.level)
            target = f"{module}.{statement.real_name(root)}"
            return f"{target}.{rest}" if rest else target
        if isinstance(statement, nodes.Import):
            target = statement.real_name(root)
            return f"{target}.{rest}" if rest else str(target)
    return ""

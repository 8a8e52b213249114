"""Which line of a function a recorded call stands on.

PyTorch's profiler names the functions that run with the line that each begins at, and what they call; it does not
record the line of a call (`torch/csrc/autograd/profiler_python.cpp` in pytorch/pytorch). The line is read from the
source instead: a function has only so many places that can make `<built-in method item of Tensor object>` or an
`aten::add` that no call is around. Where several can, the one that comes next in the order of evaluation is taken, and
what is said of the line is marked as not certain.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Union

from launchlint.names import dotted

FRAME = re.compile(r"(?P<path>.+)\((?P<line>\d+)\): (?P<name>.+)", re.DOTALL)
BUILT_IN = re.compile(r"<(?:built-in (?:method|function)|method|slot wrapper|method-wrapper) '?(?P<name>[\w.]+)'?")
MODULE = re.compile(r"nn\.Module: (?P<name>.+?)(?:_\d+)?$", re.DOTALL)
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

Groups = tuple[tuple[str, ...], ...]  # keys of places; a later group counts only where nothing answers to an earlier one

# What the operators of Python are called by the dispatcher and as methods; keys of places begin with `op:`.
OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("add", "add_", "radd", "iadd"),
    ast.Sub: ("sub", "sub_", "rsub", "isub"),
    ast.Mult: ("mul", "mul_", "rmul", "imul"),
    ast.Div: ("div", "div_", "true_divide", "reciprocal", "truediv", "rtruediv", "rdiv", "idiv", "itruediv"),
    ast.FloorDiv: ("floor_divide", "floor_divide_", "floordiv", "rfloordiv", "ifloordiv"),
    ast.Mod: ("remainder", "remainder_", "fmod", "mod", "rmod", "imod"),
    ast.Pow: ("pow", "pow_", "rpow", "ipow"),
    ast.MatMult: ("matmul", "rmatmul", "imatmul"),
    ast.BitAnd: ("bitwise_and", "bitwise_and_", "__and__", "__iand__", "and", "rand", "iand"),
    ast.BitOr: ("bitwise_or", "bitwise_or_", "__or__", "__ior__", "or", "ror", "ior"),
    ast.BitXor: ("bitwise_xor", "bitwise_xor_", "__xor__", "__ixor__", "xor", "rxor", "ixor"),
    ast.LShift: ("bitwise_left_shift", "__lshift__", "__ilshift__", "lshift", "rlshift", "ilshift"),
    ast.RShift: ("bitwise_right_shift", "__rshift__", "__irshift__", "rshift", "rrshift", "irshift"),
    ast.USub: ("neg",),
    ast.UAdd: ("positive", "pos"),
    ast.Invert: ("bitwise_not", "logical_not", "invert"),
    ast.Eq: ("eq",),
    ast.NotEq: ("ne",),
    ast.Lt: ("lt",),
    ast.LtE: ("le",),
    ast.Gt: ("gt",),
    ast.GtE: ("ge",),
    ast.In: ("contains", "eq"),
    ast.NotIn: ("contains", "eq"),
}
BY_NAME = frozenset(name for names in OPERATORS.values() for name in names)
# What one statement asks of the dispatcher without a call in the source, or below a method that Python calls by itself.
SCALAR = ("truth", "call:float", "call:int", "call:bool", "call:complex", "call:range", "format", "load")
INDEX = ("load", "store")
IMPLICIT: dict[str, Groups] = {
    "item": (SCALAR,),
    "_local_scalar_dense": (SCALAR,),
    "is_nonzero": (("truth", "call:bool"),),
    "lift_fresh": (("store", "call:tensor", "call:as_tensor"),),
    "select": (INDEX, ("iter",)),
    "index": (("load",),),
    "unbind": (("iter",),),
    **dict.fromkeys(("fill_", "copy_", "index_put_", "_index_put_impl_", "masked_fill_", "expand"), (("store",),)),
    **dict.fromkeys(("slice", "unsqueeze", "alias", "as_strided", "view", "to", "_to_copy"), (INDEX,)),
}
SPECIAL: dict[str, tuple[str, ...]] = {
    "__iter__": ("iter", "call:iter", "call:list", "call:tuple", "call:enumerate", "call:zip", "call:map"),
    "__next__": ("iter", "call:next"),
    "__getitem__": ("load",),
    "__setitem__": ("store",),
    "__getattr__": ("member",),
    "__setattr__": ("set",),
    "__enter__": ("with",),
    "__exit__": ("exit",),
    "__bool__": ("truth", "call:bool"),
    "__format__": ("format", "call:format"),
    "__repr__": ("format", "call:repr", "call:print", "call:str"),
    "__str__": ("format", "call:str", "call:print"),
    "__call__": ("module",),
    "_call_impl": ("module",),
    "_wrapped_call_impl": ("module",),
    "__init__": ("class",),
    "__new__": ("class",),
}
VAGUE = ("attr:", "class", "far", "member", "set")  # properties and methods called by other names; any class, method or attribute
COMPREHENSIONS: dict[type[ast.AST], str] = {
    ast.GeneratorExp: "<genexpr>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python function as the profiler names it; `line` is where it begins, or where it stood when recording began."""

    path: str
    line: int
    name: str


@lru_cache(maxsize=1 << 16)
def frame_of(name: str) -> Frame | None:
    """The function that an event's name stands for; None for what is written in C and for modules."""
    found = FRAME.fullmatch(name)
    return Frame(found["path"].replace("\\", "/"), int(found["line"]), found["name"]) if found else None


def without_address(name: str) -> str:
    """The name without the address of an object, so that the number of names stays small."""
    return ADDRESS.sub("", name) if " at 0x" in name else name


def may_repeat(name: str) -> bool:
    """Whether one place may make several events of this name in a row: an index selects once for each of its parts."""
    return name.startswith("aten::") and name[6:] in IMPLICIT


@lru_cache(maxsize=1 << 16)
def keys_of(name: str) -> Groups:
    """What in the source can make an event of this name: groups of keys, the likeliest group first."""
    if name.startswith("aten::"):
        word = name[6:]
        operator = ((f"op:{word}",),) if word in BY_NAME else ()
        return (*operator, *IMPLICIT.get(word, ()), (f"attr:{word}", f"call:{word}"))
    if found := MODULE.match(name):
        return ((f"module:{found['name']}",), ("module",), ("far",))
    if found := BUILT_IN.match(name):
        word = found["name"].rpartition(".")[2]
        bound = name.startswith("<built-in method") and " of type object" not in name  # torch's functions belong to a type
        spelled = "method" if bound else "name" if name.startswith("<built-in function") else "call"
        return ((f"{spelled}:{word}",), *_keys_of_callable(word))
    frame = frame_of(name)
    if frame is None:
        return ((f"call:{name.rpartition('::')[2]}",),)
    if frame.name.startswith("<"):
        return ((f"code:{frame.name}:{frame.line}",), ("call:map", "call:filter", "call:sorted", "call:apply"))
    return _keys_of_callable(frame.name.rpartition(".")[2])


def _keys_of_callable(name: str) -> Groups:
    inner = name.strip("_")
    own = (f"call:{name}",), (f"attr:{name}",)
    if SPECIAL.get(name) == ("class",):
        return ((f"call:{name}", "class"),)  # a class is as likely as `super().__init__()`
    if name in SPECIAL:
        return (*own, SPECIAL[name])
    if name.startswith("__") and inner in BY_NAME:
        return ((f"op:{inner}",), *own)
    return own


# ---------------------------------------------------------------- functions


@dataclass(slots=True)
class Function:
    """The places of one function in order of evaluation: their lines, which keys each answers to, and the loops around them."""

    name: str
    first: int
    last: int
    lines: list[int] = field(default_factory=list)
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    loops: list[tuple[int, int]] = field(default_factory=list)  # half-open ranges of places, inner ones first
    choices: dict[Groups, tuple[list[int], bool]] = field(default_factory=dict)
    generator: bool = False

    def find(self, groups: Groups, again: bool, after: int) -> tuple[int, bool] | None:
        """The place of an event that comes after the place `after` (-1: nothing yet), and whether no other line can be meant.

        `again`: one place may make several such events in a row.
        """
        if groups not in self.choices:
            self.choices[groups] = self._choice(groups)
        places, certain = self.choices[groups]
        return (self._next(places, after if again else after + 1, after), certain) if places else None

    def _choice(self, groups: Groups) -> tuple[list[int], bool]:
        """The places that answer to the first group which any answers to, and whether all are on one line."""
        for group in groups:
            places = sorted({place for key in group for place in self.places.get(key, ())})
            if places:
                vague = any(key.startswith(VAGUE) for key in group)
                return places, not vague and len({self.lines[place] for place in places}) == 1
        return [], False

    def _next(self, places: list[int], first: int, after: int) -> int:
        """The next place from `first` on in the innermost loop around `after`, beginning anew at its end; else the next of all."""
        for start, end in self.loops:
            if start <= after < end:
                inside = [place for place in places if start <= place < end]
                if inside:
                    return next((place for place in inside if place >= first), inside[0])
        return next((place for place in places if place >= first), places[-1])

    def before(self, line: int) -> int:
        """The last place before the line: where a function stands that was at this line when recording began; -1 for none."""
        return max((place for place, own in enumerate(self.lines) if own < line), default=-1)


class Module:
    """The functions of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.imported = _imported(tree)
        self.members = _members(tree)
        self.functions_by_name = _functions_by_name(tree)
        self.functions: defaultdict[str, list[Function]] = defaultdict(list)
        last = max((node.end_lineno or 0 for node in tree.body), default=0)
        self._add(Function("<module>", 0, last), tree.body)
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                    function = Function(node.name, first, node.end_lineno or first, generator=_yields(node.body))
                    self._add(function, node.body)
                case ast.Lambda():
                    self._add(Function("<lambda>", node.lineno, node.end_lineno or node.lineno), [node.body])
                case ast.ClassDef():
                    self._add(Function(node.name, node.lineno, node.end_lineno or node.lineno), node.body)
                case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                    self._add(Function(COMPREHENSIONS[type(node)], node.lineno, node.end_lineno or node.lineno), [_Loop(_inside(node))])

    def function(self, frame: Frame) -> Function | None:
        """The function that a frame names; None where this file has none there, so it is another file or another version."""
        named = self.functions.get(frame.name.rpartition(".")[2] if not frame.name.startswith("<") else frame.name, [])
        exact = [function for function in named if function.first == frame.line]
        around = [function for function in named if function.first <= frame.line <= function.last]
        found = exact or around
        return max(found, key=lambda function: function.first) if found else None

    def _add(self, function: Function, body: Sequence[_Piece]) -> None:
        self.functions[function.name].append(function)
        for step in _steps(body):
            match step:
                case (int() as start, int() as end):
                    function.loops.append((start, end))
                case (int() as line, tuple() as keys):
                    for key in (*keys, *self._more_keys(keys)):
                        function.places[key].append(len(function.lines))
                    function.lines.append(line)

    def _more_keys(self, keys: tuple[str, ...]) -> Iterator[str]:
        """What only the whole file tells: the imported name behind another name, and the class of a module's child."""
        for key in keys:
            kind, _, name = key.partition(":")
            if kind == "call" and name in self.imported:
                yield f"call:{self.imported[name]}"
            elif kind == "held" and name not in self.functions_by_name:
                yield "module"
            elif kind == "attr" and name in self.members:
                yield "member"
            elif kind == "own":
                yield from (f"module:{cls}" for cls in self.members.get(name, ()))


Step = tuple[int, int] | tuple[int, tuple[str, ...]]


def _steps(body: Sequence[_Piece]) -> Iterator[Step]:
    """The places below `body` in order of evaluation, as line and keys, and after each loop its range of places."""
    count = 0
    todo: list[_Piece] = list(reversed(body))
    while todo:  # a stack of our own: sums of thousands of terms are nested deeper than Python recurses
        match todo.pop():
            case _Mark(line=line, keys=keys):
                count += 1
                yield (line, keys)
            case _Loop(pieces=pieces):
                todo.extend((_End(count), *reversed(pieces)))
            case _End(start=start):
                yield (start, count)
            case ast.AST() as node:
                todo.extend(reversed(list(_pieces(node))))


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place still to come."""

    line: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """What a loop repeats."""

    pieces: Sequence[_Piece]


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a loop that began at the place `start`."""

    start: int


_Piece = Union[ast.AST, _Mark, _Loop, _End]  # noqa: UP007 - evaluated, and the classes above do not know `|`


def _pieces(node: ast.AST) -> Iterator[_Piece]:
    """The children of a node in order of evaluation with what the node itself does between and after them."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        case ast.Lambda():
            yield from [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        case ast.ClassDef():
            yield from [*node.decorator_list, *node.bases]
            yield _Mark(node.lineno, (f"call:{node.name}",))
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            yield node.generators[0].iter
            yield _Mark(node.lineno, (f"code:{COMPREHENSIONS[type(node)]}:{node.lineno}",))
            if not isinstance(node, ast.GeneratorExp):  # from Python 3.12 on the others run in the function around them
                yield _Loop(_inside(node))
        case ast.Assign():
            yield node.value
            if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
                yield _Mark(node.value.lineno, ("iter",))
            yield from node.targets
        case ast.AnnAssign():
            yield from [*([node.value] if node.value else []), node.target]
        case ast.AugAssign():
            stored = ("store", "load") if isinstance(node.target, ast.Subscript) else ()
            yield from [*ast.iter_child_nodes(node.target), node.value]
            yield _Mark(node.lineno, (*_operator(node.op), *stored))
        case ast.For() | ast.AsyncFor():
            yield node.iter
            yield _Mark(node.iter.lineno, ("iter",))
            yield _Loop([node.target, *node.body])
            yield from node.orelse
        case ast.While():
            yield _Loop([node.test, _Mark(node.test.lineno, ("truth",)), *node.body])
            yield from node.orelse
        case ast.If():
            yield node.test
            yield _Mark(node.test.lineno, ("truth",))
            yield from [*node.body, *node.orelse]
        case ast.IfExp():
            yield node.test
            yield _Mark(node.test.lineno, ("truth",))
            yield from [node.body, node.orelse]
        case ast.With() | ast.AsyncWith():
            for item in node.items:
                yield item.context_expr
                yield _Mark(item.context_expr.lineno, ("with",))
            yield from node.body
            yield from (_Mark(item.context_expr.lineno, ("exit",)) for item in reversed(node.items))
        case _:
            yield from ast.iter_child_nodes(node)
            if keys := _keys_at(node):
                yield _Mark(_line(node), keys)


def _inside(node: ast.AST) -> list[ast.AST]:
    """What a comprehension evaluates for each element; its first iterable is evaluated before, outside."""
    assert isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp)
    found: list[ast.AST] = []
    for number, generator in enumerate(node.generators):
        found += [*([generator.iter] if number else []), generator.target, *generator.ifs]
    return [*found, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])]


def _line(node: ast.AST) -> int:
    """Where a reader sees what happens: for a method at the end of a chain over several lines, the line of its name."""
    where = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    return int(getattr(where, "end_lineno" if where is not node else "lineno", 0) or 0)


def _operator(operator: ast.AST) -> tuple[str, ...]:
    return tuple(f"op:{name}" for name in OPERATORS.get(type(operator), ()))


def _keys_at(node: ast.AST) -> tuple[str, ...]:
    """What the node itself does after its children."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            holder = "module" if isinstance(value, ast.Subscript) or dotted(value).partition(".")[0] == "self" else "far"
            return (f"call:{name}", f"method:{name}", f"own:{name}", holder, *(("class",) if name[:1].isupper() else ()))
        case ast.Call(func=ast.Name(id=name)):
            return (f"call:{name}", f"name:{name}", "class" if name[:1].isupper() else f"held:{name}")
        case ast.Call():
            return ("module",)
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
            return (*_operator(operator), *(("truth",) if isinstance(operator, ast.Not) else ()))
        case ast.Compare(ops=operators):
            return tuple(key for operator in operators for key in _operator(operator))
        case ast.BoolOp() | ast.Assert():
            return ("truth",)
        case ast.Subscript(ctx=ast.Store()):
            return ("store",)
        case ast.Subscript(ctx=ast.Load()):
            return ("load",)
        case ast.Attribute(ctx=ast.Store()):
            return ("set",)
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return (f"attr:{name}",)
        case ast.FormattedValue():
            return ("format",)
        case ast.Starred():
            return ("iter",)
        case ast.YieldFrom():
            return ("iter",)
    return ()


def _yields(body: Sequence[ast.AST]) -> bool:
    """Whether these statements make a function a generator."""
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return False


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names that an import gives to something that is called otherwise: `from torch import zeros as z`."""
    return {
        alias.asname: alias.name.rpartition(".")[2]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }


def _functions_by_name(tree: ast.Module) -> set[str]:
    """Names that mean functions: built-in ones, imported ones and those that the file defines; others may hold a module."""
    names = set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
    return names


def _members(tree: ast.Module) -> dict[str, set[str]]:
    """The classes that `self.name = Class(...)` gives to a name anywhere in the file."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call(func=called)):
                if cls := dotted(called).rpartition(".")[2]:
                    members[name].add(cls)
    return members

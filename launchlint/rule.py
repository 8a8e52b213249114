"""What a rule is, and what it may ask.

A rule is a value: `rule = Rule(Meta(...))`. Functions are attached with `@rule.on(ast.Call, names=("item",))` and yield
`Hit`s (something to report) or `Silence`s (why this one is not reported, for `launchlint why`). A rule never reads a
file, an option on disk or a clock: all that it may know is in the `Context`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from launchlint.model import Fix, Heat, Level, Meta, Span

if TYPE_CHECKING:
    from launchlint.settings import Settings
    from launchlint.source import Source
    from launchlint.values import Device, Value

Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that the rule would report.

    `level` says how well the decisive value is known; the engine looks up the rule's policy with it and with the heat
    of the function. `related` are nodes or spans with a note. `fix` is called only for a finding that is reported.
    `group` joins the hits of one loop: the first in the source is reported, the others become related places, and so does
    `wider` for those that lead a group. What the tests around `made` say counts too, where what costs stands elsewhere than
    `node`. A `doubt` of the rule's own leaves low confidence only, whatever the policy says.
    """

    node: ast.expr | ast.stmt
    message: str
    level: Level
    related: tuple[tuple[ast.expr | ast.stmt | Span, str], ...] = ()
    fix: Callable[[], Fix | None] | None = None
    group: str = ""
    span: Span | None = None  # where it differs from the span of the node
    gives_way: bool = False  # not reported where another rule reports something inside the node
    made: ast.expr | None = None
    doubt: str = ""
    wider: str = ""


@dataclass(frozen=True, slots=True)
class Silence:
    """A place that looks like the pattern and is not reported, with the reason."""

    node: ast.expr | ast.stmt
    reason: str


Outcome = Hit | Silence
Check = Callable[[Any, "Context"], Iterable[Outcome] | None]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When to call a check: a node type and, for calls, the last name of what is called (`x.item` -> `item`)."""

    node_type: type[ast.AST]
    names: frozenset[str]  # empty: every node of the type
    check: Check
    when: Callable[[Any], bool] | None = None  # asked of the node before anything else, so it must be cheap


@dataclass(slots=True)
class Rule:
    """A rule's facts and its checks."""

    meta: Meta
    triggers: list[Trigger] = field(default_factory=list)

    def on(
        self, *node_types: type[ast.AST], names: Iterable[str] = (), when: Callable[[Any], bool] | None = None
    ) -> Callable[[Check], Check]:
        """Attach a check. `names` narrows `ast.Call` to calls of that last name and `when` to nodes of a shape: both keep
        the walk cheap."""

        def attach(check: Check) -> Check:
            for node_type in node_types:
                self.triggers.append(Trigger(node_type, frozenset(names), check, when))
            return check

        return attach


def stores_item(node: ast.Assign) -> bool:
    """`x[...] = value`"""
    return node.targets[0].__class__ is ast.Subscript


def may_index_by_data(node: ast.Subscript) -> bool:
    """A subscript whose index may be a list, an array or a tensor."""
    index = node.slice
    if index.__class__ is ast.Tuple:
        return any(part.__class__ not in _PLAIN for part in index.elts)
    return index.__class__ not in _PLAIN


def repeats_list(node: ast.BinOp) -> bool:
    """`[x] * n`"""
    return node.left.__class__ is ast.List and node.op.__class__ is ast.Mult


_PLAIN = frozenset({ast.Slice, ast.Constant})


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """The function that holds a place: who it is and why it runs every step (or does not)."""

    qualname: str  # module.Class.method
    node: FunctionNode | None
    class_node: ast.ClassDef | None
    heat: Heat
    reason: str  # one sentence: the role, the chain's start, or what made it cold
    chain: tuple[str, ...]  # root first
    per: str = "step"  # layer | step | request | iteration | batch | token | generation
    turns: tuple[tuple[int, int], ...] | None = None  # where it runs once for a generation, the loops that run often; None: any
    doubt: str = ""  # why it may run never


@dataclass(frozen=True, slots=True)
class Frame:
    """A statement or comprehension that encloses a place, innermost first when walked through `outer`."""

    node: ast.AST
    part: str  # body | orelse | test | iter | handlers | finalbody
    outer: Frame | None


class Context(Protocol):
    """What a rule may ask about the place it looks at. The engine makes one for each function."""

    source: Source
    settings: Settings
    function: FunctionFacts
    frame: Frame | None
    statement: ast.stmt

    def value(self, expr: ast.expr) -> Value:
        """What `expr` is: tensor or not, device, pinned, host list, constant; never None."""

    def device(self, expr: ast.expr | None) -> Device:
        """The device that `expr` names when it is used as a device argument; UNKNOWN when it is not known."""

    def name(self, expr: ast.expr) -> str:
        """Canonical dotted name (`torch.tensor` for `t.tensor`), or an empty string. A call is never looked through."""

    def keyword(self, call: ast.Call, name: str) -> ast.expr | None:
        """The value of a keyword argument."""

    def loops(self) -> list[Loop]:
        """Loops and comprehensions of this function around the place, innermost first."""

    def frames(self) -> Iterator[Frame]:
        """Everything around the place inside this function, innermost first."""

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds `node`, inside this function."""

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of `node`."""

    def is_constant(self, expr: ast.expr) -> bool:
        """True for literals and for attributes that only `__init__` sets: the same for the life of the object."""

    def assigned(self, name: str) -> list[ast.stmt]:
        """The statements of this function that bind the local `name`, in order."""

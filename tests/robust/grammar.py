"""Random modules: every kind of statement and expression of the running Python, in the words of code that uses torch.

A module is made from a `random.Random`, so a seed names it. Most of what is made parses; what does not (a `return` where none may
stand is no matter for the parser, an assignment to a call is) is an input as well.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

NAMES = (
    "x", "ids", "counts", "rows", "mask", "out", "self.x", "self.weights", "sizes", "start", "n", "größe", "数", "loss", "params",
    "cpu_ids",
)  # fmt: skip
PARTS = ("shape", "device", "dtype", "grad", "data", "size", "T", "ndim", "is_cuda")
METHODS = (
    "item", "tolist", "cpu", "cuda", "to", "fill_", "zero_", "copy_", "add_", "nonzero", "sum", "max", "any", "all", "numpy", "clone",
    "repeat_interleave", "masked_select", "unique", "detach", "view", "pin_memory", "contiguous", "index_add_", "long", "mean",
)  # fmt: skip
FUNCTIONS = (
    "torch.tensor", "torch.as_tensor", "torch.empty", "torch.zeros", "torch.full", "torch.arange", "torch.cat", "torch.stack",
    "torch.repeat_interleave", "torch.where", "torch.nonzero", "torch.from_numpy", "torch.cumsum", "torch.LongTensor", "torch.eye",
    "torch.cuda.synchronize", "np.array", "len", "range", "enumerate", "zip", "sum", "int", "list", "bool", "f", "self.run", "print",
)  # fmt: skip
KEYWORDS = (
    'device="cuda"', "device=x.device", "device=self.device", "dtype=torch.int64", "non_blocking=True", "pin_memory=True", "out=out",
    "output_size=n", "dim=0", "*rest", "**options", 'device="cpu"', "dtype=torch.float32",
)  # fmt: skip
LITERALS = (
    "0", "1", "-1", "1.5", "1j", "True", "None", "...", '"cuda"', "b'a'", "'ä𝒳'", "0xff", "1_000", "r'\\d'", "'''a\nb'''", "'a' 'b'", "[]",
    "{}", "()",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in")
FUNCTION_NAMES = ("forward", "step", "prepare", "_prepare_inputs", "execute_model", "helper", "__init__", "load_weights", "build")
CLASS_HEADS = ("Layer(torch.nn.Module)", "Runner", "Experts(nn.Module)", "Sampler(Base, metaclass=M)", "ModelRunner(object)")
DECORATORS = ("@torch.no_grad()", "@staticmethod", "@property", "@triton.jit", "@functools.cache", "@(yield_ := d)", "@a.b[0](1)")
COMMENTS = (
    "# why", "# 数える", "# noqa", "# noqa: LCH101", "# launchlint: ignore", "# launchlint: ignore[bulk-read] once", "# type: ignore",
    "# fmt: off",
)  # fmt: skip
PATTERNS = (
    "None", "[1, *rest]", "{'a': 1, **rest}", "Point(x=0, y=y)", "1 | 2", "(1 | 2) as n", "'s'", "torch.int64", "[a, [b, _]]", "-1.5 + 2j",
)  # fmt: skip
IMPORTS = ("import torch", "import torch\nimport numpy as np", "import torch as t", "from torch import nn\nimport torch", "")
OVER = ("torch.no_grad()", "torch.cuda.stream(s) as t", "(open(x) as f, g() as (a, b))", "gpu_sync_allowed()")


class Writer:
    """Writes one module."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.left = chance.randint(4, 60)  # statements

    def module(self) -> str:
        """The text of a module."""
        lines = [self.of(IMPORTS)]
        while self.left > 0:
            lines += self.statement(0, 0)
        return "\n".join(lines) + self.of(("\n", "", "\n\n"))

    def of(self, options: Sequence[str]) -> str:
        return self.chance.choice(options)

    def rarely(self, share: float = 0.15) -> bool:
        return self.chance.random() < share

    # ---------------------------------------------------------------- expressions

    def expression(self, depth: int = 0) -> str:
        """One expression."""
        if depth > 4 or self.rarely(0.3):
            return self.of(NAMES) if self.rarely(0.7) else self.of(LITERALS)
        make: Callable[[int], str] = self.chance.choice(
            (
                self._call, self._call, self._call, self._method, self._method, self._method, self._attribute, self._index, self._index,
                self._operation, self._operation, self._compare, self._boolean, self._unary, self._display, self._comprehension,
                self._lambda, self._choice, self._text, self._walrus, self._waiting,
            )
        )  # fmt: skip
        return make(depth + 1)

    def _arguments(self, depth: int) -> str:
        given = [self.expression(depth) for _ in range(self.chance.choice((0, 1, 1, 1, 2)))]
        given += self.chance.sample(KEYWORDS, self.chance.choice((0, 0, 1, 2)))
        gap = self.of((", ", ", ", ", ", ",", ",\n", ", # why\n"))
        return gap.join(given) + "," * (bool(given) and self.rarely())

    def _call(self, depth: int) -> str:
        return f"{self.of(FUNCTIONS)}({self._arguments(depth)})"

    def _method(self, depth: int) -> str:
        return f"{self._tight(depth)}.{self.of(METHODS)}({self._arguments(depth)})"

    def _tight(self, depth: int) -> str:
        return self.of(NAMES) if self.rarely(0.5) else f"({self.expression(depth)})"

    def _attribute(self, depth: int) -> str:
        return f"{self._tight(depth)}.{self.of(PARTS)}"

    def _index(self, depth: int) -> str:
        index = self.of(("{}", "{}, :{}", "{}:{}", "..., {}", "{}::2", "[{}]", "None, {}", "*{},"))
        return f"{self._tight(depth)}[{index.replace('{}', self.expression(depth), 1).replace('{}', self.expression(depth), 1)}]"

    def _operation(self, depth: int) -> str:
        return f"({self.expression(depth)} {self.of(OPERATORS)} {self.expression(depth)})"

    def _compare(self, depth: int) -> str:
        return f"({self.expression(depth)} {self.of(COMPARISONS)} {self.expression(depth)})"

    def _boolean(self, depth: int) -> str:
        return f"({self.expression(depth)} {self.of(('and', 'or'))} {self.expression(depth)})"

    def _unary(self, depth: int) -> str:
        return f"({self.of(('-', '~', 'not ', '+'))}{self.expression(depth)})"

    def _display(self, depth: int) -> str:
        shape = self.of(("[{}, {}]", "({}, {})", "{{{}: {}}}", "{{{}, {}}}", "[*{}, {}]", "{{**{}, 'k': {}}}", "[{}] * {}"))
        return shape.format(self.expression(depth), self.expression(depth))

    def _comprehension(self, depth: int) -> str:
        shape = self.of(("[{}]", "({})", "{{{}}}", "{{k: {}}}", "sum({})", "torch.cat([{}])"))
        where = f" if {self.expression(depth)}" * self.rarely()
        return shape.format(f"{self.expression(depth)} for {self.of(('i', 'i, k', '(i, *k)'))} in {self.expression(depth)}{where}")

    def _lambda(self, depth: int) -> str:
        return f"(lambda {self.of(('', 'a', '*a, **k', 'a, /, b=1, *, c'))}: {self.expression(depth)})"

    def _choice(self, depth: int) -> str:
        return f"({self.expression(depth)} if {self.expression(depth)} else {self.expression(depth)})"

    def _text(self, depth: int) -> str:
        inner = self.expression(depth)
        if sys.version_info < (3, 12):  # where the quotes of what is inside count, and a comment or a line end is none
            inner = inner if inner.isidentifier() else "x"
        shapes = ["f'<>'", "f'<!r:5>'", "f'ä< = >'", "rf'<>\\d'", "f'''\n<>\n'''"]
        if sys.version_info >= (3, 14):
            shapes.append("t'<>'")
        return self.of(shapes).replace("<", "{" + inner, 1).replace(">", "}")

    def _walrus(self, depth: int) -> str:
        return f"(got := {self.expression(depth)})"

    def _waiting(self, depth: int) -> str:
        return f"({self.of(('await ', 'yield ', 'yield from '))}{self.expression(depth)})"

    # ---------------------------------------------------------------- statements

    def block(self, level: int, depth: int) -> list[str]:
        """One or more indented statements."""
        if self.rarely(0.05):
            return [f"{'    ' * (level + 1)}pass"]
        return [line for _ in range(self.chance.randint(1, 4)) for line in self.statement(level + 1, depth + 1)]

    def statement(self, level: int, depth: int) -> list[str]:
        """A statement with all its lines."""
        self.left -= 1
        pad = "    " * level
        lines: list[str] = []
        if self.rarely(0.05):
            lines.append(pad + self.of(COMMENTS))
        if depth < 5 and self.left > 0 and self.rarely(0.55 if level else 0.8):
            return [*lines, *self._compound(level, depth)]
        tail = f"  {self.of(COMMENTS)}" * self.rarely(0.1)
        more = f"; {self._simple()}" * self.rarely(0.05)
        return [*lines, f"{pad}{self._simple()}{more}{tail}"]

    def _simple(self) -> str:
        name, value, other = self.of(NAMES), self.expression(), self.expression()
        shapes = [
            f"{name} = {value}", f"{name} = {value}", f"{name}[{other}] = {value}", f"{name}[{other} : {other}].fill_({value})", value,
            value,
            f"{name} += {value}", f"{name}[{other}] += {value}", f"{name}, *{name} = {value}", f"a = b = {value}",
            f"v: torch.Tensor = {value}",
            "v: list[int]", f"return {value}", "return", f"assert {value}, {other}", f"del {name}", "pass", "break", "continue",
            f"raise {value} from {other}", "global ids", "nonlocal n", "import torch.nn.functional as F", "from . import a as b",
            "from .. import *", "from torch import tensor as make",
        ]  # fmt: skip
        if sys.version_info >= (3, 12):
            shapes += ["type Ids[T: int, *Ts, **P] = list[T]"]
        if self.rarely(0.02):
            return f"{value} = {other}"  # which the parser refuses for most values
        return self.of(shapes)

    def _compound(self, level: int, depth: int) -> list[str]:
        pad = "    " * level
        make: Callable[[str, int, int], list[str]] = self.chance.choice(
            (
                self._def, self._def, self._class, self._class, self._for, self._for, self._for, self._while, self._if, self._if,
                self._with, self._try, self._match,
            )
            if level
            else (self._def, self._class, self._class, self._class, self._for, self._if, self._try)
        )  # fmt: skip
        return make(pad, level, depth)

    def _def(self, pad: str, level: int, depth: int) -> list[str]:
        parameters = self.of(
            ("self, x: torch.Tensor, counts: list[int]", "self, ids, n", "x, /, sizes: list[int], *, out=None", "*rest, **options", "")
        )
        generic = "[T]" * (sys.version_info >= (3, 12) and self.rarely())
        head = f"{'async ' * self.rarely(0.1)}def {self.of(FUNCTION_NAMES)}{generic}({parameters}){' -> torch.Tensor' * self.rarely(0.3)}:"
        above = [pad + self.of(DECORATORS)] * self.rarely(0.1)
        return [*above, pad + head, *[f'{pad}    """Does."""'] * self.rarely(), *self.block(level, depth)]

    def _class(self, pad: str, level: int, depth: int) -> list[str]:
        lines = [f"{pad}class {self.of(CLASS_HEADS)}:"]
        for _ in range(self.chance.randint(1, 3)):
            lines += self._def(pad + "    ", level + 1, depth + 1)
        return lines

    def _for(self, pad: str, level: int, depth: int) -> list[str]:
        target = self.of(("i", "i, k", "expert, count", "row, size", "p", "self.i", "x[0]"))
        over = self.of(("enumerate(counts)", "range(n)", "zip(ids, sizes)", "self.parameters()", "x", "x.tolist()", self.expression(2)))
        lines = [f"{pad}{'async ' * self.rarely(0.05)}for {target} in {over}:", *self.block(level, depth)]
        return [*lines, f"{pad}else:", *self.block(level, depth)] if self.rarely(0.1) else lines

    def _while(self, pad: str, level: int, depth: int) -> list[str]:
        return [f"{pad}while {self.expression(1)}:", *self.block(level, depth)]

    def _if(self, pad: str, level: int, depth: int) -> list[str]:
        lines = [f"{pad}if {self.expression(1)}:", *self.block(level, depth)]
        if self.rarely(0.2):
            lines += [f"{pad}elif {self.expression(1)}:", *self.block(level, depth)]
        return [*lines, f"{pad}else:", *self.block(level, depth)] if self.rarely(0.3) else lines

    def _with(self, pad: str, level: int, depth: int) -> list[str]:
        over = self.of((*OVER, self.expression(2)))
        return [f"{pad}{'async ' * self.rarely(0.1)}with {over}:", *self.block(level, depth)]

    def _try(self, pad: str, level: int, depth: int) -> list[str]:
        groups = sys.version_info >= (3, 11) and self.rarely(0.3)
        lines = [f"{pad}try:", *self.block(level, depth)]
        if not self.rarely():
            caught = ["ValueError", "(A, B) as e", "E as e", *["A, B"] * (sys.version_info >= (3, 14))]
            lines += [f"{pad}except{'*' * groups} {self.of(caught)}:", *self.block(level, depth)]
            lines += [f"{pad}else:", *self.block(level, depth)] * self.rarely()
        return [*lines, f"{pad}finally:", *self.block(level, depth)]

    def _match(self, pad: str, level: int, depth: int) -> list[str]:
        lines = [f"{pad}match {self.expression(2)}:"]
        for _ in range(self.chance.randint(1, 3)):
            lines += [f"{pad}    case {self.of(PATTERNS)}{' if n' * self.rarely()}:", *self.block(level + 1, depth)]
        return lines

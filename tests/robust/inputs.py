"""Files that break linters, made from bytes written here, and what must be said about each.

Every input holds one loop that must be found (LCH101) unless it cannot be analysed at all. Links name the reports.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

LOOP = """\
import torch


class Packer(torch.nn.Module):
    def forward(self, sizes: list[int], grid: torch.Tensor) -> torch.Tensor:
        for row, size in enumerate(sizes):
            grid[row, :size].fill_(row)
        return grid
"""
LOOP_AT = 7
NOTICE = "LCH003"  # how the flake8 plugin tells of a file that it could not analyse


@dataclass(frozen=True, slots=True)
class Input:
    """A file, and the lines of its findings; `unread` is the line of the one error in place of findings (0: no line)."""

    name: str
    data: bytes
    lines: tuple[int, ...] = (LOOP_AT,)
    unread: int | None = None
    in_flake8: tuple[int, ...] | None = None  # where flake8 hands over something else than what we would read
    code: str = "LCH101"
    defeats_pyflakes: bool = False  # flake8 runs pyflakes too, which dies of depth and takes the run with it
    links: str = ""


def text(code: str, encoding: str = "utf-8") -> bytes:
    return code.encode(encoding)


def since(version: tuple[int, int], name: str, code: str, lines: tuple[int, ...], links: str = "") -> Input:
    """Syntax that older Pythons do not know: there it is one syntax error and no crash."""
    if sys.version_info[:2] >= version:
        return Input(name, text(code), lines, links=links)
    return Input(name, text(code), (), unread=-1, in_flake8=(), links=links)


METHOD = """\
import torch


class Packer(torch.nn.Module):
    def forward(self, sizes: list[int], grid: torch.Tensor) -> torch.Tensor:
"""
LONG_ELIF = (
    METHOD
    + """\
        if 0:
            pass
"""
    + """\
        elif sizes:
            pass
"""
    * 800
    + LOOP.partition("Tensor:\n")[2]
)
NESTED_QUOTES = (
    METHOD
    + """\
        for row in sizes:
            print(f"{'a'}: {
                grid[row, :1].fill_(0)["x"]:.3f}")
        return grid
"""
)
TYPE_PARAMETERS = """\
import torch

type Rows[T] = list[T]


class Packer[T](torch.nn.Module):
    def forward[S](self, sizes: Rows[S], grid: torch.Tensor) -> None:
        for row in sizes:
            grid[row].zero_()
"""
MATCH = (
    METHOD
    + """\
        for row, size in enumerate(sizes):
            match size:
                case int() if (
                    size > 0
                ): grid[row, :size].fill_(row)
                case _:
                    pass
        return grid
"""
)
EXCEPT_STAR = (
    METHOD
    + """\
        for row in sizes:
            try:
                grid.relu_()
            except* ValueError:
                pass
            else:
                grid[row].zero_()
        return grid
"""
)
TEMPLATE_STRING = (
    METHOD
    + """\
        for row in sizes:
            print(t"cleared {grid[row].zero_()}")
        return grid
"""
)
LOOP_WITH_ELSE = (
    METHOD
    + """\
        for row in sizes:
            if row < 0:
                break
            grid[row].zero_()
        else:
            print("all")
        return grid
"""
)
DECORATED_AND_ASYNC = """\
import torch


class Packer(torch.nn.Module):
    @torch.inference_mode(
        mode=True,
    )
    async def forward(self, rows, grid: torch.Tensor) -> None:
        async def inner():
            async for row in rows:
                grid[row].zero_()

        await inner()
"""
FOREIGN_TORCH = """\
class torch:
    @staticmethod
    def zeros(n, device=None):
        return [n]


class Packer:
    def forward(self, sizes):
        grid = torch.zeros(8, device="cuda")
        for row in sizes:
            grid[row] = 0
        return grid
"""
SELF_REFERENCE = (
    """\
import torch

x = None
for _ in range(3):
    x = [x, x, x][0] or {1: x}.get(1)


class A:
    def a(self): return self.b()
    def b(self): return self.a()


v0 = A().a()
"""
    + "".join(f"v{i} = v{i - 1} + v{i - 1}\n" for i in range(1, 60))
    + """\


class Packer(torch.nn.Module):
    def forward(self, y):
        w0 = y
"""
    + "".join(f"        w{i} = (w{i - 1}, w{i - 1})\n" for i in range(1, 60))
    + "        return w59[0].item()\n"
)

INPUTS = (
    Input(
        "bom.py",
        b"\xef\xbb\xbf" + text(LOOP),
        links="https://github.com/PyCQA/mccabe/pull/41 https://github.com/oxc-project/oxc/issues/26162",
    ),
    Input(
        "latin1_cookie.py",
        text("# -*- coding: latin-1 -*-\n# gr\xfc\xdfe\n" + LOOP, "latin-1"),
        (LOOP_AT + 2,),
        links="https://github.com/PyCQA/autoflake/issues/6 https://github.com/gforcada/flake8-deprecated/pull/14",
    ),
    Input(
        "bad_utf8.py",
        text("# \u00e9 and then ") + b"\x80\n" + text(LOOP),
        (),
        unread=1,
        in_flake8=(LOOP_AT + 1,),  # flake8 falls back to latin-1, and what it hands over is what is checked
        links="https://github.com/python/cpython/issues/157378",
    ),
    Input(
        "unknown_codec.py",
        text("# -*- coding: no-such-codec -*-\n" + LOOP),
        (),
        unread=1,
        in_flake8=(LOOP_AT + 1,),
        links="https://github.com/asottile-archive/future-fstrings/issues/22",
    ),
    Input("crlf.py", text(LOOP.replace("\n", "\r\n")), links="https://github.com/astral-sh/ruff/issues/1477"),
    Input("bare_cr.py", text(LOOP.replace("\n", "\r")), links="https://github.com/PyCQA/flake8/issues/202"),
    Input(
        "mixed_ends.py",
        text(LOOP.replace("torch\n", "torch\r\n", 1).replace("sizes):\n", "sizes):\r\n")),
        links="https://github.com/pre-commit/pre-commit-hooks/pull/1162",
    ),
    Input("form_feed.py", text("\x0c\n" + LOOP), (LOOP_AT + 1,), links="https://github.com/fortran-lang/fortls/pull/444"),
    Input("unicode_ends.py", text('NOTE = "a\u2028b\x85c"  # \x0b\n' + LOOP), (LOOP_AT + 1,)),
    Input("nul_byte.py", b"x = 1\0\n" + text(LOOP), (), unread=1, in_flake8=(), links="https://github.com/PyCQA/flake8/issues/1822"),
    Input("tabs.py", text(LOOP.replace("    ", "\t")), links="https://github.com/vim/vim/issues/3658"),
    Input(
        "wide_text.py",
        text(LOOP.replace("            grid", "            tag = '\U0001f525\u00e9\u706b'; grid")),
        links="https://github.com/marcoroth/herb/issues/1761 https://github.com/pylint-dev/astroid/issues/1744",
    ),
    Input(
        "deep_sum.py",
        text("total = " + " + ".join(["1"] * 2500) + "\n" + LOOP),
        (LOOP_AT + 1,),
        defeats_pyflakes=True,
        links="https://github.com/PyCQA/pyflakes/pull/68 https://github.com/PyCQA/pyflakes/issues/347",
    ),
    Input(
        "deep_sum_in_the_loop.py",
        text(LOOP.replace("fill_(row)", "fill_(" + " + ".join(["row"] * 2500) + ")")),
        defeats_pyflakes=True,
        links="https://github.com/PyCQA/pyflakes/pull/68",
    ),
    Input(
        "deep_chain.py",
        text("def chain(q):\n    return q" + ".add_(1)" * 800 + "\n\n\n" + LOOP),
        (LOOP_AT + 4,),
        defeats_pyflakes=True,
        links="https://github.com/PyCQA/flake8-bugbear/issues/295 https://github.com/PyCQA/flake8-bugbear/pull/560",
    ),
    Input("deep_elif.py", text(LONG_ELIF), (1609,), defeats_pyflakes=True),
    Input(
        "too_many_brackets.py",
        text("x = " + "(" * 300 + "1" + ")" * 300 + "\n" + LOOP),
        (),
        unread=1,
        in_flake8=(),
        links="https://github.com/Instagram/LibCST/issues/930",
    ),
    Input(
        "syntax_error.py",
        text("def broken(:\n    pass\n" + LOOP),
        (),
        unread=1,
        in_flake8=(),
        links="https://github.com/returntocorp/bento/issues/213",
    ),
    since(
        (3, 12),
        "nested_quotes.py",
        NESTED_QUOTES,
        (8,),
        "https://github.com/PyCQA/flake8/issues/1948 https://github.com/PyCQA/pyflakes/issues/519",
    ),
    since((3, 12), "type_parameters.py", TYPE_PARAMETERS, (9,), "https://github.com/Instagram/LibCST/issues/922"),
    Input("match.py", text(MATCH), (10,), links="https://github.com/Instagram/LibCST/issues/1160"),
    since((3, 11), "except_star.py", EXCEPT_STAR, (12,)),
    since((3, 14), "template_string.py", TEMPLATE_STRING, (7,), "https://github.com/pylint-dev/pylint/issues/10744"),
    Input(
        "semicolons.py",
        text(LOOP.replace("            grid[row, :size].fill_(row)", "            a = size; grid[row, :a].fill_(row); b = a")),
        links="https://github.com/astral-sh/ruff/issues/5154",
    ),
    Input(
        "loop_on_one_line.py",
        text(LOOP.replace("enumerate(sizes):\n            ", "enumerate(sizes): ")),
        (LOOP_AT - 1,),
        links="https://github.com/astral-sh/ruff/issues/2765",
    ),
    Input(
        "loop_with_else.py",
        text(LOOP_WITH_ELSE),
        (9,),
        links="https://github.com/pylint-dev/pylint/pull/2760 https://github.com/astral-sh/ruff/issues/19132",
    ),
    Input("decorated_and_async.py", text(DECORATED_AND_ASYNC), (11,), links="https://github.com/christophebedard/dco-check/pull/109"),
    Input("no_final_newline.py", text(LOOP.rstrip("\n")), links="https://github.com/astral-sh/ruff/issues/4828"),
    Input("backslashes.py", text(LOOP.replace("grid[row, :size].", "grid[row, \\\n                :size] \\\n                ."))),
    Input("foreign_torch.py", text(FOREIGN_TORCH), (), links="https://github.com/astral-sh/ruff/issues/8482"),
    Input(
        "self_reference.py",
        text(SELF_REFERENCE),
        (),
        links="https://github.com/pylint-dev/astroid/issues/865 https://github.com/pylint-dev/pylint/issues/7898",
    ),
    Input("empty.py", b"", (), links="https://github.com/PyCQA/flake8/issues/328"),
    Input("only_bom.py", b"\xef\xbb\xbf", (), links="https://github.com/oxc-project/oxc/issues/26162"),
    Input("only_comment.py", b"# torch .fill_(", ()),
)

SUPPRESSED = (
    METHOD
    + """\
        for row in sizes:
            grid[
                row
            ].fill_(
                0
            )  # noqa
        for row in sizes:
            grid[row].fill_(  # noqa
                0)
        for row in sizes:
            grid[row].fill_(0)  # noqa: ZZZ999
        return grid
"""
)
STILL_REPORTED = (7, 16)  # only the reported line counts, and another tool's code never silences

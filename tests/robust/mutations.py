"""Code that rules and fixes are known to fire on, changed at random: by its tree, by its layout, and by its bytes."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable
from typing import Any

from tests.robust.grammar import COMMENTS, Writer

TOKENS = (
    b"(", b")", b"[", b"]", b"{", b"}", b":", b",", b"'", b'"""', b"#", b"\\", b"\t", b"\r", b"\x0c", b"\xff", b"\xe2\x80\xa8", b"\n", b" ",
    b"0", b"def ", b"for ", b"if ", b"in ", b"=", b"*", b"@", b"f'{", b";", b"\xef\xbb\xbf", b"# coding: latin-1\n", b"\0", b"async ",
    b"lambda: ",
)  # fmt: skip


HEADS = (
    "if flag:", "for turn in range(n):", "with scope():", "try:", "while True:", "async def inner():", "class C:", "match x:\n  case _:",
)  # fmt: skip


def change_tree(code: str, others: list[ast.Module], chance: random.Random) -> str:
    """The code with some of its expressions and statements exchanged, wrapped, doubled, moved or left out."""
    tree = ast.parse(code)
    for _ in range(chance.randint(1, 4)):
        chance.choice((_exchange, _exchange, _wrap, _double, _drop, _insert, _shuffle))(tree, others, chance)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block and isinstance(block[0], ast.stmt)]


def _exchange(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    """One expression becomes one of another piece of code, or one that was made up."""
    places: list[tuple[Any, str, int]] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
                places.append((node, name, -1))
            elif isinstance(value, list) and name in ("args", "elts", "values") and not isinstance(node, ast.JoinedStr):
                places += [(node, name, index) for index, each in enumerate(value) if isinstance(each, ast.expr)]
    if not places:
        return
    node, name, index = chance.choice(places)
    given: ast.expr
    if chance.random() < 0.5:
        pool = [each for each in ast.walk(chance.choice(others)) if isinstance(each, (ast.Call, ast.Subscript, ast.BinOp, ast.Compare))]
        given = copy.deepcopy(chance.choice(pool)) if pool else ast.Name("x", ast.Load())
    else:
        try:
            given = ast.parse(Writer(chance).expression(2), mode="eval").body
        except SyntaxError:
            given = ast.Constant(1)
    if index < 0:
        setattr(node, name, given)
    else:
        getattr(node, name)[index] = given


def _wrap(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    block = chance.choice(_blocks(tree))
    at = chance.randrange(len(block))
    head = chance.choice(HEADS)
    tail = "\nfinally:\n pass" if head == "try:" else ""
    made: Any = ast.parse(f"{head}\n   pass{tail}").body[0]
    (made.cases[0] if isinstance(made, ast.Match) else made).body = [block[at]]
    block[at] = made


def _double(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    block = chance.choice(_blocks(tree))
    at = chance.randrange(len(block))
    block.insert(at, block[at])


def _drop(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    block = chance.choice(_blocks(tree))
    if len(block) > 1:
        block.pop(chance.randrange(len(block)))


def _insert(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    """A statement of another piece of code."""
    given = copy.deepcopy(chance.choice(chance.choice(_blocks(chance.choice(others)))))
    block = chance.choice(_blocks(tree))
    block.insert(chance.randrange(len(block) + 1), given)


def _shuffle(tree: ast.Module, others: list[ast.Module], chance: random.Random) -> None:
    chance.shuffle(chance.choice(_blocks(tree)))


def change_layout(code: str, chance: random.Random) -> bytes:
    """The same code with comments, other line ends, tabs, joined or broken lines and other encodings."""
    changes: tuple[Callable[[str], str], ...] = (
        lambda text: text.replace("    ", "\t"),
        lambda text: "\x0c\n" + text,
        lambda text: text.replace("(", "(\n", chance.randint(1, 3)),
        lambda text: text.replace(", ", f",  {chance.choice(COMMENTS)}\n", 1),
        lambda text: text.replace("\n", f"  {chance.choice(COMMENTS)}\n", chance.randint(1, 4)),
        lambda text: text.replace(" = ", " = \\\n", chance.randint(1, 2)),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("x", "größe").replace("ids", "数"),
        lambda text: text.replace("'", '"'),
        lambda text: "s = '𝒳'; " + text,
        lambda text: text,
    )
    for _ in range(chance.randint(0, 3)):
        code = chance.choice(changes)(code)
    ends = chance.choice(("\n", "\n", "\n", "\r\n", "\r"))
    head = chance.choice((b"", b"", b"", b"\xef\xbb\xbf", b"# -*- coding: utf-8 -*-\n"))
    return head + code.replace("\n", ends).encode("utf-8", "replace")


def change_bytes(data: bytes, chance: random.Random) -> bytes:
    """Some bytes inserted, taken away, turned over, repeated, or the end cut off."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(changed) + 1)
        end = min(len(changed), at + chance.choice((1, 1, 2, 8, 64)))
        match chance.randrange(6):
            case 0 | 1:
                changed[at:at] = chance.choice(TOKENS)
            case 2:
                del changed[at:end]
            case 3 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case 4:
                changed[at:at] = changed[at:end] * chance.randint(1, 3)
            case _:
                if chance.random() < 0.2:
                    del changed[at:]
    return bytes(changed)

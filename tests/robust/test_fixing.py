"""`--fix` on awkward files: bytes outside the edit stay, a second run changes nothing, what cannot be read is not touched."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.robust.inputs import INPUTS, Input
from tests.robust.run import here

FIX = ("check", "--fix", "--unsafe-fixes", "--no-cache", "--quiet")
HEAD = "import torch\n\n# straße, 火, 🔥\n\n\n"
REST = """\
class Receiver(torch.nn.Module):
    def forward(self, x: torch.Tensor, counts: list[int]) -> torch.Tensor:
        x = x + 1; y = x
"""
LOOP = """\
        ids = torch.empty(sum(counts), dtype=torch.int64, device=x.device)
        start = 0
        for expert, count in enumerate(counts):
            ids[start : start + count].fill_(expert)
            start += count
"""
TAIL = """\
        return ids + y
"""
FIXABLE = HEAD + REST + LOOP + TAIL


def fixed(path: Path) -> bytes:
    """The file after `--fix --unsafe-fixes`, which must settle in one run."""
    here(*FIX, path.name, cwd=path.parent)
    once = path.read_bytes()
    here(*FIX, path.name, cwd=path.parent)
    assert path.read_bytes() == once
    return once


def test_the_example_is_fixable(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(FIXABLE.encode())
    after = fixed(tmp_path / "a.py")
    assert b"repeat_interleave" in after
    assert b"fill_" not in after
    ast.parse(after)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("bom", b"\xef\xbb\xbf" + FIXABLE.encode()),
        ("crlf", FIXABLE.replace("\n", "\r\n").encode()),
        ("bare-cr", FIXABLE.replace("\n", "\r").encode()),
        ("tabs", FIXABLE.replace("    ", "\t").encode()),
        ("no-final-newline", FIXABLE.rstrip("\n").encode()),
        ("latin-1", ("# -*- coding: latin-1 -*-\n" + FIXABLE.replace("火, 🔥", "ÿ")).encode("latin-1")),
        ("utf-8-cookie", ("# coding: utf-8\n" + FIXABLE).encode()),
        ("form-feed", ("\x0c\n" + FIXABLE).encode()),
    ],
)
def test_bytes_outside_the_edit_stay(tmp_path: Path, kind: str, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    after = fixed(path)
    before_loop, _, behind = data.partition(b"ids = ")
    tail = behind[behind.rindex(b"return ids") :]
    assert b"repeat_interleave" in after
    assert after.startswith(before_loop)
    assert after.endswith(tail)
    if kind == "crlf":
        assert after.count(b"\n") == after.count(b"\r\n") == after.count(b"\r")
    if kind == "bare-cr":
        assert b"\n" not in after
    if kind == "tabs":
        assert b"    " not in after.replace(b"   # ", b"")


def test_mixed_line_ends_stay_where_nothing_is_edited(tmp_path: Path) -> None:
    data = (HEAD.replace("\n", "\r\n") + REST + LOOP + TAIL.replace("\n", "\r\n")).encode()
    (tmp_path / "a.py").write_bytes(data)
    after = fixed(tmp_path / "a.py")
    assert after.startswith((HEAD.replace("\n", "\r\n") + REST).encode())
    assert after.endswith(TAIL.replace("\n", "\r\n").encode())
    ast.parse(after)


@pytest.mark.parametrize("given", [pytest.param(each, id=each.name.removesuffix(".py")) for each in INPUTS if each.unread is not None])
def test_a_file_that_cannot_be_read_is_not_touched(tmp_path: Path, given: Input) -> None:
    (tmp_path / given.name).write_bytes(given.data)
    assert here(*FIX, given.name, cwd=tmp_path)[0] == 2
    assert (tmp_path / given.name).read_bytes() == given.data


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            start += count\n", "            start += count\n        else:\n            y = x\n"),
        ("            start += count\n", "            start += count\n            if start > 9:\n                break\n"),
        ("            start += count\n", "            start += count\n            yield start\n"),
        ("return ids + y", "return ids + y + count"),
        ("        start = 0\n", "        start = 1\n"),
        ("        start = 0\n", "        start = 0\n        y = ids\n"),
    ],
)
def test_a_loop_that_does_more_is_reported_and_not_rewritten(tmp_path: Path, old: str, new: str) -> None:
    data = FIXABLE.replace(old, new, 1).encode()
    assert data != FIXABLE.encode()
    (tmp_path / "a.py").write_bytes(data)
    code, said = here(*FIX, "a.py", cwd=tmp_path)
    assert code == 1
    assert "LCH101" in said
    assert (tmp_path / "a.py").read_bytes() == data


@pytest.mark.parametrize(
    "device", ["(yield x)", "(yield)", "(yield from x)", "(d := x.device)", "(await x)", "(x.device if x else d)", "(lambda: d)()"]
)
@pytest.mark.parametrize(
    "upload", ["torch.tensor(rows, device={})", "torch.tensor(rows).to({})", "torch.zeros(4).to({})", "torch.zeros(4).to(device={})"]
)
def test_what_needs_parentheses_keeps_them(tmp_path: Path, upload: str, device: str) -> None:
    """Found by the fuzzer: the device moved out of the call without the parentheses around it, and the file was not fixed."""
    head = "async def forward" if "await" in device else "def forward"
    code = f"import torch\n\n\nclass Layer(torch.nn.Module):\n    {head}(self, x: torch.Tensor, rows: list[int]):\n        y = "
    (tmp_path / "a.py").write_text(f"{code}{upload.format(device)}\n        return y\n", encoding="utf-8")
    exit_code, said = here(*FIX, "--min-confidence", "low", "a.py", cwd=tmp_path)
    assert (exit_code in (0, 1), said.count("not fixed")) == (True, 0)
    ast.parse((tmp_path / "a.py").read_bytes())


def test_two_fixes_that_overlap_settle(tmp_path: Path) -> None:
    """An upload inside the loop, and what stands around it: one after the other, and then nothing is left to do."""
    code = (
        "import torch\n\n\nclass Layer(torch.nn.Module):\n    def forward(self, x: torch.Tensor, rows: list[list[int]]) -> torch.Tensor:\n"
        "        for i, row in enumerate(rows):\n            x[i].copy_(torch.tensor([0], device=x.device), non_blocking=True)\n"
        "        return torch.tensor([torch.tensor([1], device=x.device)], device=x.device)\n"
    )
    (tmp_path / "a.py").write_text(code, encoding="utf-8")
    after = fixed(tmp_path / "a.py")
    assert after != code.encode()
    ast.parse(after)

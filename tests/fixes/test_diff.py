"""`git apply` takes every patch, whatever the bytes of the file are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from launchlint.fixes import unified_diff
from launchlint.source import Source

FILES = {
    "plain": (b"a = 1\nb = old\nc = 3\n", "new"),
    "crlf": (b"a = 1\r\nb = old\r\nc = 3\r\n", "new"),
    "bare cr": (b"a = 1\rb = old\rc = 3\r", "new"),
    "mixed": (b"a = 1\r\nb = old\nc = 3\r\n", "new"),
    "latin-1": (b"# coding: latin-1\na = '\xe4'\nb = old  # \xfc\n", "new"),
    "bom": (b"\xef\xbb\xbfa = old\nb = 2\n", "new"),
    "no final newline": (b"a = 1\nb = old", "new"),
    "no final newline, far away": (b"b = old\n" + b"a = 1\n" * 20 + b"z = 1", "new"),
    "no final newline, crlf": (b"a = 1\r\nb = old", "new"),
    "first line": (b"old\n" + b"a = 1\n" * 9, "new"),
    "only line": (b"old", "new"),
    "two places": (b"old\n" + b"a = 1\n" * 20 + b"old\n", "new"),
    "form feed": (b"a = 1\n\x0c\nb = old\n", "new"),
    "deleted line": (b"a = 1\nold\nb = 1\n", ""),
    "more lines": (b"a = 1\nold\nb = 1\n", "x = 1\ny = 2\nz = 3"),
}
NAMES = ["some.py", "a name.py", "sub dir/näme.py", "deep/er/some.py"]


def apply(directory: Path, patch: bytes) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=directory, check=True)
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=directory, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def patch_of(path: str, data: bytes, new: str) -> tuple[bytes, bytes]:
    source = Source.from_bytes(path, data)
    text = source.text.replace("old", new)
    return unified_diff(source, text), source.encode(text)


@pytest.mark.parametrize("name", FILES)
def test_git_applies_the_patch(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, new = FILES[name]
    Path("some.py").write_bytes(data)
    patch, expected = patch_of("some.py", data, new)
    apply(tmp_path, patch)
    assert Path("some.py").read_bytes() == expected != data


@pytest.mark.parametrize("path", NAMES)
def test_git_finds_the_file(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"old\n")
    patch, expected = patch_of(str(target), b"old\n", "new")
    apply(tmp_path, patch)
    assert target.read_bytes() == expected


@pytest.mark.parametrize("path", ['quo"te.py', "back\\slash.py", "tab\there.py", "line\nend.py"])
def test_git_finds_a_file_with_an_odd_name(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(path).write_bytes(b"old\n")
    patch, expected = patch_of(path, b"old\n", "new")
    apply(tmp_path, patch)
    assert Path(path).read_bytes() == expected


def test_two_files_make_one_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    patches = b""
    for name in ("one.py", "two.py"):
        Path(name).write_bytes(b"a = 1\nb = old")
        patches += patch_of(name, b"a = 1\nb = old", "new")[0]
    apply(tmp_path, patches)
    assert [Path(name).read_bytes() for name in ("one.py", "two.py")] == [b"a = 1\nb = new"] * 2


def test_no_change_is_no_patch() -> None:
    assert unified_diff(Source.from_bytes("some.py", b"a = 1\n"), "a = 1\n") == b""


def test_a_long_file_of_equal_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = b"x = 1\n\n" * 3000 + b"b = old\n" + b"x = 1\n\n" * 3000
    Path("some.py").write_bytes(data)
    patch, expected = patch_of("some.py", data, "new")
    assert len(patch) < 300
    apply(tmp_path, patch)
    assert Path("some.py").read_bytes() == expected

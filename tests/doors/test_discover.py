"""Which files are checked: what is walked, what is left out, what is no file at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from launchlint.discover import find, is_excluded
from launchlint.settings import Settings

posix = pytest.mark.skipif(os.name != "posix", reason="needs FIFOs and symbolic links")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n", encoding="utf-8")


def files(*paths: str, **changes: object) -> list[str]:
    return [path.replace(os.sep, "/") for path in find(paths or (".",), Settings(**changes)).files]  # type: ignore[arg-type]


def test_walks_in_one_order_and_takes_python_only() -> None:
    tree("b.py", "a/z.py", "a/b.pyi", "a/c.txt", "c/d.py")
    assert files() == ["b.py", "a/b.pyi", "a/z.py", "c/d.py"]
    assert files("./a", "a/z.py", "b.py") == ["a/b.pyi", "a/z.py", "b.py"]


def test_a_named_file_needs_no_suffix() -> None:
    tree("tool")
    assert files("tool") == ["tool"]


def test_missing_path_is_a_problem() -> None:
    tree("a.py")
    found = find(["gone.py", "a.py"], Settings())
    assert found.files == ["a.py"]
    assert [str(problem) for problem in found.problems] == ["gone.py: no such file or folder"]


def test_nul_in_a_path_is_a_problem() -> None:
    assert "null" in find(["a\0.py"], Settings()).problems[0].reason


def test_tool_folders_are_left_out() -> None:
    tree(".venv/lib/a.py", "build/a.py", "node_modules/x/a.py", "src/__pycache__/a.py", "src/a.py")
    assert files() == ["src/a.py"]
    assert files(".venv") == [".venv/lib/a.py"], "what is named is wanted"
    assert files(".venv/lib/a.py", "src/a.py", force_exclude=True) == ["src/a.py"]


def test_exclude_patterns(tmp_path: Path) -> None:
    tree("src/a.py", "src/gen/b.py", "src/c_pb2.py", "build/d.py")
    root = str(tmp_path)
    assert files(extend_exclude=("gen", "*_pb2.py"), root=root) == ["src/a.py"]
    assert files(exclude=("src/gen/",), root=root) == ["build/d.py", "src/a.py", "src/c_pb2.py"]
    assert files("src/gen", extend_exclude=("src/gen",), root=root) == ["src/gen/b.py"], "what is named is wanted"
    assert files("src/gen", extend_exclude=("src",), root=root) == ["src/gen/b.py"]
    named = ("src/gen/b.py", "src/a.py")
    assert files(*named, extend_exclude=("gen",), root=root) == list(named)
    assert files(*named, extend_exclude=("gen",), force_exclude=True, root=root) == ["src/a.py"]
    assert is_excluded("src/gen/new.py", Settings(extend_exclude=("gen",), root=root))


def test_gitignore_with_nesting_and_negation() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    tree("a.py", "out/b.py", "lib/c.py", "lib/d.py", "lib/keep_me.py")
    Path(".gitignore").write_text("/out\n*_me.py\n", encoding="utf-8")
    Path("lib/.gitignore").write_text("c.py\n!keep_me.py\n", encoding="utf-8")
    assert files() == ["a.py", "lib/d.py", "lib/keep_me.py"]
    assert files("lib") == ["lib/d.py", "lib/keep_me.py"], "files above the named folder count too"
    assert files("out") == ["out/b.py"], "what is named is wanted"
    assert files(respect_gitignore=False) == ["a.py", "lib/c.py", "lib/d.py", "lib/keep_me.py", "out/b.py"]


def test_info_exclude_counts() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    tree("a.py", "private/b.py")
    Path(".git/info").mkdir(exist_ok=True)
    Path(".git/info/exclude").write_text("private\n", encoding="utf-8")
    assert files() == ["a.py"]


def test_a_folder_called_like_a_file_is_walked() -> None:
    tree("pkg.py/inner.py")
    assert files() == ["pkg.py/inner.py"]


@posix
def test_fifo_and_device_are_passed_over() -> None:
    tree("a.py")
    os.mkfifo("pipe.py")
    assert files() == ["a.py"]
    found = find(["pipe.py", "/dev/null"], Settings())
    assert (found.files, found.problems) == ([], [])
    assert [reason for _, reason in found.skipped] == ["not an ordinary file"] * 2


@posix
def test_links() -> None:
    tree("a.py", "sub/b.py")
    os.symlink("..", "sub/again")
    os.symlink("gone.py", "dangling.py")
    os.symlink("self.py", "self.py")
    os.symlink("a.py", "link.py")
    os.symlink("sub", "folder.py")
    found = find(["."], Settings())
    assert found.files == ["a.py", "sub/b.py"], "each file once, no link to a folder followed"
    assert found.problems == []
    assert [problem.path for problem in find(["self.py", "dangling.py"], Settings()).problems] == ["self.py", "dangling.py"]


@posix
def test_a_name_that_is_no_utf8() -> None:
    try:
        with open(b"caf\xe9.py", "w") as file:
            file.write("\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert files() == [os.fsdecode(b"caf\xe9.py")]


def test_an_unreadable_folder_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    tree("secret/a.py", "open/b.py")
    real = os.scandir

    def guarded(path: str) -> object:
        if os.path.basename(path) == "secret":  # root reads every folder, so modes would not do
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = find(["."], Settings())
    assert found.files == [os.path.join("open", "b.py")]
    assert [str(problem) for problem in found.problems] == ["secret: Permission denied"]

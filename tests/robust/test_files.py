"""Awkward file systems: what is walked, what is opened, and what fixing leaves of a file's nature. POSIX only."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from launchlint.report import formats
from tests.robust.inputs import LOOP
from tests.robust.run import check, here, launchlint
from tests.robust.test_fixing import FIXABLE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs, modes and links of this kind are POSIX")
FIX = ("check", "--fix", "--unsafe-fixes", "--no-cache", "--quiet")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with one thing of every kind."""
    root = tmp_path / "project"
    (root / "pkg.py").mkdir(parents=True)
    (root / "pkg.py" / "inner.py").write_text(LOOP, encoding="utf-8")
    (root / "loop").mkdir()
    (root / "loop" / "again").symlink_to("..")
    (root / "loop" / "once.py").write_text(LOOP, encoding="utf-8")
    (root / "dangling.py").symlink_to("gone.py")
    (root / "self.py").symlink_to("self.py")
    os.mkfifo(root / "pipe.py")
    (root / "-dash.py").write_text(LOOP, encoding="utf-8")
    (root / "a b,c:1%.py").write_text(LOOP, encoding="utf-8")
    return root


def paths(report: dict[str, Any]) -> list[str]:
    return sorted(each["path"] for each in report["findings"])


def test_walking_ends_and_visits_every_file_once(tree: Path) -> None:
    code, report = check(".", cwd=tree)
    assert paths(report) == ["-dash.py", "a b,c:1%.py", "loop/once.py", "pkg.py/inner.py"]
    assert report["errors"] == []
    assert code == 1


@pytest.mark.parametrize("name", ["dangling.py", "self.py", "missing.py"])
def test_a_named_file_that_cannot_be_opened_is_an_error(tree: Path, name: str) -> None:
    code, report = check(name, "pkg.py", cwd=tree)
    assert code == 2
    assert [each["path"] for each in report["errors"]] == [name]
    assert paths(report) == ["pkg.py/inner.py"], "the others are checked all the same"


def test_a_fifo_is_never_opened_even_when_it_is_named(tree: Path) -> None:
    code, report = check("pipe.py", "pkg.py", cwd=tree)  # opening it would block until the time limit
    assert paths(report) == ["pkg.py/inner.py"]
    assert code in (1, 2)


def test_a_name_that_begins_with_a_dash(tree: Path) -> None:
    _, report = check("--", "-dash.py", cwd=tree)
    assert paths(report) == ["-dash.py"]
    assert launchlint("check", "./-dash.py", cwd=tree).returncode == 1


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system refuses such names")
@pytest.mark.parametrize("form", formats())
def test_a_file_name_that_is_no_utf8(tmp_path: Path, form: str) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.py"), "w", encoding="utf-8") as file:
        file.write(LOOP)
    done = launchlint("check", "--format", form, "--no-cache", b"caf\xe9.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr
    said = done.stdout.decode()  # whatever the name, the output is valid UTF-8
    assert "caf" in said
    if form in ("json", "gitlab", "sarif"):
        json.loads(said)
    elif form in ("jsonl", "rdjsonl"):
        assert [json.loads(line) for line in said.splitlines()]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_an_error_and_the_others_are_checked(tree: Path) -> None:
    (tree / "secret.py").write_text(LOOP, encoding="utf-8")
    (tree / "secret.py").chmod(0)
    code, report = check(".", cwd=tree)
    assert code == 2
    assert [each["path"] for each in report["errors"]] == ["secret.py"]
    assert "pkg.py/inner.py" in paths(report)


# -------------------------------------------------------------------- what fixing leaves of a file


def test_mode_bits_survive(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(FIXABLE, encoding="utf-8")
    path.chmod(0o755)
    here(*FIX, "script.py", cwd=tmp_path)
    assert "repeat_interleave" in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FIXABLE, encoding="utf-8")
    (tmp_path / "link.py").symlink_to("script.py")
    here(*FIX, "link.py", cwd=tmp_path)
    assert (tmp_path / "link.py").is_symlink()
    assert os.readlink(tmp_path / "link.py") == "script.py"
    assert "repeat_interleave" in (tmp_path / "script.py").read_text(encoding="utf-8")


def test_hard_links_keep_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(FIXABLE, encoding="utf-8")
    os.link(tmp_path / "one.py", tmp_path / "two.py")
    here(*FIX, "one.py", cwd=tmp_path)
    assert "repeat_interleave" in (tmp_path / "one.py").read_text(encoding="utf-8")
    assert (tmp_path / "one.py").samefile(tmp_path / "two.py")


def test_a_read_only_file_is_never_left_half_written(tmp_path: Path) -> None:
    path = tmp_path / "frozen.py"
    path.write_text(FIXABLE, encoding="utf-8")
    path.chmod(0o444)
    code, _ = here(*FIX, "frozen.py", cwd=tmp_path)
    text = path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    if text == FIXABLE:
        assert code == 2, "a refused write shows in the exit code"
    else:
        assert "repeat_interleave" in text
        assert text.endswith("return ids + y\n")


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FIXABLE, encoding="utf-8")
    here(*FIX, "a.py", cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]

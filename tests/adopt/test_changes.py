"""`--since` and `--diff-file`: findings on changed lines and in loops that hold one, and no others."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from launchlint import cli
from launchlint.changes import read_patch
from tests.adopt.readers import read_concise
from tests.adopt.repository import BAD, MODEL, Repository, line_of

NEW = MODEL.replace("        return", f"{BAD}        return")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for variable in ("PRE_COMMIT_FROM_REF", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(variable, raising=False)
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.folder)
    made.put("src/model.py", MODEL)
    made.put("src/other.py", MODEL)
    made.commit()
    return made


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, int, str]]:
    capsys.readouterr()
    cli.main(["check", "--format", "concise", *arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    return [(each.path, each.line, each.code) for each in read_concise(captured.out)]


def test_only_changed_lines(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--since", "HEAD") == []
    repository.put("src/model.py", NEW)
    repository.put("src/added.py", MODEL)
    expected = [("src/model.py", line_of(NEW, "order ="), "LCH201")]
    new_file = [("src/added.py", line_of(MODEL, "fill_("), "LCH101"), ("src/added.py", line_of(MODEL, "sizes ="), "LCH201")]
    assert check(capsys, "--since", "HEAD") == new_file + expected, "a file that git does not know yet is new in all its lines"
    assert check(capsys, "--since", "HEAD", "src/model.py") == expected
    repository.commit()
    assert check(capsys, "--since", "HEAD") == []
    assert check(capsys, "--since", "HEAD~1") == new_file + expected
    capsys.readouterr()
    cli.main(["check", "--since", "HEAD~1"])
    assert "silenced: 4 by --since" in capsys.readouterr().out


def test_a_line_of_the_loop_brings_the_loop(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.put("src/model.py", MODEL.replace("start += count", "start += int(count)"))
    assert check(capsys, "--since", "HEAD") == [("src/model.py", line_of(MODEL, "fill_("), "LCH101")]
    repository.put("src/model.py", MODEL.replace("start = 0", "start = 0 + 0"))
    assert check(capsys, "--since", "HEAD") == [], "the line before the loop is none of the loop"


def test_what_the_branch_changed_and_not_what_came_to_the_other(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.git("checkout", "-q", "-b", "work")
    repository.put("src/model.py", NEW)
    repository.commit("ours")
    repository.git("checkout", "-q", "main")
    repository.put("src/other.py", MODEL.replace("sizes = ", "lengths = sizes = "))
    repository.commit("theirs")
    repository.git("checkout", "-q", "work")
    assert check(capsys, "--since", "main") == [("src/model.py", line_of(NEW, "order ="), "LCH201")]


def test_a_renamed_file_is_new_only_where_it_changed(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.git("mv", "src/model.py", "src/router.py")
    repository.put("src/router.py", NEW)
    assert check(capsys, "--since", "HEAD") == [("src/router.py", line_of(NEW, "order ="), "LCH201")]


@pytest.mark.parametrize("name", ["a b,c:1%.py", 'q"u\\o.py', "n\N{LATIN SMALL LETTER O WITH DIAERESIS}.py", "b/b.py", "tab\there.py"])
def test_odd_names(repository: Repository, capsys: pytest.CaptureFixture[str], name: str) -> None:
    repository.put(name, MODEL)
    repository.commit()
    repository.put(name, NEW)
    expected = [(name, line_of(NEW, "order ="), "LCH201")]
    assert check(capsys, "--since", "HEAD") == expected
    for quoted in ("true", "false"):
        patch = subprocess.run(["git", "-c", f"core.quotePath={quoted}", "diff"], capture_output=True, check=True).stdout
        Path("change.patch").write_bytes(patch)
        assert check(capsys, ".", "--diff-file", "change.patch") == expected


def test_from_a_folder_below_the_top(repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    repository.put("src/model.py", NEW)
    monkeypatch.chdir(repository.folder / "src")
    assert check(capsys, "--since", "HEAD") == [("model.py", line_of(NEW, "order ="), "LCH201")]


def test_a_patch_from_standard_input(repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    repository.put("src/model.py", NEW)
    patch = repository.git("diff", "--unified=5")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(patch.encode())))
    assert check(capsys, ".", "--diff-file", "-") == [("src/model.py", line_of(NEW, "order ="), "LCH201")]


def test_lines_are_counted_as_git_counts_them(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A bare CR ends a line for Python and not for git."""
    before = "# a\r# b\r# c\n" + MODEL
    (repository.folder / "src" / "model.py").write_bytes(before.encode())
    repository.commit()
    (repository.folder / "src" / "model.py").write_bytes(before.replace("        return", f"{BAD}        return").encode())
    assert check(capsys, "--since", "HEAD") == [("src/model.py", line_of(NEW, "order =") + 3, "LCH201")]


def test_auto(repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    repository.put("src/model.py", NEW)
    repository.commit()
    expected = [("src/model.py", line_of(NEW, "order ="), "LCH201")]
    assert cli.main(["check", "--since", "auto"]) == 2
    assert "nothing says what to compare with" in capsys.readouterr().err
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert check(capsys, "--since", "auto") == expected
    monkeypatch.delenv("GITHUB_BASE_REF")
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", repository.git("rev-parse", "HEAD").strip())
    assert check(capsys, "--since", "auto") == []
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD~1")
    assert check(capsys, "--since", "auto") == expected
    monkeypatch.delenv("PRE_COMMIT_FROM_REF")
    monkeypatch.delenv("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert check(capsys, "--since", "auto") == expected


def test_only_what_is_reported_is_fixed(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    constant = "        limit = torch.tensor([-1], dtype=torch.int32, device=rows.device)\n"
    repository.put("src/model.py", MODEL.replace("        return", f"{constant}        return"))
    repository.commit()
    second = constant.replace("limit", "second")
    repository.put("src/model.py", MODEL.replace("        return", f"{constant}{second}        return"))
    assert cli.main(["check", "--since", "HEAD", "--fix"]) == 0
    text = Path("src/model.py").read_text(encoding="utf-8")
    assert constant in text
    assert second not in text
    assert "second = torch.full(" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "nowhere"], "git knows no such revision"),
        (["--since", "--output=/tmp/x"], "expected one argument"),
        (["--since=--output=x"], "git knows no such revision"),
        (["--diff-file", "none.patch"], "No such file"),
        (["--diff-file", "src/model.py"], "not a unified diff"),
        (["--since", "HEAD", "--diff-file", "x"], "not allowed with"),
        (["--since", "HEAD", "-"], "not of standard input"),
        (["--diff-file", "/dev/null", "--fix"], "moves the lines"),
    ],
)
def test_wrong_use_is_two_with_one_line(
    repository: Repository, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    try:
        code = cli.main(["check", *arguments])
    except SystemExit as exit:
        code = int(exit.code or 0)
    assert code == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_the_repository_is_that_of_what_is_checked(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put("src/model.py", NEW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert check(capsys, "--since", "HEAD", "repository") == [("repository/src/model.py", line_of(NEW, "order ="), "LCH201")]
    assert cli.main(["check", "--since", "HEAD", "repository/gone/file.py"]) == 2


def test_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "model.py").write_text(NEW, encoding="utf-8")
    assert cli.main(["check", "--since", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err
    (tmp_path / "p.diff").write_text("--- model.py\t2026-01-01\n+++ model.py\t2026-01-01\n@@ -0,0 +12 @@\n+x\n", encoding="utf-8")
    assert check(capsys, ".", "--diff-file", "p.diff") == [("model.py", 12, "LCH201")]


def test_reading_patches() -> None:
    patch = b"""diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1,3 +1,4 @@ def f():
 one
+++ plus
-two
+two and a half
 three
\\ No newline at end of file
@@ -10 +11,0 @@
--- gone
diff --git "a/\\303\\266.py" "b/\\303\\266.py"
--- /dev/null
+++ "b/\\303\\266.py"
@@ -0,0 +1,2 @@
+a

"""
    assert read_patch(patch) == {b"b/x.py": [(2, 3)], "b/\N{LATIN SMALL LETTER O WITH DIAERESIS}.py".encode(): [(1, 1)]}
    assert read_patch(b"") == {}

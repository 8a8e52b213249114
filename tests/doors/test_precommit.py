"""The pre-commit hooks, as pre-commit runs them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchlint import cli
from tests.doors.environment import ROOT

BAD = """\
import torch


class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        return x + torch.tensor(lengths, dtype=torch.int64, device=x.device)
"""
FIXABLE = BAD.replace("torch.tensor(lengths", "torch.tensor([-1]")


def hooks() -> dict[str, dict[str, Any]]:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    return {hook["id"]: hook for hook in yaml.safe_load(text)}


def test_manifest() -> None:
    assert set(hooks()) == {"launchlint", "launchlint-fix", "launchlint-push"}
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    assert subprocess.run(command, check=False).returncode == 0
    for name, hook in hooks().items():
        assert hook["require_serial"] is True
        assert hook.get("pass_filenames", True) is (name != "launchlint-push")
        assert "always_run" not in hook
        assert ("--force-exclude" in hook["entry"]) is hook.get("pass_filenames", True)


def test_the_push_hook_reports_what_the_push_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = hooks()["launchlint-push"]
    assert hook["stages"] == ["pre-push"]
    monkeypatch.chdir(tmp_path)
    git("init", "-q", cwd=tmp_path)
    Path("old.py").write_text(BAD, encoding="utf-8")
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "old", cwd=tmp_path)
    Path("new.py").write_text(BAD, encoding="utf-8")
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "new", cwd=tmp_path)
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD~1")
    _, *arguments = shlex.split(hook["entry"])
    assert cli.main([*arguments, "--format", "concise"]) == 1
    out = capsys.readouterr().out
    assert "new.py:6:20: LCH201" in out and "old.py" not in out
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD")
    assert cli.main(arguments) == 0


@pytest.mark.parametrize("hook", ["launchlint", "launchlint-fix"])
def test_entry_with_no_many_and_odd_names(hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(hooks()[hook]["entry"])
    assert program == "launchlint"
    names = [*(f"file_{number}.py" for number in range(300)), "a b,c:1%.py", "'quoted'.py", "n\N{LATIN SMALL LETTER O WITH DIAERESIS}.py"]
    for name in names:
        Path(name).write_text("x = 1\n", encoding="utf-8")
    assert cli.main(arguments) == 0
    assert cli.main([*arguments, *names]) == 0
    Path(names[-1]).write_text(FIXABLE, encoding="utf-8")
    assert cli.main([*arguments, *names]) == 1, "a change fails the hook too"
    assert cli.main([*arguments, *names]) == (0 if hook == "launchlint-fix" else 1)


def git(*arguments: str, cwd: Path) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what is in this checkout, committed or not."""
    folder = tmp_path_factory.mktemp("checkout") / "launchlint"
    leave = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", ".hypothesis", "tests", "build", "dist")
    shutil.copytree(ROOT, folder, ignore=leave)
    git("init", "-q", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "-qm", "all", cwd=folder)
    return folder


def try_repo(checkout: Path, store: Path, repository: Path) -> subprocess.CompletedProcess[str]:
    """Run both hooks; pre-commit builds an environment for that."""
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(checkout), "--all-files", "--color", "never", "--verbose"]
    environment = {**os.environ, "PRE_COMMIT_HOME": str(store)}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 3 and "Could not find a version that satisfies" in done.stdout:
        pytest.skip("pre-commit builds its environment with pip, and no package index can be reached")
    return done


@pytest.mark.slow
def test_try_repo_of_this_checkout(checkout: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git("init", "-q", cwd=repository)
    path = repository / "layer.py"
    path.write_text(FIXABLE, encoding="utf-8")
    git("add", ".", cwd=repository)

    found = try_repo(checkout, tmp_path / "store", repository)
    assert found.returncode == 1, found.stdout + found.stderr
    check, fix = found.stdout.split("- hook id: launchlint-fix")
    assert "layer.py:6:20: LCH106 [constant-rebuilt]" in check
    assert "files were modified by this hook" in fix
    assert "fixed 1 finding" in fix
    assert "torch.full" in path.read_text(encoding="utf-8")

    git("add", ".", cwd=repository)
    clean = try_repo(checkout, tmp_path / "store", repository)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert clean.stdout.count("Passed") == 2

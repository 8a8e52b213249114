"""Completion, tried in the shell that is there: a script that completes nothing passes every syntax check."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from launchlint import cli

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is what is tried here")
TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
_launchlint
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    capsys.readouterr()
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


@needs_bash
@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (["che"], {"check"}, {"rules"}),
        (["check", "--dif"], {"--diff", "--diff-file"}, {"--fix"}),
        (["check", "--format", "s"], {"sarif"}, {"json"}),
        (["check", "--preset", ""], {"vllm", "training"}, {"check"}),
        (["check", "--min-confidence", ""], {"low", "medium", "high"}, {"check"}),
        (["check", "--since", "a"], {"auto"}, {"a file.py"}),
        (["check", "a"], {"a file.py"}, {"check"}),
        (["baseline", "w"], {"write"}, {"update"}),
        (["completion", ""], {"bash", "fish", "zsh"}, {"check"}),
    ],
)
def test_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], offered: set[str], not_offered: set[str]) -> None:
    path = tmp_path / "completion"
    path.write_text(script(capsys, "bash"), encoding="utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a file.py").touch()
    command = ["bash", "--noprofile", "--norc", "-c", TRY, "try", str(path), "launchlint", *words]
    done = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found = set(done.stdout.splitlines())
    assert offered <= found
    assert not found & not_offered


def test_every_command_is_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "fish", "zsh"):
        text = script(capsys, shell)
        for command in cli.COMMANDS:
            assert command in text
    assert script(capsys, "zsh").startswith("#compdef launchlint\n")


def test_help_says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["check", "--help"]):
        with pytest.raises(SystemExit) as exit:
            cli.main(arguments)
        assert exit.value.code == 0
    out = capsys.readouterr().out
    for text in ("exit codes:", "--since auto", "examples:", "FORMAT[=FILE]", "NO_COLOR"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 130

"""The command line: exit codes, streams, input that is no clean file, options."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchlint import cli

pytestmark = pytest.mark.usefixtures("fake_engine")
BAD = "for i in x:\n    fill(i)\n"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


class Run:
    """What a command gave."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        try:
            self.code = cli.main(arguments)
        except SystemExit as end:  # argparse
            self.code = end.code if isinstance(end.code, int) else -1
        self.out, self.err = capsys.readouterr()


def put(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.py").write_text(text, encoding="utf-8", newline="")


# ---------------------------------------------------------------- exit codes


def test_clean_is_zero(capsys: pytest.CaptureFixture[str]) -> None:
    put(good="x = 1\n")
    run = Run(capsys, "check", "good.py")
    assert (run.code, run.out, run.err) == (0, "no findings in 1 file\n", "")


def test_findings_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    assert Run(capsys, "check", ".").code == 1
    assert Run(capsys, "check", ".", "--exit-zero").code == 0


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("syntax.py", b"x = (\n", "syntax.py:1: syntax error"),
        ("nul.py", b"x = 1\n\0\n", "nul.py:2: contains a NUL byte"),
        ("latin.py", b"# ok\nx = '\xe9'\n", "latin.py:2: not valid UTF-8"),
        ("codec.py", b"# coding: klingon\n", "codec.py:1: unknown encoding: klingon"),
        ("parens.py", b"(" * 300 + b"1" + b")" * 300 + b"\n", "parens.py"),
    ],
)
def test_a_file_that_cannot_be_checked_is_two_and_the_others_are_checked(
    capsys: pytest.CaptureFixture[str], name: str, data: bytes, said: str
) -> None:
    put(bad=BAD)
    Path(name).write_bytes(data)
    run = Run(capsys, "check", ".", "--format", "concise")
    assert run.code == 2
    assert "bad.py:2:5: LCH101" in run.out
    errors = [line for line in run.out.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert said in errors[0]
    assert Run(capsys, "check", ".", "--exit-zero").code == 2, "--exit-zero hides findings only"


def test_missing_file_is_two_and_the_others_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    run = Run(capsys, "check", "gone.py", "bad.py")
    assert run.code == 2
    assert "error: gone.py: no such file or folder" in run.out
    assert "LCH101" in run.out


def test_an_unreadable_file_is_two(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    put(secret="x = 1\n", bad=BAD)
    import builtins

    real = builtins.open

    def guarded(path: object, *rest: object, **named: object) -> object:
        if str(path).endswith("secret.py"):  # root reads every file, so modes would not do
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", guarded)
    run = Run(capsys, "check", ".")
    assert run.code == 2
    assert "error: secret.py: Permission denied" in run.out
    assert "LCH101" in run.out


def test_nothing_given_or_matched_is_zero_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "check")
    assert (run.code, "note: no file given" in run.out) == (0, True)
    Path("a.txt").write_text("x", encoding="utf-8")
    run = Run(capsys, "check", ".")
    assert (run.code, "note: no Python file" in run.out) == (0, True)


def test_excluded_files_with_force_exclude_are_zero(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    Path("launchlint.toml").write_text('extend-exclude = ["bad.py"]\n', encoding="utf-8")
    assert Run(capsys, "check", "bad.py").code == 1
    assert Run(capsys, "check", "--force-exclude", "bad.py").code == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_fifo_and_folder_called_like_a_file_are_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.py")
    os.mkdir("folder.py")
    for paths in (["."], ["pipe.py", "folder.py"]):
        assert Run(capsys, "check", *paths).code == 0


def test_a_fault_of_ours_is_two_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad="crash\n")
    run = Run(capsys, "check", ".")
    assert run.code == 2
    assert "internal error: RuntimeError: made to crash" in run.err
    assert "Traceback" not in run.err
    assert "Traceback" in Run(capsys, "check", ".", "--verbose").err


# ---------------------------------------------------------------- usage and settings


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--selct", "x"], "unrecognized arguments"),
        (["check", "--select", "LCH999", "."], "launchlint: --select: no rule has the code or name 'LCH999'"),
        (["check", "--ignore", "slice-fil-loop", "."], "did you mean 'slice-fill-loop'?"),
        (["check", "--min-confidence", "hihg", "."], "did you mean 'high'?"),
        (["check", "--format", "srif", "."], "no format is called 'srif', did you mean 'sarif'?"),
        (["check", "--format", "sarif=", "."], "names no file after the ="),
        (["check", "--config", "gone.toml", "."], "gone.toml: No such file"),
        (["check", "-j", "0", "."], "from 1 on, not '0'"),
        (["check", "--fix", "--diff", "."], "choose one"),
        (["check", "-", "a.py"], "cannot be checked together with files"),
        (["chekc", "."], "unknown command 'chekc', did you mean 'check'?"),
        (["here.py"], "did you mean `launchlint check here.py`?"),
        (["rule", "LCH110"], "no rule has the code or name 'LCH110'"),
        (["rule", "slice-fil-loop"], "did you mean 'slice-fill-loop'?"),
        (["why", "a.py"], "'a.py' is not FILE:LINE"),
        (["why", "gone.py:3"], "gone.py: no such file"),
        ([], "usage: launchlint"),
    ],
)
def test_wrong_usage_is_two(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    run = Run(capsys, *arguments)
    assert run.code == 2
    assert said in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize("text", ['selct = ["LCH101"]\n', 'select = ["LCH999"]\n', "preview = 1\n", "x = [\n"])
def test_wrong_settings_are_two_in_one_line(capsys: pytest.CaptureFixture[str], text: str) -> None:
    put(good="x = 1\n")
    Path("launchlint.toml").write_text(text, encoding="utf-8")
    run = Run(capsys, "check", ".")
    assert (run.code, run.out) == (2, "")
    assert len(run.err.splitlines()) == 1
    assert "launchlint.toml: " in run.err
    assert Run(capsys, "check", ".", "--isolated").code == 0


def test_options_win_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    Path("launchlint.toml").write_text('ignore = ["LCH101"]\n', encoding="utf-8")
    assert Run(capsys, "check", ".").code == 0
    assert Run(capsys, "check", ".", "--ignore", "LCH201").code == 1
    assert Run(capsys, "check", ".", "--select", "LCH2,LCH1", "--ignore", "LCH3").code == 1


def test_preview_and_opt_in_rules_run_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    put(read="item()\n")
    assert Run(capsys, "check", ".").code == 0
    assert Run(capsys, "check", ".", "--select", "LCH3").code == 0
    assert Run(capsys, "check", ".", "--preview").code == 1
    assert Run(capsys, "check", ".", "--extend-select", "scalar-read").code == 1


# ---------------------------------------------------------------- standard input


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, shown in ((["-"], "-"), (["--stdin-filename", "pkg/a.py"], "pkg/a.py"), (["-", "--stdin-filename", "b.py"], "b.py")):
        feed(monkeypatch, BAD.encode())
        run = Run(capsys, "check", "--format", "concise", *arguments)
        assert run.code == 1
        assert run.out.startswith(f"{shown}:2:5: LCH101 ")
    feed(monkeypatch, b"\xff")
    assert Run(capsys, "check", "-").code == 2


def test_standard_input_never_opens_the_file_of_its_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    put(other="x = 1\n")
    feed(monkeypatch, BAD.encode())
    run = Run(capsys, "check", "--stdin-filename", "other.py")
    assert run.code == 1
    assert "fill(i)" in run.out


def test_standard_input_is_fixed_onto_standard_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, BAD.replace("\n", "\r\n").encode())
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    code = cli.main(["check", "-", "--fix"])
    assert isinstance(sys.stdout, io.TextIOWrapper)
    assert isinstance(sys.stdout.buffer, io.BytesIO)
    assert sys.stdout.buffer.getvalue() == b"for i in x:\r\n    once()\r\n"
    assert code == 0


# ---------------------------------------------------------------- fixing


def test_fix_changes_the_file_and_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD, mixed="fill(1)\nupload(1)\n")
    run = Run(capsys, "check", "--fix", "bad.py", "--exit-non-zero-on-fix")
    assert (run.code, Path("bad.py").read_text(encoding="utf-8")) == (1, "for i in x:\n    once()\n")
    assert "fixed 1 finding (LCH101: 1)" in run.out
    assert Run(capsys, "check", "--fix", "bad.py", "--exit-non-zero-on-fix").code == 0
    assert Run(capsys, "check", "--fix", "mixed.py").code == 1, "what cannot be fixed is left"
    assert Path("mixed.py").read_text(encoding="utf-8") == "once()\nupload(1)\n"


def test_fix_leaves_silenced_findings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad="fill(1)  # noqa: LCH101\n")
    assert Run(capsys, "check", "--fix", ".").code == 0
    assert Path("bad.py").read_text(encoding="utf-8") == "fill(1)  # noqa: LCH101\n"


def test_fix_by_settings(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    Path("launchlint.toml").write_text('fix = true\nextend-unsafe-fixes = ["LCH101"]\n', encoding="utf-8")
    assert Run(capsys, "check", ".").code == 1, "unsafe now, and not asked for"
    assert Run(capsys, "check", ".", "--unsafe-fixes", "--no-fix").code == 1
    assert Run(capsys, "check", ".", "--unsafe-fixes").code == 0


def test_a_file_that_cannot_be_written_is_two(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from launchlint import fixes

    def refuse(path: str, source: object, text: str) -> None:
        raise fixes.WriteError("not fixed: the file is read-only")

    monkeypatch.setattr(fixes, "write", refuse)
    put(bad=BAD)
    run = Run(capsys, "check", "--fix", ".")
    assert run.code == 2
    assert "error: bad.py: not fixed: the file is read-only" in run.out


def test_diff_prints_a_patch_and_nothing_else(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("bad.py").write_bytes(b"for i in x:\r\n    fill(i)\r\nupload(1)")
    code = cli.main(["check", "--diff", "."])
    out, err = capsysbinary.readouterr()
    assert code == 1
    assert out.startswith(b"--- a/bad.py\n+++ b/bad.py\n@@ ")
    assert b"LCH201" in err
    assert Path("bad.py").read_bytes() == b"for i in x:\r\n    fill(i)\r\nupload(1)"
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=out, check=True)
    assert Path("bad.py").read_bytes() == b"for i in x:\r\n    once()\r\nupload(1)"


# ---------------------------------------------------------------- output


def test_output_file(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD)
    run = Run(capsys, "check", ".", "--format", "json", "--output", "out.json")
    assert (run.code, run.out) == (1, "")
    assert len(json.loads(Path("out.json").read_text(encoding="utf-8"))["findings"]) == 1
    assert Run(capsys, "check", ".", "--output", "no/such/folder").code == 2


def test_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    put(bad=BAD)
    assert "\x1b[" not in Run(capsys, "check", ".").out, "not a terminal"
    assert "\x1b[" in Run(capsys, "check", ".", "--color", "always").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b[" in Run(capsys, "check", ".").out
    assert "\x1b[" not in Run(capsys, "check", ".", "--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in Run(capsys, "check", ".").out


def test_quiet_and_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    put(bad=BAD, good="x = 1\n")
    assert Run(capsys, "check", "-q", "good.py").out.strip() == ""
    out = Run(capsys, "check", "--statistics", ".").out
    assert "1  LCH101  slice-fill-loop" in out
    assert "seconds: 0.500" in out


def test_rules_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "rules")
    assert "LCH101  slice-fill-loop" in run.out
    assert "(fix: safe)" in run.out
    listed = json.loads(Run(capsys, "rules", "--format", "json").out)
    assert [rule["code"] for rule in listed] == sorted(rule["code"] for rule in listed)
    Path("launchlint.toml").write_text('min-confidence = "low"\n', encoding="utf-8")
    out = Run(capsys, "settings", "--select", "LCH1").out
    assert 'select = ["LCH1"]  # --select' in out
    assert 'min-confidence = "low"  # ' in out
    assert "preview = false  # default" in out


# ---------------------------------------------------------------- as a process


def test_version_imports_almost_nothing() -> None:
    code = "import os, sys; old = set(sys.modules); from launchlint.cli import main; main(['--version']); print(*(set(sys.modules) - old))"
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    version, modules = result.stdout.splitlines()
    assert version.startswith("launchlint ")
    assert set(modules.split()) <= {"__future__", "launchlint", "launchlint.cli", "launchlint.streams"}


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "launchlint", "--version"]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_ascii_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("n\N{LATIN SMALL LETTER E WITH ACUTE}.py").write_text("x = '\N{ROCKET}'; fill(1)\n", encoding="utf-8")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cli.main(["check", "."]) == 1
    assert b"n\\xe9.py:1:10: LCH101" in raw.getvalue()
    assert b"\\U0001f680" in raw.getvalue()


def test_help_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    out = Run(capsys, "--help").out
    for command in cli.COMMANDS:
        assert command in out
    assert "--stdin-filename" in Run(capsys, "check", "--help").out

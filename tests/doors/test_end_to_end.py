"""The command line with the real engine: the bundled example, awkward files, and the README's promises."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launchlint import cli
from tests.doors.environment import ROOT

DEMO = ROOT / "launchlint" / "demo" / "expert_receiver.py"
DEEP = "x = " + " + ".join(["1"] * 2500) + "\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code, `path:line:CODE` of the findings, and errors."""
    capsys.readouterr()
    code = cli.main(["check", "--format", "json", *arguments])
    document = json.loads(capsys.readouterr().out)
    findings = [f"{each['path']}:{each['line']}:{each['code']}" for each in document["findings"]]
    return code, findings, [f"{each['path']}:{each['line']}: {each['reason']}" for each in document["errors"]]


def lines_of(name: str) -> list[str]:
    """Where the demo must be found under the path `name`, by what its lines say."""
    marks = {"torch.tensor(counts": "LCH201", "torch.from_numpy": "LCH202", "].fill_(": "LCH101"}
    lines = DEMO.read_text(encoding="utf-8").splitlines()
    return [f"{name}:{number}:{code}" for number, line in enumerate(lines, 1) for mark, code in marks.items() if mark in line]


def test_the_demo_shows_findings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["check", "launchlint/demo"]) == 1
    out = capsys.readouterr().out
    for code in ("LCH101", "LCH201", "LCH202"):
        assert code in out
    assert "= chain: ExpertReceiver.forward -> ExpertReceiver.expert_ids" in out
    assert "3 findings in 1 of 1 file" in out


def test_our_own_code_is_clean(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert check(capsys, "launchlint", "rules", "fixed_receiver") == (0, [], [])
    code, findings, _ = check(capsys, "fixed_receiver", "--isolated")
    assert code == 1, "the defective forms of the reference are still there, and still found"
    assert any(":LCH101" in finding for finding in findings)


def test_awkward_files_do_not_hide_the_findings_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    demo = DEMO.read_bytes()
    Path("good.py").write_bytes(demo)
    Path("bom.py").write_bytes(b"\xef\xbb\xbf" + demo)
    Path("crlf.py").write_bytes(demo.replace(b"\n", b"\r\n"))
    Path("latin.py").write_bytes(demo.replace(b'"""A small', b'# coding: latin-1\n"""\xe9 A small', 1))
    Path("deep.py").write_bytes(demo + DEEP.encode())
    Path("empty.py").write_bytes(b"")
    Path("stray.py").write_bytes(demo + b"# \x80\n")
    Path("nul.py").write_bytes(demo + b"\0")
    Path("syntax.py").write_bytes(demo + b"x = (\n")
    Path("folder.py").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.py")
    code, findings, errors = check(capsys, ".", "gone.py")
    assert code == 2
    for name in ("good.py", "bom.py", "crlf.py", "deep.py"):
        assert [each for each in findings if each.startswith(f"{name}:")] == lines_of(name)
    assert len([each for each in findings if each.startswith("latin.py:")]) == 3
    assert sorted(error.partition(":")[0] for error in errors) == ["gone.py", "nul.py", "stray.py", "syntax.py"]
    assert {each.partition(":")[0] for each in findings} == {"good.py", "bom.py", "crlf.py", "deep.py", "latin.py"}


def test_fix_then_check_is_stable(capsys: pytest.CaptureFixture[str]) -> None:
    Path("receiver.py").write_bytes(DEMO.read_bytes())
    first = check(capsys, ".", "--fix", "--unsafe-fixes")
    text = Path("receiver.py").read_text(encoding="utf-8")
    assert "repeat_interleave" in text
    assert len(first[1]) == 1, "one of the three can only be shown"
    assert check(capsys, ".", "--fix", "--unsafe-fixes") == first
    assert Path("receiver.py").read_text(encoding="utf-8") == text


def test_diff_is_what_fix_does(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("receiver.py").write_bytes(DEMO.read_bytes())
    assert cli.main(["check", "--diff", "--unsafe-fixes", "."]) == 1
    patch = capfdbinary.readouterr().out
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    applied = Path("receiver.py").read_bytes()
    Path("receiver.py").write_bytes(DEMO.read_bytes())
    assert cli.main(["check", "--fix", "--unsafe-fixes", "."]) == 1
    assert Path("receiver.py").read_bytes() == applied


def test_overrides_choose_rules_by_path(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "receiver.py").write_bytes(DEMO.read_bytes())
    Path("launchlint.toml").write_text('[[overrides]]\nfiles = ["a/**"]\nselect = ["LCH101"]\n', encoding="utf-8")
    _, findings, _ = check(capsys, ".")
    assert [each for each in findings if each.startswith("a/")] == [each for each in lines_of("a/receiver.py") if "LCH101" in each]
    assert [each for each in findings if each.startswith("b/")] == lines_of("b/receiver.py")


def test_a_pipe_that_closes_early() -> None:
    for number in range(40):
        Path(f"receiver_{number}.py").write_bytes(DEMO.read_bytes())
    command = [sys.executable, "-m", "launchlint", "check", "."]
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert "LCH201" in process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1
    process.stderr.close()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_is_no_traceback() -> None:
    script = "import os, signal\nfrom launchlint import cli, discover\ndiscover.find = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
    code = script + "import sys; sys.exit(cli.main(['check', '.']))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == b""


# ---------------------------------------------------------------- documents


def test_ci_runs_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    install, test = (part.strip() for part in blocks[1].split("&&")[1:])
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert install.replace(".venv/bin/pip install", '"$venv/bin/pip" install --quiet') in script
    assert test.replace(".venv/bin/python", '"$venv/bin/python"') in script
    assert blocks[0].rstrip().endswith(".venv/bin/launchlint check launchlint/demo")


def test_the_readme_settings_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    rules = json.loads(_output(capsys, "rules", "--format", "json"))
    known = {rule["code"] for rule in rules}
    Path("pyproject.toml").write_text(table if "LCH306" in known else table.replace("LCH306", "LCH201"), encoding="utf-8")
    assert cli.main(["settings"]) == 0
    out = capsys.readouterr().out
    assert 'pin-memory = "PIN_MEMORY"' in out
    assert 'files = ["kernels/**"]' in out


def _output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.main(arguments) == 0
    return capsys.readouterr().out

"""Known findings: written once, not told again, stable under changes of other lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launchlint import cli
from launchlint.baseline import FILE_NAME

pytestmark = pytest.mark.usefixtures("fake_engine")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("launchlint.toml").write_text(f'baseline = "{FILE_NAME}"\n', encoding="utf-8")
    return tmp_path


def put(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def entries() -> dict[tuple[str, str, str], int]:
    document = json.loads(Path(FILE_NAME).read_text(encoding="utf-8"))
    return {(entry["path"], entry["code"], entry["text"]): entry["count"] for entry in document["findings"]}


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, findings as `path:line:CODE`, and the whole output of `check`."""
    capsys.readouterr()
    code = cli.main(["check", "--format", "concise", *(arguments or ["."])])
    out = capsys.readouterr().out
    return code, [line.split(" [")[0].replace(": ", ":") for line in out.splitlines() if "] " in line], out


def test_an_afternoon(capsys: pytest.CaptureFixture[str]) -> None:
    put("src/a.py", "fill(1)\nfill(1)\nupload(2)\n")
    assert cli.main(["baseline", "write"]) == 0
    assert entries() == {("src/a.py", "LCH101", "fill(1)"): 2, ("src/a.py", "LCH201", "upload(2)"): 1}
    assert check(capsys)[:2] == (0, [])
    put("src/a.py", "import os\n\nif os:\n    fill(1)\nfill(1)\n# moved\nupload(2)\nfill(3)\n")
    code, findings, out = check(capsys)
    assert (code, findings) == (1, ["src/a.py:8:1:LCH101"])
    assert "silenced: 3 by baseline" in out
    put("src/a.py", "fill(1)\nfill(1)\nfill(1)\nupload(2)\n")
    assert check(capsys)[1] == ["src/a.py:3:1:LCH101"], "one more of the same is new"
    assert check(capsys, ".", "--no-baseline")[0] == 1


def test_gone_entries_are_told_and_pruned(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "fill(1)\nupload(2)\n")
    put("b.py", "upload(3)\n")
    put("c.py", "upload(4)\n")
    cli.main(["baseline", "write"])
    put("a.py", "fill(1)\nfill(9)\n")
    Path("c.py").unlink()
    code, findings, out = check(capsys)
    assert (code, findings) == (1, ["a.py:2:1:LCH101"])
    assert "2 known findings gone" in out
    assert "gone" not in check(capsys, "b.py")[2].replace("1 known finding gone", ""), "what was not checked is not gone"
    assert cli.main(["baseline", "prune"]) == 0
    assert set(entries()) == {("a.py", "LCH101", "fill(1)"), ("b.py", "LCH201", "upload(3)")}, "prune takes nothing new in"
    assert cli.main(["baseline", "update", "a.py"]) == 0
    assert ("a.py", "LCH101", "fill(9)") in entries()
    assert ("b.py", "LCH201", "upload(3)") in entries(), "update of one file keeps the others"
    assert check(capsys)[0] == 0


def test_write_does_not_overwrite(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "fill(1)\n")
    assert cli.main(["baseline", "write"]) == 0
    before = Path(FILE_NAME).read_bytes()
    assert cli.main(["baseline", "write"]) == 2
    assert "exists" in capsys.readouterr().err
    assert Path(FILE_NAME).read_bytes() == before


def test_the_file_is_sorted_and_one_entry_a_line() -> None:
    put("b.py", "upload(1)\n")
    put("a.py", "upload('\N{ROCKET}')\nfill(1)\n")
    cli.main(["baseline", "write", "b.py", "a.py"])
    lines = [json.loads(line.strip().rstrip(",")) for line in Path(FILE_NAME).read_text(encoding="utf-8").splitlines() if '"path"' in line]
    assert [(line["path"], line["code"]) for line in lines] == [("a.py", "LCH101"), ("a.py", "LCH201"), ("b.py", "LCH201")]
    assert sorted(path.name for path in Path().iterdir()) == sorted(["a.py", "b.py", FILE_NAME, "launchlint.toml"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("{", "not a baseline"),
        ("[]", "not a baseline"),
        ('{"schema": 7, "findings": []}', "a baseline of schema 7"),
        ('{"schema": 1, "findings": [{"path": "a.py"}]}', "not an entry of a baseline"),
        ('{"schema": 1, "findings": [{"path": "a.py", "code": "LCH101", "text": "x", "count": 0}]}', "not an entry of a baseline"),
    ],
)
def test_a_missing_or_damaged_baseline_is_two(capsys: pytest.CaptureFixture[str], text: str | None, said: str) -> None:
    put("a.py", "fill(1)\n")
    if text is not None:
        put(FILE_NAME, text)
    assert cli.main(["check", "."]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_known_findings_are_not_fixed() -> None:
    put("a.py", "fill(1)\n")
    cli.main(["baseline", "write"])
    put("a.py", "fill(1)\nfill(2)\n")
    assert cli.main(["check", "--fix", "."]) == 0
    assert Path("a.py").read_text(encoding="utf-8") == "fill(1)\nonce()\n"
    assert cli.main(["check", "--fix", "--no-baseline", "."]) == 0
    assert Path("a.py").read_text(encoding="utf-8") == "once()\nonce()\n"


def test_errors_are_told_and_two(capsys: pytest.CaptureFixture[str]) -> None:
    put("a.py", "fill(1)\n")
    put("b.py", "x = (\n")
    assert cli.main(["baseline", "write"]) == 2
    assert "b.py:1: syntax error" in capsys.readouterr().err
    assert list(entries()) == [("a.py", "LCH101", "fill(1)")]

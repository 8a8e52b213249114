"""Old findings, a baseline, one new bad line: exactly that is found, in each format; fixed, each is clean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from launchlint import cli
from launchlint.baseline import FILE_NAME
from launchlint.report import formats
from tests.adopt.readers import READERS, Found
from tests.adopt.repository import BAD, MODEL, Repository, line_of

Check = Callable[..., tuple[int, list[Found], str]]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Old findings in two files, known and committed."""
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.folder)
    made.put("pyproject.toml", f'[tool.launchlint]\nbaseline = "{FILE_NAME}"\n')
    made.put("src/model.py", MODEL)
    made.put("src/other.py", MODEL.replace("Router", "Other"))
    assert cli.main(["baseline", "write"]) == 0
    made.commit("known findings")
    return made


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    def run(shape: str, *arguments: str) -> tuple[int, list[Found], str]:
        capsys.readouterr()
        code = cli.main(["check", "--format", shape, *(arguments or [".", "--color", "never"])])
        text = capsys.readouterr().out
        return code, READERS[shape](text), text

    return run


def test_every_format_has_a_reader() -> None:
    assert set(formats()) == set(READERS)


@pytest.mark.parametrize("shape", formats())
def test_one_new_line_is_one_finding(repository: Repository, check: Check, shape: str) -> None:
    assert check(shape)[:2] == (0, [])
    bad = MODEL.replace("        return", f"{BAD}        return").replace("import torch\n", "import os\nimport torch\n\nos\n", 1)
    repository.put("src/model.py", bad.replace("count in", "number in").replace("+ count", "+ number").replace("+= count", "+= number"))
    code, found, _ = check(shape)
    assert code == 1
    assert [each.line for each in found if each.code == "LCH201"] == [line_of(bad, "order =")]
    moved = [each for each in found if each.code != "LCH201"]
    assert all(each.line == line_of(bad, "fill_(") for each in moved), "a known line whose own text has changed is new, and no other"
    repository.put("src/model.py", bad)
    code, found, _ = check(shape)
    column = len("        order = ") + 1 if shape != "gitlab" else 0
    assert (code, found) == (1, [Found("src/model.py", line_of(bad, "order ="), column, "LCH201")])
    repository.put("src/model.py", bad.replace(BAD, ""))
    assert check(shape)[:2] == (0, [])


def test_several_formats_in_one_run(repository: Repository, check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    repository.put("src/model.py", MODEL.replace("        return", f"{BAD}        return"))
    files = {shape: f"out/launchlint.{shape}" for shape in formats() if shape != "concise"}
    Path("out").mkdir()
    asked = [word for shape, path in files.items() for word in ("--format", f"{shape}={path}")]
    code, found, _ = check("concise", ".", *asked)
    assert code == 1
    for shape, path in files.items():
        assert [(each.path, each.line, each.code) for each in READERS[shape](Path(path).read_text(encoding="utf-8"))] == [
            (each.path, each.line, each.code) for each in found
        ]
    assert cli.main(["check", ".", "--format", "json", "--format", "sarif", "--output", "out/both"]) == 2
    assert "both go to out/both" in capsys.readouterr().err
    assert cli.main(["check", ".", "--format", "json", "--format", "text"]) == 2
    assert "both go to standard output: name a file, as in --format json=FILE" in capsys.readouterr().err
    assert cli.main(["check", ".", "--format", "github", "--format", "concise"]) == 1


def test_what_is_gone_is_told_and_the_count_says_who_silenced(repository: Repository, check: Check) -> None:
    repository.put(
        "src/model.py", MODEL.replace(".fill_(expert)", ".size(0)").replace("sizes = torch.tensor(counts,", "sizes = torch.full((3,), 1,")
    )
    repository.put(
        "src/meant.py",
        MODEL.replace("device=rows.device)\n        return", "device=rows.device)  # noqa: LCH201\n        return").replace(
            ".fill_(expert)", ".fill_(expert)  # launchlint: ignore[slice-fill-loop] three experts"
        ),
    )
    code, found, text = check("text")
    assert (code, found) == (0, [])
    assert "2 known findings gone: `launchlint baseline prune` takes them out" in text
    assert "silenced: 2 by baseline, 1 by ignore, 1 by noqa" in text


def test_a_moved_line_of_its_own_stays_known(repository: Repository, check: Check) -> None:
    """A known line may move, be indented and stand in another function; the lines around it may be renamed."""
    other = MODEL.replace("        sizes =", "        if rows is not None:\n            sizes =").replace(
        "def forward(self, rows", "def forward(self, rows "
    )
    repository.put("src/model.py", "# a comment\n" * 5 + other.replace("Router", "Renamed"))
    assert check("concise")[:2] == (0, [])

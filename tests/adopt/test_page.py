"""`docs/adopting.md`, walked through by a shell as a reader would; and the job of the GitHub action, run as GitHub runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.adopt.readers import read_github, read_sarif
from tests.adopt.repository import MODEL, Repository
from tests.doors.environment import ROOT, RUNTIME, Environment

pytestmark = pytest.mark.slow
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: exit=(?P<exit>\d))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    exit: int
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [
        Block(each["kind"], int(each["exit"] or 0), each["text"], text[: each.start()].count("\n") + 1) for each in BLOCK.finditer(text)
    ]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what launchlint needs, which pip takes for installed, so that nothing is fetched."""
    return Environment.create(tmp_path_factory.mktemp("lent") / "venv", RUNTIME).site


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does and as a reader's paste does: it stops at the first command that fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV", "PYTHONPATH")}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_page_as_it_stands(tmp_path: Path, wheel: Path, lent: Path) -> None:
    repository = Repository.create(tmp_path / "repository")
    # The page makes `.venv` with the reader's Python; here that is the Python of this run, and no package index is asked.
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3").symlink_to(sys.executable)
    variables = {
        "LAUNCHLINT": str(wheel),
        "PATH": os.pathsep.join([str(repository.folder / ".venv" / "bin"), str(bin_folder), os.environ["PATH"]]),
        "PYTHONPATH": str(lent),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    model, *steps = blocks("adopting.md")
    assert model.text == MODEL
    repository.put("model.py", model.text)
    last = ""
    seen = []
    for block in steps:
        match block.kind:
            case "sh":
                done = shell(block.text, repository.folder, **variables)
                assert done.returncode == block.exit, f"line {block.line}: {block.text}\n{done.stdout}\n{done.stderr}"
                last = done.stdout
            case "text":
                rest = last
                for line in block.text.splitlines():
                    assert line in rest, f"line {block.line}: {line!r} is not (after what comes before it) in\n{last}"
                    rest = rest.partition(line)[2]
            case "toml":
                repository.put("pyproject.toml", block.text)
            case "diff":
                patch = repository.put("../change.patch", block.text)
                repository.git("apply", str(patch))
        seen.append(block.kind)
    assert seen.count("sh") >= 7 and {"text", "toml", "diff"} <= set(seen)
    assert "sum(counts), limit" in repository.git("show", "HEAD:model.py")
    assert "torch.full((1,), -1" in repository.git("show", "HEAD:model.py")


# ---------------------------------------------------------------- the action


def steps() -> list[dict[str, str]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    found: list[dict[str, str]] = action["runs"]["steps"]
    return found


def test_no_input_is_pasted_into_a_script() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) == 2
    assert not [script for script in scripts if "${{" in script], "an input with a quote in it would become a command"
    for step in steps():
        assert "run" not in step or step["shell"] == "bash"


def test_the_step_that_checks(tmp_path: Path, wheel: Path) -> None:
    environment = Environment.create(tmp_path / "venv", RUNTIME)
    environment.install(str(wheel))
    repository = Repository.create(tmp_path / "repository")
    repository.put("src dir.py", "x = 1\n")
    repository.put("src/model.py", MODEL)
    repository.commit()
    script = next(step["run"] for step in steps() if step.get("id") == "check")
    output = tmp_path / "output"
    variables = {
        "PATH": os.pathsep.join([str(environment.folder / "bin"), os.environ["PATH"]]),
        "GITHUB_OUTPUT": str(output),
        "CHECK_PATHS": "src",
        "CHECK_ARGS": "--select=LCH1,LCH201\n--min-confidence=low\n",
        "CHECK_SINCE": "",
        "CHECK_SARIF": "launchlint.sarif",
    }
    done = shell(script, repository.folder, **variables)
    assert done.returncode == 1, done.stderr
    assert sorted(found.code for found in read_github(done.stdout)) == ["LCH101", "LCH201"]
    assert len(read_sarif((repository.folder / "launchlint.sarif").read_text(encoding="utf-8"))) == 2
    assert output.read_text(encoding="utf-8") == "exit-code=1\n"
    clean = shell(script, repository.folder, **variables | {"CHECK_SINCE": "HEAD"})
    assert (clean.returncode, clean.stdout) == (0, "")
    harmless = shell(script, repository.folder, **variables | {"CHECK_PATHS": "$(touch oh-no) `touch oh-no`; touch oh-no"})
    assert harmless.returncode == 2
    assert not (repository.folder / "oh-no").exists()

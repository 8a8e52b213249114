"""Wheel, sdist, editable install and bare checkout, each in a fresh environment; and flake8 with the installed plugin."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from launchlint import registry
from tests.doors.environment import BUILD, FLAKE8, ROOT, RUNTIME, Environment

pytestmark = pytest.mark.slow
DEMO = (ROOT / "launchlint" / "demo" / "expert_receiver.py").read_text(encoding="utf-8")
FOUND = {"LCH101", "LCH201", "LCH202"}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel, flake8, and a distribution that owns the name `rules`."""
    environment = Environment.create(tmp_path_factory.mktemp("wheel") / "venv", [*RUNTIME, *FLAKE8])
    environment.install(str(wheel))
    decoy = environment.site / "rules"
    decoy.mkdir()
    (decoy / "__init__.py").write_text("OWNER = 'somebody else'\n", encoding="utf-8")
    return environment


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with three findings in one file and none in the other."""
    (tmp_path / "receiver.py").write_text(DEMO, encoding="utf-8")
    (tmp_path / "clean.py").write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def assert_works(environment: Environment, project: Path, *command: str) -> None:
    """Rules are found and find."""
    listed = environment.run(*command, "rules", "--format", "json", cwd=project)
    assert listed.returncode == 0, listed.stderr
    assert [rule["code"] for rule in json.loads(listed.stdout)] == list(registry.load())
    checked = environment.run(*command, "check", ".", "--format", "json", cwd=project)
    assert checked.returncode == 1, checked.stderr
    assert {finding["code"] for finding in json.loads(checked.stdout)["findings"]} == FOUND
    page = environment.run(*command, "rule", "LCH101", cwd=project)
    assert "Why it costs" in page.stdout


def test_top_level_names_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"launchlint", "fixed_receiver"}
    assert "launchlint/py.typed" in names
    assert not [name for name in names if name.startswith(("launchlint/dev", "tests")) or "__pycache__" in name]
    for folder in (entry.name for entry in (ROOT / "rules").iterdir() if registry.FOLDER.match(entry.name)):
        assert f"launchlint/rules/{folder}/__init__.py" in names


def test_wheel(installed: Environment, project: Path) -> None:
    assert_works(installed, project, "launchlint")
    owner = installed.run("python", "-c", "import rules; print(rules.OWNER)", cwd=project)
    assert owner.stdout == "somebody else\n"


def test_editable_install(tmp_path: Path, project: Path) -> None:
    environment = Environment.create(tmp_path / "venv", [*RUNTIME, *BUILD])
    environment.install("--no-build-isolation", "--editable", str(ROOT))
    assert_works(environment, project, "launchlint")
    assert not (environment.site / "launchlint").exists(), "a copy that would grow old"


def test_sdist_holds_what_a_checkout_holds(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "tests/conftest.py", "rules/launchlint-rules.marker", ".pre-commit-hooks.yaml", ".ci/run"} <= names
    assert "launchlint/dev/scaffold.py" in names
    assert not [name for name in names if any(part in (".mypy_cache", ".ruff_cache", "__pycache__") for part in name.split("/"))]


def test_bare_checkout(tmp_path: Path, project: Path) -> None:
    environment = Environment.create(tmp_path / "venv", RUNTIME)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from launchlint.cli import main; sys.exit(main(sys.argv[1:]))"
    assert_works(environment, project, "python", "-c", code)


# ---------------------------------------------------------------- flake8


LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<code>LCH\d{3}) (?P<text>.*)")


def flake8(environment: Environment, project: Path, *arguments: str, stdin: str = "") -> list[tuple[str, ...]]:
    """Findings of the plugin as `(path, line, column, code)`."""
    done = environment.run("python", "-m", "flake8", "--select", "LCH", *arguments, cwd=project, stdin=stdin)
    assert "Traceback" not in done.stderr
    assert done.stderr == ""
    found = [match for line in done.stdout.splitlines() if (match := LINE.fullmatch(line))]
    assert len(found) == len(done.stdout.splitlines()), done.stdout
    return sorted((match["path"].removeprefix("./"), match["line"], match["column"], match["code"]) for match in found)


def launchlint(environment: Environment, project: Path, *arguments: str, stdin: str = "") -> list[tuple[str, ...]]:
    done = environment.run("launchlint", "check", "--format", "json", *arguments, cwd=project, stdin=stdin)
    findings = json.loads(done.stdout)["findings"]
    return sorted((each["path"], str(each["line"]), str(each["column"]), each["code"]) for each in findings)


def test_flake8_lists_the_plugin(installed: Environment, project: Path) -> None:
    assert "launchlint: " in installed.run("python", "-m", "flake8", "--version", cwd=project).stdout


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_flake8_says_what_the_command_line_says(installed: Environment, project: Path, jobs: str) -> None:
    (project / "second.py").write_text("# \N{ROCKET}\n" + DEMO.replace("ids[start", "'\N{ROCKET}'; ids[start"), encoding="utf-8")
    (project / "quiet.py").write_text(DEMO.replace("+ expert)", "+ expert)  # noqa: LCH101"), encoding="utf-8")
    found = flake8(installed, project, jobs, ".")
    assert found == launchlint(installed, project, ".")
    assert {code for *_, code in found} == FOUND
    assert len(found) == 3 + 3 + 2


def test_flake8_under_spawn(installed: Environment, project: Path) -> None:
    (project / "second.py").write_text(DEMO, encoding="utf-8")
    script = project / "spawn.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from flake8.main.cli import main\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    sys.exit(main(['--select', 'LCH', '-j2', '--launchlint-ignore', 'LCH201', 'receiver.py', 'second.py']))\n",
        encoding="utf-8",
    )
    done = installed.run("python", str(script), cwd=project)
    codes = [match["code"] for match in map(LINE.fullmatch, done.stdout.splitlines()) if match]
    assert sorted(codes) == ["LCH101", "LCH101", "LCH202", "LCH202"], done.stderr


def test_flake8_from_standard_input(installed: Environment, project: Path) -> None:
    (project / "other.py").write_text("x = 1\n", encoding="utf-8")
    found = flake8(installed, project, "--stdin-display-name", "other.py", "-", stdin=DEMO)
    assert found == launchlint(installed, project, "--stdin-filename", "other.py", stdin=DEMO)
    assert len(found) == 3


def test_flake8_with_noqa_disabled_or_a_config(installed: Environment, project: Path) -> None:
    (project / "receiver.py").write_text(DEMO.replace("+ expert)", "+ expert)  # noqa"), encoding="utf-8")
    assert [code for *_, code in flake8(installed, project, "receiver.py")] == ["LCH201", "LCH202"]
    (project / ".flake8").write_text("[flake8]\nlaunchlint-select = LCH1,LCH202\n", encoding="utf-8")
    assert [code for *_, code in flake8(installed, project, "receiver.py")] == ["LCH202"]


def test_flake8_knows_the_baseline(installed: Environment, project: Path) -> None:
    (project / "launchlint.toml").write_text('baseline = "known.json"\n', encoding="utf-8")
    assert installed.run("launchlint", "baseline", "write", cwd=project).returncode == 0
    assert flake8(installed, project, "receiver.py") == []
    new = DEMO.replace(
        "        return ids, per_expert", "        extra = torch.tensor([1, 2], device=rows.device)\n        return ids, per_expert"
    )
    (project / "receiver.py").write_text(new, encoding="utf-8")
    found = flake8(installed, project, "receiver.py")
    assert {line for _, line, *_ in found} == {str(new[: new.index("extra =")].count("\n") + 1)}
    assert found == launchlint(installed, project, "receiver.py")


def test_flake8_with_wrong_settings_ends_with_one_line(installed: Environment, project: Path) -> None:
    (project / "launchlint.toml").write_text("selct = []\n", encoding="utf-8")
    done = installed.run("python", "-m", "flake8", ".", cwd=project)
    assert done.returncode != 0
    assert "unknown setting 'selct', did you mean 'select'?" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_flake8_goes_on_when_we_fail(installed: Environment, project: Path) -> None:
    """A fault in one file is one LCH003, and the other files keep their findings, those of other plugins too."""
    (project / "boom.py").write_text("import os\n", encoding="utf-8")
    (project / "failing.py").write_text(
        "from launchlint import engine\n"
        "real = engine.check_source\n"
        "def check_source(source, *rest, **named):\n"
        "    if 'boom' in source.path:\n"
        "        raise RecursionError('too deep')\n"
        "    return real(source, *rest, **named)\n"
        "engine.check_source = check_source\n",
        encoding="utf-8",
    )
    code = (
        f"import sys; sys.path.insert(0, {str(project)!r}); import failing\nfrom flake8.main.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for jobs in ("-j1", "-j2"):
        done = installed.run("python", "-c", code, jobs, "--select", "LCH,F", "boom.py", "receiver.py", "clean.py", cwd=project)
        codes = sorted(line.split()[1] for line in done.stdout.splitlines())
        assert codes == ["F401", "LCH003", "LCH101", "LCH201", "LCH202"], done.stderr

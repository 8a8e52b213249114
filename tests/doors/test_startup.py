"""What a run of one file may cost before it looks at the file: a hook pays for it on every commit."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from launchlint import cli
from launchlint.hot.roles import Globs
from launchlint.patterns import Pattern
from tests.benchmarks.__main__ import SMALL
from tests.doors.environment import ROOT

NAMES = ("forward", "forward_x", "xforward", "apply", "a.b")
HEAVY = ("astroid", "rich", "torch", "numpy", "multiprocessing", "concurrent", "asyncio", "subprocess", "tempfile", "pathspec", "email")
CODE = """\
import sys
from launchlint.cli import main
code = main(sys.argv[1:])
print("loaded:", *sorted({name.partition(".")[0] for name in sys.modules}))
sys.exit(code)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Top-level modules that a command has imported."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CODE}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stdout.rpartition("loaded:")[2].split())


@pytest.mark.parametrize("arguments", [("--version",), ("rules",), ("check", "--isolated", "clean.py")])
def test_nothing_heavy_is_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "clean.py").write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n", encoding="utf-8")
    assert not loaded(tmp_path, *arguments) & set(HEAVY)


def test_a_finding_imports_nothing_heavy_either(tmp_path: Path) -> None:
    """What applies fixes, and what asks other modules of the package, stays away until there is something to apply or to ask."""
    (tmp_path / "found.py").write_text(SMALL, encoding="utf-8")
    assert not loaded(tmp_path, "check", "--isolated", "--exit-zero", "found.py") & {*HEAVY, "pathlib", "random"}


def test_a_command_builds_no_other_parser(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    built: list[str] = []


    def noting(name: str, add: Callable[[Any], None]) -> Callable[[Any], None]:
        def note(commands: Any) -> None:
            built.append(name)
            add(commands)

        return note

    for name, add in list(cli._ADD.items()):
        monkeypatch.setitem(cli._ADD, name, noting(name, add))
    assert cli.main(["rules"]) == 0
    assert built == ["rules"]
    built.clear()
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert tuple(built) == cli.COMMANDS
    listed = capsys.readouterr().out
    assert all(f"\n    {name} " in listed for name in cli.COMMANDS)


def test_a_pattern_is_compiled_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = re.compile

    def note(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return real(pattern, flags)

    monkeypatch.setattr(re, "compile", note)
    pattern = Pattern(r"(a+)b", re.IGNORECASE)
    assert compiled == []
    found = pattern.search("xxAAb")
    assert found is not None
    assert found.span() == (2, 5)
    assert (pattern.match("xab"), pattern.match("xab", 1) is not None, pattern.fullmatch("abc")) == (None, True, None)
    assert [each.group(1) for each in pattern.finditer("ab aab")] == ["a", "aa"]
    assert compiled == [r"(a+)b"]
    with pytest.raises(AttributeError):
        pattern.sub  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    "patterns",
    [
        [], ["forward"], ["forward*", "apply"], ["*.Runner.step", "a.b"], ["x[ab]?"], ["*"], ["**"], ["*forward*"], ["*_x", "*a.*"],
        ["f*d"], ["*f*d*"], ["?.b"], ["*[!x]"], ["[*]"], ["[?]a*", "*b"], ["***x"], ["", "*."],
    ],
)  # fmt: skip
def test_globs_mean_what_fnmatch_means(patterns: list[str]) -> None:
    globs = Globs(patterns)
    for name in (*NAMES, "", "a.Runner.step", "Runner.step", "xa1", "xc1", "a\nb", "*", "?a", "."):
        assert globs.match(name) == any(fnmatchcase(name, pattern) for pattern in patterns)

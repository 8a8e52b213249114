"""What a run of one file may cost before it looks at the file: a hook pays for it on every commit."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from launchlint.hot.roles import Globs
from tests.doors.environment import ROOT

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


@pytest.mark.parametrize("patterns", [[], ["forward"], ["forward*", "apply"], ["*.Runner.step", "a.b"], ["x[ab]?"]])
def test_globs_mean_what_fnmatch_means(patterns: list[str]) -> None:
    globs = Globs(patterns)
    for name in ("", "forward", "forward_x", "xforward", "apply", "a.b", "a.Runner.step", "Runner.step", "xa1", "xc1", "a\nb"):
        assert globs.match(name) == any(fnmatchcase(name, pattern) for pattern in patterns)

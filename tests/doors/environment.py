"""Fresh environments for trying an installation, made without a network: what is installed here is lent to them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME = ("astroid", "pathspec", "rich", "markdown-it-py", "mdurl", "pygments", "tomli", "typing-extensions")
FLAKE8 = ("flake8", "pycodestyle", "pyflakes", "mccabe")
BUILD = ("hatchling", "packaging", "pluggy", "trove-classifiers")


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, lend: Iterable[str]) -> Environment:
        """A new one with the distributions `lend`; those that are not installed here are not needed on this Python."""
        venv.create(folder, with_pip=False, symlinks=os.name == "posix")
        made = cls(folder)
        for name in lend:
            try:
                distribution = importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                continue
            for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
                source = Path(str(distribution.locate_file(top)))
                target = made.site / top
                if not target.exists() and source.name != "__pycache__":
                    target.symlink_to(source, target_is_directory=source.is_dir())
        return made

    @property
    def site(self) -> Path:
        """Where packages lie."""
        if os.name == "nt":
            return self.folder / "Lib" / "site-packages"
        return self.folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

    def program(self, name: str) -> str:
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / name)

    def install(self, *arguments: str) -> None:
        """`pip install` into it, without a network and without dependencies."""
        command = [sys.executable, "-m", "pip", "--python", self.program("python"), "install", "--quiet", "--no-deps", "--no-index"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, *command: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """A program of the environment, which sees nothing of the checkout but what is installed."""
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        arguments = [self.program(command[0]), *command[1:]]
        return subprocess.run(arguments, cwd=cwd, env=variables, input=stdin, capture_output=True, text=True, check=False, timeout=120)

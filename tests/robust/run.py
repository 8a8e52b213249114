"""Runs launchlint and flake8 as a user would: in a process of their own."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cases.collect import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
SECONDS = 60  # nothing here may take longer; most of it is the start of Python on a busy machine


def launchlint(*arguments: str | bytes, cwd: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """`launchlint ARGUMENTS` in the folder `cwd`."""
    command: list[str | bytes] = [sys.executable, "-m", "launchlint", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env=ENVIRONMENT, timeout=SECONDS, check=False)


def here(*arguments: str, cwd: Path) -> tuple[int, str]:
    """Exit code and output of the same in this process, which saves the start of Python where only files matter."""
    from launchlint.cli import main

    before = os.getcwd()
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    os.chdir(cwd)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            code = main(arguments)
    finally:
        os.chdir(before)
    output.flush()
    return code, output.buffer.getvalue().decode()


def check(*arguments: str | bytes, cwd: Path, stdin: bytes | None = None) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of `launchlint check`; fails where something that looks like a traceback is printed."""
    done = launchlint("check", "--format", "json", "--no-cache", *arguments, cwd=cwd, stdin=stdin)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


def is_installed() -> bool:
    """True if the plugin is known to flake8 already; naming it a second time is an error there."""
    return any(entry.name == "LCH" for entry in importlib.metadata.entry_points(group="flake8.extension"))


def flake8(*arguments: str, cwd: Path, stdin: bytes | None = None) -> list[tuple[str, int, int, str]]:
    """Path, line, column and text of what flake8 reports with the plugin."""
    config = cwd / "flake8.cfg"
    local = f"[flake8:local-plugins]\nextension =\n    LCH = launchlint.flake8:Plugin\npaths = {ROOT}\n"
    config.write_text("" if is_installed() else local, encoding="utf-8")
    command = [sys.executable, "-m", "flake8", "--config", str(config), "--select", "LCH", *arguments]
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env=ENVIRONMENT, timeout=SECONDS, check=False)
    assert not done.stderr, done.stderr.decode()
    found = []
    for line in done.stdout.decode().splitlines():
        path, row, column, said = line.split(":", 3)
        found.append((os.path.normpath(path), int(row), int(column), said.strip()))
    return sorted(found)

"""The linter on this folder: it reports the five defects and nothing else, and its fix of the loop is the fixed form."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = {
    ("LCH101", "expand_by_fill_loop"),  # V0
    ("LCH201", "expand_with_list_upload"),  # V1
    ("LCH305", "expand_without_size"),  # V2
    ("LCH202", "expand_from_pageable"),  # V2b
    ("LCH106", "expand"),  # V3u: RebuiltIds.expand
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy beside no settings of a project: nothing is left out by a path."""
    target = tmp_path / "fixed_receiver"
    shutil.copytree(ROOT / "fixed_receiver", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run_linter(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "launchlint", "check", str(folder), "--no-cache", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def find(folder: Path) -> list[dict[str, Any]]:
    done = run_linter(folder, "--isolated", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def function_at(tree: ast.Module, line: int) -> str:
    """Name of the innermost function around a line."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None and node.lineno <= line <= node.end_lineno
    ]
    return max(around, key=lambda node: node.lineno).name


def test_the_five_defects_and_nothing_else(folder: Path) -> None:
    found = find(folder)
    tree = ast.parse((folder / "ids.py").read_text(encoding="utf-8"))
    assert {Path(finding["path"]).name for finding in found} == {"ids.py"}
    assert sorted((finding["code"], function_at(tree, finding["line"])) for finding in found) == sorted(EXPECTED)


def test_nothing_is_silenced_by_a_comment(folder: Path) -> None:
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "launchlint: ignore" not in text, path.name
        assert "noqa: LCH" not in text, path.name


def test_the_fix_of_the_loop_is_the_fixed_form(folder: Path) -> None:
    (folder.parent / "settings.toml").write_text('[tool.launchlint]\npin-memory = "PIN_MEMORY"\n', encoding="utf-8")
    settings = ["--config", str(folder.parent / "settings.toml"), "--select", "LCH101"]
    before = (folder / "ids.py").read_text(encoding="utf-8")
    done = run_linter(folder, *settings, "--fix", "--unsafe-fixes")
    assert done.returncode == 0, done.stdout + done.stderr
    after = (folder / "ids.py").read_text(encoding="utf-8")
    assert body_of(before, "expand_by_fill_loop") != body_of(before, "expand_by_repeat")
    assert body_of(after, "expand_by_fill_loop") == body_of(after, "expand_by_repeat")
    assert body_of(after, "expand_by_repeat") == body_of(before, "expand_by_repeat")


def body_of(text: str, name: str) -> list[str]:
    """The tree of a function without its docstring."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return [ast.dump(statement) for statement in node.body[1:]]
    raise AssertionError(f"no function {name}")

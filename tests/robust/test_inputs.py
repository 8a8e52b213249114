"""Awkward files through both doors: the right findings, one clear error, never a crash, the others still checked."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launchlint.flake8 import Plugin
from tests.robust.inputs import INPUTS, LOOP, LOOP_AT, NOTICE, STILL_REPORTED, SUPPRESSED, Input
from tests.robust.run import check, flake8, here
from tests.robust.test_fixing import FIXABLE


class Unconfigured(Plugin):
    """The plugin as flake8 makes it without any option."""

    settings = None
    rules = ()


PARAMS = [pytest.param(each, id=each.name.removesuffix(".py")) for each in INPUTS]
IN_FLAKE8 = [pytest.param(each, id=each.name.removesuffix(".py")) for each in INPUTS if not each.defeats_pyflakes]
DEEP = [pytest.param(each, id=each.name.removesuffix(".py")) for each in INPUTS if each.defeats_pyflakes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("awkward")
    for each in INPUTS:
        (root / each.name).write_bytes(each.data)
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    code, found = check(".", cwd=folder)
    assert code == 2, "files that cannot be read are worth an exit code of their own"
    return found


@pytest.fixture(scope="module")
def host(folder: Path) -> list[tuple[str, int, int, str]]:
    return flake8("-j2", *(each.name for each in INPUTS if not each.defeats_pyflakes), cwd=folder)


@pytest.mark.parametrize("given", PARAMS)
def test_command_line(given: Input, report: dict[str, Any]) -> None:
    found = [(each["code"], each["line"]) for each in report["findings"] if each["path"] == given.name]
    assert found == [(given.code, line) for line in given.lines]
    errors = [each for each in report["errors"] if each["path"] == given.name]
    assert len(errors) == (given.unread is not None)
    if errors:
        assert "\n" not in errors[0]["reason"]
        assert given.unread in (-1, errors[0]["line"])


@pytest.mark.parametrize("given", IN_FLAKE8)
def test_flake8(given: Input, host: list[tuple[str, int, int, str]], report: dict[str, Any]) -> None:
    lines = given.lines if given.in_flake8 is None else given.in_flake8
    said = [(row, text.split()[0]) for path, row, _, text in host if path == given.name]
    assert said == [(line, given.code) for line in lines]
    if given.in_flake8 is None:  # and the same columns
        ours = [(each["line"], each["column"]) for each in report["findings"] if each["path"] == given.name]
        assert [(row, column) for path, row, column, _ in host if path == given.name] == ours


@pytest.mark.parametrize("given", DEEP)
def test_the_plugin_survives_depth(given: Input) -> None:
    code = given.data.decode()
    found = list(Unconfigured(ast.parse(code), code.splitlines(keepends=True), given.name).run())
    assert [(row, text.split()[0]) for row, _, text, _ in found] == [(line, given.code) for line in given.lines]


def test_any_number_of_processes_gives_the_same(folder: Path, report: dict[str, Any]) -> None:
    _, two = check("-j", "2", ".", cwd=folder)
    assert two["findings"] == report["findings"]
    assert two["errors"] == report["errors"]


@pytest.mark.parametrize(
    "name", ["form_feed.py", "bom.py", "crlf.py", "latin1_cookie.py", "wide_text.py", "tabs.py", "no_final_newline.py"]
)
def test_standard_input_gives_what_the_file_gives(name: str, report: dict[str, Any], tmp_path: Path) -> None:
    (given,) = (each for each in INPUTS if each.name == name)
    _, found = check("--stdin-filename", name, "-", cwd=tmp_path, stdin=given.data)
    places = ("line", "column", "end_line", "end_column", "message")
    ours = [each for each in report["findings"] if each["path"] == name]
    assert [[each[key] for key in places] for each in found["findings"]] == [[each[key] for key in places] for each in ours]


def test_flake8_takes_the_text_that_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n", encoding="utf-8")
    found = flake8("--stdin-display-name", "other.py", "-", cwd=tmp_path, stdin=LOOP.encode())
    assert [(path, row) for path, row, *_ in found] == [("other.py", LOOP_AT)]


def test_columns_count_code_points(report: dict[str, Any]) -> None:
    (found,) = (each for each in report["findings"] if each["path"] == "wide_text.py")
    (given,) = (each for each in INPUTS if each.name == "wide_text.py")
    line = given.data.decode().split("\n")[found["line"] - 1]
    assert line[found["column"] - 1 : found["end_column"] - 1] == "grid[row, :size].fill_(row)"


def test_a_file_too_deep_for_the_parser_is_one_notice(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(f"x = {'-' * 200_000}1\n" + LOOP, encoding="utf-8")
    (tmp_path / "right.py").write_text(LOOP, encoding="utf-8")
    code, found = check(".", cwd=tmp_path)
    assert code == 2
    assert [each["path"] for each in found["errors"]] == ["deep.py"]
    assert [each["path"] for each in found["findings"]] == ["right.py"]


@pytest.mark.parametrize("fault", [SystemError("Negative size"), tokenize.TokenError("EOF", (1, 0)), SyntaxError("no")])
def test_a_tokenizer_that_fails_loses_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    """Found by the fuzzer: the tokenizer of CPython 3.13.0 raises SystemError for some f-strings, and the whole run was lost."""

    def fail(_: object) -> Iterator[tokenize.TokenInfo]:
        yield tokenize.TokenInfo(tokenize.NL, "\n", (1, 0), (1, 1), "\n")
        raise fault

    monkeypatch.setattr(tokenize, "generate_tokens", fail)
    (tmp_path / "defeat.py").write_text('"""noqa\n"""\n' + FIXABLE, encoding="utf-8")
    (tmp_path / "right.py").write_text(LOOP, encoding="utf-8")
    code, said = here("check", "--isolated", "--format", "concise", "--fix", "--unsafe-fixes", ".", cwd=tmp_path)
    assert code == 1
    assert "right.py:7" in said
    assert "error" not in said
    ast.parse((tmp_path / "defeat.py").read_bytes())


def test_a_file_that_defeats_the_plugin_costs_no_other_finding(tmp_path: Path) -> None:
    """flake8 loses every file's findings when a plugin's `run` raises, so nothing may escape from it."""
    tree = ast.parse(LOOP)
    node: ast.expr = ast.Constant(1)
    for _ in range(100_000):
        node = ast.UnaryOp(ast.USub(), node)
    tree.body.append(ast.fix_missing_locations(ast.Expr(ast.Constant(1))))
    tree.body[-1].value = node  # type: ignore[attr-defined]
    said = [text for _, _, text, _ in Unconfigured(tree, LOOP.splitlines(keepends=True), "x.py").run()]
    assert said
    assert all(text.split()[0] in (NOTICE, "LCH101") for text in said)


def test_noqa_counts_on_the_reported_line_only(tmp_path: Path) -> None:
    (tmp_path / "noqa.py").write_text(SUPPRESSED, encoding="utf-8")
    _, found = check("noqa.py", cwd=tmp_path)
    assert tuple(each["line"] for each in found["findings"]) == STILL_REPORTED
    assert tuple(row for _, row, *_ in flake8("noqa.py", cwd=tmp_path)) == STILL_REPORTED

"""`python -m launchlint.dev`: a new rule starts from green, and what is wrong is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from launchlint.dev import pages
from launchlint.dev.__main__ import main
from launchlint.model import Heat, Level
from launchlint.rule import Rule
from tests.cases.case import Expect, read
from tests.cases.variants import VARIANTS


def load(folder: Path) -> Rule:
    spec = importlib.util.spec_from_file_location(f"scaffolded_{folder.name}", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.rule, Rule)
    return module.rule


def test_new_makes_a_folder_of_the_right_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "LCH999", "some-name", "--group", "launches"], tmp_path) == 0
    folder = tmp_path / "rules" / "lch999_some_name"
    assert str(folder.relative_to(tmp_path)) in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"__init__.py", "README.md", "cases.md"}
    meta = load(folder).meta
    assert (meta.code, meta.name, meta.group, meta.preview) == ("LCH999", "some-name", "launches", True)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert pages.complaints(text, meta) == []
    assert pages.with_head(text, meta) == text


def test_new_makes_cases_that_fire_and_that_stay_silent(tmp_path: Path) -> None:
    main(["new", "LCH999", "some-name", "--group", "reads"], tmp_path)
    fires, silent = read(tmp_path / "rules" / "lch999_some_name" / "cases.md", frozenset(VARIANTS))
    assert [(mark.rule, mark.expect) for mark in fires.marks] == [("some-name", Expect.ERROR)]
    assert silent.marks == ()


def test_new_makes_a_rule_with_a_check(tmp_path: Path) -> None:
    main(["new", "LCH999", "some-name", "--group", "reads"], tmp_path)
    rule = load(tmp_path / "rules" / "lch999_some_name")
    assert [trigger.names for trigger in rule.triggers] == [frozenset({"some_name"})]
    assert rule.meta.policy.confidence(Level.KNOWN, Heat.NAMED) is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["new", "LCH99", "some-name", "--group", "reads"], "LCH and three digits"),
        (["new", "LCH999", "somename", "--group", "reads"], "kebab-case"),
        (["new", "LCH999", "Some-Name", "--group", "reads"], "kebab-case"),
        (["new", "LCH001", "some-name", "--group", "reads"], "taken by LCH001"),
        (["new", "LCH999", "unused-ignore", "--group", "reads"], "taken by LCH001"),
    ],
)
def test_new_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    assert main(arguments, tmp_path) == 2
    assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_new_never_writes_over_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["new", "LCH999", "some-name", "--group", "reads"], tmp_path)
    page = tmp_path / "rules" / "lch999_some_name" / "README.md"
    page.write_text("mine", encoding="utf-8")
    assert main(["new", "LCH999", "some-name", "--group", "reads"], tmp_path) == 2
    assert "exists already" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"


def test_an_unknown_group_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["new", "LCH999", "some-name", "--group", "nothing"], tmp_path)
    assert stopped.value.code == 2


def test_tables_writes_what_check_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules").mkdir()
    assert main(["tables", "--check"], tmp_path) == 1
    assert not (tmp_path / "rules" / "README.md").exists()
    assert main(["tables"], tmp_path) == 0
    assert capsys.readouterr().out.split() == ["rules/README.md", "rules/README.md"]
    assert main(["tables", "--check"], tmp_path) == 0


def test_tables_refuses_a_readme_without_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("# X\n", encoding="utf-8")
    (tmp_path / "rules").mkdir()
    assert main(["tables"], tmp_path) == 2
    assert "rules:begin" in capsys.readouterr().err
    assert (tmp_path / "rules" / "README.md").is_file(), "the other tables are written all the same"

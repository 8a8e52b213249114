"""Rule pages: their shape, their examples, and the tables that are generated from the rules' facts."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import pytest

from launchlint import registry
from launchlint.dev import pages, tables
from launchlint.model import Applicability, Meta, Policy
from launchlint.settings import Settings
from tests.cases.collect import ROOT, RULES, folders, rule_name
from tests.cases.linter import Launchlint

FOLDERS = [pytest.param(folder, id=folder.name) for folder in folders()]
META = Meta("LCH901", "slow-call", "a call that is slow | twice", "launches", "0.1.0", Policy.grid(known="- low high high"))
PAGE = pages.head(META) + "".join(
    f"\n## {title}\n\nWords.\n" + ("\n```py\nf()\n```\n" if title in ("Example", "Use instead") else "")
    for title in pages.HEADINGS
    if title != pages.ONLY_WITH_FIX
)


@functools.cache
def linter() -> Launchlint:
    return Launchlint()


def meta_of(folder: Path) -> Meta:
    rule = registry.find(rule_name(folder))
    assert rule is not None, f"no rule is called {rule_name(folder)}"
    return rule.meta


def found_in(code: str) -> list[str]:
    """Names of the rules that fire with every rule on, in order."""
    names = {code: name for name, code in linter().codes.items()}
    report = linter().check("layer.py", code, sorted(linter().codes), Settings())
    assert not report.problems
    return [names[finding.code] for finding in report.findings]


# -------------------------------------------------------------------- the pages of the rules


def test_every_rule_folder_is_known() -> None:
    known = {registry.folder(rule.meta) for rule in registry.load().values()}
    assert {folder.name for folder in folders()} <= known


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_has_three_files(folder: Path) -> None:
    assert folder.name == registry.folder(meta_of(folder))
    assert {"__init__.py", "README.md", "cases.md"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("folder", FOLDERS)
def test_page_has_its_headings(folder: Path) -> None:
    assert pages.complaints((folder / "README.md").read_text(encoding="utf-8"), meta_of(folder)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_example_fires_exactly_this_rule(folder: Path) -> None:
    example = pages.code_under((folder / "README.md").read_text(encoding="utf-8"), "Example")[0]
    assert set(found_in(example)) == {rule_name(folder)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_to_use_instead_is_silent_for_every_rule(folder: Path) -> None:
    for code in pages.code_under((folder / "README.md").read_text(encoding="utf-8"), "Use instead"):
        assert found_in(code) == [], code


@pytest.mark.parametrize("folder", FOLDERS)
def test_summary_reads_well_in_a_table(folder: Path) -> None:
    summary = meta_of(folder).summary
    assert summary
    assert not summary[0].isupper()
    assert not summary.endswith(".")
    assert "\n" not in summary


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_inside_the_project_lead_somewhere(folder: Path) -> None:
    for name in ("README.md", "cases.md"):
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", (folder / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", prose):
            assert (folder / target).exists(), f"{name}: {target}"


def test_generated_tables_are_current() -> None:
    stale = tables.outdated(ROOT, [rule.meta for rule in registry.load().values()])
    assert [str(path.relative_to(ROOT)) for path in stale] == [], "run `python -m launchlint.dev tables`"


def test_readme_has_a_place_for_the_table() -> None:
    assert tables.has_place(ROOT / "README.md")


def test_rules_are_never_a_package_of_their_own() -> None:
    assert not (RULES / "__init__.py").exists()


# -------------------------------------------------------------------- the checks themselves


def test_a_right_page_has_no_complaints() -> None:
    assert pages.complaints(PAGE, META) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("## Measured\n\nWords.\n", "", "headings are"),
        ("## Example", "## Examples", "headings are"),
        ("## Measured", "## When to ignore", "headings are"),
        ("## Measured\n\nWords.\n", "## Measured\n", "nothing stands under 'Measured'"),
        ("```py\nf()\n```\n\n## Use", "```text\nf()\n```\n\n## Use", "no `py` block stands under 'Example'"),
        ("f()\n```\n\n## Known", "f()\n\n## Known", "never closed"),
    ],
)
def test_complains_of_a_page(old: str, new: str, complaint: str) -> None:
    assert old in PAGE
    assert complaint in pages.complaints(PAGE.replace(old, new, 1), META)[0]


def test_a_fix_needs_its_heading() -> None:
    fixes = dataclasses.replace(META, fix=Applicability.DISPLAY)
    assert "Fix safety" in pages.complaints(PAGE, fixes)[0]
    assert pages.complaints(PAGE.replace("## Known", "## Fix safety\n\nIt is never applied.\n\n## Known", 1), fixes) == []
    with_heading = PAGE.replace("## Known", "## Fix safety\n\nThere is none.\n\n## Known", 1)
    assert "headings are" in pages.complaints(with_heading, META)[0]


def test_examples_under_deeper_headings_count() -> None:
    text = PAGE.replace("## Use instead\n\nWords.\n", "## Use instead\n\n### On the host\n\n```py\ng()\n```\n\n### On the device\n")
    assert pages.code_under(text, "Use instead") == ["g()\n", "f()\n"]


def test_head_is_replaced_and_the_rest_kept() -> None:
    changed = dataclasses.replace(META, name="other-call", preview=True)
    assert pages.with_head(PAGE, META) == PAGE
    text = pages.with_head(PAGE, changed)
    assert text.startswith("# LCH901 other-call\n")
    assert text.partition(pages.GENERATED)[2] == PAGE.partition(pages.GENERATED)[2]
    assert pages.with_head("## Why it costs\n", META) == pages.head(META) + "\n## Why it costs\n"


def test_tables_are_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "rules" / "lch901_slow_call"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(PAGE.replace("LCH901", "LCH900", 1), encoding="utf-8")
    (tmp_path / "README.md").write_text(f"# X\n\n{tables.BEGIN}\nold\n{tables.END}\n\nEnd.\n", encoding="utf-8")
    assert {path.relative_to(tmp_path).as_posix() for path in tables.refresh(tmp_path, [META])} == {
        "README.md",
        "rules/README.md",
        "rules/lch901_slow_call/README.md",
    }
    assert tables.outdated(tmp_path, [META]) == {}
    assert (folder / "README.md").read_text(encoding="utf-8") == PAGE
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "[LCH901](rules/lch901_slow_call/README.md) slow-call | a call that is slow \\| twice |" in readme
    assert readme.startswith("# X\n")
    assert readme.endswith("\n\nEnd.\n")


@pytest.mark.parametrize("text", ["# X\n", f"{tables.BEGIN}\n", f"{tables.END}\n{tables.BEGIN}\n"])
def test_a_readme_without_a_place_for_the_table_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert not tables.has_place(tmp_path / "README.md")
    assert tmp_path / "README.md" not in tables.outdated(tmp_path, [META])

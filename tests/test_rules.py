"""Runs `rules/*/cases.md`: every case as written, in its variants, and with its fixes applied."""

from __future__ import annotations

import builtins
import functools

import pytest

from launchlint import registry
from launchlint.rule import Rule
from launchlint.scan import worth_parsing
from tests.cases.case import Case, Expect, read
from tests.cases.collect import Pageful, pages
from tests.cases.linter import Launchlint
from tests.cases.update import rewrite
from tests.cases.variants import VARIANTS
from tests.cases.verdict import Judge

PAGES = [pytest.param(page, id=page.folder.name) for page in pages()]
CASES = [pytest.param(page, case, id=f"{page.folder.name}-{case.name}") for page in pages() for case in page.cases]


@functools.cache
def linter() -> Launchlint:
    return Launchlint()


def judge(page: Pageful, case: Case) -> Judge:
    if not case.options.runs_here:
        pytest.skip(f"syntax of Python {'.'.join(map(str, case.options.python))}")
    return Judge(case, page.rule, linter())


def tell(complaints: list[str], case: Case) -> None:
    if complaints:
        pytest.fail("\n".join([f"{case.path}:{case.line}: {case.title}", *complaints]), pytrace=False)


@pytest.mark.parametrize("page", PAGES)
def test_page_is_well_formed(page: Pageful) -> None:
    assert not page.error
    assert page.rule in linter().codes, "a folder without its rule"
    marks = [mark for case in page.cases for mark in case.marks if mark.rule == page.rule]
    assert any(mark.expect is Expect.ERROR for mark in marks), "no case in which the rule fires"
    assert any(not case.marks for case in page.cases), "no case that must stay silent"


def spellings(name: str) -> list[bytes]:
    """A file that calls `name` and holds nothing else of interest, by method and, where torch has it, by function.

    Casts such as `int(x)` are left out: they stand in every file, and a file with a tensor to cast holds other words.
    """
    if hasattr(builtins, name) and name not in ("all", "any", "max", "min", "sum"):
        return []
    torch = pytest.importorskip("torch", reason="which names are functions of torch, torch knows")
    written = [f"import torch\nx.{name}(y)\n"]
    if callable(getattr(torch, name, None)):
        written.append(f"from torch import {name}\n{name}(y)\n")
    return [text.encode() for text in written]


@pytest.mark.parametrize("rule", [pytest.param(rule, id=code) for code, rule in registry.load().items()])
def test_the_prefilter_lets_through_what_the_rule_looks_for(rule: Rule) -> None:
    names = {name for trigger in rule.triggers for name in trigger.names}
    assert [text for name in sorted(names) for text in spellings(name) if not worth_parsing(text)] == []


@pytest.mark.parametrize(("page", "case"), CASES)
def test_as_written(page: Pageful, case: Case) -> None:
    tell(judge(page, case).as_written(), case)


@pytest.mark.parametrize(("page", "case"), CASES)
def test_variants(page: Pageful, case: Case) -> None:
    at_work = judge(page, case)
    complaints: list[str] = []
    for name in sorted(set(VARIANTS) - case.options.skip):
        complaints += [f"{name}: {complaint}" for complaint in at_work.variant(name) or []]
    tell(complaints, case)


@pytest.mark.parametrize("page", PAGES)
def test_fixes(page: Pageful, request: pytest.FixtureRequest) -> None:
    cases = page.cases
    if request.config.getoption("--update"):
        judges = [Judge(case, page.rule, linter()) for case in cases if case.options.runs_here]
        rewrite(page.folder / "cases.md", [(each, at.fixed(each.floor)) for at in judges for each in at.case.fixed])
        cases = tuple(read(page.folder / "cases.md", frozenset(VARIANTS)))
    for case in cases:
        if case.options.runs_here:
            tell(Judge(case, page.rule, linter()).fixes(), case)


@pytest.mark.parametrize(("page", "case"), [param for param in CASES if param.values[1].inputs])  # type: ignore[union-attr]
def test_fixed_code_gives_the_same_for_less(page: Pageful, case: Case) -> None:
    pytest.importorskip("torch", reason="running code needs torch")
    from tests.cases import execution

    at_work = judge(page, case)
    for fixed in case.fixed:
        tell(execution.complaints(case, at_work.fixed(fixed.floor)), case)

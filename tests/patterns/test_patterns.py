"""Every snippet gets its verdict: each marked line is reported, and nothing else is."""

from __future__ import annotations

import pytest

from launchlint import engine, registry
from launchlint.model import Confidence, Finding
from launchlint.settings import Settings
from launchlint.source import Source
from tests.patterns.verdicts import REPORTED, SILENT, Snippet

EVERYTHING = Settings(hot=("*",), preview=True, min_confidence=Confidence.LOW)


def findings(snippet: Snippet, settings: Settings) -> tuple[Source, list[Finding]]:
    source = Source("engine_part.py", snippet.code)
    report = engine.check_source(source, registry.select(settings), settings)
    assert not report.problems
    return source, report.findings


def lines(source: Source, finding: Finding) -> set[int]:
    """The line that is reported, and the lines of what was grouped under it."""
    return {source.position(span.start).line for span in (finding.span, *(related.span for related in finding.related))}


@pytest.mark.parametrize("snippet", [pytest.param(snippet, id=snippet.name) for snippet in REPORTED])
def test_what_people_report_is_reported(snippet: Snippet) -> None:
    source, found = findings(snippet, EVERYTHING)
    known = set(registry.load())
    missing = []
    for line, codes in snippet.wanted.items():
        met = [each for each in found if each.code in codes and (line in lines(source, each) or lines(source, each) & snippet.loops)]
        if not met and codes & known:
            missing.append(f"line {line}: none of {', '.join(sorted(codes))}")
    said = [f"line {source.position(each.span.start).line}: {each.code} {each.message}" for each in found]
    assert not missing, [*missing, "said:", *said]


@pytest.mark.parametrize("snippet", [pytest.param(snippet, id=snippet.name) for snippet in REPORTED])
def test_nothing_else_is_reported_beside_it(snippet: Snippet) -> None:
    source, found = findings(snippet, EVERYTHING)
    allowed = {*snippet.wanted, *snippet.loops}
    beside = [each for each in found if source.position(each.span.start).line not in allowed]
    assert not beside, [f"line {source.position(each.span.start).line}: {each.code} {each.message}" for each in beside]


@pytest.mark.parametrize("snippet", [pytest.param(snippet, id=snippet.name) for snippet in SILENT])
def test_what_costs_nothing_is_left_alone(snippet: Snippet) -> None:
    source, found = findings(snippet, EVERYTHING)
    assert not found, [f"line {source.position(each.span.start).line}: {each.code} {each.message}" for each in found]

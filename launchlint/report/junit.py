"""JUnit XML, which nearly every CI server shows: a suite for each file with findings, a test for each finding.

A run that found nothing has one test that passed, since some servers take an empty report for a broken one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from launchlint.model import Problem
from launchlint.report import Entry, Result, from_top, in_words, plural, readable

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0 has no way to write these


def render(result: Result) -> str:
    """The document; findings are failures, files that could not be checked are errors."""
    suites: list[str] = []
    for path, entries in groupby(result.entries, key=lambda entry: entry.source.path):
        suites.append(_suite(readable(from_top(path)), [_failure(entry) for entry in entries], 0))
    if result.problems:
        suites.append(_suite("files that could not be checked", [_error(problem) for problem in result.problems], len(result.problems)))
    if not suites:
        suites.append(_suite("launchlint", [f'    <testcase name="{plural(result.files, "file")}" classname="launchlint"/>'], 0, 0))
    failures, errors = len(result.entries), len(result.problems)
    head = f'<testsuites name="launchlint" tests="{max(failures + errors, 1)}" failures="{failures}" errors="{errors}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]) + "\n"


def _suite(name: str, cases: Sequence[str], errors: int, failures: int | None = None) -> str:
    failed = len(cases) - errors if failures is None else failures
    head = f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{failed}" errors="{errors}">'
    return "\n".join([head, *cases, "  </testsuite>"])


def _failure(entry: Entry) -> str:
    path, place = readable(from_top(entry.source.path)), entry.place
    cell = f"cell {place.cell}, " if place.cell else ""
    name = f"{entry.meta.code} {entry.meta.name} at {cell}line {place.line}, column {place.column}"
    kind = f"{entry.meta.code} {entry.meta.name}"
    text = f"{path}{str(place).removeprefix(place.path)}: {in_words(entry)}\n{entry.source.line(place.line + place.above)}"
    head = f'    <testcase name={_attribute(name)} classname={_attribute(path)} file={_attribute(path)} line="{entry.on_disk.line}">'
    failure = f"<failure type={_attribute(kind)} message={_attribute(entry.finding.message)}>{_text(text)}</failure>"
    return f"{head}\n      {failure}\n    </testcase>"


def _error(problem: Problem) -> str:
    path = readable(from_top(problem.path))
    where = f"{path}:{problem.line}" if problem.line else path
    head = f"    <testcase name={_attribute(where)} classname={_attribute(path)} file={_attribute(path)}>"
    return f'{head}\n      <error type="LCH003 not-analysed" message={_attribute(problem.reason)}/>\n    </testcase>'


def _attribute(text: str) -> str:
    return quoteattr(_legal(text), {"\t": "&#9;"})


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)

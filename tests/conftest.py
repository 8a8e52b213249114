"""Options and the closing lines of a test run."""

from __future__ import annotations

import signal
from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update`: take what fixes really give over into the `fixed` blocks of the cases."""
    parser.addoption("--update", action="store_true", help="rewrite the `fixed` blocks of rules/*/cases.md, and nothing else")


def pytest_configure() -> None:
    """Let interrupts through: a shell without job control starts background jobs with SIGINT ignored, and so would every child."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many known misses and known false alarms the cases carry: they pass, and they are no success."""
    from tests.cases.case import Expect
    from tests.cases.collect import pages

    counted: dict[Expect, Counter[str]] = {Expect.TODO_ERROR: Counter(), Expect.TODO_OK: Counter()}
    for page in pages():
        for mark in (mark for case in page.cases for mark in case.marks if mark.expect in counted):
            counted[mark.expect][page.folder.name.partition("_")[0].upper()] += 1
    for expect, title in ((Expect.TODO_ERROR, "known misses"), (Expect.TODO_OK, "known false alarms")):
        per_rule = ", ".join(f"{code} {count}" for code, count in sorted(counted[expect].items()))
        terminalreporter.write_line(f"{title} in the cases: {counted[expect].total()}" + (f" ({per_rule})" if per_rule else ""))

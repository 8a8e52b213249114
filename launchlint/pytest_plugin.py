"""A pytest fixture that holds a function to a budget of launches, waits and copies, without a GPU.

    def test_step(launch_budget):
        with launch_budget(launches=3, waits=0, pageable=0):
            step(...)

torch is imported when a test uses the fixture, never before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from launchlint.audit.report import Report, Totals

PROPERTY = "launch_budget"
LIMITS = {
    "launches": "launches",
    "waits": "waits",
    "pageable": "pageable_uploads",
    "pinned": "pinned_uploads",
    "downloads": "downloads",
    "allocations": "allocations",
}
WORDS = {
    "launches": ("launch", "launches"),
    "waits": ("wait for the device", "waits for the device"),
    "pageable": ("upload from pageable memory", "uploads from pageable memory"),
    "pinned": ("upload from pinned memory", "uploads from pinned memory"),
    "downloads": ("download", "downloads"),
    "allocations": ("allocation", "allocations"),
}
SHOWN = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--launch-budget-report`."""
    group = parser.getgroup("launchlint")
    group.addoption("--launch-budget-report", metavar="FILE", help="write what tests with a launch budget spent to FILE, as JSON")


@dataclass
class Budget:
    """What a piece of code may spend at most; a limit of None is none. Use it in a `with` statement, or `run` a function."""

    launches: int | None = None
    waits: int | None = None
    pageable: int | None = None
    pinned: int | None = None
    downloads: int | None = None
    allocations: int | None = None
    record: Callable[[Budget, Report], None] | None = None

    @property
    def limits(self) -> dict[str, int]:
        """The limits that were given."""
        return {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}

    def exceeded(self, totals: Totals) -> dict[str, tuple[int, int]]:
        """What was spent and what was allowed, where it was too much."""
        spent = {name: getattr(totals, LIMITS[name]) for name in self.limits}
        return {name: (spent[name], limit) for name, limit in self.limits.items() if spent[name] > limit}

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
        """Call `function` with its tensor arguments on the device; fail the test if it spends too much."""
        from launchlint.audit.entry import audit

        report = audit(function, *args, **kwargs)
        self._judge(report)
        return report

    def __enter__(self) -> Report:
        from launchlint.audit.entry import audit

        self._context = audit()
        self._report = self._context.__enter__()
        return self._report

    def __exit__(self, *exception: Any) -> None:
        self._context.__exit__(*exception)
        if exception[0] is None:
            self._judge(self._report)

    def _judge(self, report: Report) -> None:
        __tracebackhide__ = True
        if self.record is not None:
            self.record(self, report)
        if self.exceeded(report.totals):
            pytest.fail(message(self, report), pytrace=False)


def message(budget: Budget, report: Report) -> str:
    """What was too much, and the lines that spent it, most expensive first."""
    from launchlint.audit.report import table

    exceeded = budget.exceeded(report.totals)
    parts = [f"{spent} {WORDS[name][spent != 1]}, {limit} allowed" for name, (spent, limit) in exceeded.items()]

    def cost(line: Totals) -> tuple[int, ...]:
        return (*(getattr(line, LIMITS[name]) for name in exceeded), *line.cost())

    spent_by = table(report.lines_by(cost), report.totals, report.footer(), SHOWN)
    return f"launch budget exceeded: {'; '.join(parts)}\n\n{spent_by}"


@pytest.fixture
def launch_budget(request: pytest.FixtureRequest) -> Callable[..., Budget]:
    """Make a budget: `launch_budget(launches=3, waits=0, pageable=0, pinned=1, downloads=0, allocations=4)`.

    Without a GPU the code runs on CPU data and is counted; with one it is measured.
    """
    pytest.importorskip("torch", reason="a launch budget needs torch")

    def make(
        *,
        launches: int | None = None,
        waits: int | None = None,
        pageable: int | None = None,
        pinned: int | None = None,
        downloads: int | None = None,
        allocations: int | None = None,
    ) -> Budget:
        return Budget(launches, waits, pageable, pinned, downloads, allocations, record)

    def record(budget: Budget, report: Report) -> None:
        if request.config.getoption("--launch-budget-report"):
            spent = {"budget": budget.limits, "passed": not budget.exceeded(report.totals), "report": report.as_dict()}
            request.node.user_properties.append((PROPERTY, spent))

    return make


class Writer:
    """Collects what tests spent, in this process or in workers of a distributed run, and writes it at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the properties from the report of the call phase."""
        if report.when == "call":
            self.entries += [{"test": report.nodeid, **value} for name, value in report.user_properties if name == PROPERTY]  # type: ignore[dict-item]

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self.path.write_text(json.dumps({"schema": 1, "tests": self.entries}, indent=2) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Write a report only where one was asked for, and only from the process that sees every test."""
    path = config.getoption("--launch-budget-report")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(Path(path)), "launchlint-writer")

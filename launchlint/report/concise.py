"""One line a finding, `path:line:column: CODE [name] message`, which editors and problem matchers read."""

from __future__ import annotations

from launchlint.report import Result
from launchlint.report.text import Paint, one_line, summary


def render(result: Result) -> str:
    """Findings, then what could not be checked, then the summary."""
    paint = Paint(result.colour)
    lines = [one_line(entry, paint) for entry in result.entries]
    return "\n".join([*lines, *summary(result, paint)]) + "\n"

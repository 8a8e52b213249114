"""One JSON object a line, for programs that read while it runs or keep logs: findings, then errors, then the counts.

Each has a `type`: `finding` (else as in the format `json`), `error` (path, line, reason) or `stats`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from launchlint.report import Result
from launchlint.report.json import SCHEMA, entry_object, problem_object, stats_object


def render(result: Result) -> str:
    """The lines; the last one is always the counts, so that a cut file is seen to be cut."""
    return "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in _lines(result))


def _lines(result: Result) -> Iterator[dict[str, Any]]:
    for entry in result.entries:
        yield {"type": "finding", **entry_object(entry)}
    for problem in result.problems:
        yield {"type": "error", **problem_object(problem)}
    yield {"type": "stats", "schema": SCHEMA, "findings": len(result.entries), "errors": len(result.problems), **stats_object(result)}

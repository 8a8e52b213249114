"""The code quality report of GitLab: one JSON array, `[]` where there is nothing.

GitLab hides all but the first of several entries with one fingerprint, and compares the two branches of a merge request by
it, so it is the finding's own, which survives changes of other lines.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from launchlint.model import Confidence, Problem
from launchlint.report import Entry, Result, fingerprint, from_top, in_words, readable

SEVERITY = {Confidence.HIGH: "major", Confidence.MEDIUM: "minor", Confidence.LOW: "info"}


def render(result: Result) -> str:
    """Findings, then files that could not be checked, which are blockers."""
    seen: Counter[str] = Counter()
    entries = [_entry(entry, seen) for entry in result.entries]
    entries += [_problem(problem) for problem in result.problems]
    return json.dumps(entries, indent=2) + "\n"


def _entry(entry: Entry, seen: Counter[str]) -> dict[str, Any]:
    place = entry.on_disk
    seen[entry.fingerprint] += 1
    again = seen[entry.fingerprint]
    return {
        "description": f"{entry.meta.code} [{entry.meta.name}] {in_words(entry)}",
        "check_name": f"{entry.meta.code} {entry.meta.name}",
        "fingerprint": entry.fingerprint if again == 1 else fingerprint(entry.fingerprint, again),
        "severity": SEVERITY[entry.finding.confidence],
        "location": {
            "path": readable(from_top(entry.source.path)),
            "lines": {"begin": place.line, "end": place.end_line},
        },
    }


def _problem(problem: Problem) -> dict[str, Any]:
    path = readable(from_top(problem.path))
    return {
        "description": problem.reason,
        "check_name": "LCH003 not-analysed",
        "fingerprint": fingerprint(f"LCH003\0{path}\0{problem.reason}", 1),
        "severity": "blocker",
        "location": {"path": path, "lines": {"begin": max(problem.line, 1)}},
    }

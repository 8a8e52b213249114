"""The contract for programs: one JSON object; lines are 1-based, columns 1-based and counted in code points.

In a notebook, a place has the number of its `cell` too, and lines are counted from the beginning of the cell.
"""

from __future__ import annotations

import json
from typing import Any

from launchlint.model import Finding, Fix, Problem
from launchlint.report import Entry, Place, Result, place, readable

SCHEMA = 1


def render(result: Result) -> str:
    """The whole result as one object, indented."""
    document = {
        "schema": SCHEMA,
        "findings": [entry_object(entry) for entry in result.entries],
        "errors": [problem_object(problem) for problem in result.problems],
        "stats": stats_object(result),
    }
    return json.dumps(document, indent=2, default=str) + "\n"


def stats_object(result: Result) -> dict[str, Any]:
    """What the run counted, what was silenced by what, and what was fixed."""
    fixed = {"fixed": dict(sorted(result.fixed.items()))} if result.fixed else {}
    return {**result.stats, "files": result.files, "silenced": dict(sorted(result.silenced.items())), **fixed}


def problem_object(problem: Problem) -> dict[str, Any]:
    """A file that could not be checked."""
    return {"path": readable(problem.path), "line": problem.line or None, "reason": problem.reason}


def entry_object(entry: Entry) -> dict[str, Any]:
    """One finding as the contract says."""
    finding = entry.finding
    return {
        "code": finding.code,
        "name": entry.meta.name,
        "message": finding.message,
        **_range(entry.place),
        "confidence": str(finding.confidence),
        "hot": _hot(finding),
        "related": [{**_range(where), "note": note} for where, note in entry.related],
        "fix": _fix(entry, finding.fix) if finding.fix else None,
        "fingerprint": entry.fingerprint,
        "url": entry.url,
        **({"measured": entry.measured.as_dict()} if entry.measured else {}),
    }


def _range(where: Place) -> dict[str, Any]:
    return {
        "path": where.path,
        **({"cell": where.cell} if where.cell else {}),
        "line": where.line,
        "column": where.column,
        "end_line": where.end_line,
        "end_column": where.end_column,
    }


def _hot(finding: Finding) -> dict[str, Any] | None:
    return {"reason": finding.hot.reason, "chain": list(finding.hot.chain)} if finding.hot else None


def _fix(entry: Entry, fix: Fix) -> dict[str, Any]:
    edits: list[dict[str, Any]] = []
    for edit in fix.edits:
        where = _range(place(entry.source, edit.span, entry.place.path))
        where.pop("path")
        edits.append({**where, "text": edit.text})
    shape: dict[str, Any] = {"title": fix.title, "applicability": str(fix.applicability), "edits": edits}
    if fix.imports:
        shape["imports"] = list(fix.imports)
    if fix.shows:
        shape["shows"] = fix.shows
    return shape

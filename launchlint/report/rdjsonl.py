"""reviewdog's own format, a JSON object a line: columns are 1-based and count UTF-8 bytes, an end is exclusive.

A fix that may be applied becomes one suggestion, which reviewdog offers to commit: several would be taken for alternatives.
"""

from __future__ import annotations

import json
import os
from typing import Any

from launchlint.model import Applicability, Confidence, Problem, Span
from launchlint.report import Entry, Result, edits, in_words, readable
from launchlint.source import Source

WIDEST = 30  # lines that a suggestion may span
SEVERITY = {Confidence.HIGH: "WARNING", Confidence.MEDIUM: "WARNING", Confidence.LOW: "INFO"}


def render(result: Result) -> str:
    """A line for each finding, then one for each file that could not be checked."""
    objects = [*map(_diagnostic, result.entries), *map(_problem, result.problems)]
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def _diagnostic(entry: Entry) -> dict[str, Any]:
    finding = entry.finding
    shape: dict[str, Any] = {
        "message": in_words(entry),
        "location": {"path": _slashes(entry.place.path), "range": _range(entry.source, finding.span)},
        "severity": SEVERITY[finding.confidence],
        "source": {"name": "launchlint"},
        "code": {"value": f"{entry.meta.code} {entry.meta.name}"},
    }
    if entry.related:
        places = zip(finding.related, entry.related, strict=True)
        shape["related_locations"] = [
            {"message": note, "location": {"path": _slashes(where.path), "range": _range(entry.source, other.span)}}
            for other, (where, note) in places
        ]
    if finding.fix and finding.fix.applicability >= Applicability.UNSAFE:
        shape["suggestions"] = _suggestions(entry)
    return shape


def _suggestions(entry: Entry) -> list[dict[str, Any]]:
    """The edits of the fix as one; none where they lie too far apart to be read as one."""
    text, parts, at = entry.source.text, [], -1
    each = edits(entry)
    for edit in each:
        parts += [text[at : edit.span.start] if at >= 0 else "", edit.text]
        at = edit.span.end
    if not each or text.count("\n", each[0].span.start, at) > WIDEST:
        return []
    return [{"range": _range(entry.source, Span(each[0].span.start, at)), "text": "".join(parts)}]


def _problem(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"path": _slashes(readable(problem.path))}
    if problem.line:
        location["range"] = {"start": {"line": problem.line}}
    return {"message": problem.reason, "location": location, "severity": "ERROR", "source": {"name": "launchlint"}}


def _range(source: Source, span: Span) -> dict[str, Any]:
    source, span = source.on_disk(span)
    return {"start": _position(source, span.start), "end": _position(source, span.end)}


def _position(source: Source, offset: int) -> dict[str, int]:
    return {"line": source.position(offset).line, "column": source.byte_column(offset) + 1}


def _slashes(path: str) -> str:
    return path.replace(os.sep, "/")

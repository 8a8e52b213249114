"""SARIF 2.1.0, for code scanning and for editors: one run, written compactly, with fingerprints, related places and fixes.

Columns count UTF-16 units, which is what most readers assume even where `columnKind` says something else. A run without
findings is written too: uploading it is what closes old alerts. The first 25,000 results are kept, the surest first, since
GitHub refuses a file with more.
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

from launchlint import __version__, registry
from launchlint.model import Applicability, Confidence, Meta, Problem, Span
from launchlint.report import Entry, Result, edits, from_top, in_words, worst_first
from launchlint.source import Source

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST = 25_000
LEVEL = {Confidence.HIGH: "warning", Confidence.MEDIUM: "warning", Confidence.LOW: "note"}
RANK = {Confidence.HIGH: 90.0, Confidence.MEDIUM: 60.0, Confidence.LOW: 30.0}
FINGERPRINT = "launchlint/v1"


def render(result: Result) -> str:
    """The log of one run."""
    metas = [rule.meta for rule in registry.load().values()]
    index = {meta.code: number for number, meta in enumerate(metas)}
    entries = result.entries if len(result.entries) <= MOST else worst_first(result.entries)[:MOST]
    notes = [_notification(problem) for problem in result.problems]
    if left := len(result.entries) - len(entries):
        notes.append({"level": "warning", "message": {"text": f"{left} more findings are not in this file"}})
    run = {
        "tool": {
            "driver": {
                "name": "launchlint",
                "semanticVersion": _semantic(),
                "version": __version__,
                "rules": [_rule(meta) for meta in metas],
            }
        },
        "automationDetails": {"id": "launchlint/"},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": not result.problems, "toolExecutionNotifications": notes}],
        "results": [_result(entry, index) for entry in entries],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def _semantic() -> str:
    """The version as semantic versioning spells it."""
    numbers = __version__.split("+")[0].split(".")[:3]
    return ".".join([*numbers, "0", "0"][:3])


def _rule(meta: Meta) -> dict[str, Any]:
    page = registry.page(meta) or f"{meta.summary}\n"
    return {
        "id": meta.code,
        "name": "".join(word.capitalize() for word in meta.name.split("-")),
        "shortDescription": {"text": meta.name},
        "fullDescription": {"text": meta.summary},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": "warning", "enabled": not (meta.preview or meta.opt_in)},
        "properties": {"tags": ["performance", "gpu", meta.group]},
    }


def _result(entry: Entry, index: dict[str, int]) -> dict[str, Any]:
    finding = entry.finding
    shape: dict[str, Any] = {
        "ruleId": entry.meta.code,
        "ruleIndex": index[entry.meta.code],
        "level": LEVEL[finding.confidence],
        "rank": RANK[finding.confidence],
        "message": {"text": in_words(entry)},
        "locations": [{"physicalLocation": _physical(entry.source, finding.span)}],
        "partialFingerprints": {FINGERPRINT: entry.fingerprint},
        "properties": {"confidence": str(finding.confidence)},
    }
    if finding.hot:
        shape["properties"]["hot"] = {"reason": finding.hot.reason, "chain": list(finding.hot.chain)}
    if finding.related:
        shape["relatedLocations"] = [
            {"id": number, "message": {"text": related.note or "see"}, "physicalLocation": _physical(entry.source, related.span)}
            for number, related in enumerate(finding.related, 1)
        ]
    if finding.fix and finding.fix.applicability >= Applicability.UNSAFE and edits(entry):
        shape["fixes"] = [_fix(entry)]
    return shape


def _fix(entry: Entry) -> dict[str, Any]:
    assert entry.finding.fix is not None
    fix = entry.finding.fix
    replacements = [{"deletedRegion": _region(entry.source, edit.span), "insertedContent": {"text": edit.text}} for edit in edits(entry)]
    return {
        "description": {"text": f"{fix.title} ({fix.applicability})"},
        "artifactChanges": [{"artifactLocation": {"uri": _uri(entry.source.path)}, "replacements": replacements}],
    }


def _physical(source: Source, span: Span) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(source.path)}, "region": _region(source, span)}


def _region(source: Source, span: Span) -> dict[str, int]:
    source, span = source.on_disk(span)
    return {
        "startLine": source.position(span.start).line,
        "startColumn": source.utf16_column(span.start) + 1,
        "endLine": source.position(span.end).line,
        "endColumn": source.utf16_column(span.end) + 1,
    }


def _uri(path: str) -> str:
    """A relative reference, percent-encoded: a colon in the first part of it would be read as a scheme."""
    quoted = quote(os.fsencode(from_top(path)), safe="/")
    return quoted if not os.path.isabs(path) or not quoted.startswith("/") else f"file://{quoted}"


def _notification(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.path)}}
    if problem.line:
        location["region"] = {"startLine": problem.line}
    return {"level": "error", "message": {"text": problem.reason}, "locations": [{"physicalLocation": location}]}

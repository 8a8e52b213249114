"""Findings and problems as an editor shows them."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from lsprotocol import types

from launchlint import fixes, registry
from launchlint.model import Applicability, Confidence, Finding, Meta, Problem
from launchlint.server.checker import Checked
from launchlint.server.positions import Positions

SOURCE = "launchlint"
NOT_ANALYSED = "LCH003"
UNUSED = "LCH001"
SEVERITY = {
    Confidence.HIGH: types.DiagnosticSeverity.Warning,
    Confidence.MEDIUM: types.DiagnosticSeverity.Warning,
    Confidence.LOW: types.DiagnosticSeverity.Information,
}


def diagnostics(uri: str, checked: Checked, positions: Positions, related: bool) -> list[types.Diagnostic]:
    """Everything that is to be shown for one text; `related` says whether the editor shows related places."""
    found = [diagnostic(uri, finding, checked, positions, related) for finding in checked.report.findings]
    return [*(_problem(problem, positions) for problem in checked.report.problems), *found]


def diagnostic(uri: str, finding: Finding, checked: Checked, positions: Positions, related: bool) -> types.Diagnostic:
    """One finding. A fix that is only shown is part of the message; one that can be applied is an action."""
    meta = registry.load()[finding.code].meta
    applicability = fixes.applicability(finding, checked.settings) if finding.fix is not None else None
    message = finding.message
    if finding.fix is not None and applicability is Applicability.DISPLAY:
        message += f"\nuse instead: {finding.fix.title}"
    places = [types.DiagnosticRelatedInformation(types.Location(uri, positions.range(place.span)), place.note) for place in finding.related]
    return types.Diagnostic(
        range=positions.range(finding.span),
        severity=SEVERITY[finding.confidence],
        code=finding.code,
        code_description=_description(meta),
        source=SOURCE,
        message=message,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == UNUSED else None,
        related_information=places if related and places else None,
        data=_data(finding, meta, applicability),
    )


def _data(finding: Finding, meta: Meta, applicability: Applicability | None) -> dict[str, Any]:
    """What an extension of an editor may want to know and the protocol has no place for."""
    return {
        "name": meta.name,
        "confidence": str(finding.confidence),
        "fix": str(applicability) if applicability is not None else None,
        "hot": {"reason": finding.hot.reason, "chain": list(finding.hot.chain)} if finding.hot else None,
    }


def _problem(problem: Problem, positions: Positions) -> types.Diagnostic:
    """A text that could not be checked: one line says why, in place of the findings."""
    return types.Diagnostic(
        range=positions.line(problem.line),
        severity=types.DiagnosticSeverity.Error,
        code=NOT_ANALYSED,
        code_description=_description(registry.load()[NOT_ANALYSED].meta),
        source=SOURCE,
        message=f"not checked: {problem.reason}",
    )


def _description(meta: Meta) -> types.CodeDescription | None:
    uri = page_uri(meta)
    return types.CodeDescription(uri) if uri is not None else None


@functools.cache
def page_uri(meta: Meta) -> str | None:
    """Where the page of a rule lies on this machine; None where it has none."""
    import launchlint.rules

    for root in launchlint.rules.__path__:
        path = os.path.join(root, registry.folder(meta), "README.md")
        if os.path.isfile(path):
            return Path(path).resolve().as_uri()
    return None

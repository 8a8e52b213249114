"""A linter of a few lines whose every part can be made wrong, for the tests of the runner itself.

Its rule `slow-call` fires on calls of `torch.slow`, its fix writes `torch.fast`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Problem
from launchlint.settings import Settings
from launchlint.source import Source, SourceError

CODE = "LCH901"
NAME = "slow-call"
OTHER_CODE, OTHER_NAME = "LCH902", "other-call"


def honest_fix(text: str) -> str:
    """Every `slow` that is called becomes `fast`, also where it was imported by name."""
    return re.sub(r"\bslow\b", "fast", text)


@dataclass
class Faulty:
    """Right by default; each field puts one thing wrong."""

    applicability: Applicability | None = None  # of the fix; None: no fix
    fixer: Callable[[str], str] = honest_fix
    message: str = "torch.slow launches once per turn"
    sees_noqa: bool = True
    resolves: bool = True  # False: any `torch.slow`, whatever torch is
    reads_crlf: bool = True
    counts_bytes: bool = False
    extra: str = ""  # a second rule fires on calls of this name

    @property
    def codes(self) -> Mapping[str, str]:
        return {NAME: CODE, OTHER_NAME: OTHER_CODE}

    def check(self, path: str, text: str, rules: Sequence[str], settings: Settings) -> FileReport:
        source = Source(path, text)
        report = FileReport(path)
        try:
            calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
        except SourceError as error:
            report.problems.append(Problem(path, error.reason))
            return report
        if "\r\n" in text and not self.reads_crlf:
            return report
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            if self.sees_noqa and "# noqa" in source.line(call.lineno):
                continue
            if self._name(source.tree, call.func) == "torch.slow":
                report.findings.append(self._finding(source, call, CODE))
            if self.extra and ast.unparse(call.func) == self.extra and OTHER_NAME in rules:
                report.findings.append(self._finding(source, call, OTHER_CODE))
        return report

    def fix(self, path: str, text: str, rules: Sequence[str], settings: Settings, floor: Applicability) -> str:
        if self.applicability is None or floor > self.applicability:
            return text
        return self.fixer(text)

    def _finding(self, source: Source, call: ast.Call, code: str) -> Finding:
        span = source.span(call)
        if self.counts_bytes:
            shift = call.col_offset - (source.position(span.start).column - 1)
            span = type(span)(span.start + shift, span.end + shift)
        fix = Fix("call fast", (Edit(span, ""),), self.applicability) if self.applicability else None
        return Finding(code, span, self.message, Confidence.HIGH, fix=fix)

    def _name(self, tree: ast.Module, func: ast.expr) -> str:
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {each.asname or each.name: each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        if not self.resolves:
            names["torch"] = "torch"
        head, _, rest = ast.unparse(func).partition(".")
        return ".".join(filter(None, (names.get(head, ""), rest)))

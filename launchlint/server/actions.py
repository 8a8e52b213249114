"""What an editor offers for a finding: its fix, ignoring it with a reason, and all safe fixes of a text at once."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from launchlint import fixes, registry
from launchlint.fixes import imports
from launchlint.fixes.edits import Edits
from launchlint.model import Applicability, Edit, Finding, Fix, Span
from launchlint.server.checker import Checked, Checker
from launchlint.server.diagnostics import diagnostic
from launchlint.server.ignores import ignoring
from launchlint.server.positions import Positions
from launchlint.source import Source, SourceError

FIX_ALL = "source.fixAll.launchlint"
QUICK_FIX = types.CodeActionKind.QuickFix
KINDS = (QUICK_FIX, FIX_ALL)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the editor said that it can do."""

    versioned: bool = True  # takes edits for one version of a text
    resolves: bool = True  # asks for the edit of an action when it is chosen
    related: bool = True  # shows related places


class Actions:
    """The actions for one version of one text."""

    def __init__(self, uri: str, checked: Checked, positions: Positions, abilities: Abilities) -> None:
        self.uri = uri
        self.checked = checked
        self.source = checked.source
        self.positions = positions
        self.abilities = abilities

    def at(self, asked: types.Range, only: Sequence[str] | None, checker: Checker) -> list[types.CodeAction]:
        """The actions for a range; `only` limits their kinds."""
        found: list[types.CodeAction] = []
        if _wants(QUICK_FIX.value, only):
            here = [finding for finding in self.checked.report.findings if self._touches(finding, asked)]
            for offer in (self._fix, self._ignore):
                for finding in here:
                    found += offer(finding)
        if _wants(FIX_ALL, only) and self._has_safe_fix():
            action = types.CodeAction("fix all that is safe to fix", kind=FIX_ALL, data={"uri": self.uri})
            if not self.abilities.resolves:
                action.edit = self.fix_all(checker)
            if self.abilities.resolves or action.edit is not None:
                found.append(action)
        return found

    def fix_all(self, checker: Checker) -> types.WorkspaceEdit | None:
        """Every safe fix of the text, as `check --fix` applies them; None where none can be applied."""
        find = checker.finder(self.source.path)
        fixed = fixes.fix_source(self.source, find, Applicability.SAFE, self.checked.settings)
        return self._edit([*_changes(self.source, fixed.text)]) if fixed.applied else None

    def _touches(self, finding: Finding, asked: types.Range) -> bool:
        found = self.positions.range(finding.span)
        return found.start.line <= asked.end.line and asked.start.line <= found.end.line

    def _has_safe_fix(self) -> bool:
        return any(
            finding.fix is not None and fixes.applicability(finding, self.checked.settings) is Applicability.SAFE
            for finding in self.checked.report.findings
        )

    def _fix(self, finding: Finding) -> Iterator[types.CodeAction]:
        """The fix of a finding, if applying it gives a text that parses and changes nothing else."""
        if finding.fix is None or not (edits := self._fix_edits(finding, finding.fix)):
            return
        is_safe = fixes.applicability(finding, self.checked.settings) is Applicability.SAFE
        title = finding.fix.title if is_safe else f"{finding.fix.title} (unsafe: timing, exceptions or memory may change)"
        yield self._action(title, finding, edits, is_safe)

    def _fix_edits(self, finding: Finding, fix: Fix) -> list[Edit]:
        def find(current: Source) -> list[Finding]:
            return [finding] if current is self.source else []

        if not fixes.fix_source(self.source, find, Applicability.UNSAFE, self.checked.settings).applied:
            return []
        added = imports.add(self.source, list(fix.imports))
        return Edits(self.source, [*fix.edits, *([added] if added else [])]).edits

    def _ignore(self, finding: Finding) -> Iterator[types.CodeAction]:
        name = registry.load()[finding.code].meta.name
        if edit := ignoring(self.source, finding, name):
            yield self._action(f"ignore {name} here, with a reason", finding, [edit], False)

    def _action(self, title: str, finding: Finding, edits: list[Edit], preferred: bool) -> types.CodeAction:
        return types.CodeAction(
            title,
            kind=QUICK_FIX,
            diagnostics=[diagnostic(self.uri, finding, self.checked, self.positions, self.abilities.related)],
            is_preferred=preferred or None,
            edit=self._edit(edits),
        )

    def _edit(self, edits: list[Edit]) -> types.WorkspaceEdit:
        changed = self.positions.edits(edits)
        if not self.abilities.versioned:
            return types.WorkspaceEdit(changes={self.uri: changed})
        document = types.OptionalVersionedTextDocumentIdentifier(self.uri, self.checked.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [*changed])])


def _wants(kind: str, only: Sequence[str] | None) -> bool:
    return not only or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


def _changes(source: Source, new: str) -> Iterator[Edit]:
    """Edits of whole lines that turn the text into `new`, so that the cursor and the folds of all other lines stay."""
    try:
        after = Source(source.path, new)
    except SourceError:
        return
    old_lines, new_lines = _lines(source), _lines(after)
    starts = [*source.line_starts, len(source.text)]
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield Edit(Span(starts[old_start], starts[old_end]), "".join(new_lines[new_start:new_end]))


def _lines(source: Source) -> list[str]:
    starts = [*source.line_starts, len(source.text)]
    return [source.text[start:end] for start, end in itertools.pairwise(starts)]

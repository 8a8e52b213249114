"""Fixing one file to a fixed point, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from launchlint.fixes import comments, imports
from launchlint.fixes.edits import Edits
from launchlint.fixes.untouched import is_unchanged
from launchlint.model import Applicability, Edit, Finding, Fix, Problem
from launchlint.source import Source, SourceError

if TYPE_CHECKING:
    from launchlint.settings import Settings

MAX_ROUNDS = 10
ABOUT_COMMENTS = frozenset({"LCH001"})  # its fix takes away the comment that it is about
Check = Callable[[Source], Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What fixing gave. `applied` are the findings whose fixes are in `text`, with the places they had in their round.

    With `problems`, `text` is the text as it was and nothing is applied.
    """

    text: str
    applied: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    rounds: int = 0


class Refusal(Exception):
    """The fixes of a round would break the file."""


def fix_source(source: Source, check: Check, floor: Applicability, settings: Settings) -> Fixed:
    """Apply every fix of at least `floor` that `check` offers, again and again until none is left.

    `check` gives the findings that are kept, in any order; suppressed ones must not be among them. A fix of a finding
    whose edits overlap those of an earlier one waits for the next round. Where a round would not parse, would change a
    statement outside its edits, cannot be encoded, or where ten rounds do not settle, the file stays as it is and a
    Problem says why. Raises nothing for what is in the file.
    """
    settings = settings.for_file(source.path)
    current = source
    applied: list[Finding] = []
    seen = {source.text}
    rounds = 0
    try:
        while chosen := tuple(_choose(current, check(current), floor, settings)):
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise Refusal(f"fixes did not settle after {MAX_ROUNDS} rounds")
            current = _apply(current, chosen)
            if current.text in seen:
                raise Refusal("fixes undo each other")
            seen.add(current.text)
            applied += chosen
    except (Refusal, SourceError) as error:
        codes = ", ".join(sorted({finding.code for finding in (*applied, *chosen)}))
        return Fixed(source.text, problems=(Problem(source.path, f"not fixed ({codes}): {error}"),), rounds=rounds)
    return Fixed(current.text, tuple(applied), rounds=rounds)


def applicability(finding: Finding, settings: Settings) -> Applicability:
    """What the fix of `finding` counts as, with the user's `extend-safe-fixes` and `extend-unsafe-fixes`.

    A fix that is only shown stays so: there is nothing to apply.
    """
    if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY or not finding.fix.edits:
        return Applicability.DISPLAY
    if _is_listed(finding.code, settings.extend_unsafe_fixes):
        return Applicability.UNSAFE
    if _is_listed(finding.code, settings.extend_safe_fixes):
        return Applicability.SAFE
    return finding.fix.applicability


def _is_listed(code: str, words: tuple[str, ...]) -> bool:
    """True if one of `words` (codes, beginnings of codes, names of rules) means the rule."""
    if not words:
        return False
    from launchlint import registry  # a fix may be asked for before the rules are loaded
    from launchlint.settings import names_rule

    rule = registry.load().get(code)
    return any(names_rule(word, code, rule.meta.name if rule else "") for word in words)


def _choose(source: Source, findings: Sequence[Finding], floor: Applicability, settings: Settings) -> Iterator[Finding]:
    """The findings to fix in this round: in order of the text, none overlapping another."""
    taken: list[Edit] = []
    floor = max(floor, Applicability.UNSAFE)
    found: tuple[comments.Comment, ...] | None = None
    read_comments = False
    for finding in sorted(findings, key=Finding.key):
        if finding.fix is None or applicability(finding, settings) < floor or not _has_free_imports(source, finding.fix):
            continue
        edits = finding.fix.edits
        if any(edit.span.overlaps(other.span) for edit in edits for other in taken) or not _changes(source, edits):
            continue
        if floor is Applicability.SAFE and finding.code not in ABOUT_COMMENTS:
            if not read_comments:
                found, read_comments = comments.comments(source), True
            if comments.loses_comment(found, edits):  # what takes a comment away is not safe, whatever the rule says
                continue
        taken += edits
        yield finding


def _changes(source: Source, edits: tuple[Edit, ...]) -> bool:
    return any(source.text[edit.span.start : edit.span.end] != edit.text for edit in edits)


def _has_free_imports(source: Source, fix: Fix) -> bool:
    """False if a name that the fixed code imports means something else in this file."""
    return all(imports.is_free(imports.read(statement), source.tree) for statement in fix.imports)


def _apply(source: Source, findings: Sequence[Finding]) -> Source:
    """The file after one round; raise Refusal if it would be broken."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    wanted = list(dict.fromkeys(statement for fix in fixes for statement in fix.imports))
    added = imports.add(source, wanted)
    try:
        edits = Edits(source, [edit for fix in fixes for edit in fix.edits] + ([added] if added else []))
    except ValueError as error:
        raise Refusal(str(error)) from None
    new = replace(source, text=edits.new_text(), given_tree=None)
    try:
        new.encode(new.text)
    except UnicodeEncodeError:
        raise Refusal(f"the fixed code cannot be written in {source.encoding}") from None
    try:
        unchanged = is_unchanged(source, new, edits)
    except SourceError as error:
        raise Refusal(f"the fixed code would not parse ({error})") from None
    if not unchanged:
        raise Refusal("a statement outside the fix would change")
    return new

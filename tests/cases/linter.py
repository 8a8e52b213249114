"""What the runner needs of a linter, so that its own tests can put a faulty one in its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from launchlint.model import Applicability, FileReport, Finding
from launchlint.rule import Rule
from launchlint.settings import Settings


class NotFixed(Exception):
    """The fixer refused: what it would have written breaks the file or does not settle."""


class Linter(Protocol):
    """Finds and fixes; rules are given by name."""

    @property
    def codes(self) -> Mapping[str, str]:
        """Code of each rule by its name."""

    def check(self, path: str, text: str, rules: Sequence[str], settings: Settings) -> FileReport:
        """The findings in a text, suppressed ones left out."""

    def fix(self, path: str, text: str, rules: Sequence[str], settings: Settings, floor: Applicability) -> str:
        """The text with all fixes from `floor` up applied, round after round until nothing changes; may raise NotFixed."""


class Launchlint:
    """The linter itself, one file at a time: rules as asked for, whatever their status."""

    def __init__(self) -> None:
        from launchlint import registry

        self._rules = {rule.meta.name: rule for rule in registry.load().values()}

    @property
    def codes(self) -> Mapping[str, str]:
        """Code of each rule by its name."""
        return {name: rule.meta.code for name, rule in self._rules.items()}

    def check(self, path: str, text: str, rules: Sequence[str], settings: Settings) -> FileReport:
        """The findings in a text, suppressed ones left out."""
        from launchlint import engine
        from launchlint.source import Source

        chosen = self._chosen(rules)
        return engine.check_source(Source.from_bytes(path, text.encode()), chosen, _with_rules(settings, chosen))

    def fix(self, path: str, text: str, rules: Sequence[str], settings: Settings, floor: Applicability) -> str:
        """The text with all fixes from `floor` up applied, round after round until nothing changes."""
        from launchlint.fixes import fix_source
        from launchlint.source import Source

        def find(source: Source) -> Sequence[Finding]:
            return self.check(path, source.text, rules, settings).findings

        fixed = fix_source(Source.from_bytes(path, text.encode()), find, floor, settings)
        if fixed.problems:
            raise NotFixed("; ".join(problem.reason for problem in fixed.problems))
        return fixed.text

    def _chosen(self, names: Sequence[str]) -> tuple[Rule, ...]:
        return tuple(self._rules[name] for name in names)


def _with_rules(settings: Settings, rules: Sequence[Rule]) -> Settings:
    """Settings under which exactly these rules are on, preview or not."""
    preview = settings.preview or any(rule.meta.preview for rule in rules)
    return dataclasses.replace(settings, preview=preview, select=tuple(rule.meta.code for rule in rules))

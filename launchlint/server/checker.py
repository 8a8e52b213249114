"""Checks the texts of an editor with the settings of their projects, which may change while the server runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass

from launchlint import baseline, discover, engine, registry
from launchlint.model import FileReport, Finding, Problem
from launchlint.notebook import SUFFIX
from launchlint.rule import Rule
from launchlint.settings import FILE_NAMES, Settings, SettingsError, load, start_of
from launchlint.source import Source

Stamp = tuple[tuple[str, int, int], ...]  # path, time of the last change, size


@dataclass(frozen=True, slots=True)
class Checked:
    """One text of the editor and what was found in it."""

    source: Source
    settings: Settings  # those of this file
    report: FileReport
    version: int | None = None


class Checker:
    """Checks one text at a time, each on its own: the call graph of a text is the text's own."""

    def __init__(self, config: str | None = None) -> None:
        self.config = config
        self._settings: dict[str, tuple[Stamp, Settings]] = {}
        self._baselines: dict[str, tuple[Stamp, baseline.Baseline]] = {}

    def check(self, path: str, text: str, version: int | None = None) -> Checked:
        """Check `text`, which the editor has under `path`. Whatever goes wrong becomes a problem in the report."""
        source = Source(path, text.removeprefix("\ufeff"))
        try:
            settings = self.settings(path)
            if path.endswith(SUFFIX) or discover.is_excluded(path, settings):  # one cell of a notebook says too little
                return Checked(source, settings, FileReport(path), version)
            return Checked(source, settings.for_file(path), self.report(source, settings), version)
        except (SettingsError, registry.RegistryError) as error:
            reason = str(error)
        except Exception as error:  # a fault of ours must not end the server, and must not look like a clean file
            reason = f"internal error: {type(error).__name__}: {error}; please report it"
        return Checked(source, Settings(), FileReport(path, problems=[Problem(path, reason)]), version)

    def report(self, source: Source, settings: Settings) -> FileReport:
        """What is found in a text, without what the baseline of the project knows."""
        with engine.paused_collector():
            report = engine.check_source(source, _rules(settings), settings)
        known = self._baseline(settings) if report.findings else None
        return known.apply(report, source, settings) if known is not None else report

    def finder(self, path: str) -> Callable[[Source], list[Finding]]:
        """What is found in later versions of the text under `path`, for fixing it again and again."""
        settings = self.settings(path)
        return lambda source: self.report(source, settings).findings

    def settings(self, path: str) -> Settings:
        """The settings of the project that holds `path`, read again where one of their files has changed."""
        start = start_of([path])
        stamp = _stamp([self.config] if self.config else _candidates(start))
        known = self._settings.get(start)
        if known is None or known[0] != stamp:
            known = self._settings[start] = (stamp, load(start, self.config))
        return known[1]

    def _baseline(self, settings: Settings) -> baseline.Baseline | None:
        if not settings.baseline:
            return None
        path = os.path.join(settings.root, settings.baseline)
        stamp = _stamp([path])
        known = self._baselines.get(path)
        if known is None or known[0] != stamp:
            known = self._baselines[path] = (stamp, baseline.load(path))
        return known[1]


@functools.lru_cache(maxsize=64)
def _rules(settings: Settings) -> tuple[Rule, ...]:
    return registry.select(settings)


def _candidates(folder: str) -> list[str]:
    """The files that may hold the settings for a folder."""
    found: list[str] = []
    while True:
        found += [os.path.join(folder, name) for name in FILE_NAMES]
        parent = os.path.dirname(folder)
        if parent == folder:
            return found
        folder = parent


def _stamp(paths: list[str]) -> Stamp:
    found: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            continue
        found.append((path, about.st_mtime_ns, about.st_size))
    return tuple(found)

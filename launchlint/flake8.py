"""The flake8 plugin: `LCH`.

flake8 gives the tree and the lines, so nothing is read or parsed again and the file is never opened (with
`--stdin-display-name` another text may lie there). flake8 guards the constructor only: an exception from `run` ends the
whole run and loses the findings of every other file. Therefore whatever goes wrong becomes one LCH003.

Which rules run is decided by launchlint's own settings, since flake8 forgets a plugin's defaults as soon as a user sets
`ignore`. Options are parsed again in each worker process, and everything kept on the class pickles.
"""

from __future__ import annotations

import ast
import functools
import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from launchlint import __version__

if TYPE_CHECKING:
    import argparse

    from launchlint.baseline import Baseline
    from launchlint.rule import Rule
    from launchlint.settings import Settings

Reported = tuple[int, int, str, type[Any]]
OPTIONS = (
    ("select", "Rules to run: codes, beginnings of codes, or names."),
    ("extend-select", "Rules to run too."),
    ("ignore", "Rules not to run."),
)


class Plugin:
    """Checks one file; flake8 makes one for each."""

    name = "launchlint"
    version = __version__

    settings: ClassVar[Settings | None] = None
    rules: ClassVar[tuple[Rule, ...]] = ()
    baseline: ClassVar[Baseline | None] = None

    def __init__(self, tree: ast.Module, lines: list[str], filename: str = "-") -> None:
        self.tree = tree
        self.lines = lines
        self.filename = filename

    def run(self) -> Iterator[Reported]:
        """Findings as flake8 wants them: line, 0-based column, text that begins with the code, and this class."""
        try:
            found = list(self._findings())
        except Exception as error:  # RecursionError and MemoryError too; anything that escapes ends flake8's whole run
            found = [(1, 0, f"LCH003 [not-analysed] {type(error).__name__}: {' '.join(str(error).split())[:200]}", type(self))]
        yield from found

    def _findings(self) -> Iterator[Reported]:
        from launchlint import engine, registry
        from launchlint.settings import Settings
        from launchlint.source import Source

        settings = self.settings or Settings()
        rules = self.rules or registry.select(settings)
        source = Source.from_lines(self.filename, self.lines, self.tree)
        with engine.paused_collector():  # it would walk over all that flake8 holds, again and again
            report = engine.check_source(source, rules, settings, fixes=False)
        if "astroid" in sys.modules:
            _settle()
        if self.baseline is not None:
            report = self.baseline.apply(report, source, settings)
        for finding in report.findings:
            place = source.position(finding.span.start)
            name = registry.load()[finding.code].meta.name
            yield (place.line, place.column - 1, f"{finding.code} [{name}] {finding.message}", type(self))
        for problem in report.problems:
            yield (max(problem.line, 1), 0, f"LCH003 [not-analysed] {problem.reason}", type(self))

    @staticmethod
    def add_options(manager: Any) -> None:
        """Add our options, all of which begin with `--launchlint-` so that they meet nobody else's."""
        for name, text in OPTIONS:
            manager.add_option(f"--launchlint-{name}", metavar="RULES", default="", parse_from_config=True, help=text)
        level = "low, medium or high (default: medium)."
        manager.add_option("--launchlint-min-confidence", metavar="LEVEL", default="", parse_from_config=True, help=level)
        trial = "Also rules that are still on trial."
        manager.add_option("--launchlint-preview", action="store_true", default=False, parse_from_config=True, help=trial)
        nearest = "Settings file (default: the nearest)."
        manager.add_option("--launchlint-config", metavar="FILE", default="", parse_from_config=True, help=nearest)

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Read the settings once; a wrong one ends flake8 with one clear line, as a wrong option of its own does."""
        from flake8.exceptions import ExecutionError

        from launchlint import registry
        from launchlint.baseline import load
        from launchlint.settings import SettingsError

        try:
            cls.settings = _settings(options)
            cls.rules = registry.select(cls.settings)
            cls.baseline = load(os.path.join(cls.settings.root, cls.settings.baseline)) if cls.settings.baseline else None
        except (SettingsError, registry.RegistryError) as error:
            raise ExecutionError(f"launchlint: {error}") from error


@functools.cache
def _settle() -> None:
    """Take what lives until the end out of the cycle collector's sight, once: astroid's picture of the builtins is larger than all
    of flake8, which collects for every tree that pyflakes has tied into a knot. What is garbage goes first, so that at most the
    tree of the current file stays."""
    if hasattr(gc, "freeze"):
        gc.collect()
        gc.freeze()


def _settings(options: argparse.Namespace) -> Settings:
    from launchlint import settings as module

    paths = [path for path in getattr(options, "filenames", None) or () if path != "-"]
    settings = module.load(module.start_of(paths), options.launchlint_config or None)
    for name in ("select", "extend_select", "ignore"):
        words = tuple(getattr(options, f"launchlint_{name}").replace(",", " ").split())
        if words:
            settings = settings.but(f"--launchlint-{module.kebab(name)}", **{name: words})
    if options.launchlint_preview:
        settings = settings.but("--launchlint-preview", preview=True)
    if options.launchlint_min_confidence:
        option = "--launchlint-min-confidence"
        level = module.convert("min_confidence", options.launchlint_min_confidence, option, "the level")
        settings = settings.but(option, min_confidence=level)
    return settings

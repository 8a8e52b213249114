"""CPU seconds of a run by stage and by rule, for those who ask for statistics. Nobody else pays for a clock.

Stages are exclusive: what runs inside another one is taken out of it, so that they add up. CPU and not wall seconds, since they
can be added over processes, and since a busy machine does not lengthen them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

Plain = tuple[dict[str, float], dict[str, float]]
Stage = Callable[[str], AbstractContextManager[None]]


@dataclass(slots=True)
class Spent:
    """What was spent in this process, or added from others."""

    stages: dict[str, float] = field(default_factory=dict)
    rules: dict[str, float] = field(default_factory=dict)  # by code; part of the stage `rules`
    clock: Callable[[], float] = time.process_time
    _inside: list[float] = field(default_factory=list)  # for each open stage, what was spent in those within it

    def stage(self, name: str) -> AbstractContextManager[None]:
        """What runs inside is charged to a stage."""
        return self._charged(self.stages, name)

    def rule(self, code: str) -> AbstractContextManager[None]:
        """What runs inside is charged to a rule."""
        return self._charged(self.rules, code)

    @contextmanager
    def _charged(self, to: dict[str, float], name: str) -> Iterator[None]:
        self._inside.append(0.0)
        began = self.clock()
        try:
            yield
        finally:
            spent = self.clock() - began
            to[name] = to.get(name, 0.0) + spent - self._inside.pop()
            if self._inside:
                self._inside[-1] += spent

    def plain(self) -> Plain:
        """For the way to another process."""
        return self.stages, self.rules

    def add(self, plain: Plain) -> None:
        """Take in what another process has spent."""
        for mine, others in zip(self.plain(), plain, strict=True):
            for name, seconds in others.items():
                mine[name] = mine.get(name, 0.0) + seconds

    def stats(self) -> dict[str, object]:
        """The figures for output; the stage `rules` holds what the single rules took and what is decided around them."""
        stages = dict(self.stages)
        if self.rules:
            stages["rules"] = stages.get("rules", 0.0) + sum(self.rules.values())
        return {"cpu_by_stage": _rounded(stages), "cpu_by_rule": _rounded(dict(sorted(self.rules.items())))}


def stage_of(spent: Spent | None) -> Stage:
    """How to charge a stage; without anybody to charge, no clock is read."""
    return spent.stage if spent is not None else lambda _: nullcontext()


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}

"""What the dry run itself costs for each operator: `python -m tests.audit.overhead`."""

from __future__ import annotations

import functools
import platform
import statistics
import time
from collections.abc import Callable

import torch

from launchlint.audit import dry_run

OPERATORS = 2000
ROUNDS = 7


def microseconds(work: Callable[[], None]) -> list[float]:
    """Host time of one operator in each round."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) / OPERATORS * 1e6)
    return times


def main() -> None:
    """Print the time of a small operator without and with a dry run around it."""
    torch.set_num_threads(1)
    x = torch.ones(4)

    def in_place(x: torch.Tensor) -> None:
        for _ in range(OPERATORS):
            x.add_(1)

    def new(x: torch.Tensor) -> None:
        for _ in range(OPERATORS):
            x + 1

    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, {OPERATORS} operators, {ROUNDS} rounds")
    for name, work in (("x.add_(1)", in_place), ("x + 1", new)):
        plain = statistics.median(microseconds(functools.partial(work, x)))
        dry = statistics.median(microseconds(functools.partial(audited, work, x)))
        print(f"{name}: {plain:.1f} us plain, {dry:.1f} us in a dry run (medians)")


def audited(work: Callable[[torch.Tensor], None], x: torch.Tensor) -> None:
    """The work inside a dry run."""
    dry_run(work, x)


if __name__ == "__main__":
    main()

"""Figures for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from launchlint.report import plural

if TYPE_CHECKING:
    from launchlint.trace.cost import Cost
    from launchlint.trace.join import Measured

UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def duration(nanoseconds: int) -> str:
    """`1.53 ms`; three digits, a dot for nothing."""
    return _scaled(nanoseconds, UNITS, "ns")


def size(count: int) -> str:
    """`244 MB`, in powers of ten."""
    return _scaled(count, SIZES, "B")


def _scaled(number: int, units: Sequence[tuple[int, str]], smallest: str) -> str:
    for factor, unit in units:
        if number >= factor:
            value = number / factor
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{number} {smallest}" if number else "."


def cost_in_words(cost: Cost, device: bool) -> str:
    """Host time, launches, waits and copies of a part of a recording in one line."""
    parts = [f"{duration(cost.host_ns)} of host time" if cost.host_ns else "no host time"]
    if device:
        parts.append(f"{cost.launches:,} launch{'' if cost.launches == 1 else 'es'}")
    else:
        parts.append(f"{plural(cost.launches, 'operation')} that would launch on a GPU")
    if cost.waits and device:
        parts.append(f"{plural(cost.waits, 'wait')}{f' ({duration(cost.wait_ns)})' if cost.wait_ns else ''}")
    elif cost.waits:
        parts.append(f"{cost.waits:,} that would wait for it")
    if copies := cost.copies.total():
        pageable = f"{cost.pageable:,} pageable, " if cost.pageable else ""
        noun = "copy" if copies == 1 else "copies"
        parts.append(f"{copies:,} {noun} ({pageable}{size(cost.copied) if cost.copied else 'size unknown'})")
    if cost.kernels:
        parts.append(f"{duration(cost.kernel_ns)} of {plural(cost.kernels, 'kernel')}")
    return ", ".join(parts)


def measured_in_words(measured: Measured) -> str:
    """What was measured on the lines of a finding."""
    if measured.reached:
        tail = "" if measured.certain else " (another line of the function may be meant by part of it)"
        return f"measured: {cost_in_words(measured.cost, measured.device)}{tail}"
    if measured.ran:
        return "measured: its function ran, nothing was recorded on its lines"
    return "not reached by the recording"


def table(rows: Sequence[tuple[Cost, str]]) -> list[str]:
    """Figures in columns, with what each row is about behind them; columns without a figure are left out."""
    heads = ("host", "launches", "waits", "waited", "copies", "pageable", "copied", "kernels", "on device")
    cells = [_cells(cost) for cost, _ in rows]
    used = [column for column in range(len(heads)) if column < 2 or any(row[column] != "." for row in cells)]
    widths = {column: max(len(heads[column]), *(len(row[column]) for row in cells)) for column in used}
    lines = ["  ".join(heads[column].rjust(widths[column]) for column in used)]
    for row, (_, what) in zip(cells, rows, strict=True):
        lines.append("  ".join([*(row[column].rjust(widths[column]) for column in used), what]))
    return lines


def _cells(cost: Cost) -> tuple[str, ...]:
    counts = [f"{number:,}" if number else "." for number in (cost.launches, cost.waits, cost.copies.total(), cost.pageable, cost.kernels)]
    launches, waits, copies, pageable, kernels = counts
    return (
        duration(cost.host_ns),
        launches,
        waits,
        duration(cost.wait_ns),
        copies,
        pageable,
        size(cost.copied),
        kernels,
        duration(cost.kernel_ns),
    )

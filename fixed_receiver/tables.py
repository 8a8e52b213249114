"""Reports as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def show_report(document: dict[str, Any]) -> str:
    """Tables of what a report measured or counted; empty where it has none."""
    shown = []
    for part in document["parts"]:
        rows = [flatten(row) for row in part["rows"]]
        if rows:
            shown.append(f"{part['code']}: {part['name']}\n{table(rows)}")
    return "\n\n".join(shown)


LEFT_TO_JSON = ("names", "host_calls", "repeats", "least_us")


def flatten(row: dict[str, Any], head: str = "") -> dict[str, str]:
    """One level of columns: nested names are joined, and what would make a table too wide is left to the JSON."""
    flat: dict[str, str] = {}
    for name, value in row.items():
        if name in LEFT_TO_JSON:
            continue
        if isinstance(value, dict):
            flat.update(flatten(value, f"{head}{name} "))
        elif isinstance(value, float):
            flat[f"{head}{name}"] = f"{value:.1f}"
        else:
            flat[f"{head}{name}"] = str(value)
    return flat


def table(rows: Sequence[dict[str, str]]) -> str:
    """Columns as wide as what is in them, in order of first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    widths = [max(len(name), *(len(row.get(name, "")) for row in rows)) for name in columns]
    lines = [[name.rjust(width) for name, width in zip(columns, widths, strict=True)]]
    lines += [[row.get(name, "").rjust(width) for name, width in zip(columns, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(line).rstrip() for line in lines)

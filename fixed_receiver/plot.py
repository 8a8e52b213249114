"""Two figures from a report: host time over experts, and host time idle against behind a queue. Needs matplotlib."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_report(path: str) -> dict[str, Any]:
    """The report at `path`; ValueError if it is none."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("schema") != 1 or "parts" not in document:
        raise ValueError(f"{path} is no report of fixed_receiver")
    return document


def rows_of(document: dict[str, Any], code: str) -> list[dict[str, Any]]:
    """The rows of one part, empty where it did not run."""
    return [row for part in document["parts"] if part["code"] == code for row in part["rows"]]


def curves(document: dict[str, Any], rows: int) -> dict[str, tuple[list[int], list[float]]]:
    """Per variant experts and median host time in microseconds, from the sweep at `rows` rows."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row in rows_of(document, "P7"):
        if row.get("rows") == rows:
            experts, times = found.setdefault(row["variant"], ([], []))
            experts.append(row["experts"])
            times.append(row["median_us"])
    return found


def bars(document: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Per variant median host time in microseconds, idle and behind a queue of 20 ms."""
    return [(row["variant"], row["idle"]["median_us"], row["behind 20 ms"]["median_us"]) for row in rows_of(document, "P4")]


def draw_report(path: str, folder: str) -> list[str]:
    """Write what the report has data for as PNG into `folder`; the paths. ImportError where matplotlib is missing."""
    import matplotlib  # type: ignore[import-not-found, unused-ignore]

    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found, unused-ignore]

    document = read_report(path)
    stamp = caption(document)
    written = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    lines = curves(document, 4096)
    if lines:
        figure, axes = pyplot.subplots(figsize=(8, 5))
        for code, (experts, times) in lines.items():
            axes.plot(experts, times, marker="o", label=code)
        axes.set(xlabel="local experts, all with rows", ylabel="host time of one call, us (median)", yscale="log", title=stamp)
        axes.legend()
        written.append(save(figure, Path(folder, "host_time.png")))
        pyplot.close(figure)
    pairs = bars(document)
    if pairs:
        figure, axes = pyplot.subplots(figsize=(8, 5))
        places = range(len(pairs))
        axes.bar([place - 0.2 for place in places], [idle for _, idle, _ in pairs], 0.4, label="device idle")
        axes.bar([place + 0.2 for place in places], [queued for _, _, queued in pairs], 0.4, label="behind 20 ms of work")
        axes.set_xticks(list(places), [code for code, _, _ in pairs])
        axes.set(ylabel="host time of one call, us (median)", yscale="log", title=stamp)
        axes.legend()
        written.append(save(figure, Path(folder, "idle_and_queued.png")))
        pyplot.close(figure)
    return written


def caption(document: dict[str, Any]) -> str:
    """Device, torch and date: a figure without them says nothing."""
    environment = document["environment"]
    return f"{environment.get('device', document['device'])}, torch {environment['torch']}, {environment['date'][:10]}"


def save(figure: Any, path: Path) -> str:
    """Write a figure; its path."""
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return str(path)

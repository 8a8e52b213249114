"""The parts of a validation in order, the clock they share, and the file they are written to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from fixed_receiver import device_checks, device_times, kernels
from fixed_receiver.budgets import check_budgets
from fixed_receiver.checks import (
    Check,
    check_decode,
    check_interpreter,
    check_marking,
    check_meta,
    check_round_trip,
    check_values,
    some_layouts,
)
from fixed_receiver.gpu import Gpu, describe_machine
from fixed_receiver.layouts import published_layout

SCHEMA = 1
SECONDS = 150.0


@dataclass(frozen=True)
class Part:
    """A check under a short code; `needs` is about how many seconds must be left to start it."""

    code: str
    run: Callable[[], Check]
    needs: float = 1.0


def host_parts() -> list[Part]:
    """What any machine can check."""
    host = torch.device("cpu")
    layouts = some_layouts((1, 2, 3, 28, 64, 256), (0, 1, 500), (1, 8, 128))
    few = some_layouts((1, 2, 3, 28, 256), (0, 1, 300), (1, 8)) if kernels.INTERPRETED else []
    return [
        Part("values", lambda: check_values(host, layouts)),
        Part("marking", lambda: check_marking(host, some_layouts((1, 3, 28, 256), (0, 1, 500), (1, 8, 128)))),
        Part("decode", lambda: check_decode(host)),
        Part("round trip", lambda: check_round_trip(host)),
        Part("meta", lambda: check_meta(published_layout())),
        Part("budgets", check_budgets),
        Part("kernels", lambda: check_interpreter(few)),
    ]


def timed_parts(gpu: Gpu) -> list[Part]:
    """Times on a CUDA device, those first that everything else is read by."""
    return [
        Part("P4", lambda: device_times.time_host(gpu), 20),
        Part("copies", lambda: device_times.time_copies(gpu), 10),
        Part("P6", lambda: device_times.time_kernels(gpu), 10),
        Part("P7", lambda: device_times.sweep(gpu), 15),
        Part("P5", lambda: device_times.time_step(gpu), 10),
    ]


def device_parts(gpu: Gpu) -> list[Part]:
    """Checks on a CUDA device, then the times."""
    return [
        Part("P1", lambda: device_checks.check_device_values(gpu), 10),
        Part("P2", lambda: device_checks.check_counts(gpu), 10),
        Part("P3", lambda: device_checks.check_freedom(gpu), 5),
        Part("P8", lambda: device_checks.check_graphs(gpu), 3),
        Part("P9", lambda: device_checks.check_streams(gpu), 2),
        *timed_parts(gpu),
    ]


def run_parts(parts: Sequence[Part], seconds: float, document: dict[str, Any], path: str, say: Callable[[str], None]) -> bool:
    """Run the parts while there is time, write `document` behind each; True if none failed.

    A part that raises is a failed part: the others still tell something. Parts that would not fit are skipped and say so.
    """
    start = time.monotonic()
    passed = True
    document["parts"] = []
    for part in parts:
        left = seconds - (time.monotonic() - start)
        began = time.monotonic()
        outcome = run_part(part) if left >= part.needs else Check(part.code, skipped=f"{left:.0f} s left of {seconds:.0f}")
        took = time.monotonic() - began
        passed &= outcome.passed
        document["parts"].append({"code": part.code, "seconds": round(took, 2), **asdict(outcome)})
        document["seconds"] = round(time.monotonic() - start, 2)
        say(f"{part.code:<10} {outcome.summary()}")
        if path:
            write_document(document, path)
    return passed


def run_part(part: Part) -> Check:
    """The outcome of a part, an exception included."""
    try:
        return part.run()
    except Exception as error:  # a driver or a kernel raises what it likes, and the report must be written
        return Check(part.code, passed=False, failures=[f"{type(error).__name__}: {error}"])


def new_document(device: str) -> dict[str, Any]:
    """The head of a report."""
    return {"schema": SCHEMA, "device": device, "environment": describe_machine(), "seconds": 0.0, "parts": []}


def write_document(document: dict[str, Any], path: str) -> None:
    """Write the report as JSON, whole or not at all."""
    target = Path(path)
    beside = target.with_name(target.name + ".part")
    beside.write_text(json.dumps(document, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    beside.replace(target)

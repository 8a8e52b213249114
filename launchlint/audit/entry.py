"""The one interface: measured where there is a GPU, counted where there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, overload

import torch

from launchlint.audit import dry, measurement
from launchlint.audit.mode import measures
from launchlint.audit.report import Report
from launchlint.audit.state import AuditError

Running = AbstractContextManager[Report]


@overload
def audit() -> Running: ...
@overload
def audit(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report: ...
def audit(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Report | Running:
    """Run `function` and report what it spends; without a function, a context for a `with` statement.

    Tensors in the arguments, and parameters and buffers of modules, belong to the device; wrap host tensors in `on_host`. On a
    machine with CUDA the call is measured, else it is a dry run; `report.mode` says which of the two it was.
    """
    if function is None:
        return measure() if measures() else dry_run()
    return measure(function, *args, **kwargs) if measures() else dry_run(function, *args, **kwargs)


@overload
def dry_run() -> Running: ...
@overload
def dry_run(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report: ...
def dry_run(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Report | Running:
    """`audit` that always counts on CPU data, on any machine."""
    return dry.dry_run() if function is None else dry.run_dry(function, *args, **kwargs)


@overload
def measure() -> Running: ...
@overload
def measure(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report: ...
def measure(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Report | Running:
    """`audit` that always measures; raises AuditError without a CUDA device.

    The function runs once before, unmeasured and on copies of its tensors, so that libraries are loaded and kernels compiled; a
    `with` block has no such run.
    """
    if not torch.cuda.is_available():
        raise AuditError("there is no CUDA device to measure on; audit() counts without one")
    return measurement.measuring() if function is None else measurement.run_measured(function, *args, **kwargs)

"""Count launches, waits and copies of a function on a machine without a GPU, or measure them on one.

    from launchlint.audit import audit

    report = audit(step, batch)
    assert report.waits == 0
    print(report.table())

Needs torch 2.5 or later. `docs/audit.md` says what is counted, what is approximate and what it cannot see.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, overload

from launchlint.audit.dry import dry_run, on_device, on_host, run_dry
from launchlint.audit.kernels import register_kernel
from launchlint.audit.report import Event, Line, Report
from launchlint.audit.state import AuditError, UnknownKernel

__all__ = ["AuditError", "Event", "Line", "Report", "UnknownKernel", "audit", "dry_run", "on_device", "on_host", "register_kernel", "run_dry"]


@overload
def audit() -> AbstractContextManager[Report]: ...


@overload
def audit(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report: ...


def audit(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Report | AbstractContextManager[Report]:
    """Run `function` and report what it spends; without a function, a context for a `with` statement."""
    if function is None:
        return dry_run()
    return run_dry(function, *args, **kwargs)

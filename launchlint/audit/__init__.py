"""Count launches, waits and copies of a function on a machine without a GPU, or measure them on one.

    from launchlint.audit import audit

    report = audit(step, batch)
    assert report.waits == 0
    print(report.table())

Needs torch 2.5 or later, which is imported with the first name that needs it. `docs/audit.md` says what is counted, what is
approximate and what it cannot see.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchlint.audit.dry import on_device, on_host
    from launchlint.audit.entry import audit, dry_run, measure
    from launchlint.audit.kernels import register_kernel
    from launchlint.audit.report import Event, Line, Report
    from launchlint.audit.state import AuditError, UnknownKernel

__all__ = [
    "AuditError",
    "Event",
    "Line",
    "Report",
    "UnknownKernel",
    "audit",
    "dry_run",
    "measure",
    "on_device",
    "on_host",
    "register_kernel",
]

_MODULES = {
    "audit": "entry",
    "dry_run": "entry",
    "measure": "entry",
    "on_device": "dry",
    "on_host": "dry",
    "register_kernel": "kernels",
    "Event": "report",
    "Line": "report",
    "Report": "report",
    "AuditError": "state",
    "UnknownKernel": "state",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError("launchlint.audit needs torch 2.5 or later: pip install 'launchlint[audit]'", name="torch") from None
    return getattr(module, name)

"""Whether `audit` measures or counts."""

from __future__ import annotations

import os

import torch

from launchlint.audit.state import AuditError, current

MODES = ("auto", "dry", "measure")
VARIABLE = "LAUNCHLINT_AUDIT"


def measures() -> bool:
    """True if `audit` measures here: there is a GPU and the variable LAUNCHLINT_AUDIT does not ask for a dry run."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in MODES:
        raise AuditError(f"{VARIABLE}={wanted!r}: one of {', '.join(MODES)} was expected")
    if wanted == "dry" or current() is not None:
        return False
    if wanted == "measure" and not torch.cuda.is_available():
        raise AuditError(f"{VARIABLE}=measure, but torch sees no CUDA device")
    return torch.cuda.is_available()

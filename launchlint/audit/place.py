"""The line of user code that caused an event."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from types import FrameType

import torch

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_STANDARD = frozenset({contextlib.__file__, functools.__file__})
_SYNTHETIC = ("<frozen", "<__array_function__", "<eval_with_key>")
_skipped: dict[str, bool] = {}


def user_line() -> tuple[str, int]:
    """Path and line of the nearest frame that is neither torch nor this package; `("?", 0)` if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        skip = _skipped.get(path)
        if skip is None:
            skip = _skipped[path] = path.startswith((_OWN, _TORCH, *_SYNTHETIC)) or path in _STANDARD
        if not skip:
            return path, frame.f_lineno
        frame = frame.f_back
    return "?", 0

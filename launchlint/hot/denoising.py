"""Loops over the time steps of a diffusion process: what stands around one runs once for a whole image or clip.

The loop is told by what it walks (`for i, t in enumerate(timesteps)`) together with what it calls: a loop over the time
steps of a sequence calls no model.
"""

from __future__ import annotations

import ast
import re

from launchlint.names import dotted, last_name
from launchlint.trees import children, walk

_WALKED = re.compile(r"time_?steps|inference_steps|diffusion_steps|denois|sigmas")
_CALLED = re.compile(r"forward|transformer|unet|model|estimator|denois|diffus|scheduler|predict|(^|[._])(net|dit|step)$")
_COUNTED = re.compile(r"num_steps|n_steps")  # of a diffusion as well as of anything else
_DENOISES = re.compile(r"denois|velocity|diffus")
_BUDGET = 4000  # nodes of a loop's body


def walks_time_steps(loop: ast.For | ast.While) -> bool:
    """True for a loop over time steps that calls a model or a scheduler at each."""
    if not isinstance(loop, ast.For):
        return False
    walked = [last_name(part) for part in walk(loop.iter)]
    if any(_WALKED.search(name) for name in walked):
        called = _CALLED
    elif any(_COUNTED.search(name) for name in walked):
        called = _DENOISES
    else:
        return False
    pending: list[ast.AST] = list(loop.body)
    for _ in range(_BUDGET):
        if not pending:
            break
        node = pending.pop()
        if node.__class__ is ast.Call and called.search(dotted(node.func)):
            return True
        pending += children(node)
    return False

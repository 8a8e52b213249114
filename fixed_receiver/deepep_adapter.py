"""From DeepEP's return tuple to `Dispatched`.

The installed `deep_ep` is looked at by attribute, never by version: builds of one version differ by commit. There is no
distribution to depend on (the `deep-ep` on the package index is an old snapshot without `ElasticBuffer`, not published
by DeepEP's authors as far as its metadata says): bring your own build, https://github.com/deepseek-ai/DeepEP.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

import torch

from fixed_receiver.receiver import Dispatched


def find_deepep() -> tuple[ModuleType | None, str]:
    """The installed `deep_ep` if it has an ElasticBuffer, else None and why not."""
    if importlib.util.find_spec("deep_ep") is None:
        return None, "deep_ep is not installed"
    try:
        module = importlib.import_module("deep_ep")
    except (ImportError, OSError, RuntimeError, AssertionError) as error:  # it asserts that NCCL's versions match
        return None, f"deep_ep does not import: {error}"
    if not hasattr(module, "ElasticBuffer"):
        return None, "the installed deep_ep has no ElasticBuffer (it is a V1)"
    return module, ""


def read_dispatch(returned: tuple[Any, torch.Tensor | None, torch.Tensor | None, Any, Any]) -> Dispatched:
    """Name what `ElasticBuffer.dispatch` returned: (recv_x or (recv_x, sf), topk_idx, topk_weights, handle, event)."""
    recv_x, topk_idx, weights, handle, event = returned
    x, scale = recv_x if isinstance(recv_x, tuple) else (recv_x, None)
    expanded = bool(handle.do_expand)
    counts = handle.num_recv_tokens_per_expert_list
    return Dispatched(
        event=event,
        x=x,
        scale=scale,
        topk_idx=topk_idx,
        weights=weights,
        expanded=expanded,
        alignment=handle.expert_alignment or 1,
        counts=list(counts) if counts else None,  # without CPU sync the list is empty, which is not "no rows"
        psum=handle.psum_num_recv_tokens_per_expert if expanded else None,  # means something else where not expanded
        real=getattr(handle, "num_unaligned_recv_tokens_per_expert", None) if expanded else None,
        received=handle.psum_num_recv_tokens_per_scaleup_rank,
    )

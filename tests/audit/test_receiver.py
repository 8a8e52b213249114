"""The receiver's loop and its fixed form, in our own words and as two public releases ship them."""

from __future__ import annotations
import __future__

import ast
import os
import random
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="the dry run needs torch")

import torch

from launchlint.audit import Report, dry_run

CORPUS = Path(os.environ.get("LAUNCHLINT_CORPUS", Path.home() / ".cache" / "launchlint-corpus"))
EXPERTS, BUSY, FIRST = 28, 22, 56


def spread(experts: int, busy: int, seed: int = 0) -> list[int]:
    """Token counts of `experts` experts, `busy` of which got some."""
    generator = random.Random(seed)
    counts = [0] * experts
    for expert in generator.sample(range(experts), busy):
        counts[expert] = generator.randint(1, 700)
    return counts


def looped(x: torch.Tensor, counts: list[int], first: int) -> torch.Tensor:
    """One fill for each expert that got tokens."""
    out = torch.empty(sum(counts), dtype=torch.int64, device=x.device)
    start = 0
    for expert, count in enumerate(counts):
        if count > 0:
            out[start : start + count].fill_(expert + first)
            start += count
    return out


def fixed(x: torch.Tensor, ids: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """One upload from pinned memory, and a number of kernels that does not depend on the experts."""
    staged = torch.tensor(counts, dtype=torch.int32, pin_memory=True)
    return torch.repeat_interleave(ids, staged.to(x.device, non_blocking=True), output_size=sum(counts))


def test_loop_is_one_launch_for_each_busy_expert_on_one_line() -> None:
    report = dry_run(looped, torch.zeros(8, 16), spread(EXPERTS, BUSY), FIRST)
    (fill,) = [line for line in report.lines if line.launches]
    assert fill.launches == report.launches == BUSY and "fill_" in fill.source
    assert report.waits == report.downloads == report.pinned_uploads == report.pageable_uploads == 0


@pytest.mark.parametrize(("experts", "busy"), [(1, 1), (8, 8), (28, 22), (64, 3), (256, 256)])
def test_fixed_form_is_constant_and_never_waits(experts: int, busy: int) -> None:
    counts = spread(experts, busy)
    report = dry_run(fixed, torch.zeros(8, 16), torch.arange(experts) + FIRST, counts)
    few = dry_run(fixed, torch.zeros(8, 16), torch.arange(2) + FIRST, [1, 1])
    assert report.totals == few.totals
    assert report.waits == report.may_waits == report.pageable_uploads == 0 and report.pinned_uploads == 1
    assert torch.equal(report.result, dry_run(looped, torch.zeros(8, 16), counts, FIRST).result)


# ---------------------------------------------------------------- as shipped


def functions_of(path: Path, class_name: str, names: dict[str, Any]) -> dict[str, Any]:
    """The methods of a class, compiled from the file as it is (with its line numbers) without importing anything of it."""
    tree = ast.parse(path.read_text())
    (owner,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name]
    methods = [node for node in owner.body if isinstance(node, ast.FunctionDef)]
    module = ast.Module(body=list(methods), type_ignores=[])
    code = compile(module, str(path), "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, names)
    return {method.name: names[method.name] for method in methods}


@dataclass
class TokensMeta:
    """Counts of tokens on the device and on the host."""

    expert_num_tokens: Any
    expert_num_tokens_cpu: Any


def shipped_receiver(release: str) -> Any:
    """A function of `(x, counts)` that runs the `_receiver` of a public wheel with everything around it stubbed."""
    folder = CORPUS / release / "vllm/model_executor/layers/fused_moe"
    path = folder / "prepare_finalize/deepep_v2.py"
    if not path.exists():
        pytest.skip(f"the unpacked wheel {release} is not in {CORPUS} (set LAUNCHLINT_CORPUS)")
    names = {"torch": torch, "PIN_MEMORY": True, "ExpertTokensMetadata": TokensMeta, "dataclass": dataclass}
    made = functions_of(folder / "modular_kernel.py", "ExpertTokensMetadata", dict(names))
    TokensMeta.make_from_list = staticmethod(made["make_from_list"].__func__)  # type: ignore[attr-defined]
    names |= {"mk": SimpleNamespace(ExpertTokensMetadata=TokensMeta), "_quantize_before_dispatch": lambda *_: False}
    methods = functions_of(path, "DeepEPV2PrepareAndFinalize", names)
    del methods["__init__"]
    receiver = type("Receiver", (), methods)()
    receiver.__dict__ |= {"rank_expert_offset": FIRST, "num_experts": 224, "use_cudagraph": False, "defer_globalize": False}
    receiver._global_expert_ids_cache = None
    quantisation = SimpleNamespace(is_block_quantized=True, quant_dtype=None)
    event = SimpleNamespace(event=None)

    def run(x: torch.Tensor, counts: list[int]) -> torch.Tensor:
        ids: torch.Tensor = receiver._receiver(event, False, x, None, 224, counts, None, None, None, quantisation, True)[3]
        return ids

    return run


def test_release_with_the_loop() -> None:
    counts = spread(EXPERTS, BUSY)
    report = dry_run(shipped_receiver("vllm-0.28.0"), torch.zeros(sum(counts), 4), counts)
    worst = max(report.lines, key=lambda line: line.launches)
    assert worst.launches == BUSY and ".fill_(" in worst.source and worst.path.endswith("deepep_v2.py")
    assert report.launches == BUSY and report.pageable_uploads == report.may_waits == 1
    assert report.result.shape == (sum(counts), 1)


def test_release_without_the_loop() -> None:
    counts = spread(EXPERTS, BUSY)
    run = shipped_receiver("vllm-0.33.0")
    x = torch.zeros(sum(counts), 4)

    def twice(x: torch.Tensor) -> tuple[torch.Tensor, Report]:
        run(x, counts)
        with dry_run() as second:
            ids = run(x, counts)
        return ids, second

    ids, second = dry_run(twice, x).result
    assert second.launches <= 3 and second.waits == second.may_waits == second.pageable_uploads == 0 and second.pinned_uploads == 1
    assert torch.equal(ids[:, 0], dry_run(looped, x, counts, FIRST).result)

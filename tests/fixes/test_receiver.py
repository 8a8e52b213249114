"""The receiver that this project is about: the fixed form is what the fix makes of the looped form, here and in vLLM."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import fixed_receiver.ids
from launchlint import engine, registry
from launchlint.fixes import Fixed, fix_source
from launchlint.model import Applicability
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.execution import Operators, assert_same, pageable

CORPUS = Path(os.environ.get("LAUNCHLINT_CORPUS", Path.home() / ".cache" / "launchlint-corpus"))
VLLM = CORPUS / "vllm-0.28.0" / "vllm/model_executor/layers/fused_moe/prepare_finalize/deepep_v2.py"
needs_vllm = pytest.mark.skipif(not VLLM.is_file(), reason="the public wheel of vllm 0.28.0 is not unpacked on this machine")


def fixed(path: Path, options: Settings, code: str = "LCH101") -> tuple[Source, Fixed]:
    """All fixes of one rule in one file."""
    source = Source.from_bytes(str(path), path.read_bytes())
    rules = (registry.load()[code],)
    done = fix_source(source, lambda current: engine.check_source(current, rules, options).findings, Applicability.UNSAFE, options)
    assert not done.problems
    return source, done


def function(text: str, name: str) -> ast.FunctionDef:
    return next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name)


def statements(node: ast.FunctionDef) -> list[str]:
    """The body without its docstring."""
    return [
        ast.dump(statement)
        for statement in node.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def test_the_fixed_form_is_what_the_fix_makes_of_the_looped_form() -> None:
    path = Path(fixed_receiver.ids.__file__)
    source, done = fixed(path, Settings(pin_memory="PIN_MEMORY"))
    assert statements(function(done.text, "expand_by_fill_loop")) == statements(function(source.text, "expand_by_repeat"))
    assert statements(function(source.text, "expand_by_fill_loop")) != statements(function(source.text, "expand_by_repeat"))


# -------------------------------------------------------------------- vLLM


COUNTS = [[], [0], [5], [0, 0, 0], [3, 0, 2], [0, 0, 7], [9, 0, 0, 0]]
COUNTS += [[random.Random(seed).choice((0, 0, 1, 2, 30)) for _ in range(28)] for seed in range(20)]


def receiver(text: str) -> Any:
    """`_receiver` alone, with what it calls replaced; it returns what it makes of the ids."""
    node = function(text, "_receiver")
    node.returns = None
    for argument in node.args.args:
        argument.annotation = None
    scope: dict[str, Any] = {
        "torch": torch,
        "mk": SimpleNamespace(ExpertTokensMetadata=SimpleNamespace(make_from_list=lambda counts, device: counts)),
        "moe_kernel_quantize_input": lambda x, *_, **__: (x, None),
        "_globalize_recv_topk_idx": lambda *_: pytest.fail("the other branch was taken"),
    }
    exec(compile(ast.unparse(node), "<receiver>", "exec"), scope)
    return scope["_receiver"]


def ids_of(run: Any, counts: list[int], first: int) -> tuple[torch.Tensor, int]:
    """The ids (the fourth thing that is returned), and the number of operators dispatched."""
    owner = SimpleNamespace(rank_expert_offset=first, num_experts=256, handles=[None], num_dispatchers_=1)
    config = SimpleNamespace(is_block_quantized=True, quant_dtype=None, per_act_token_quant=False, block_shape=None, a1_scale=None)
    rows = torch.zeros(sum(counts), 4)
    given = {
        "event": SimpleNamespace(event=None),
        "has_scales": False,
        "recv_x": rows,
        "recv_topk_idx": None,
        "num_experts": 256,
        "recv_expert_num_tokens": counts,
        "recv_topk_weights": torch.zeros(sum(counts)),
        "psum_recv_per_rank": torch.zeros(1, dtype=torch.int32),
        "a1_scale": None,
        "quant_config": config,
        "defer_input_quant": True,
    }
    with pageable(), Operators() as operators:
        result = run(owner, **given)
    found = [part for part in result if isinstance(part, torch.Tensor) and part.dtype == torch.int64]
    assert len(found) == 1
    return found[0], len(operators.names)


@needs_vllm
@pytest.mark.parametrize("options", [Settings(), Settings(pin_memory="off")], ids=["pinned", "pageable"])
def test_the_receiver_of_vllm_gives_the_same_ids_after_the_fix(options: Settings) -> None:
    source, done = fixed(VLLM, options)
    assert [finding.code for finding in done.applied] == ["LCH101"]
    before, after = receiver(source.text), receiver(done.text)
    for counts in COUNTS:
        for first in (0, 28, 84):
            old, old_operators = ids_of(before, counts, first)
            new, new_operators = ids_of(after, counts, first)
            assert_same(old, new)
            if sum(count > 0 for count in counts) > 6:
                assert new_operators < old_operators


@needs_vllm
def test_git_applies_the_patch_that_the_command_line_prints_for_vllm(tmp_path: Path) -> None:
    target = tmp_path / "deepep_v2.py"
    target.write_bytes(VLLM.read_bytes())
    command = [sys.executable, "-m", "launchlint", "check", "--diff", "--unsafe-fixes", "--isolated", "deepep_v2.py"]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr.decode()
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=done.stdout, check=True)
    text = target.read_text()
    assert "output_size=total_tokens," in text
    assert "for i, count in enumerate(recv_expert_num_tokens)" not in text
    assert ast.parse(text)

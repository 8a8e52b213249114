"""Functions that run every step although no call in sight leads to them by its name, beside some that only look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.test_rarely import check

UPLOAD = "torch.tensor(rows, device=x.device)"


@pytest.mark.parametrize("name", ["AttnProcessor", "AttnProcessor2_0", "JointAttentionProcessor"])
def test_what_processes_attention_runs_in_every_layer(tmp_path: Path, name: str) -> None:
    code = f"""\
import torch


class {name}:
    def __call__(self, attn, x: torch.Tensor, rows: list[int]) -> torch.Tensor:
        return x[{UPLOAD}]  #>
"""
    check(tmp_path, {"pkg/attention_processor.py": code, "pkg/blocks.py": code})


def test_what_processes_inputs_does_not(tmp_path: Path) -> None:
    code = f"""\
import torch


class RowProcessor:
    def __call__(self, x: torch.Tensor, rows: list[int]) -> torch.Tensor:
        return x[{UPLOAD}]
"""
    check(tmp_path, {"pkg/row_processor.py": code.replace("RowProcessor", "RowModule"), "pkg/blocks.py": code})


def test_self_in_the_body_of_an_operator_is_the_layer_that_calls_it(tmp_path: Path) -> None:
    """Two classes of the file have a method of that name, and only one of them calls the operator."""
    code = f"""\
import torch
from pkg.registry import direct_register_custom_op, layers


class Scan(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.pkg.scan(x, self.prefix)

    def _inner(self, x: torch.Tensor) -> torch.Tensor:
        rows = [1, 2, 3]
        return x[{UPLOAD}]  #>


class Table:
    def _inner(self, x: torch.Tensor) -> torch.Tensor:
        rows = [1, 2, 3]
        return x[{UPLOAD}]


def scan(x: torch.Tensor, name: str) -> torch.Tensor:
    self = layers()[name]
    return self._inner(x)


direct_register_custom_op(op_name="scan", op_func=scan)
"""
    registry = "def direct_register_custom_op(**options): ...\n\n\ndef layers() -> dict: ...\n"
    check(tmp_path, {"pkg/scan.py": code, "pkg/registry.py": registry})


def test_codebooks_of_a_model_are_no_tools_for_weights(tmp_path: Path) -> None:
    code = f"""\
import torch


class Codebook(torch.nn.Module):
    def forward(self, x: torch.Tensor, rows: list[int]) -> torch.Tensor:
        return x[{UPLOAD}]{{mark}}
"""
    marked, plain = code.format(mark="  #>"), code.format(mark="")
    files = {"pkg/models/speech/quantization.py": marked, "pkg/codec/residual_vector_quantizer.py": marked}
    check(tmp_path, {**files, "pkg/layers/quantization.py": plain, "pkg/models/quantize_weights.py": plain})

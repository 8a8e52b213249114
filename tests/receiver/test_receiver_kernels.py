"""The Triton kernels, by Triton's interpreter: in a process of its own, since it is switched on before the import."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from fixed_receiver import kernels
from fixed_receiver.checks import check_interpreter
from fixed_receiver.layouts import Layout

RUN = """
import json, torch
from fixed_receiver.checks import check_decode, check_interpreter, some_layouts
layouts = some_layouts(experts=(1, 2, 3, 28, 256), rows=(0, 1, 300, 1500), alignments=(1, 8))
checks = [check_interpreter(layouts), check_decode(torch.device("cpu"))]
print(json.dumps([{"passed": c.passed, "cases": c.cases, "skipped": c.skipped, "failures": c.failures[:5]} for c in checks]))
"""


@pytest.mark.skipif(bool(kernels.MISSING), reason=kernels.MISSING or "Triton is there")
def test_kernels_agree_with_lists() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for outcome in outcomes:
        assert outcome["failures"] == []
        assert not outcome["skipped"]
    assert outcomes[0]["cases"] > 100


def test_the_interpreter_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert check_interpreter([Layout((1, 2))]).skipped


def test_sums_alone_do_not_tell_padded_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MISSING", "")
    with pytest.raises(ValueError, match="alignment above 1"):
        kernels.launch_owner(torch.tensor([2, 4], dtype=torch.int32), None, 4, 0, 2, False)


def test_a_missing_triton_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MISSING", "Triton is not installed")
    with pytest.raises(RuntimeError, match="Triton is not installed"):
        kernels.launch_decode(torch.zeros(2, 2, dtype=torch.int64), torch.tensor([1], dtype=torch.int32), 0, 4)


@pytest.mark.parametrize(("elements", "programs"), [(1, 1), (kernels.BLOCK, 1), (kernels.BLOCK + 1, 2)])
def test_blocks_cover(elements: int, programs: int) -> None:
    assert kernels.blocks(elements) == programs

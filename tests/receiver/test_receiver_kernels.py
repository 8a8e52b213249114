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
from fixed_receiver import kernels
from fixed_receiver.checks import check_decode, check_interpreter, some_layouts
layouts = some_layouts(experts=(1, 2, 3, 28, 256), rows=(0, 1, 300, 1500), alignments=(1, 8))
checks = [check_interpreter(layouts), check_decode(torch.device("cpu"))]
print(kernels.lacking(torch.device("cpu")))
print(json.dumps([{"passed": c.passed, "cases": c.cases, "skipped": c.skipped, "failures": c.failures[:5]} for c in checks]))
"""


@pytest.mark.skipif(bool(kernels.MISSING), reason=kernels.MISSING or "Triton is there")
def test_kernels_agree_with_lists() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lacking, report = done.stdout.splitlines()[-2:]
    if lacking:
        pytest.skip(lacking)
    outcomes = json.loads(report)
    for outcome in outcomes:
        assert outcome["failures"] == []
        assert not outcome["skipped"]
    assert outcomes[0]["cases"] > 100


COMPILE = """
import itertools, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from fixed_receiver import kernels

def compile_kernel(kernel, types, constants):
    source = ASTSource(kernel, {**types, **{name: "constexpr" for name in constants}}, constants)
    return "cubin" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm

owner = {"psum": "*i32", "real": "*i32", "ids": "*i64", "rows": "i32", "experts": "i32", "first": "i32", "alignment": "i32"}
for steps, real, mark in itertools.product((0, 5, 8), (True, False), (True, False)):
    assert compile_kernel(kernels.owner_kernel, owner, {"STEPS": steps, "HAS_REAL": real, "MARK_PADDING": mark, "BLOCK": 1024})
for ids in ("*i64", "*i32"):
    numbers = {name: "i32" for name in ("elements", "topk", "last", "first", "local_limit")}
    decode = {"local": ids, "received": "*i32", "ids": ids, **numbers}
    assert compile_kernel(kernels.decode_kernel, decode, {"BLOCK": 1024})
"""


@pytest.mark.skipif(bool(kernels.MISSING), reason=kernels.MISSING or "Triton is there")
def test_kernels_compile_for_the_devices_that_deepep_needs() -> None:
    """Triton compiles for compute capability 9.0 without a GPU; the way to ask changed with Triton 3.2."""
    if tuple(int(part) for part in kernels.triton.__version__.split(".")[:2]) < (3, 2):
        pytest.skip(f"Triton {kernels.triton.__version__} is asked in another way")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_the_interpreter_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MISSING", "")
    monkeypatch.setattr(kernels, "INTERPRETED", False)
    assert "TRITON_INTERPRET=1" in check_interpreter([Layout((1, 2))]).skipped


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

"""Running fixed code is seen to fail: other values, another type, and a fix that saves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="running code needs torch")

from tests.cases import execution
from tests.cases.case import Case, Options

CODE = """\
import torch


def fill(n, device):
    out = torch.empty(n, dtype=torch.int64, device=device)
    for i in range(n):
        out[i : i + 1].fill_(i)
    return out
"""
RANGE = "import torch\n\n\ndef fill(n, device):\n    return torch.arange(n, device=device)\n"
INPUTS = 'device = torch.device("cuda")\nfill(64, device)\n'


def case(code: str = CODE, inputs: str = INPUTS) -> Case:
    return Case(Path("cases.md"), "A case", 1, "It is one.", code, (), Options(), inputs=inputs)


def test_equal_and_cheaper_is_right() -> None:
    assert execution.complaints(case(), RANGE) == []


@pytest.mark.parametrize(
    ("fixed", "complaint"),
    [
        (RANGE.replace("arange(n,", "arange(1, n + 1,"), "became"),
        (RANGE.replace("arange(n,", "arange(n - 1,"), "shape"),
        (RANGE.replace("device=device", "device=device, dtype=torch.int32"), "dtype"),
        (RANGE.replace("torch.arange(n, device=device)", "list(range(n))"), "became"),
        (RANGE.replace("torch.arange(n, device=device)", "torch.arange(2 * n, device=device)[::2] // 1"), "became"),
        (CODE.replace("return out", "return out + 0"), "costs no less"),
        (RANGE.replace("torch.arange(n, device=device)", "torch.tensor(list(range(n)), device=device)"), "costs no less"),
    ],
)
def test_complains_of_fixed_code(fixed: str, complaint: str) -> None:
    found = execution.complaints(case(), fixed)
    assert any(complaint in each for each in found), found


def test_strides_count() -> None:
    import torch

    one = torch.zeros(2, 3)
    assert list(execution.differences(one, torch.zeros(3, 2).t())) == ["the result: strides (3, 1) became (1, 2)"]


def test_nested_results_are_compared() -> None:
    import torch

    assert list(execution.differences([(torch.ones(1), 2)], [(torch.ones(1), 3)])) == ["the result[0][1]: 2 became 3"]
    assert list(execution.differences((1,), [1])) == ["the result: (1,) became [1]"]


def test_inputs_end_with_what_the_code_gives() -> None:
    with pytest.raises(ValueError, match="expression"):
        execution.run(CODE, "x = fill(3, 'cpu')\n")

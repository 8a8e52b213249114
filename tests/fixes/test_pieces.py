"""Filled pieces that are joined, executed beside the one repeat that replaces them."""

from __future__ import annotations

import ast

import pytest

from launchlint.fixes import fix_source
from launchlint.fixes.pieces import join_of_fills
from launchlint.model import Applicability
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.context import checker
from tests.fixes.execution import assert_same, define, run

MODULE = "import torch\n\ndef f(counts: list, ids: list, n: int, device):\n    return {}\n"
REPEAT = (
    "torch.repeat_interleave(torch.arange({bounds}, dtype=torch.{dtype}, device=device), "
    "torch.tensor(counts, dtype=torch.int64, pin_memory=True).to(device, non_blocking=True), output_size=sum(counts))"
)
PLAIN = REPEAT.format(bounds="len(counts)", dtype="int64")
JOINED = {
    "torch.cat([torch.full((c,), i, device=device) for i, c in enumerate(counts)])": PLAIN,
    "torch.cat([torch.full((c,), i, device=device) for i, c in enumerate(counts) if c > 0], dim=0)": PLAIN,
    "torch.concat([torch.full((counts[i],), i, device=device) for i in range(len(counts))])": PLAIN,
    "torch.cat([torch.full((c,), i + n, dtype=torch.int32, device=device) for i, c in enumerate(counts)])": REPEAT.format(
        bounds="n, n + len(counts)", dtype="int32"
    ),
    "torch.cat([torch.full((c,), e, dtype=torch.int32, device=device) for e, c in zip(ids, counts)]).sum(0)": "",
}


def fixed(expression: str) -> str:
    text = MODULE.format(expression)
    options = Settings()
    check = checker("LCH103", join_of_fills, ast.Call, options)
    done = fix_source(Source.from_bytes("some.py", text.encode()), check, Applicability.UNSAFE, options)
    assert not done.problems
    return done.text


@pytest.mark.parametrize("expression", JOINED)
@pytest.mark.parametrize("counts", [[1], [3, 0, 2], [2] * 30])
def test_the_pieces_are_made_at_once(expression: str, counts: list[int]) -> None:
    text, after = MODULE.format(expression), fixed(expression)
    assert "repeat_interleave" in after
    if JOINED[expression]:
        assert after == MODULE.format(JOINED[expression])
    arguments = (counts, [5 + i for i in range(len(counts) + 2)], 7, "cpu")
    before, operators_before = run(define(text, "f"), *arguments)
    result, operators_after = run(define(after, "f"), *arguments)
    assert_same(before, result)
    if len(counts) > 10:
        assert operators_after < operators_before


@pytest.mark.parametrize(
    "expression",
    [
        "torch.stack([torch.full((c,), i, device=device) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, device=device) for i, c in enumerate(counts)], dim=1)",
        "torch.cat([torch.full((c, 2), i, device=device) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((2,), i, device=device) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i * 2, device=device) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i + n, device=device) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, device=i) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, device='cpu') for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, pin_memory=n) for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, device=device) for i, c in enumerate(counts) if i])",
        "torch.cat([torch.full((c,), i, device=device) for _ in counts for i, c in enumerate(counts)])",
        "torch.cat([torch.full((c,), i, device=device)  # why\n        for i, c in enumerate(counts)])",
        "torch.cat([torch.arange(c, device=device) for i, c in enumerate(counts)])",
    ],
)
def test_other_joins_are_left_alone(expression: str) -> None:
    assert fixed(expression) == MODULE.format(expression)

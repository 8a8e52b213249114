"""Comprehensions and generators."""

from __future__ import annotations

import pytest

from tests.values.probe import in_function

DEVICE = "tensor on the device"
MADE = "d = torch.zeros(4, 4, device='cuda')\n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[row for row in d]", "host list"),
        ("[row for row in d][0]", DEVICE),
        ("[row * 2 for row in [d, d] if n][0]", DEVICE),
        ("[i for i in range(n)]", "host list"),
        ("[i for i in range(n)][0]", "host scalar"),
        ("{row for row in d}", "host list"),
        ("{i: row for i, row in enumerate(d)}", "dict"),
        ("{i: row for i, row in enumerate(d)}[0]", DEVICE),
        ("[cell for row in d for cell in row][0]", DEVICE),
        ("torch.stack([row for row in d])", DEVICE),
        ("torch.cat(tuple(row for row in d))", DEVICE),
        ("torch.tensor([i for i in range(n)], device=device)", DEVICE),
        ("sum(row for row in d)", DEVICE + " 0-dim"),
        ("max(len(s) for s in 'abc')", "host scalar"),
        ("list(map(len, d))", "host list"),
        ("sorted(d.tolist())", "host list"),
    ],
)
def test_a_comprehension(expression: str, expected: str) -> None:
    assert in_function(f"{MADE}probe({expression})") == expected


def test_the_target_of_a_comprehension() -> None:
    assert in_function(f"{MADE}[probe(row) for row in d]") == DEVICE


def test_the_target_does_not_leak() -> None:
    assert in_function(f"row = n\n{MADE}[row for row in d]\nprobe(row)") == "host scalar"

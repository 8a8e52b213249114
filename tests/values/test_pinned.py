"""Pinned memory: how it comes about, what keeps it and what loses it."""

from __future__ import annotations

import pytest

from tests.values.probe import in_function, probes

PINNED = "tensor on the host pinned"
PAGEABLE = "tensor on the host pageable"
MADE = "p = torch.zeros(4, pin_memory=True)\n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p", PINNED),
        ("torch.zeros(4).pin_memory()", PINNED),
        ("torch.zeros(4, pin_memory=pin)", PINNED),
        ("torch.tensor([1], pin_memory=True)", PINNED),
        ("torch.zeros(4, pin_memory=False)", PAGEABLE),
        ("torch.zeros(4)", PAGEABLE),
        ("torch.zeros(4, device='cpu', pin_memory=True)", PINNED),
        # views of it and stores in place keep it
        ("p[1:]", PINNED),
        ("p[:n]", PINNED),
        ("p.view(2, 2)", PINNED),
        ("p.unsqueeze(0)", PINNED),
        ("p.fill_(1)", PINNED),
        ("p.copy_(torch.zeros(4))", PINNED),
        ("p.zero_()", PINNED),
        # operations make a new tensor, which is pageable
        ("p + 1", PAGEABLE),
        ("p.clone()", PAGEABLE),
        ("p.float()", PAGEABLE),
        ("torch.cat([p, p])", PAGEABLE),
        ("p[[0, 1]]", PAGEABLE),
        ("p[p > 0]", PAGEABLE),
        ("p.cumsum(0)", PAGEABLE),
        # downloads
        ("x.cpu()", PAGEABLE),
        ("d.to('cpu', non_blocking=True)", PINNED),  # torch allocates pinned memory for it
        ("d.to('cpu')", PAGEABLE),
    ],
)
def test_pinned_or_not(expression: str, expected: str) -> None:
    body = f"{MADE}d = torch.zeros(3, device='cuda')\nprobe({expression})"
    assert in_function(body, "x: torch.Tensor, n: int, pin: bool") == expected


def test_pinned_through_an_attribute() -> None:
    code = """
    class Runner:
        def __init__(self):
            self.rows = torch.zeros(4, pin_memory=True)

        def step(self):
            probe(self.rows)
            probe(self.rows[:2])
            probe(self.rows * 2)
    """
    assert [value.pinned for value in probes(code)] == [True, True, False]


def test_added_in_place_keeps_it() -> None:
    assert in_function(MADE + "p += 1\nprobe(p)") == PINNED


def test_a_device_tensor_is_neither() -> None:
    (value,) = probes("def f():\n    probe(torch.zeros(4, pin_memory=True).cuda())\n")
    assert value.pinned is None


def test_pinned_in_one_way_only() -> None:
    assert in_function("p = torch.zeros(4)\nif n:\n    p = p.pin_memory()\nprobe(p)") == PAGEABLE

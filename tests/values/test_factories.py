"""Tensors that are made here: where they live, and what dtype and rank the call shows."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function

HOST = "tensor on the host pageable"
DEVICE = "tensor on the device"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.zeros(3)", HOST),
        ("torch.zeros(3, device='cuda')", DEVICE),
        ("torch.zeros(3, device='cuda:1')", DEVICE),
        ("torch.zeros(3, device='cpu')", HOST),
        ("torch.zeros(3, device=device)", DEVICE),
        ("torch.zeros(3, device=x.device)", DEVICE),
        ("torch.zeros(3, device=None)", HOST),
        ("torch.zeros(3, **options)", "tensor of unknown device"),
        ("torch.arange(n)", HOST),
        ("torch.randint(0, 9, (4,), device=device)", DEVICE),
        ("torch.tensor([1, 2])", HOST),
        ("torch.tensor([1, 2], device=device)", DEVICE),
        ("torch.tensor(n)", "tensor on the host pageable 0-dim"),
        ("torch.tensor(2.0, device=device)", "tensor on the device 0-dim"),
        ("torch.from_numpy(np.zeros(3))", HOST),
        ("torch.as_tensor([1, 2])", HOST),
        ("torch.zeros(3, dtype=torch.bool)", HOST + " mask"),
        ("torch.zeros_like(x)", "tensor of unknown device"),
        ("torch.zeros_like(x, device='cuda')", DEVICE),
        ("torch.empty_like(torch.zeros(3, device='cuda'))", DEVICE),
        ("torch.ones_like(torch.zeros(3))", HOST),
        ("x.new_zeros(3)", "tensor of unknown device"),
        ("torch.zeros(3, device=device).new_empty(4)", DEVICE),
        ("torch.LongTensor([1, 2])", HOST),
    ],
)
def test_a_factory(call: str, expected: str) -> None:
    assert in_function(f"probe({call})", "x: torch.Tensor, n: int, device, options: dict") == expected


def test_under_another_name_of_torch() -> None:
    assert described("import torch as t\nfrom torch import ones\ndef f():\n    probe(t.zeros(3))\n    probe(ones(3, device='cuda'))\n") == [
        HOST,
        DEVICE,
    ]


def test_another_modules_zeros_is_no_tensor() -> None:
    assert described("import mine\ndef f():\n    probe(mine.zeros(3))\n") == ["unknown"]


def test_a_call_inside_a_chain_is_not_the_dotted_name_without_it() -> None:
    assert in_function("probe(torch.thing().zeros(3))") == "unknown"


def test_with_a_device_as_context() -> None:
    body = """
    with torch.device("cuda"):
        probe(torch.zeros(3))
    """
    assert in_function(body) == DEVICE


def test_after_the_context_the_host_is_the_default_again() -> None:
    body = """
    with torch.device("cuda"):
        pass
    probe(torch.zeros(3))
    """
    assert in_function(body) == HOST


def test_after_a_default_device_is_set() -> None:
    assert in_function("torch.set_default_device('cuda')\nprobe(torch.zeros(3))") == DEVICE


def test_a_default_device_of_the_host() -> None:
    assert in_function("torch.set_default_device('cpu')\nprobe(torch.zeros(3))").startswith("tensor on the host")


def test_from_numpy_ignores_the_default_device() -> None:
    body = """
    with torch.device("cuda"):
        probe(torch.from_numpy(np.zeros(3)))
    """
    assert in_function(body) == HOST

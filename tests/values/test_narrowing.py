"""What tests say about a value: isinstance, is_cuda, device.type."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function

DEVICE = "tensor on the device"
HOST = "tensor on the host"
TENSOR = "tensor of unknown device"


@pytest.mark.parametrize(
    ("test", "inside", "after"),
    [
        ("isinstance(v, torch.Tensor)", TENSOR, "unknown"),
        ("torch.is_tensor(v)", TENSOR, None),
        ("isinstance(v, (int, float))", "host scalar", None),
        ("isinstance(v, list)", "host list", None),
        ("isinstance(v, (list, tuple))", "host list", None),
        ("isinstance(v, np.ndarray)", "numpy array", None),
        ("not isinstance(v, torch.Tensor)", "unknown", TENSOR),
        ("n and isinstance(v, torch.Tensor)", TENSOR, None),
        ("v.is_cuda", DEVICE, HOST),
        ("not v.is_cuda", HOST, DEVICE),
        ("v.is_cpu", HOST, DEVICE),
        ("v.device.type == 'cuda'", DEVICE, HOST),
        ("v.device.type == 'cpu'", HOST, DEVICE),
        ("v.device.type != 'cuda'", HOST, DEVICE),
    ],
)
def test_a_test(test: str, inside: str, after: str | None) -> None:
    """`inside` holds where the test does, `after` where it does not; None where nothing is said."""
    code = f"def f(v, n: int):\n    if {test}:\n        probe(v)\n        return\n    probe(v)\n"
    first, second = described(code)
    assert first == inside
    if after is not None:
        assert second == after


def test_an_assertion() -> None:
    assert in_function("assert isinstance(v, torch.Tensor)\nprobe(v)", "v") == TENSOR


def test_a_tensor_that_is_moved_where_it_is_not_yet() -> None:
    assert in_function("v = torch.zeros(3)\nif not v.is_cuda:\n    v = v.cuda()\nprobe(v)").startswith("tensor")


def test_every_way_of_an_elif() -> None:
    code = """
    def f(v):
        if isinstance(v, list):
            probe(v)
        elif isinstance(v, np.ndarray):
            probe(v)
        elif isinstance(v, torch.Tensor):
            probe(v)
        else:
            probe(v)
    """
    assert described(code) == ["host list", "numpy array", TENSOR, "unknown"]


def test_a_list_that_becomes_a_tensor() -> None:
    assert in_function("if isinstance(v, list):\n    v = torch.tensor(v, device='cuda')\nprobe(v)", "v") == DEVICE


def test_the_class_that_is_asked_for() -> None:
    """What is None on the other way does not hide it."""
    code = """
    class Meta:
        rows: torch.Tensor

    def f(table, key: str):
        meta: Base = table.meta
        if meta is not None:
            meta = meta[key]
            assert isinstance(meta, Meta)
        else:
            size = 0
        probe(meta.rows)
        other = table.meta
        if not isinstance(other, Meta):
            probe(other.rows)
    """
    assert described(code) == [TENSOR, "unknown"]


def test_none() -> None:
    code = """
    def f(x: torch.Tensor | None = None):
        if x is None:
            probe(x)
        if x is not None:
            probe(x)
        else:
            probe(x)
    """
    assert described(code) == ["None", TENSOR, "None"]

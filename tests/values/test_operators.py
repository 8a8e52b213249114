"""Arithmetic, comparisons and logic between tensors, arrays, lists and numbers."""

from __future__ import annotations

import pytest

from tests.values.probe import in_function

SETUP = "d = torch.zeros(4, device='cuda')\nh = torch.zeros(4)\na = np.zeros(4)\nl = [1, 2]\nu = whatever()\n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("d + 1", "tensor on the device"),
        ("1 + d", "tensor on the device"),
        ("d * d", "tensor on the device"),
        ("-d", "tensor on the device"),
        ("d @ d.T", "tensor on the device"),
        ("d // 2 % 3", "tensor on the device"),
        ("h + 1", "tensor on the host pageable"),
        ("d * torch.tensor(2.0)", "tensor on the device"),  # a 0-dim host tensor may meet any device
        ("d > 0", "tensor on the device mask"),
        ("d == d", "tensor on the device mask"),
        ("(d > 0) & (d < 9)", "tensor on the device mask"),
        ("~(d > 0)", "tensor on the device mask"),
        pytest.param(
            "(d > 0) + 1",
            "tensor on the device",
            marks=pytest.mark.xfail(reason="known miss: a sum of a mask is taken for a mask", strict=True),
        ),
        ("a + 1", "numpy array"),
        ("a > 0", "numpy array"),
        ("n + 1", "host scalar"),
        ("n > 1", "host scalar"),
        ("not n", "host scalar"),
        ("x is None", "host scalar"),
        ("n in l", "host scalar"),
        ("torch.finfo(torch.float16).min", "host scalar"),
        ("torch.iinfo(torch.int64).max - 1", "host scalar"),
        ("l[1:] - l[:-1]", "tensor of unknown device"),  # so it is none
        ("set(l) - {1}", "host list"),
        ("l * 3", "host list"),
        ("3 * l", "host list"),
        ("l + l", "host list"),
        ("'%d' % n", "host scalar"),
        ("u + 1", "unknown"),  # may still be a tensor
        ("u > 1", "unknown"),
        ("u * d", "tensor on the device"),
        ("d if n else None", "tensor on the device"),
        ("d if n else h", "tensor of unknown device"),
        ("u or d", "tensor on the device"),
        ("(y := d)", "tensor on the device"),
        ("f'{d}'", "host scalar"),
    ],
)
def test_an_operation(expression: str, expected: str) -> None:
    assert in_function(SETUP + f"probe({expression})") == expected


def test_added_in_place() -> None:
    assert in_function("v = torch.zeros(4, device='cuda')\nv += 1\nprobe(v)") == "tensor on the device"
    assert in_function("v = 1\nv += n\nprobe(v)") == "host scalar"
    assert in_function("v = 0\nv += x.sum()\nprobe(v)").startswith("tensor")

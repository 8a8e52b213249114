"""Tuples, unpacking, dictionaries and lists that are filled later."""

from __future__ import annotations

from tests.values.probe import described, in_function

DEVICE = "tensor on the device"


def test_unpacking_a_tuple() -> None:
    assert described("def f(n: int):\n    a, b = torch.zeros(3, device='cuda'), n\n    probe(a)\n    probe(b)\n") == [DEVICE, "host scalar"]


def test_unpacking_nested_tuples() -> None:
    assert in_function("(a, (b, c)) = n, (n, torch.zeros(3, device='cuda'))\nprobe(c)") == DEVICE


def test_unpacking_with_a_star() -> None:
    assert in_function("a, *rest = [x, x, x]\nprobe(rest)") == "host list"
    assert in_function("a, *rest = [x, x, x]\nprobe(rest[0])") == "tensor of unknown device"


def test_unpacking_a_shape() -> None:
    assert in_function("rows, columns = x.shape\nprobe(rows)") == "host scalar"


def test_swapping() -> None:
    assert in_function("a, b = n, torch.zeros(3, device='cuda')\na, b = b, a\nprobe(a)") == DEVICE


def test_members_by_number() -> None:
    assert in_function("t = (n, torch.zeros(3, device='cuda'))\nprobe(t[1])") == DEVICE
    assert in_function("t = (n, torch.zeros(3, device='cuda'))\nprobe(t[-1])") == DEVICE
    assert in_function("t = (n, torch.zeros(3, device='cuda'))\nprobe(t[0])") == "host scalar"


def test_values_and_indices() -> None:
    assert in_function("values, indices = torch.zeros(3, device='cuda').topk(2)\nprobe(indices)") == DEVICE


def test_a_dictionary_of_tensors() -> None:
    assert in_function("d = {'a': torch.zeros(3, device='cuda')}\nprobe(d['a'])") == DEVICE
    assert in_function("d = {'a': torch.zeros(3, device='cuda')}\nprobe(d.get('b'))") == DEVICE
    assert in_function("d = {}\nd['a'] = torch.zeros(3, device='cuda')\nprobe(d['a'])") == DEVICE


def test_a_list_that_is_filled_later() -> None:
    assert in_function("rows = []\nrows.append(torch.zeros(3, device='cuda'))\nprobe(rows[0])") == DEVICE
    assert in_function("rows = []\nrows.extend([torch.zeros(3, device='cuda')])\nprobe(rows[0])") == DEVICE


def test_a_slice_of_a_list_is_a_list() -> None:
    assert in_function("rows = [1, 2, 3]\nprobe(rows[1:])") == "host list"

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


def test_members_of_an_annotated_tuple_have_the_device_of_the_body() -> None:
    code = """
    def use(x: torch.Tensor):
        a, b, c = made(x)
        probe(a)
        probe(b)
        probe(c)
        for row in listed(x):
            probe(row)

    def made(x) -> tuple[torch.Tensor, torch.Tensor, int]:
        return torch.zeros(3), x, anything()

    def listed(x) -> list[torch.Tensor]: ...
    """
    assert described(code) == ["tensor on the host pageable", "tensor of unknown device", "host scalar", "tensor of unknown device"]


def test_two_ways_that_return_tuples_meet_member_by_member() -> None:
    code = """
    def use(x: torch.Tensor, n):
        a, b, c = made(x, n)
        probe(a)
        probe(b)
        probe(c)

    def made(x: torch.Tensor, n):
        if n:
            return None, torch.zeros(3), torch.zeros(3)
        return torch.zeros(3), torch.zeros(3), x.cuda()
    """
    host = "tensor on the host pageable"
    assert described(code) == [host, host, "tensor of unknown device"]


def test_a_method_far_down_that_returns_a_tuple_knows_who_calls_it() -> None:
    code = """
    class Model:
        def forward(self, x: torch.Tensor):
            y = x.cuda()
            return self.outer(y)

        def outer(self, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            a, b = self.inner(y)
            return a, b

        def inner(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            probe(z)
            return z, z
    """
    assert described(code) == [DEVICE]


def test_pinned_memory_with_a_fallback_is_not_called_pageable() -> None:
    code = """
    def use(n):
        a, b = made(n)
        probe(a)
        probe(b)

    def made(n: int):
        try:
            return torch.empty(n, pin_memory=True), n
        except RuntimeError:
            if n > 3:
                return torch.empty(3), n
        return torch.empty(n), n
    """
    assert described(code) == ["tensor on the host", "host scalar"]

"""What an operation says of its operands, and where it says nothing."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function

DEVICE = "tensor on the device"
HOST = "tensor on the host"
UNKNOWN = "tensor of unknown device"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("table = torch.zeros(3)\ny = table[ids]\nprobe(ids)", HOST),
        ("table = torch.zeros(3)\ny = table[0, ids]\nprobe(ids)", HOST),
        ("table = torch.zeros(3)\ntable[ids] = 1\nprobe(ids)", HOST),
        ("table = torch.zeros(3)\nmask = table[ids] == 0\nprobe(ids[mask])", f"{HOST} pageable"),
        ("table = torch.zeros(3, device='cuda')\ny = table[ids]\nprobe(ids)", UNKNOWN),
        ("ids = ids.cuda()\ntable = torch.zeros(3)\ny = table[ids]\nprobe(ids)", DEVICE),
        ("y = rows[ids]\nprobe(ids)", UNKNOWN),
    ],
)
def test_what_indexes_a_tensor_of_the_host(body: str, expected: str) -> None:
    assert in_function(body, "ids: torch.Tensor, rows: torch.Tensor") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = x.view(n, self.heads)\nprobe(self.heads)", "host scalar"),
        ("y = x.reshape(n, -1, self.heads)\nprobe(self.heads)", "host scalar"),
        ("y = x.view(n, self.heads)\nprobe(self.heads // self.groups)", "unknown"),
        ("y = x.view(shape)\nprobe(shape)", "unknown"),
        ("y = self.rows.view(n, self.heads)\nprobe(self.heads)", "unknown"),
        ("y = x.gather(n, self.heads)\nprobe(self.heads)", "unknown"),
    ],
)
def test_what_is_given_as_a_size(body: str, expected: str) -> None:
    assert in_function(body, "self, x: torch.Tensor, n, shape") == expected


@pytest.mark.parametrize(
    ("test", "inside", "after"),
    [
        ("any(t.is_cuda for t in ts)", UNKNOWN, HOST),
        ("any([isinstance(t, torch.Tensor) and t.is_cuda for t in ts])", UNKNOWN, HOST),
        ("not any(t.is_cuda for t in ts)", HOST, UNKNOWN),
        ("all(t.is_cuda for t in ts)", UNKNOWN, UNKNOWN),
        ("any(t.is_cuda for t in ts if n)", UNKNOWN, UNKNOWN),
        ("any(t.is_cuda and n for t in ts)", UNKNOWN, UNKNOWN),
        ("any(o.is_cuda for t in ts)", UNKNOWN, UNKNOWN),
    ],
)
def test_none_of_them_is_on_the_device(test: str, inside: str, after: str) -> None:
    code = f"""
    def f(ts: list[torch.Tensor], n, o):
        if {test}:
            probe(ts[0])
            return
        for t in ts:
            probe(t)
    """
    assert described(code) == [inside, after]


def test_a_block_whose_default_device_is_the_host() -> None:
    code = """
    def f(x: torch.Tensor, z: torch.Tensor):
        with torch.device("cpu"):
            probe(x.unique())
            z = z.cuda()
        probe(x)
        probe(z)
        with torch.device("cuda"):
            probe(x)
    """
    assert described(code) == [f"{HOST} pageable", UNKNOWN, DEVICE, UNKNOWN]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("move_to_cpu(x)", HOST),
        ("to_numpy(x)", "numpy array"),
        ("promised_to_cpu(x)", HOST),
        ("sent_to_cpu(x)", DEVICE),
        ("move_to_cpu_group(x)", "unknown"),
        ("move_to_cpu([1])", "unknown"),
    ],
)
def test_a_function_named_after_where_it_takes_a_tensor(call: str, expected: str) -> None:
    code = f"""
    def promised_to_cpu(x) -> torch.Tensor: ...
    def sent_to_cpu(x):
        return torch.zeros(3, device="cuda")
    def f(x: torch.Tensor):
        probe({call})
    """
    assert described(code) == [expected]

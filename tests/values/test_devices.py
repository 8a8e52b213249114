"""The device argument in all its spellings."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function, probes

DEVICE = "tensor on the device"
HOST = "tensor on the host pageable"


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("'cuda'", DEVICE),
        ('"cuda:0"', DEVICE),
        ("f'cuda:{n}'", DEVICE),
        ("0", DEVICE),
        ("device", DEVICE),
        ("my_device", DEVICE),
        ("self.device", DEVICE),
        ("self.config.device", DEVICE),
        ("x.device", DEVICE),
        ("torch.device('cuda')", DEVICE),
        ("torch.device('cuda', n)", DEVICE),
        ("torch.device(f'cuda:{n}')", DEVICE),
        ("torch.cuda.current_device()", DEVICE),
        ("torch.get_default_device()", DEVICE),
        ("get_device()", DEVICE),
        ("'xpu'", DEVICE),
        ("'npu:0'", DEVICE),
        ("'cuda' if n else 'cpu'", DEVICE),
        ("None or device", DEVICE),
        ("'cpu'", HOST),
        ("torch.device('cpu')", HOST),
        ("cpu_device", HOST),
        ("torch.zeros(3).device", HOST),
        ("torch.zeros(3, device='cpu').device", HOST),
        ("wherever", "tensor of unknown device"),
    ],
)
def test_a_device_argument(spelled: str, expected: str) -> None:
    parameters = "self, x: torch.Tensor, n: int, device, my_device, cpu_device, wherever"
    assert in_function(f"probe(torch.zeros(3, device={spelled}))", parameters) == expected


@pytest.mark.parametrize(("made", "expected"), [("torch.device('cuda')", DEVICE), ("torch.device('cpu')", HOST), ("x.device", DEVICE)])
def test_a_variable_that_holds_a_device(made: str, expected: str) -> None:
    assert in_function(f"where = {made}\nprobe(torch.zeros(3, device=where))") == expected
    assert in_function(f"where = {made}\nprobe(x.to(where))") == expected


def test_a_device_of_the_module() -> None:
    assert described("WHERE = torch.device('cuda')\ndef f():\n    probe(torch.zeros(3, device=WHERE))\n") == [DEVICE]


def test_a_device_that_the_object_keeps() -> None:
    code = """
    class Runner:
        def __init__(self):
            self.where = torch.device("cpu")

        def step(self):
            probe(torch.zeros(3, device=self.where))
    """
    assert described(code) == [HOST]


@pytest.mark.parametrize("parameter", ["device: torch.device", "device: str", "device"])
def test_a_parameter_called_device(parameter: str) -> None:
    assert in_function("probe(torch.zeros(3, device=device))", parameter) == DEVICE


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("device = 'cpu'", HOST),
        ("device: str = 'cpu'", HOST),
        ("device = 'cpu' if n else 'cpu'", HOST),
        ("where = 'cpu'\ndevice = where", HOST),
        ("if n:\n    device = 'cpu'\nelse:\n    device = 'cpu'", HOST),
        ("device = 'cpu' if n else 'cuda'", DEVICE),
        ("device = 'cpu' if n else device", DEVICE),
        ("device = device or 'cpu'", DEVICE),
        ("if n:\n    device = 'cpu'", DEVICE),
        ("try:\n    device = 'cuda'\nexcept E:\n    device = 'cpu'", DEVICE),
        ("device = ''", DEVICE),
    ],
)
def test_a_variable_that_holds_the_text_cpu(bound: str, expected: str) -> None:
    assert in_function(f"{bound}\nprobe(torch.zeros(3, device=device))") == expected
    assert in_function(f"{bound}\nprobe(x.to(device))") == expected


def test_the_text_cpu_as_an_attribute_may_be_another_on_another_way() -> None:
    assert in_function("if n:\n    self.device = 'cpu'\nprobe(x.to(self.device))", "self, x: torch.Tensor, n") == DEVICE


def test_the_text_cpu_as_a_constant_of_the_module() -> None:
    code = """
    WHERE = "cpu"
    def f(x: torch.Tensor, device=WHERE, other=torch.device("cpu"), third="cuda"):
        probe(x.to(WHERE))
        probe(x.to(torch.device(WHERE)))
        probe(x.to(device))
        probe(x.to(other))
        probe(x.to(device=third))
    """
    open_ = "tensor of unknown device"  # a default of the host may be given another device
    assert described(code) == [HOST, HOST, open_, open_, open_]


def test_made_where_only_a_name_says_that_it_is_on_the_host() -> None:
    code = """
    def f(rows_cpu: torch.Tensor, x: torch.Tensor):
        probe(torch.zeros(3, device=rows_cpu.device))
        probe(torch.zeros(3, device=torch.zeros(3).device))
    """
    assert [(value.on_host, value.by_name) for value in probes(code)] == [(True, True), (True, False)]

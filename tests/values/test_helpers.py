"""What functions and methods of the same file return."""

from __future__ import annotations

from tests.values.probe import described

DEVICE = "tensor on the device"
HOST = "tensor on the host pageable"


def test_a_helper_without_annotations() -> None:
    assert described("def make(n):\n    return torch.zeros(n, device='cuda')\ndef f(n: int):\n    probe(make(n))\n") == [DEVICE]


def test_a_helper_that_is_defined_later() -> None:
    assert described("def f(n: int):\n    probe(make(n))\ndef make(n):\n    return torch.zeros(n, device='cuda')\n") == [DEVICE]


def test_an_annotated_helper_keeps_the_device_that_its_body_shows() -> None:
    assert described("def make() -> torch.Tensor:\n    return torch.zeros(3, device='cuda')\ndef f():\n    probe(make())\n") == [DEVICE]


def test_an_annotation_answers_where_the_body_is_silent() -> None:
    assert described("def make() -> np.ndarray:\n    return other()\ndef f():\n    probe(make())\n") == ["numpy array"]


def test_several_returns_are_joined() -> None:
    code = """
    def make(n):
        if n:
            return None
        return torch.zeros(n, device="cuda")

    def both(n):
        if n:
            return torch.zeros(3)
        return torch.zeros(3, device="cuda")

    def f(n: int):
        probe(make(n))
        probe(both(n))
    """
    assert described(code) == [DEVICE, "tensor of unknown device"]


def test_a_tuple_of_results() -> None:
    code = "def make():\n    return 3, torch.zeros(3, device='cuda')\ndef f():\n    n, rows = make()\n    probe(n)\n    probe(rows)\n"
    assert described(code) == ["host scalar", DEVICE]


def test_a_helper_of_a_helper() -> None:
    assert described("def a():\n    return torch.zeros(3)\ndef b():\n    return a().cuda()\ndef f():\n    probe(b())\n") == [DEVICE]


def test_a_method() -> None:
    code = """
    class Runner:
        def make(self):
            return torch.zeros(3, device=self.device)

        @staticmethod
        def rows(values: list[int]):
            return np.array(values)

        def step(self):
            probe(self.make())
            probe(self.rows([1]))
    """
    assert described(code) == [DEVICE, "numpy array"]


def test_a_helper_that_is_given_host_tensors_returns_one() -> None:
    code = """
    def both(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b

    def f():
        h = torch.zeros(3)
        probe(both(h, h))
    """
    assert described(code) == [HOST]


def test_an_inner_function_sees_what_is_around_it() -> None:
    assert described("def f():\n    rows = torch.zeros(3, device='cuda')\n    def inner():\n        probe(rows)\n    inner()\n") == [DEVICE]


def test_a_value_of_the_module() -> None:
    assert described("ROWS = torch.zeros(3)\ndef f():\n    probe(ROWS)\n") == [HOST]


def test_functions_that_call_each_other_end() -> None:
    assert described("def a():\n    return b()\ndef b():\n    return a()\ndef f():\n    probe(a())\n") == ["unknown"]

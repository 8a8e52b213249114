"""Lists, numbers and numpy arrays of the host."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2]", "host list"),
        ("list(x)", "host list"),
        ("range(n)", "host list"),
        ("set()", "host list"),
        ("[0] * n", "host list"),
        ("[0] * x.item()", "host list"),
        ("(1, 2)", "tuple"),
        ("{}", "dict"),
        ("dict(a=1)", "dict"),
        ("1", "host scalar"),
        ("'a'", "host scalar"),
        ("None", "None"),
        ("len(x)", "host scalar"),
        ("int(x)", "host scalar"),
        ("x.item() + 1", "host scalar"),
        ("math.ceil(n / 2)", "host scalar"),
        ("np.zeros(3)", "numpy array"),
        ("np.zeros(3)[1:]", "numpy array"),
        ("np.zeros(3) * 2", "numpy array"),
        ("np.cumsum([1, 2])", "numpy array"),
        ("np.zeros(3).astype(np.int32)", "numpy array"),
        ("np.zeros(3).tolist()", "host list"),
        ("np.zeros(3).shape", "host list"),
        ("np.prod([1, 2])", "host scalar"),
        ("np.int32", "dtype"),
        ("x.cpu().numpy()[0]", "numpy array"),
        ("torch.from_numpy(x.cpu().numpy())", "tensor on the host pageable"),
        ("itertools.accumulate([1])", "host list"),
        ("batch.get_rows_cpu()", "tensor on the host"),
        ("batch.get_rows_np()", "numpy array"),
        ("batch.get_rows()", "unknown"),
        ("'a b'.split()", "host list"),
        ("isinstance(x, torch.Tensor)", "host scalar"),
    ],
)
def test_host_data(expression: str, expected: str) -> None:
    assert in_function(f"import math, itertools\nprobe({expression})") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rows_np", "numpy array"),
        ("token_list", "host list"),
        ("lengths_cpu", "tensor on the host"),
        ("rows_gpu", "tensor on the device"),
        ("is_cpu", "unknown"),
        ("cpu_group", "unknown"),
        ("rows", "unknown"),
    ],
)
def test_what_a_name_says_where_the_code_says_nothing(name: str, expected: str) -> None:
    assert in_function(f"probe({name})", name) == expected


@pytest.mark.parametrize(
    ("name", "made"), [("rows_np", "torch.zeros(3, device='cuda')"), ("rows_cpu", "np.zeros(3)"), ("rows_gpu", "[1, 2]")]
)
def test_the_code_wins_over_the_name(name: str, made: str) -> None:
    assert in_function(f"{name} = {made}\nprobe({name})") == in_function(f"v = {made}\nprobe(v)")


def test_an_assignment_is_found_on_the_host() -> None:
    code = """
    def f(cost):
        from scipy.optimize import linear_sum_assignment
        rows, columns = linear_sum_assignment(cost)
        probe(rows)
        probe(torch.as_tensor(columns))
    """
    assert described(code) == ["numpy array", "tensor on the host pageable"]

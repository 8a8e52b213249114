"""What annotations promise: plain, as strings, unions, containers, fields of dataclasses."""

from __future__ import annotations

import pytest

from tests.values.probe import described, in_function

TENSOR = "tensor of unknown device"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("torch.Tensor", TENSOR),
        ('"torch.Tensor"', TENSOR),
        ("torch.Tensor | None", TENSOR),
        ("None | torch.Tensor", TENSOR),
        ('"torch.Tensor | None"', TENSOR),
        ("Optional[torch.Tensor]", TENSOR),
        ("Union[int, torch.Tensor]", TENSOR),
        ("Annotated[torch.Tensor, 3]", TENSOR),
        ("nn.Parameter", TENSOR),
        ("torch.LongTensor", TENSOR),
        ("list[int]", "host list"),
        ("Sequence[torch.Tensor]", "host list"),
        ("np.ndarray", "numpy array"),
        ("npt.NDArray[np.int32]", "numpy array"),
        ("dict[str, torch.Tensor]", "dict"),
        ("int", "host scalar"),
        ("float | None", "host scalar"),
        ("torch.device", "device"),
        ("torch.dtype", "dtype"),
        ("Config", "object Config"),
        ("Any", "unknown"),
        ("list[", "unknown"),
    ],
)
def test_a_parameter_is_what_its_annotation_says(annotation: str, expected: str) -> None:
    if annotation == "list[":  # only a string can hold a broken annotation
        annotation = repr(annotation)
    assert in_function("probe(v)", f"v: {annotation}") == expected


@pytest.mark.parametrize(
    ("annotation", "access", "expected"),
    [
        ("list[torch.Tensor]", "v[0]", TENSOR),
        ("dict[str, torch.Tensor]", 'v["a"]', TENSOR),
        ("dict[str, list[int]]", 'v["a"]', "host list"),
        ("tuple[int, torch.Tensor]", "v[1]", TENSOR),
        ("tuple[int, torch.Tensor]", "v[0]", "host scalar"),
        ("tuple[torch.Tensor, ...]", "v[7]", TENSOR),
    ],
)
def test_an_element_is_what_the_annotation_of_its_container_says(annotation: str, access: str, expected: str) -> None:
    assert in_function(f"probe({access})", f"v: {annotation}") == expected


def test_starred_parameters() -> None:
    assert described("def f(*rows: torch.Tensor, **named: np.ndarray):\n    probe(rows[0])\n    probe(named['a'])\n") == [
        TENSOR,
        "numpy array",
    ]


def test_a_variable_keeps_the_device_that_the_code_shows() -> None:
    assert in_function("v: torch.Tensor = torch.zeros(3, device='cuda')\nprobe(v)") == "tensor on the device"


def test_an_annotated_variable_without_a_telling_value() -> None:
    assert in_function("v: torch.Tensor = whatever()\nprobe(v)") == TENSOR


def test_fields_of_a_dataclass() -> None:
    code = """
    @dataclass
    class Batch:
        tokens: torch.Tensor
        lengths: "list[int]"
        mask: torch.Tensor | None = None

    def f(batch: Batch):
        probe(batch.tokens)
        probe(batch.lengths)
        probe(batch.mask)
    """
    assert described(code) == [TENSOR, "host list", TENSOR]


def test_a_field_of_a_field() -> None:
    code = """
    class Inner:
        rows: torch.Tensor

    class Outer:
        inner: Inner

    def f(outer: Outer):
        probe(outer.inner.rows)
    """
    assert described(code) == [TENSOR]

"""Views and indexing: the result lives where the tensor does."""

from __future__ import annotations

import pytest

from tests.values.probe import in_function

_VIEWS = (
    "v.view(-1)", "v.reshape(2, 2)", "v.unsqueeze(0)", "v.transpose(0, 1)", "v.t()", "v.T", "v[1:3]", "v[0]", "v[:, None]", "v[..., 0]",
    "v.data", "v.expand(4, -1)", "v.flatten()", "v.narrow(0, 1, 2)", "v.detach()", "torch.flatten(v)", "torch.squeeze(v)",
)  # fmt: skip


@pytest.mark.parametrize("view", _VIEWS)
@pytest.mark.parametrize(("device", "expected"), [("cuda", "tensor on the device"), ("cpu", "tensor on the host pageable")])
def test_a_view_lives_where_its_tensor_does(view: str, device: str, expected: str) -> None:
    assert in_function(f"v = torch.zeros(4, 4, device='{device}')\nprobe({view})") == expected


def test_a_view_of_a_mask_is_a_mask() -> None:
    assert in_function("v = x > 0\nprobe(v.view(-1))").endswith("mask")


@pytest.mark.parametrize("call", ["v.chunk(2)", "v.split(2)", "torch.chunk(v, 2)", "v.unbind(0)"])
def test_pieces_are_a_list_of_tensors(call: str) -> None:
    assert in_function(f"v = torch.zeros(4, device='cuda')\nprobe({call})") == "host list"
    assert in_function(f"v = torch.zeros(4, device='cuda')\nprobe({call}[0])") == "tensor on the device"


def test_indexing_with_a_mask() -> None:
    assert in_function("v = torch.zeros(4, device='cuda')\nprobe(v[v > 0])") == "tensor on the device"


@pytest.mark.parametrize(
    "metadata", ["x.shape[0]", "x.size(0)", "x.dim()", "x.ndim", "x.numel()", "x.is_cuda", "x.element_size()", "x.stride(0)"]
)
def test_metadata_is_a_number_of_the_host(metadata: str) -> None:
    assert in_function(f"probe({metadata})") == "host scalar"


def test_a_shape_is_a_list_of_the_host() -> None:
    assert in_function("probe(x.shape)") == "host list"
    assert in_function("probe(x.dtype)") == "dtype"


def test_a_size_is_a_list_of_the_host() -> None:
    assert in_function("probe(x.size())") == "host list"

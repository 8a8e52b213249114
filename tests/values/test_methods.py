"""Methods and functions of torch: moves, reads, reductions, results that are pairs, lists and numbers."""

from __future__ import annotations

import pytest

from tests.values.probe import in_function

SETUP = "d = torch.zeros(4, 4, device='cuda')\nh = torch.zeros(4, 4)\n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("d.cpu()", "tensor on the host pageable"),
        ("h.cuda()", "tensor on the device"),
        ("h.cuda(0, non_blocking=True)", "tensor on the device"),
        ("h.to('cuda')", "tensor on the device"),
        ("d.to('cpu')", "tensor on the host pageable"),
        ("h.to(device)", "tensor on the device"),
        ("h.to(device=device, dtype=torch.half)", "tensor on the device"),
        ("h.to(d)", "tensor on the device"),
        ("h.to(d.device)", "tensor on the device"),
        ("d.to(h.device)", "tensor on the host pageable"),
        ("d.to(torch.float32)", "tensor on the device"),
        ("h.to(torch.float32)", "tensor on the host pageable"),
        ("d.float()", "tensor on the device"),
        ("(d > 0).float()", "tensor on the device"),
        ("d.bool()", "tensor on the device mask"),
        ("d.type(torch.int32)", "tensor on the device"),
        ("d.numpy()", "numpy array"),
        ("d.cpu().numpy()", "numpy array"),
        ("d.tolist()", "host list"),
        ("d.item()", "host scalar"),
        ("d.size()", "host list"),
        ("d.size(0)", "host scalar"),
        ("d.size(dim=0)", "host scalar"),
        ("d.stride()", "host list"),
        ("d.stride(0)", "host scalar"),
        ("d.size()[0]", "host scalar"),
        ("d.sum()", "tensor on the device 0-dim"),
        ("d.sum(dim=0)", "tensor on the device"),
        ("d.max()", "tensor on the device 0-dim"),
        ("d.max(0)[1]", "tensor on the device"),
        ("d.max(dim=0)", "tuple"),
        ("d.topk(2)[0]", "tensor on the device"),
        ("d.sort()", "tuple"),
        ("d.argmax(-1)", "tensor on the device"),
        ("(d > 0).any()", "tensor on the device mask 0-dim"),
        ("d.nonzero()", "tensor on the device"),
        ("d.masked_fill(d > 0, 1.0)", "tensor on the device"),
        ("d.fill_(1)", "tensor on the device"),
        ("d.copy_(h)", "tensor on the device"),
        ("torch.cat([d, d])", "tensor on the device"),
        ("torch.stack((d, x))", "tensor on the device"),
        ("torch.where(d > 0, d, 0)", "tensor on the device"),
        ("torch.matmul(d, x)", "tensor on the device"),
        ("torch.cat([h, h])", "tensor on the host pageable"),
        ("torch.nn.functional.softmax(d, dim=-1)", "tensor on the device"),
        ("torch.cuda.current_stream()", "unknown"),
        ("torch.cuda.is_available()", "unknown"),
    ],
)
def test_a_call(expression: str, expected: str) -> None:
    assert in_function(SETUP + f"probe({expression})") == expected


@pytest.mark.parametrize("call", ["v.unsqueeze(0)", "v.contiguous()", "v.masked_fill(m, 0)", "v.size(0)", "v.numel()", "v.data_ptr()"])
def test_a_parameter_on_which_only_a_tensor_method_is_called_is_a_tensor(call: str) -> None:
    assert in_function(f"{call}\nprobe(v)", "v, m") == "tensor of unknown device"


@pytest.mark.parametrize("call", ["v.append(1)", "v.get(1)", "v.copy()", "v.sum()", "v.mean()"])
def test_a_method_that_others_have_too_proves_nothing(call: str) -> None:
    assert in_function(f"{call}\nprobe(v)", "v") == "unknown"

"""Operations and what CUDA semantics say they cost: the battery for the dry run, and for measuring the same on a GPU.

The expectations come from ATen's source and PyTorch's documentation, not from the table of facts that they test.

An expectation is a list of words: `L` at least one launch, `L2` exactly two, `W1` one wait, `P1` one upload from pageable
memory, `p1` one from pinned memory, `D1` one download, `?1` one non-blocking copy of pageable memory. What is not named does
not happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F


@dataclass
class Data:
    """The operands: on the device `x`, `y` (float, 4), `i` (int64, 4), `m` (mask, 4), `a` (float, 2 x 4), `s` (0-dim); on the host
    `c` (float, 4), `ci` (int64, 2), `cm` (mask, 4), `cs` (0-dim), `p` (float, 4, pinned)."""

    x: torch.Tensor
    y: torch.Tensor
    i: torch.Tensor
    m: torch.Tensor
    a: torch.Tensor
    s: torch.Tensor
    c: torch.Tensor
    ci: torch.Tensor
    cm: torch.Tensor
    cs: torch.Tensor
    p: torch.Tensor


def make_data() -> Data:
    """Operands on the device that is there: the pretended one in a dry run."""
    device = torch.device("cuda")
    return Data(
        x=torch.tensor([1.0, 2.0, 1.0, 3.0], device=device),
        y=torch.tensor([2.0, 1.0, 0.5, 4.0], device=device),
        i=torch.tensor([0, 1, 2, 1], device=device),
        m=torch.tensor([True, False, True, False], device=device),
        a=torch.arange(8.0, device=device).view(2, 4),
        s=torch.tensor(2.0, device=device),
        c=torch.ones(4),
        ci=torch.tensor([0, 1]),
        cm=torch.tensor([True, False, True, False]),
        cs=torch.tensor(2.0),
        p=torch.ones(4, pin_memory=True),
    )


@dataclass(frozen=True)
class Entry:
    """One operation of the battery."""

    name: str
    call: Callable[[Data], Any]
    expected: str
    version: tuple[int, int] = (2, 5)  # the first torch that has it


def store(target: torch.Tensor, index: Any, value: Any) -> None:
    """`target[index] = value`."""
    target[index] = value


def number(value: Any) -> Any:
    """`value`, whose type the stubs of torch are too narrow for."""
    return value


def as_type(tensor: Any, wanted: Any) -> Any:
    """`tensor.type(wanted)` with a tensor type, which the stubs of torch leave out."""
    return tensor.type(wanted)


def attend(d: Data) -> Any:
    """Attention over one head of 2 x 4."""
    q = d.a.view(1, 1, 2, 4)
    return F.scaled_dot_product_attention(q, q, q)


def backward(d: Data) -> Any:
    """A backward pass through one product."""
    w = d.y.detach().requires_grad_()
    (w * d.x).sum().backward()  # type: ignore[no-untyped-call]
    return w.grad


def module(d: Data) -> Any:
    """A linear layer made on the device and called."""
    layer = torch.nn.Linear(4, 2, device="cuda")
    return layer(d.a)


def moved_module(d: Data) -> Any:
    """A linear layer made on the host and moved: two parameters, two blocking uploads."""
    return torch.nn.Linear(4, 2).to("cuda")


def default_device(d: Data) -> Any:
    """A factory under a device context."""
    with torch.device("cuda"):
        return torch.zeros(3)


def side_stream(d: Data) -> Any:
    """Work on another stream, with an event; nothing makes the host wait."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = d.x * 2
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(stream)
    torch.cuda.current_stream().wait_event(event)
    return out


def awaited_event(d: Data) -> None:
    """The idiom for reading back: the host waits for an event."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    event.synchronize()


def step_of_sgd(d: Data) -> None:
    """An optimizer step over two parameters, in its foreach form."""
    parameters = [torch.nn.Parameter(d.x.clone()), torch.nn.Parameter(d.y.clone())]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(parameters, lr=0.1, foreach=True).step()


def step_of_adam(d: Data) -> None:
    """An optimizer step that keeps its step count on the host."""
    parameter = torch.nn.Parameter(d.x.clone())
    parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam([parameter]).step()


def clip_gradients(d: Data) -> None:
    """Clipping by the norm of all gradients, which never leaves the device."""
    parameter = torch.nn.Parameter(d.x.clone())
    parameter.grad = torch.ones_like(parameter)
    torch.nn.utils.clip_grad_norm_([parameter], 1.0)


BATTERY: tuple[Entry, ...] = (
    # ---- factories
    Entry("empty on the device", lambda d: torch.empty(3, device="cuda"), ""),
    Entry("zeros on the device", lambda d: torch.zeros(3, device="cuda"), "L1"),
    Entry("zeros of no element", lambda d: torch.zeros(0, device="cuda"), ""),
    Entry("zeros on the host", lambda d: torch.zeros(3), ""),
    Entry("full", lambda d: torch.full((3,), 7, device="cuda"), "L1"),
    Entry("arange", lambda d: torch.arange(3, device="cuda"), "L1"),
    Entry("linspace", lambda d: torch.linspace(0, 1, 5, device="cuda"), "L1"),
    Entry("eye", lambda d: torch.eye(3, device="cuda"), "L"),
    Entry("rand", lambda d: torch.rand(3, device="cuda"), "L1"),
    Entry("randint", lambda d: torch.randint(0, 5, (3,), device="cuda"), "L1"),
    Entry("randperm", lambda d: torch.randperm(5, device="cuda"), "L"),
    Entry("tensor of a list", lambda d: torch.tensor([1, 2, 3], device="cuda"), "P1 W1"),
    Entry("tensor of a number", lambda d: torch.tensor(1.0, device="cuda"), "P1 W1"),
    Entry("as_tensor of a list", lambda d: torch.as_tensor([1, 2], device="cuda"), "P1 W1"),
    Entry("as_tensor of a device tensor", lambda d: torch.as_tensor(d.x, device="cuda"), ""),
    Entry("tensor of device scalars", lambda d: torch.tensor([d.x[0], d.x[1]]), "D2 W2"),
    Entry("new_tensor", lambda d: d.x.new_tensor([1, 2]), "P1 W1"),
    Entry("new_tensor on the host", lambda d: d.x.new_tensor([1, 2], device="cpu"), ""),
    Entry("new_zeros", lambda d: d.x.new_zeros(3), "L1"),
    Entry("new_empty", lambda d: d.x.new_empty(3), ""),
    Entry("new_full", lambda d: d.x.new_full((3,), 2.0), "L1"),
    Entry("zeros_like", lambda d: torch.zeros_like(d.x), "L1"),
    Entry("zeros_like on the host", lambda d: torch.zeros_like(d.x, device="cpu"), ""),
    Entry("ones_like of a host tensor on the device", lambda d: torch.ones_like(d.c, device="cuda"), "L1"),
    Entry("empty_like", lambda d: torch.empty_like(d.x), ""),
    Entry("rand_like", lambda d: torch.rand_like(d.x), "L1"),
    Entry("factory in a device context", default_device, "L1"),
    Entry("arange up to a device scalar", lambda d: torch.arange(number(d.i[1]), device="cuda"), "L1 D1 W1"),
    # ---- views and metadata
    Entry("view and transpose", lambda d: d.x.view(2, 2).transpose(0, 1), ""),
    Entry("reshape of a dense tensor", lambda d: d.a.reshape(4, 2), ""),
    Entry("reshape that copies", lambda d: d.x.view(2, 2).t().reshape(-1), "L1"),
    Entry("expand and unsqueeze", lambda d: d.x.unsqueeze(0).expand(3, 4), ""),
    Entry("contiguous of a dense tensor", lambda d: d.x.contiguous(), ""),
    Entry("contiguous that copies", lambda d: d.a.t().contiguous(), "L1"),
    Entry("chunk and split", lambda d: (d.x.chunk(2), torch.split(d.x, [1, 3])), ""),
    Entry("iterate over rows", lambda d: list(d.a), ""),
    Entry("numel, size, stride, dtype", lambda d: (d.x.numel(), d.x.size(0), d.x.stride(), d.x.dtype), ""),
    Entry("device and is_cuda", lambda d: (d.x.device, d.x.is_cuda, d.x.get_device()), ""),
    Entry("detach", lambda d: d.x.detach(), ""),
    # ---- indexing
    Entry("x[1:3]", lambda d: d.x[1:3], ""),
    Entry("x[2]", lambda d: d.x[2], ""),
    Entry("x[None, ..., ::2]", lambda d: d.x[None, ..., ::2], ""),
    Entry("x[device indices]", lambda d: d.x[d.i], "L1"),
    Entry("x[host indices]", lambda d: d.x[d.ci], "L1 P1 W1"),
    Entry("x[list]", lambda d: d.x[[0, 1]], "L1 P1 W1"),
    Entry("a[:, list]", lambda d: d.a[:, [0, 2]], "L1 P1 W1"),
    Entry("x[device mask]", lambda d: d.x[d.m], "L D1 W1"),
    Entry("x[host mask]", lambda d: d.x[d.cm], "L P1 W1"),
    Entry("x[device scalar]", lambda d: d.x[d.i[1]], "D1 W1"),
    Entry("x[:device scalar]", lambda d: d.x[: d.i[1]], "D1 W1"),
    Entry("index_select", lambda d: d.x.index_select(0, d.i), "L1"),
    Entry("gather", lambda d: d.x.gather(0, d.i), "L1"),
    Entry("take_along_dim", lambda d: d.x.take_along_dim(d.i, 0), "L"),
    # ---- stores
    Entry("x[1:3] = number", lambda d: store(d.x, slice(1, 3), 2.0), "L1"),
    Entry("x[1:3].fill_", lambda d: d.x[1:3].fill_(2), "L1"),
    Entry("x[1:3] = device tensor", lambda d: store(d.x, slice(1, 3), d.y[1:3]), "L1"),
    Entry("x[:] = host tensor", lambda d: store(d.x, slice(None), d.c), "P1 W1"),
    Entry("x[2] = device scalar", lambda d: store(d.x, 2, d.s), "L1"),
    Entry("x[mask] = number", lambda d: store(d.x, d.m, 1.0), "L1"),
    Entry("x[mask] = device tensor", lambda d: store(d.x, d.m, d.y[:2]), "L D1 W1"),
    Entry("x[mask] = device scalar", lambda d: store(d.x, d.m, d.s), "L D1 W1"),
    Entry("x[device indices] = device tensor", lambda d: store(d.x, d.i, d.y), "L1"),
    Entry("x[list] = device tensor", lambda d: store(d.x, [0, 1], d.y[:2]), "L1 P1 W1"),
    Entry("masked_fill", lambda d: d.x.masked_fill(d.m, 0.0), "L1"),
    Entry("masked_fill_ with a device scalar", lambda d: d.x.masked_fill_(d.m, d.s), "L1 D1 W1"),
    Entry("index_fill_", lambda d: d.x.index_fill_(0, d.i, 1.0), "L1"),
    Entry("index_copy_", lambda d: d.x.index_copy_(0, d.i, d.y), "L1"),
    Entry("index_add_", lambda d: d.x.index_add_(0, d.i, d.y), "L1"),
    Entry("scatter_", lambda d: d.x.scatter_(0, d.i, d.y), "L1"),
    Entry("scatter_add_", lambda d: d.x.scatter_add_(0, d.i, d.y), "L1"),
    Entry("zero_", lambda d: d.x.zero_(), "L1"),
    Entry("fill_ with a device scalar", lambda d: d.x.fill_(d.s), "L1"),
    # ---- element by element
    Entry("x + 1", lambda d: d.x + 1, "L1"),
    Entry("x + y", lambda d: d.x + d.y, "L1"),
    Entry("x * host scalar tensor", lambda d: d.x * d.cs, "L1"),
    Entry("x += 1", lambda d: d.x.add_(1), "L1"),
    Entry("out=", lambda d: torch.add(d.x, d.y, out=torch.empty_like(d.x)), "L1"),
    Entry("x > 0", lambda d: d.x > 0, "L1"),
    Entry("clamp", lambda d: d.x.clamp(0, 1), "L1"),
    Entry("where with two tensors", lambda d: torch.where(d.m, d.x, d.y), "L1"),
    Entry("where with a number", lambda d: torch.where(d.m, d.x, 0.0), "L2"),
    Entry("where with a host scalar tensor", lambda d: torch.where(d.m, d.x, d.cs), "L1 P1 W1"),
    Entry("two host tensors", lambda d: d.c * 2 + d.c, ""),
    Entry("sigmoid, exp, sqrt", lambda d: d.x.sigmoid().exp().sqrt(), "L3"),
    Entry("operation without elements", lambda d: d.x[:0] + 1, ""),
    Entry("isin with few elements", lambda d: torch.isin(d.x, d.y[:2]), "L"),
    # ---- reductions
    Entry("sum", lambda d: d.x.sum(), "L1"),
    Entry("mean over a dimension", lambda d: d.a.mean(0), "L1"),
    Entry("max with indices", lambda d: d.x.max(0), "L1"),
    Entry("argmax", lambda d: d.x.argmax(), "L1"),
    Entry("any", lambda d: d.m.any(), "L1"),
    Entry("cumsum", lambda d: d.x.cumsum(0), "L"),
    Entry("softmax", lambda d: d.a.softmax(-1), "L1"),
    Entry("norm", lambda d: d.x.norm(), "L1"),
    Entry("sort", lambda d: d.x.sort(), "L"),
    Entry("topk", lambda d: d.x.topk(2), "L"),
    Entry("searchsorted", lambda d: torch.searchsorted(d.x, d.y), "L1"),
    # ---- joining
    Entry("cat", lambda d: torch.cat([d.x, d.y]), "L1"),
    Entry("cat of 200", lambda d: torch.cat([d.x] * 200), "L2"),
    Entry("stack", lambda d: torch.stack([d.x, d.y]), "L1"),
    Entry("repeat", lambda d: d.x.repeat(3), "L1"),
    Entry("flip", lambda d: d.x.flip(0), "L1"),
    Entry("pad", lambda d: F.pad(d.x, (1, 1)), "L"),
    # ---- to the device
    Entry("to of a pageable tensor", lambda d: d.c.to("cuda"), "P1 W1"),
    Entry("to, non-blocking, of a pageable tensor", lambda d: d.c.to("cuda", non_blocking=True), "P1 ?1"),
    Entry("to of a pinned tensor", lambda d: d.p.to("cuda"), "p1 W1"),
    Entry("to, non-blocking, of a pinned tensor", lambda d: d.p.to("cuda", non_blocking=True), "p1"),
    Entry("cuda of a pageable tensor", lambda d: d.c.cuda(), "P1 W1"),
    Entry("cuda, non-blocking by position", lambda d: d.p.cuda(0, True), "p1"),
    Entry("pin_memory and to", lambda d: d.c.pin_memory().to("cuda", non_blocking=True), "p1"),
    Entry("pinned by the factory", lambda d: torch.tensor([1, 2], pin_memory=True).to(d.x.device, non_blocking=True), "p1"),
    Entry("arithmetic loses the pinning", lambda d: (d.p * 2).to("cuda", non_blocking=True), "P1 ?1"),
    Entry("a view keeps the pinning", lambda d: d.p[:2].to("cuda", non_blocking=True), "p1"),
    Entry("in place keeps the pinning", lambda d: d.p.fill_(3).to("cuda", non_blocking=True), "p1"),
    Entry("pinned but not dense", lambda d: d.p[::2].to("cuda", non_blocking=True), "P1 ?1"),
    Entry("to with a cast, blocking", lambda d: d.c.to("cuda", torch.float16), "P1 W1"),
    Entry("to with a cast, pinned, non-blocking", lambda d: d.p.to("cuda", torch.float16, non_blocking=True), "p1 L1"),
    Entry("to like another tensor", lambda d: d.c.to(d.x), "P1 W1"),
    Entry("to of a device tensor", lambda d: d.x.to("cuda"), ""),
    Entry("copy_ from the host", lambda d: d.x.copy_(d.c), "P1 W1"),
    Entry("copy_ from pinned, non-blocking", lambda d: d.x.copy_(d.p, non_blocking=True), "p1"),
    Entry("copy_ from pageable, non-blocking", lambda d: d.x.copy_(d.c, non_blocking=True), "P1 ?1"),
    Entry("copy_ on the device", lambda d: d.x.copy_(d.y), "L1"),
    Entry("from_numpy and to", lambda d: torch.from_numpy(d.c.numpy()).to("cuda"), "P1 W1"),
    # ---- casts
    Entry("bfloat16", lambda d: d.x.to(torch.bfloat16), "L1"),
    Entry("long of a float tensor", lambda d: d.x.long(), "L1"),
    Entry("float of a float tensor", lambda d: d.x.float(), ""),
    Entry("type_as on the device", lambda d: d.x.type_as(d.i), "L1"),
    Entry("type of a host tensor type", lambda d: as_type(d.x, torch.LongTensor), "D1 W1"),
    Entry("clone", lambda d: d.x.clone(), "L1"),
    # ---- to the host
    Entry("item", lambda d: d.x[0].item(), "D1 W1"),
    Entry("int()", lambda d: int(d.x[0]), "D1 W1"),
    Entry("bool() in a condition", lambda d: 1 if d.x.sum() > 0 else 2, "L2 D1 W1"),
    Entry("format in an f-string", lambda d: f"{d.s:.1f}", "D1 W1"),
    Entry("tolist", lambda d: d.x.tolist(), "D1 W1"),
    Entry("tolist on the host", lambda d: d.c.tolist(), ""),
    Entry("item on the host", lambda d: d.c[0].item(), ""),
    Entry("cpu", lambda d: d.x.cpu(), "D1 W1"),
    Entry("cpu of a host tensor", lambda d: d.c.cpu(), ""),
    Entry("cpu and numpy", lambda d: d.x.cpu().numpy(), "D1 W1"),
    Entry("to the host", lambda d: d.x.to("cpu"), "D1 W1"),
    Entry("to the host, non-blocking", lambda d: d.x.to("cpu", non_blocking=True), "D1"),
    Entry("cpu of a strided tensor", lambda d: d.a[:, ::2].cpu(), "L1 D1 W1"),
    Entry("host copy_ from the device", lambda d: d.c.copy_(d.x), "D1 W1"),
    Entry("pinned copy_ from the device, non-blocking", lambda d: d.p.copy_(d.x, non_blocking=True), "D1"),
    Entry("pageable copy_ from the device, non-blocking", lambda d: d.c.copy_(d.x, non_blocking=True), "D1 ?1"),
    Entry("repr", lambda d: repr(d.x), "D1 W1"),
    Entry("range of a device scalar", lambda d: list(range(d.i[1])), "D1 W1"),
    Entry("in", lambda d: 2.0 in d.x, "L D1 W1"),
    # ---- shapes that depend on data
    Entry("nonzero", lambda d: d.x.nonzero(), "L D1 W1"),
    Entry("where with one argument", lambda d: torch.where(d.m), "L D1 W1"),
    Entry("masked_select", lambda d: d.x.masked_select(d.m), "L D1 W1"),
    Entry("unique", lambda d: torch.unique(d.x), "L D1 W1"),
    Entry("unique_consecutive", lambda d: torch.unique_consecutive(d.x), "L D1 W1"),
    Entry("bincount", lambda d: torch.bincount(d.i), "L D1 W1"),
    Entry("repeat_interleave without size", lambda d: torch.repeat_interleave(d.x, d.i), "L D2 W2"),
    Entry("repeat_interleave with size", lambda d: torch.repeat_interleave(d.x, d.i, output_size=4), "L"),
    Entry("repeat_interleave by a number", lambda d: torch.repeat_interleave(d.x, 3), "L1"),
    Entry("one_hot without classes", lambda d: F.one_hot(d.i), "L D1 W1"),
    Entry("one_hot with classes", lambda d: F.one_hot(d.i, 5), "L2"),
    Entry("equal", lambda d: torch.equal(d.x, d.y), "L D1 W1"),
    Entry("allclose", lambda d: torch.allclose(d.x, d.y), "L D1 W1"),
    Entry("histc with bounds", lambda d: torch.histc(d.x, 4, 0, 4), "L"),
    Entry("histc without bounds", lambda d: torch.histc(d.x, 4), "L D2 W2"),
    Entry("multinomial", lambda d: torch.multinomial(d.x, 2), "L D2 W2"),
    Entry("normal with a tensor of deviations", lambda d: torch.normal(d.x, d.y), "L D1 W1"),
    Entry("linalg.inv", lambda d: torch.linalg.inv(torch.eye(2, device="cuda")), "L D1 W1"),
    # ---- heavy work and modules
    Entry("matmul", lambda d: d.a @ d.x, "L1"),
    Entry("linear without bias", lambda d: F.linear(d.a, d.a), "L1"),
    Entry("bmm", lambda d: torch.bmm(d.a.view(1, 2, 4), d.a.view(1, 4, 2)), "L1"),
    Entry("attention", attend, "L"),
    Entry("embedding", lambda d: F.embedding(d.i[:2], d.a.view(4, 2)), "L1"),
    Entry("layer_norm", lambda d: F.layer_norm(d.a, (4,)), "L1"),
    Entry("cross_entropy", lambda d: F.cross_entropy(d.a, d.i[:2]), "L2"),
    Entry("dropout", lambda d: F.dropout(d.x, 0.5), "L"),
    Entry("a module made on the device", module, "L"),
    Entry("a module moved to the device", moved_module, "P2 W2"),
    Entry("backward", backward, "L"),
    # ---- lists of tensors
    Entry("foreach, in place", lambda d: torch._foreach_add_([d.x, d.y], 1.0), "L1"),
    Entry("foreach, 120 tensors in place", lambda d: torch._foreach_mul_([d.x.clone() for _ in range(120)], 2.0), "L122"),
    Entry("foreach, two lists", lambda d: torch._foreach_add([d.x, d.y], [d.y, d.x]), "L1"),
    Entry("a step of SGD", step_of_sgd, "L"),
    # ---- torch.cuda
    Entry("synchronize", lambda d: torch.cuda.synchronize(), "W1"),
    Entry("synchronize a stream", lambda d: torch.cuda.current_stream().synchronize(), "W1"),
    Entry("a side stream with an event", side_stream, "L1"),
    Entry("an event that the host waits for", awaited_event, "W1"),
    Entry("record_stream", lambda d: d.x.record_stream(torch.cuda.current_stream()), ""),
    Entry("a generator of the device", lambda d: torch.rand(3, device="cuda", generator=torch.Generator("cuda")), "L1"),
    Entry("clip gradients", clip_gradients, "L"),
    Entry("a step of Adam", step_of_adam, "L"),
    Entry("is_available and device_count", lambda d: (torch.cuda.is_available(), torch.cuda.device_count()), ""),
)

# What differs between torch versions: the last version that behaves so is in the name of the field.
NUMBER_IN_ONE_ELEMENT = Entry("x[2] = number", lambda d: store(d.x, 2, 1.0), "P1 W1")
NUMBER_AT_INDICES = Entry("x[device indices] = number", lambda d: store(d.x, d.i, 1.0), "L1 P1 W1")

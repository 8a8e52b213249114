"""Custom operators, Triton kernels and bound functions: counted when registered, refused with their name when not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="the dry run needs torch")

import torch

from launchlint.audit import AuditError, UnknownKernel, dry_run, on_device, register_kernel


@pytest.fixture(scope="module")
def library() -> Iterator[Any]:
    library: Any = torch.library.Library("launchlint_test", "DEF")  # type: ignore[no-untyped-call]
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CPU")
    library.define("only_cuda(Tensor x) -> Tensor")
    library.define("unknown(Tensor x) -> Tensor")
    library.impl("unknown", lambda x: x + 1, "CPU")
    yield torch.ops.launchlint_test
    library._destroy()


def test_registered_operator(library: Any) -> None:
    register_kernel(library.double, launches=3)
    report = dry_run(library.double, torch.ones(2))
    assert report.launches == 3 and report.result.tolist() == [2.0, 2.0]
    assert [event.operation for event in report.events if event.kind == "launch"] == ["launchlint_test.double"]


def test_unregistered_operator_is_named(library: Any) -> None:
    with pytest.raises(UnknownKernel, match=r"launchlint_test\.unknown.*register_kernel\(torch\.ops\.launchlint_test\.unknown"):
        dry_run(library.unknown, torch.ones(2))


def test_operator_on_the_host_needs_no_registration(library: Any) -> None:
    with dry_run() as report:
        assert library.unknown(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not report.events


def test_operator_without_cpu_code(library: Any) -> None:
    register_kernel(library.only_cuda)
    with pytest.raises(AuditError, match="reference="):
        dry_run(library.only_cuda, torch.ones(2))
    register_kernel(library.only_cuda, reference=lambda x: x * 3)
    report = dry_run(library.only_cuda, torch.ones(2))
    assert report.launches == 1 and report.result.tolist() == [3.0, 3.0]


class FakeTriton:
    """Called as a Triton kernel is: `kernel[grid](...)`, which calls `run`."""

    def fill_kernel(self) -> None: ...

    fn = fill_kernel

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        raise RuntimeError("0 active drivers")

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


def test_triton_kernel() -> None:
    kernel = FakeTriton()
    assert register_kernel(kernel, reference=lambda out, value: out.fill_(value)) is kernel
    out = on_device(torch.zeros(4))
    with dry_run() as report:
        kernel[(1,)](out, 7.0)
    assert report.launches == 1 and out.tolist() == [7.0] * 4
    assert "run" not in vars(kernel)
    with pytest.raises(RuntimeError, match="active drivers"):
        kernel[(1,)](out, 7.0)


def test_bound_function() -> None:
    def fused(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1).relu()

    counted = register_kernel(fused, launches=1)
    report = dry_run(counted, torch.ones(2))
    assert report.launches == 1 and report.result.tolist() == [3.0, 3.0]
    assert counted(torch.ones(2)).tolist() == [3.0, 3.0]


def test_nonsense_is_refused() -> None:
    with pytest.raises(TypeError, match="neither an operator"):
        register_kernel(3)
    with pytest.raises(ValueError, match="negative"):
        register_kernel(print, launches=-1)

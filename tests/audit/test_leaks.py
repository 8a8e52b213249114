"""After a dry run everything is as it was: modes, torch.cuda, devices, also after an exception, in threads and nested."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="the dry run needs torch")

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from launchlint.audit import AuditError, dry_run, on_device, on_host
from launchlint.audit.answers import answers
from launchlint.audit.state import current


def look() -> dict[str, Any]:
    """All that a dry run could leave behind."""
    patched = {}
    for module_name, name in answers():
        module: Any = torch
        for part in module_name.split(".")[1:]:
            module = getattr(module, part, None)
        patched[module_name, name] = getattr(module, name, None)
    return {
        "functions": patched,
        "function modes": list(_get_current_function_mode_stack()),  # type: ignore[no-untyped-call]
        "dispatch modes": list(_get_current_dispatch_mode_stack()),
        "state": current(),
        "default device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
    }


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    before = look()
    yield
    assert look() == before


def test_after_a_run() -> None:
    with dry_run() as report:
        x = torch.zeros(3, device="cuda")
        assert x.is_cuda and torch.cuda.is_available()
    assert report.launches == 1
    assert x.device == torch.device("cpu") and not x.is_cuda
    assert (x + 1).tolist() == [1.0, 1.0, 1.0]


def test_warning_filters_are_untouched() -> None:
    def work(x: torch.Tensor) -> float:
        return float((x * 2).sum())

    dry_run(work, torch.ones(3))  # what torch imports lazily sets filters of its own
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dry_run(work, torch.ones(3))
    assert list(warnings.filters) == before and not caught


def test_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), dry_run():
        torch.zeros(3, device="cuda")
        1 / 0  # noqa: B018


def test_after_an_exception_inside_torch() -> None:
    def fail(x: torch.Tensor) -> None:
        x.view(5)

    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        dry_run(fail, x)
    with dry_run() as report:
        assert x.device.type == "cpu"
        x.add_(1)
    assert report.launches == 0


def test_arguments_are_not_copied_and_return_to_the_host() -> None:
    x, module = torch.zeros(4), torch.nn.Linear(4, 4)
    weight = module.weight.data_ptr()

    def work(module: Any, x: torch.Tensor) -> None:
        assert x.is_cuda and module.weight.is_cuda
        x += 1

    dry_run(work, module, x)
    assert x.tolist() == [1.0] * 4 and module.weight.data_ptr() == weight
    with dry_run() as report:
        module(x)
    assert report.launches == 0


def test_default_device_is_restored() -> None:
    with dry_run() as report:
        torch.set_default_device("cuda")
        x = torch.zeros(3)
        assert x.is_cuda
    assert report.launches == 1 and torch.zeros(1).device.type == "cpu"


def test_nested_runs_count_for_both() -> None:
    with dry_run() as outer:
        x = torch.zeros(3, device="cuda")
        with dry_run() as inner:
            x + 1
        x * 2
    assert (outer.launches, inner.launches) == (3, 1)


def test_equal_nested_runs_are_told_apart() -> None:
    with dry_run() as outer:
        with dry_run() as inner:
            pass
        torch.zeros(3, device="cuda")
    assert (outer.launches, inner.launches) == (1, 0)


class Scaled(torch.autograd.Function):
    """Doubles; its backward asks for the device, makes a tensor there and reads one value."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        assert gradient.is_cuda
        gradient[0].cpu()
        return gradient + torch.ones(3, device=gradient.device)


def test_backward_functions_of_the_user_run_dry_too() -> None:
    def work(x: torch.Tensor) -> None:
        Scaled.apply(x).sum().backward()  # type: ignore[no-untyped-call]

    report = dry_run(work, torch.ones(3, requires_grad=True))
    assert (report.downloads, report.waits) == (1, 1)
    assert any("gradient[0].cpu()" in line.source for line in report.lines)


def test_another_thread_sees_torch_as_it_is() -> None:
    real = torch.cuda.is_available()
    seen: list[Any] = []

    def look_around() -> None:
        seen.append((torch.cuda.is_available(), torch.zeros(2).device, current()))

    with dry_run() as report:
        thread = threading.Thread(target=look_around)
        thread.start()
        thread.join()
    assert seen == [(real, torch.device("cpu"), None)] and not report.events


def test_threads_count_for_themselves() -> None:
    counts: dict[int, int] = {}
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        with dry_run() as report:
            x = torch.zeros(3, device="cuda")
            for _ in range(number):
                x.add_(1)
        counts[number] = report.launches

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 5, 20, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {1: 2, 5: 6, 20: 21, 50: 51}


def test_a_device_tensor_outlives_its_run_as_one() -> None:
    with dry_run():
        state = torch.zeros(3, device="cuda")
    with dry_run() as report:
        assert state.is_cuda
        state.add_(1)
    assert report.launches == 1


def test_on_device_and_on_host() -> None:
    x = on_device(torch.zeros(3))

    def work(x: torch.Tensor, counts: torch.Tensor, staged: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda and not counts.is_cuda and staged.is_pinned()
        return x + counts.to(x.device, non_blocking=True) + staged.to(x.device, non_blocking=True)

    report = dry_run(work, x, on_host(torch.ones(3)), on_host(torch.ones(3), pinned=True))
    assert (report.pinned_uploads, report.pageable_uploads, report.waits, report.may_waits) == (1, 1, 0, 1)
    with dry_run():
        assert x.is_cuda


def test_marks_do_not_keep_memory() -> None:
    from launchlint.audit.memory import SWEEP_EVERY, marks

    with dry_run():
        for _ in range(2 * SWEEP_EVERY + 2):
            torch.empty(1, device="cuda")
    assert len(marks._marks) <= SWEEP_EVERY + 100


def test_second_device_is_refused() -> None:
    with dry_run(), pytest.raises(AuditError, match="one device"):
        torch.zeros(1, device="cuda:1")


@pytest.mark.parametrize("name", ["graph", "CUDAGraph", "make_graphed_callables", "get_device_properties", "get_device_capability"])
def test_what_cannot_be_answered_says_so(name: str) -> None:
    with dry_run(), pytest.raises(AuditError, match=name):
        getattr(torch.cuda, name)(0)


def test_time_is_not_invented() -> None:
    with dry_run(), pytest.raises(AuditError, match="elapsed_time"):
        event: Any = torch.cuda.Event
        event().elapsed_time(event())


def test_classes_are_still_classes() -> None:
    with dry_run():
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        assert isinstance(stream, torch.cuda.Stream) and isinstance(torch.cuda.current_stream(), torch.cuda.Stream)
        assert torch.cuda.current_stream() == torch.cuda.current_stream()

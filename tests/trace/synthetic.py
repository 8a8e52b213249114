"""Traces as PyTorch's profiler writes them, made by hand: a recording of a CUDA run needs a GPU, its format does not.

Field names and the order of keys follow what the profiler writes (tests/trace/data holds two real ones).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEAD = '{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "none"}],\n  "with_stack": 1,\n  "traceEvents": [\n'
TAIL = '\n  ],\n  "traceName": "synthetic.json"\n}\n'
THREAD = 100


@dataclass
class Tape:
    """Events in the profiler's format; times in microseconds, nested by `call`."""

    now: float = 1_000_000.0
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0
    thread: int = THREAD

    def add(self, category: str, name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
        event = {"ph": "X", "cat": category, "name": name, "pid": THREAD, "tid": self.thread, "ts": start, "dur": length, "args": args}
        self.events.append(event)
        return event

    def python(self, name: str) -> _Call:
        return _Call(self, "python_function", name)

    def operation(self, name: str) -> _Call:
        return _Call(self, "cpu_op", name)

    def runtime(self, name: str, length: float = 5) -> int:
        """A call of the runtime; returns its correlation id."""
        self.correlation += 1
        self.add("cuda_runtime", name, self.now, length, cbid=211, correlation=self.correlation)
        self.now += length
        return self.correlation

    def device(self, category: str, name: str, length: float, correlation: int, **args: Any) -> None:
        """Work of the device that a call of the runtime asked for."""
        event = self.add(category, name, self.now, length, device=0, stream=7, correlation=correlation, **args)
        event.update(pid=0, tid=7)

    def launch(self, kernel: str, length: float = 3, call: str = "cudaLaunchKernel") -> None:
        self.device("kernel", kernel, length, self.runtime(call), grid=[1, 1, 1], block=[128, 1, 1])

    def copy(self, kind: str, size: int, length: float = 20) -> None:
        correlation = self.runtime("cudaMemcpyAsync", length)
        self.device("gpu_memcpy", f"Memcpy {kind}", 2, correlation, bytes=size)

    def write(self, path: Path) -> Path:
        path.write_text(HEAD + ",\n".join(json.dumps(event, indent=2) for event in self.events) + TAIL)
        return path


class _Call:
    """An event that is around all that is added while it is entered."""

    def __init__(self, tape: Tape, category: str, name: str) -> None:
        self.tape = tape
        self.event = tape.add(category, name, tape.now, 0)

    def __enter__(self) -> None:
        self.tape.now += 1

    def __exit__(self, *_: object) -> None:
        self.tape.now += 1
        self.event["dur"] = self.tape.now - self.event["ts"]


def large(size: int, path: str = "work.py") -> Iterator[str]:
    """The text of a trace of about `size` bytes, piece by piece: steps of a loop that launches, waits and copies."""
    yield HEAD
    written, step, separator = 0, 0, ""
    while written < size:
        tape = Tape(1_000_000.0 + 200 * step, correlation=10 * step)
        with tape.python(f"{path}(4): step"):
            for _ in range(2):
                with tape.python(f"<built-in method fill_ of Tensor object at 0x{step:012x}>"), tape.operation("aten::fill_"):
                    tape.launch("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)" + "x" * 150)
            with tape.python(f"<built-in method item of Tensor object at 0x{step:012x}>"), tape.operation("aten::item"):
                tape.copy("DtoH (Device -> Pageable)", 4)
                tape.runtime("cudaStreamSynchronize", 30)
        text = separator + ",\n".join(json.dumps(event, indent=2) for event in tape.events)
        separator = ",\n"
        written += len(text)
        step += 1
        yield text
    yield TAIL

"""How long the server takes to answer a change: `python -m tests.server.answer_time FILE [EDITS]`.

The file is opened, and each edit adds or removes one character in a line in its middle. The time runs from sending the change to
receiving the diagnostics of that version, without the pause that the server waits for (`--delay 0`). The processor's time is the
server's, for one edit, and does not depend on what else the machine is doing. The memory is the server's, after a tenth of the
edits and at the end.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from tests.server.client import Client


def main(arguments: list[str]) -> int:
    """Measure and print."""
    file = Path(arguments[0]).resolve()
    edits = int(arguments[1]) if len(arguments) > 1 else 1000
    before = file.read_text(encoding="utf-8")
    lines = before.split("\n")
    seconds: list[float] = []
    memory: list[float] = []
    with Client(file.parent, "--delay", "0") as editor:
        text = editor.open(file.name, before)
        found = len(text.diagnostics)
        busy = _busy(editor.process.pid)
        for number in range(edits):
            at = len(lines) // 2
            changed = "\n".join([*lines[:at], f"# {'x' * (number % 40)}", *lines[at:]])
            start = time.perf_counter()
            text.change(changed)
            assert len(text.diagnostics) == found
            seconds.append(time.perf_counter() - start)
            editor.published.clear()
            if number in (edits // 10, edits - 1):
                memory.append(_resident(editor.process.pid))
        busy = _busy(editor.process.pid) - busy
    ordered = sorted(seconds)
    print(f"{len(lines)} lines, {found} findings, {edits} edits")
    print(f"answer: median {1000 * statistics.median(ordered):.0f} ms, of a hundred the slowest {1000 * ordered[int(0.99 * edits)]:.0f} ms")
    print(f"processor: {1000 * busy / edits:.0f} ms an edit")
    print("memory: " + ", then ".join(f"{each:.0f} MiB" for each in memory))
    return 0


def _busy(process: int) -> float:
    """Seconds of the processor's time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> float:
    """Resident memory in MiB, as Linux tells it."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

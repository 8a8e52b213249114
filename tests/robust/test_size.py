"""Large files: cost grows with size and no faster, and generated data is not parsed for nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.collect import ROOT
from tests.robust.inputs import LOOP
from tests.robust.run import ENVIRONMENT, check

MEASURE = """
import resource, sys, time
from launchlint import engine, registry
from launchlint.settings import Settings
from launchlint.source import Source
import ast
settings = Settings()
rules = registry.select(settings)
engine.check_source(Source("warm.py", open(sys.argv[2]).read()), rules, settings)  # imports and caches
text = open(sys.argv[1]).read()
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
if sys.argv[3] == "parse":
    kept = ast.parse(text)
else:
    kept = engine.check_source(Source("layer.py", text), rules, settings)
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(getattr(kept, "findings", ())))
"""
METHOD = LOOP.partition("class")[2].partition("\n")[2]


def measured(folder: Path, methods: int, what: str) -> tuple[float, int, int]:
    """CPU seconds, growth of the peak resident set in kB, and the number of findings, in a process of its own."""
    path = folder / f"methods_{methods}.py"
    body = "\n".join(METHOD.replace("forward", f"forward_{number}") for number in range(methods))
    path.write_text(f"import torch\n\n\nclass Packer(torch.nn.Module):\n{body}", encoding="utf-8")
    (folder / "warm.py").write_text(LOOP, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path, folder / "warm.py", what],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    seconds, memory, findings = done.stdout.split()
    return float(seconds), int(memory), int(findings)


@pytest.mark.slow
def test_time_grows_about_linearly(tmp_path: Path) -> None:
    few = measured(tmp_path, 250, "check")
    many = measured(tmp_path, 2000, "check")
    assert (few[2], many[2]) == (250, 2000)
    assert many[0] < 8 * few[0] * 1.6 + 0.2, f"{few[0]:.2f} s for 250 methods, {many[0]:.2f} s for 2,000"


@pytest.mark.slow
def test_memory_stays_near_that_of_the_parser(tmp_path: Path) -> None:
    parsed = measured(tmp_path, 2000, "parse")
    checked = measured(tmp_path, 2000, "check")
    assert checked[1] < 1.5 * parsed[1] + 20_000, f"{checked[1]} kB against {parsed[1]} kB for the tree alone"


def test_data_without_torch_is_not_checked_for_long(tmp_path: Path) -> None:
    (tmp_path / "many_lines.py").write_text(
        "DATA = [\n" + "".join(f"    ({i}, 'k{i}'),\n" for i in range(60_000)) + "]\n", encoding="utf-8"
    )
    (tmp_path / "one_line.py").write_text("DATA = [" + ", ".join(map(str, range(200_000))) + "]\n", encoding="utf-8")
    code, report = check(".", cwd=tmp_path)
    assert (code, report["findings"], report["errors"]) == (0, [], [])


def test_a_finding_after_very_many_comments(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("# filler\n" * 200_000 + LOOP, encoding="utf-8")
    _, report = check("late.py", cwd=tmp_path)
    assert [each["line"] for each in report["findings"]] == [200_007]


def test_a_file_beyond_the_limit_is_one_notice(tmp_path: Path) -> None:
    (tmp_path / "huge.py").write_bytes(b"# filler\n" * 2_300_000 + LOOP.encode())
    (tmp_path / "right.py").write_text(LOOP, encoding="utf-8")
    code, report = check(".", cwd=tmp_path)
    assert code == 2
    assert [each["path"] for each in report["errors"]] == ["huge.py"]
    assert "20 MB" in report["errors"][0]["reason"]
    assert [each["path"] for each in report["findings"]] == ["right.py"]

"""`launchlint trace` and `launchlint check --trace` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launchlint import cli
from tests.trace.synthetic import Tape

DATA = Path(__file__).parent / "data"
WORK = """\
import torch


def upload(counts, device):
    return torch.tensor(counts).to(device)


def step(out, counts):
    ids = upload(counts, out.device)
    for i, n in enumerate(counts):
        out[i, :n].fill_(1.0)
    torch.cuda.synchronize()
    out.mul_(2)
    return out


def never(out, counts):
    for i, n in enumerate(counts):
        out[i, :n].fill_(1.0)


def unlucky(out, counts):
    if counts is None:
        for i, n in enumerate(counts):
            out[i, :n].fill_(1.0)
    return out.mul_(2)


def quiet(out, counts):
    for i, n in enumerate(counts):
        out[i, :n].fill_(1.0)  # noqa: LCH101
    return out


class Model(torch.nn.Module):
    def forward(self, out, counts, always):
        step(out, counts)
        if not always:
            never(out, counts)
        return quiet(unlucky(out, counts), counts)
"""
TENSOR = "<built-in method {} of Tensor object at 0x7f00>"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work.py").write_text(WORK)
    tape = Tape()
    for _ in range(5):
        with tape.python("work.py(8): step"):
            with tape.python("work.py(4): upload"), tape.python(TENSOR.format("to")), tape.operation("aten::to"):
                tape.copy("HtoD (Pageable -> Device)", 16, 500)
            for _ in range(3):
                with tape.python(TENSOR.format("fill_")), tape.operation("aten::fill_"):
                    tape.launch("fill")
            with tape.python("torch/cuda/__init__.py(1087): synchronize"):
                tape.runtime("cudaDeviceSynchronize", 1000)
            with tape.python(TENSOR.format("mul_")):
                tape.launch("mul")
        with tape.python("work.py(22): unlucky"), tape.python(TENSOR.format("mul_")):
            tape.launch("mul")
        with tape.python("work.py(29): quiet"), tape.python(TENSOR.format("fill_")), tape.operation("aten::fill_"):
            tape.launch("fill")
        with tape.python("elsewhere.py(3): other"), tape.operation("aten::add"):
            tape.launch("add")
    tape.write(tmp_path / "trace.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = cli.main([*words, "--format", "json", "--min-confidence", "low"])
    return code, json.loads(capsys.readouterr().out)


def test_findings_with_their_costs(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = as_json(capsys, "trace", "trace.json", "work.py")
    assert code == 0
    fills = {finding["line"]: finding["measured"] for finding in document["findings"] if finding["code"] == "LCH101"}
    assert {line: (each["launches"], each["kernels"], each["reached"], each["function_ran"]) for line, each in fills.items()} == {
        11: (15, 15, True, True),
        19: (0, 0, False, False),
        25: (0, 0, False, True),
    }
    upload = next(finding["measured"] for finding in document["findings"] if finding["line"] == 5)
    assert (upload["pageable_copies"], upload["copied_bytes"], upload["launches"]) == (5, 80, 0)
    assert upload["host_us"] >= 2500
    costs = [finding["measured"]["host_us"] for finding in document["findings"]]
    assert costs == sorted(costs, reverse=True) and document["findings"][0]["line"] == 5


def test_lines_that_no_rule_reports(capsys: pytest.CaptureFixture[str]) -> None:
    _, document = as_json(capsys, "trace", "trace.json", "work.py")
    lines = {line["line"]: line for line in document["lines"]}
    assert set(lines) == {12, 13, 26, 31} and next(iter(lines)) == 12, "most expensive first"
    assert (lines[12]["measured"]["waits"], lines[12]["measured"]["wait_us"]) == (5, 5000)
    assert lines[26]["measured"]["launches"] == 5 and lines[13]["source"] == "out.mul_(2)"
    assert lines[31]["silenced"] == "LCH101 silenced: noqa" and lines[13]["silenced"] is None
    assert document["trace"]["elsewhere"]["launches"] == 5
    total = document["trace"]["total"]
    assert (total["launches"], total["waits"], total["pageable_copies"]) == (35, 5, 5)
    _, document = as_json(capsys, "trace", "trace.json", "work.py", "--limit", "1")
    assert [line["line"] for line in document["lines"]] == [12]


def test_the_text_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "trace.json", "work.py", "--min-confidence", "low"]) == 0
    text = capsys.readouterr().out
    first, second = text.index("work.py:5:"), text.index("work.py:11:9: LCH101 [slice-fill-loop]  out[i, :n].fill_(1.0)")
    assert first < second
    assert "35 launches, 5 waits (5.00 ms), 5 copies (5 pageable, 80 B)" in text
    assert "work.py:19:9: LCH101 [slice-fill-loop]  not reached by the recording" in text
    assert "work.py:25:13: LCH101 [slice-fill-loop]  measured: its function ran, nothing was recorded on its lines" in text
    assert "below no function that is checked" in text and "note:" not in text


def test_without_paths_the_working_directory_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = as_json(capsys, "trace", "trace.json")
    assert code == 0 and {finding["line"] for finding in document["findings"]} >= {5, 11, 19, 25}


def test_check_sorts_by_cost_and_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, plain = as_json(capsys, "check", "work.py")
    assert code == 1 and not any("measured" in finding for finding in plain["findings"])
    code, document = as_json(capsys, "check", "work.py", "--trace", "trace.json")
    assert code == 1
    stripped = [{key: value for key, value in finding.items() if key != "measured"} for finding in document["findings"]]
    assert sorted(stripped, key=lambda each: each["line"]) == sorted(plain["findings"], key=lambda each: each["line"])
    assert [finding["line"] for finding in document["findings"]][:2] == [5, 11]
    assert document["findings"][-1]["line"] == 19 and not document["findings"][-1]["measured"]["function_ran"]


def test_check_says_what_was_measured_and_what_was_never_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "work.py", "--trace", "trace.json", "--min-confidence", "low"]) == 1
    text = capsys.readouterr().out
    assert "= measured: " in text and "15 launches, 45.0 us of 15 kernels" in text
    assert "= not reached by the recording" in text
    assert "note: the recording never reached 1 finding, shown last" in text


def test_a_changed_file_is_named(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "work.py").write_text("import torch\n\n\ndef renamed(out, counts):\n    return torch.tensor(counts).to(out.device)\n")
    _, document = as_json(capsys, "trace", "trace.json", "work.py")
    assert any("work.py" in note and "changed" in note for note in document["notes"])
    assert all(not finding["measured"]["reached"] for finding in document["findings"])


@pytest.mark.parametrize("name", ["alexnet_a100", "simple_add_a100"])
def test_missing_stacks_are_named_with_the_way_to_record_them(capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = str(DATA / f"{name}.json.gz")
    assert cli.main(["trace", path, "work.py"]) == 0
    text = capsys.readouterr().out
    assert "no Python stacks" in text and "with_stack=True" in text
    assert "79 launches, 21 waits" in text and "16 copies (16 pageable, 244 MB)" in text
    assert cli.main(["check", path, "work.py"]) == 2, "a trace is no source"
    capsys.readouterr()
    assert cli.main(["check", "work.py", "--trace", path]) == 1
    assert "no Python stacks" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["trace", "{}", "work.py"], ["check", "work.py", "--trace", "{}"]], ids=["trace", "check"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("import torch\n", "not a trace"),
        ('{"runs": []}', "without a list `traceEvents`"),
        ('{"traceEvents": []}', "no event of PyTorch's profiler"),
        (
            '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 1, "args": {}}, {"ph"',
            "cut off after 1 events",
        ),
    ],
)
def test_a_file_that_is_no_whole_trace_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], project: Path, words: list[str], content: str | None, message: str
) -> None:
    if content is not None:
        (project / "bad.json").write_text(content)
    assert cli.main([word.format("bad.json") for word in words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert captured.err.startswith("launchlint: bad.json: ") and message in captured.err


@pytest.mark.parametrize("words", [["-", "--trace", "trace.json"], ["work.py", "--fix", "--trace", "trace.json"]])
def test_lines_of_what_is_not_on_disk_are_refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert cli.main(["check", *words]) == 2
    assert "--trace speaks of lines of files as they are" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_an_error_beside_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = as_json(capsys, "trace", "trace.json", "work.py", "gone.py")
    assert code == 2 and document["errors"][0]["path"] == "gone.py" and document["findings"]


def test_a_recording_of_nothing_says_so(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    tape = Tape()
    with tape.python("work.py(8): step"):
        pass
    tape.write(project / "empty.json")
    _, document = as_json(capsys, "trace", "empty.json", "work.py")
    assert any("holds no operation" in note for note in document["notes"])

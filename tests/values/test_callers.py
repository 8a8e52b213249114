"""What callers in other files give counts against a finding: a second look asks them, whatever the number of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchlint import engine, registry
from launchlint.engine import Project
from launchlint.hot import FileSummary
from launchlint.hot.graph import MANY_CALLERS
from launchlint.model import Confidence
from launchlint.scan import Interest, scan
from launchlint.settings import Settings
from launchlint.values.value import Device, Kind

SETTINGS = Settings()
RUNNER = """
import torch
from shop.counter import Counter
from shop.helper import count

class ModelRunner:
    def execute_model(self, lengths: torch.Tensor, names: list[str]):
        {call}
"""
HELPER = """
import torch

def count({parameters}):
    return torch.unique(ids)
"""
COUNTER = """
import torch

class Counter:
    def __init__(self, repeats):
        self.repeats = repeats

    def forward(self, x: torch.Tensor):
        return x.cuda().repeat_interleave(self.repeats)
"""


def write(folder: Path, call: str, parameters: str = "ids: torch.Tensor", more: str = "") -> list[str]:
    """A package of a runner and a helper; its paths."""
    package = folder / "shop"
    package.mkdir(exist_ok=True)
    helper = HELPER.format(parameters=parameters)
    texts = {"__init__.py": "", "runner.py": RUNNER.format(call=call) + more, "helper.py": helper, "counter.py": COUNTER}
    for name, text in texts.items():
        (package / name).write_text(text, encoding="utf-8")
    return [str(package / name) for name in texts]


def project_of(paths: list[str]) -> Project:
    """The call graph of files, which does not ask modules that are not part of the run."""
    summaries: list[FileSummary] = []
    for path in paths:
        summary, problem, _ = engine.summarize_file(path)
        assert summary is not None and problem is None
        summaries.append(summary)
    project = Project(summaries, SETTINGS)
    project.looks_closer = False
    return project


def codes(paths: list[str], name: str = "helper.py") -> list[str]:
    """What is reported of one of the files."""
    project = project_of(paths)
    (path,) = (path for path in paths if path.endswith(name))
    report = engine.check_file(path, registry.select(SETTINGS), SETTINGS, project)
    assert not report.problems
    return [finding.code for finding in report.findings]


ON_HOST = "return count(torch.tensor([1, 2]))"
ON_DEVICE = "return count(lengths.cuda())"


@pytest.mark.parametrize("call", ["return count(lengths)", ON_DEVICE])
def test_a_finding_stands_where_no_caller_speaks_against_it(tmp_path: Path, call: str) -> None:
    assert codes(write(tmp_path, call)) == ["LCH304"]


@pytest.mark.parametrize(
    "call",
    [
        ON_HOST,
        "return count(lengths.cpu())",
        "return count(ids=lengths.to('cpu'))",
        "ids = torch.zeros(3); return count(ids)",
        "import numpy; return count(numpy.zeros(3))",
    ],
)
def test_what_every_caller_has_on_the_host_is_on_the_host(tmp_path: Path, call: str) -> None:
    assert codes(write(tmp_path, call)) == []


def test_all_callers_count(tmp_path: Path) -> None:
    other = "\n    def sample(self, lengths):\n        return count(lengths.cuda())\n"
    assert codes(write(tmp_path, ON_HOST, more=other)) == ["LCH304"]
    assert codes(write(tmp_path, ON_HOST, more=other.replace("cuda", "cpu"))) == []


@pytest.mark.parametrize("call", ["return count(*names)", "return count(**names)"])
def test_a_hidden_argument_says_nothing(tmp_path: Path, call: str) -> None:
    assert codes(write(tmp_path, call)) == ["LCH304"]


def test_a_function_that_is_handed_on_has_callers_out_of_sight(tmp_path: Path) -> None:
    assert codes(write(tmp_path, f"register(count); {ON_HOST}")) == ["LCH304"]


def test_a_caller_under_another_name_is_not_read(tmp_path: Path) -> None:
    paths = write(tmp_path, "return tally(torch.zeros(3))")
    runner = Path(paths[1])
    runner.write_text(runner.read_text().replace("import count", "import count as tally"))
    assert codes(paths) == ["LCH304"]


def test_the_caller_of_a_caller_is_asked(tmp_path: Path) -> None:
    inner = "\n\ndef between(ids):\n    return count(ids)\n"
    assert codes(write(tmp_path, "return between(lengths.cpu())", more=inner)) == []
    assert codes(write(tmp_path, "return between(lengths.cuda())", more=inner)) == ["LCH304"]


def test_a_device_that_no_caller_gives_is_its_default(tmp_path: Path) -> None:
    helper = "\nimport torch\n\ndef count(ids: list[int], place={}):\n    return torch.tensor(ids, device=place)\n"
    for default, call, expected in (
        ("'cpu'", "count([1])", []),
        ("'cuda'", "count([1])", ["LCH201"]),
        ("'cuda'", "count([1], 'cpu')", []),
        ("'cpu'", "count([1], place='cuda')", ["LCH201"]),
    ):
        paths = write(tmp_path, f"return {call}")
        Path(paths[2]).write_text(helper.format(default).replace("place", "device"))
        Path(paths[1]).write_text(Path(paths[1]).read_text().replace("place", "device"))
        assert codes(paths) == expected, (default, call)


def test_a_number_that_a_constructor_is_given_is_a_number(tmp_path: Path) -> None:
    assert codes(write(tmp_path, "return Counter(2).forward(lengths)"), "counter.py") == []
    assert codes(write(tmp_path, "return Counter(lengths.cuda()).forward(lengths)"), "counter.py") == ["LCH305"]


def test_a_constructor_of_a_class_below_hides_the_one_above(tmp_path: Path) -> None:
    below = "\n\nclass Wider(Counter):\n    def __init__(self):\n        super().__init__(torch.zeros(2).cuda())\n"
    assert codes(write(tmp_path, "return Counter(2).forward(lengths)", more=below), "counter.py") == ["LCH305"]


def test_a_function_for_everybody_is_not_followed(tmp_path: Path) -> None:
    more = "".join(f"\n    def sample_{number}(self):\n        return self.more_{number}()\n" for number in range(1))
    more += "".join(f"\n    def more_{number}(self):\n        {ON_HOST}\n" for number in range(MANY_CALLERS + 1))
    calls = "; ".join(f"self.more_{number}()" for number in range(MANY_CALLERS + 1))
    assert codes(write(tmp_path, calls, more=more)) == ["LCH304"]


def test_recursion_in_the_linted_code_ends(tmp_path: Path) -> None:
    more = "\n\ndef ping(ids):\n    return pong(ids)\n\ndef pong(ids):\n    count(ids)\n    return ping(ids)\n"
    assert codes(write(tmp_path, "return ping(lengths)", more=more)) == ["LCH304"]


def test_a_caller_that_has_gone_says_nothing(tmp_path: Path) -> None:
    paths = write(tmp_path, ON_HOST)
    project = project_of(paths)
    Path(paths[1]).unlink()
    report = engine.check_file(paths[2], registry.select(SETTINGS), SETTINGS, project)
    assert [finding.code for finding in report.findings] == ["LCH304"]


def test_the_answer_does_not_depend_on_what_was_asked_before(tmp_path: Path) -> None:
    other = "\n    def other(self, lengths):\n        return torch.unique(lengths)\n"
    paths = write(tmp_path, f"self.other(lengths); {ON_HOST}", more=other)
    project = project_of(paths)
    rules = registry.select(SETTINGS)
    before = [engine.check_file(path, rules, SETTINGS, project).findings for path in paths]
    again = [engine.check_file(path, rules, SETTINGS, project_of(paths)).findings for path in reversed(paths)]
    assert before == again[::-1]


def test_sureness_is_never_raised(tmp_path: Path) -> None:
    """A tensor that all callers have on the device makes nothing surer; read by hand, half of what that added was worth it."""
    found = []
    for call in ("return count(lengths)", ON_DEVICE):
        paths = write(tmp_path, call)
        report = engine.check_file(paths[2], registry.select(SETTINGS), SETTINGS, project_of(paths))
        found.append([finding.confidence for finding in report.findings])
    assert found == [[Confidence.MEDIUM], [Confidence.MEDIUM]]


def test_a_parameter_knows_who_gave_it(tmp_path: Path) -> None:
    paths = write(tmp_path, ON_HOST)
    project = project_of(paths)
    callers = project.callers(paths[2])
    assert callers is not None
    source = engine.read_source(paths[2])
    (node,) = (item for item in source.tree.body if getattr(item, "name", "") == "count")
    found = scan(source.tree, source.text, Interest([]), "shop.helper")
    assert callers.wants(node, None, found)  # type: ignore[arg-type]
    value = callers.given(node)["ids"]  # type: ignore[arg-type]
    assert value.kind is Kind.TENSOR and value.device is Device.HOST
    assert "ModelRunner.execute_model" in value.origin.why and "runner.py:" in value.origin.why


MAKER = """
import torch

def count(values: list[int], device{annotation} = "cpu"):
    return torch.tensor(values, device=device)
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("device = 'cpu'; return count([1], device=device)", []),
        ("device = 'cpu'; return count([1], device)", []),
        ("return count([1])", []),
        ("device = 'cpu' if names else 'cpu'; return count([1], device)", []),
        ("device = 'cpu' if names else 'cuda'; return count([1], device)", ["LCH201"]),
        ("device = lengths.device; return count([1], device)", ["LCH201"]),
    ],
)
@pytest.mark.parametrize("annotation", ["", ": str"])
def test_the_text_cpu_is_followed_to_a_parameter(tmp_path: Path, call: str, expected: list[str], annotation: str) -> None:
    """The default alone says nothing, since others may be asked for; that every caller asks for the host does."""
    paths = write(tmp_path, call)
    Path(paths[2]).write_text(MAKER.format(annotation=annotation), encoding="utf-8")
    assert codes(paths) == expected

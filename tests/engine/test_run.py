"""Many files: the same reports in the same order whatever the number of processes, and whatever a cache holds."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from launchlint import engine, run
from launchlint.cache import open_cache
from launchlint.model import FileReport
from launchlint.rule import Rule
from launchlint.settings import Settings
from tests.engine import tree


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Settings, tuple[Rule, ...]]:
    root = tmp_path_factory.mktemp("project")
    settings = tree.settings_of(root)
    return tree.make(root), settings, tree.rules_of(settings)


@pytest.fixture(scope="module")
def alone(project: tuple[list[str], Settings, tuple[Rule, ...]]) -> list[FileReport]:
    """What one process without a cache reports."""
    paths, settings, rules = project
    return engine.check_files(paths, rules, settings).files


def test_the_project_has_something_to_say(alone: list[FileReport]) -> None:
    said = {os.path.basename(report.path): [finding.code for finding in report.findings] for report in alone}
    assert said["helper.py"] == ["LCH201"], "the helper that the runner calls, and not the other"
    assert "LCH201" in said["layer007.py"]
    assert said["plain007.py"] == []
    assert [problem.line for report in alone for problem in report.problems] == [1], "the file that does not parse"


@pytest.mark.parametrize("jobs", [2, 3, 7])
def test_jobs_change_nothing(project: tuple[list[str], Settings, tuple[Rule, ...]], alone: list[FileReport], jobs: int) -> None:
    paths, settings, rules = project
    assert engine.check_files(paths, rules, settings, jobs=jobs).files == alone


def test_order_is_that_of_the_paths(project: tuple[list[str], Settings, tuple[Rule, ...]], alone: list[FileReport]) -> None:
    paths, settings, rules = project
    turned = engine.check_files(paths[::-1], rules, settings, jobs=2).files
    assert [report.path for report in turned] == paths[::-1]
    assert turned[::-1] == alone


def test_processes_started_anew(
    project: tuple[list[str], Settings, tuple[Rule, ...]], alone: list[FileReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What macOS and Windows do: nothing is inherited, all is sent."""
    paths, settings, rules = project
    monkeypatch.setattr(run, "_method", lambda here: "spawn")
    assert engine.check_files(paths, rules, settings, jobs=2).files == alone


def test_no_fork_beside_other_threads(project: tuple[list[str], Settings, tuple[Rule, ...]]) -> None:
    _, settings, rules = project
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert run._method(run._Shared(rules, settings, None)) == "spawn"
    finally:
        stop.set()
        thread.join()


def test_rules_of_the_caller_stay_in_its_process(
    project: tuple[list[str], Settings, tuple[Rule, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that the registry does not know cannot be sent; the run is made here and says the same."""
    paths, settings, rules = project
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    own = tuple(Rule(rule.meta, rule.triggers) for rule in rules)
    assert run._method(run._Shared(own, settings, None)) is None
    assert engine.check_files(paths, own, settings, jobs=2).files == engine.check_files(paths, rules, settings).files


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the dying worker is patched in before the fork")
def test_a_process_that_dies_loses_nothing(
    project: tuple[list[str], Settings, tuple[Rule, ...]], alone: list[FileReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, settings, rules = project
    parent = os.getpid()
    real = engine.summarize_file

    def die(path: str, *rest: Any) -> object:
        if path.endswith("layer030.py") and os.getpid() != parent:
            os._exit(9)
        return real(path, *rest)

    monkeypatch.setattr(engine, "summarize_file", die)
    assert engine.check_files(paths, rules, settings, jobs=2).files == alone


def test_an_interrupt_ends_the_run(project: tuple[list[str], Settings, tuple[Rule, ...]]) -> None:
    """Ctrl-C in the middle of a run with processes: it goes up at once and leaves no process behind."""
    paths, settings, rules = project

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.check_files(paths, rules, settings, jobs=2, progress=interrupt)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_every_file_once(project: tuple[list[str], Settings, tuple[Rule, ...]], jobs: int) -> None:
    paths, settings, rules = project
    steps: list[int] = []
    engine.check_files(paths, rules, settings, jobs=jobs, progress=steps.append)
    assert sum(steps) == len(paths)


def test_few_files_start_no_process(
    project: tuple[list[str], Settings, tuple[Rule, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths, settings, rules = project

    def refuse(*_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(run, "_in_processes", refuse)
    few = paths[: engine.FEW_FILES - 1]
    assert len(engine.check_files(few, rules, settings, jobs=8).files) == len(few)


def test_a_file_that_goes_away(project: tuple[list[str], Settings, tuple[Rule, ...]]) -> None:
    paths, settings, rules = project
    gone = [*paths, str(Path(paths[0]).parent / "gone.py")]
    reports = engine.check_files(gone, rules, settings, jobs=2, cache=open_cache(settings, rules)).files
    assert [problem.reason for problem in reports[-1].problems] == ["cannot be read: No such file or directory"]


def test_a_hot_setting_reaches_into_cold_paths(tmp_path: Path) -> None:
    """Files that are cold by their path get leaner summaries, unless a setting may call their functions hot."""
    paths = tree.make(tmp_path, layers=30)
    folder = tmp_path / "pkg" / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    cold = folder / "driver.py"
    cold.write_text("from pkg.helper import rest\n\n\ndef drive(lengths):\n    return rest(lengths)\n")
    paths = [*paths, str(folder / "__init__.py"), str(cold)]
    for hot, expected in (((), 1), (("pkg.benchmarks.driver.drive",), 2)):
        settings = Settings(root=str(tmp_path), hot=hot)
        rules = tree.rules_of(settings)
        for cache in (None, open_cache(settings, rules), open_cache(settings, rules)):
            reports = {report.path: report for report in engine.check_files(paths, rules, settings, cache=cache).files}
            assert len(reports[str(tmp_path / "pkg" / "helper.py")].findings) == expected


BATCH = "import torch\n\n\nclass Batch:\n    lens: torch.Tensor\n    {second}: torch.Tensor | None\n"
READER = """\
import torch
from pkg.batch import Batch


class Layer(torch.nn.Module):
    def forward(self, batch: Batch):
        return torch.zeros(batch.lens[0])
"""


@pytest.mark.parametrize(("second", "codes"), [("lens_cpu", ["LCH309"]), ("rows", [])])
def test_a_field_of_another_file_beside_its_host_copy(tmp_path: Path, second: str, codes: list[str]) -> None:
    (tmp_path / "pkg").mkdir()
    texts = {"__init__.py": "", "batch.py": BATCH.format(second=second), "layer.py": READER}
    for name, text in texts.items():
        (tmp_path / "pkg" / name).write_text(text)
    settings = tree.settings_of(tmp_path)
    reports = engine.check_files([str(tmp_path / "pkg" / name) for name in texts], tree.rules_of(settings), settings).files
    assert [finding.code for report in reports for finding in report.findings] == codes

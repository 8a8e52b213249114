"""Statistics: what each stage and each rule took, over all processes, and nothing for a run that does not ask."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from launchlint import cli, engine, run
from launchlint.cache import open_cache
from launchlint.rule import Rule
from launchlint.settings import Settings
from launchlint.spent import Spent
from tests.engine import tree
from tests.robust.run import check

FEW = 10  # rules that have something to do in the made project are fewer, and all of them are named
BURNT = 0.004


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Settings, tuple[Rule, ...]]:
    root = tmp_path_factory.mktemp("project")
    settings = tree.settings_of(root)
    return tree.make(root), settings, tree.rules_of(settings)


def cpu(report: engine.Report, name: str) -> dict[str, float]:
    """One of the two tables."""
    table = report.stats[f"cpu_by_{name}"]
    assert isinstance(table, dict)
    return table


def test_stages_add_up_whatever_lies_in_what() -> None:
    ticks = itertools.count()
    spent = Spent(clock=lambda: float(next(ticks)))  # every look at the clock is a second later
    with spent.stage("rules"):  # from 0 to 9
        with spent.stage("values"):  # 1 to 2
            pass
        with spent.rule("LCH101"), spent.stage("values"):  # 3 to 6, and in it 4 to 5
            pass
        with spent.rule("LCH102"):  # 7 to 8
            pass
    assert spent.stages == {"values": 2.0, "rules": 9 - 1 - 3 - 1}
    assert spent.rules == {"LCH101": 2.0, "LCH102": 1.0}
    assert spent.stats() == {"cpu_by_stage": {"values": 2.0, "rules": 7.0}, "cpu_by_rule": {"LCH101": 2.0, "LCH102": 1.0}}


def test_a_stage_that_fails_is_charged_and_closed() -> None:
    ticks = itertools.count()
    spent = Spent(clock=lambda: float(next(ticks)))
    with pytest.raises(ValueError), spent.stage("parsing"):
        raise ValueError
    with spent.stage("parsing"):
        pass
    assert spent.stages == {"parsing": 2.0}


def test_what_others_spent_is_added() -> None:
    spent = Spent({"parsing": 1.0}, {"LCH101": 0.5})
    spent.add(({"parsing": 2.0, "walk": 1.0}, {"LCH102": 0.25}))
    assert spent.plain() == ({"parsing": 3.0, "walk": 1.0}, {"LCH101": 0.5, "LCH102": 0.25})


@pytest.mark.parametrize("jobs", [1, 2])
def test_timing_changes_no_report(project: tuple[list[str], Settings, tuple[Rule, ...]], jobs: int) -> None:
    paths, settings, rules = project
    plain = engine.check_files(paths, rules, settings, jobs=jobs)
    timed = engine.check_files(paths, rules, settings, jobs=jobs, timed=True)
    assert timed.files == plain.files
    assert set(cpu(timed, "stage")) == {"reading", "parsing", "summaries", "graph", "walk", "values", "second look", "rules", "suppression"}
    assert {"LCH201", "LCH301", "LCH305"} <= set(cpu(timed, "rule"))
    assert 0 < sum(cpu(timed, "rule").values()) <= cpu(timed, "stage")["rules"] + 0.01


def test_who_does_not_ask_reads_no_clock(
    project: tuple[list[str], Settings, tuple[Rule, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock is read a few times for a run, not for a file or a check."""
    paths, settings, rules = project
    looks: list[str] = []

    def noting(name: str) -> Any:
        real = getattr(time, name)

        def look() -> float:
            looks.append(name)
            seconds: float = real()
            return seconds

        return look

    for name in ("perf_counter", "process_time", "thread_time", "monotonic", "time"):
        monkeypatch.setattr(time, name, noting(name))
    monkeypatch.delattr(engine, "_TimedCheck")
    monkeypatch.delattr(run, "Spent")
    counts = []
    for number in (60, len(paths)):
        looks.clear()
        stats = engine.check_files(paths[:number], rules, settings).stats
        counts.append(len(looks))
        assert not [name for name in stats if name.startswith("cpu") or name == "reports_from_cache"]
    assert counts[0] == counts[1] < FEW


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="what burns is patched in before the fork")
@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_are_summed(project: tuple[list[str], Settings, tuple[Rule, ...]], monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """Every summary burns the same, so any process that is forgotten, or counted twice, shows."""
    paths, settings, rules = project
    real = engine.summarize_source

    def burn(*arguments: Any) -> Any:
        end = time.process_time() + BURNT
        while time.process_time() < end:
            pass
        return real(*arguments)

    monkeypatch.setattr(engine, "summarize_source", burn)
    seconds = cpu(engine.check_files(paths, rules, settings, jobs=jobs, timed=True), "stage")["summaries"]
    parsed = len(paths) - 1  # one does not parse
    assert parsed * BURNT <= seconds < parsed * BURNT * 1.7


def test_processes_started_anew_tell_too(
    project: tuple[list[str], Settings, tuple[Rule, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, settings, rules = project
    monkeypatch.setattr(run, "_method", lambda here: "spawn")
    timed = engine.check_files(paths, rules, settings, jobs=2, timed=True)
    assert cpu(timed, "stage")["parsing"] > 0
    assert "LCH201" in cpu(timed, "rule")


def test_what_comes_from_the_cache_is_not_said_to_cost(tmp_path: Path) -> None:
    paths = tree.make(tmp_path, layers=30)
    settings = tree.settings_of(tmp_path)
    rules = tree.rules_of(settings)

    def again() -> engine.Report:
        return engine.check_files(paths, rules, settings, cache=open_cache(settings, rules), timed=True)

    cold = again()
    assert (cold.stats["from_cache"], cold.stats["reports_from_cache"]) == (0, 0)
    assert cpu(cold, "stage")["cache"] > 0
    warm = again()
    assert warm.files == cold.files
    assert (warm.stats["from_cache"], warm.stats["reports_from_cache"]) == (len(paths), len(paths))
    assert (set(cpu(warm, "stage")), cpu(warm, "rule")) == ({"cache"}, {})
    (tmp_path / "pkg" / "layer003.py").write_text(tree.LAYER.format(number=3) + "\n\nMORE = 1\n")
    one = again()
    checked = sum(bool(report.findings) for report in cold.files)
    assert (one.stats["from_cache"], one.stats["reports_from_cache"]) == (len(paths) - 1, checked - 1)
    assert "LCH201" in cpu(one, "rule")


def test_the_command_shows_both_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(tree.LAYER.format(number=1))
    for shape in ("text", "concise"):
        assert cli.main(["check", "--statistics", "--format", shape, "a.py"]) == 1
        out = capsys.readouterr().out.splitlines()
        assert any(line.endswith("  second look") for line in out[out.index("CPU seconds by stage, over all processes:") :])
        assert any(line.endswith("  LCH201  list-to-device") for line in out[out.index("CPU seconds by rule, part of the stage rules:") :])
        assert cli.main(["check", "--format", shape, "a.py"]) == 1
        assert "CPU seconds" not in capsys.readouterr().out


def test_programs_get_both_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(tree.LAYER.format(number=1))
    for shape in ("json", "jsonl"):
        for asked in ([], ["--statistics"]):
            assert cli.main(["check", *asked, "--format", shape, "a.py"]) == 1
            out = capsys.readouterr().out
            stats = json.loads(out)["stats"] if shape == "json" else json.loads(out.splitlines()[-1])
            assert [name for name in stats if name.startswith("cpu")] == ["cpu_by_stage", "cpu_by_rule"] * bool(asked)
            assert not asked or stats["cpu_by_rule"]["LCH201"] >= 0


def test_standard_input_is_timed_too(tmp_path: Path) -> None:
    code = tree.LAYER.format(number=1).encode()
    for asked in ([], ["--statistics"]):
        _, report = check("--stdin-filename", "a.py", *asked, "-", cwd=tmp_path, stdin=code)
        assert ("LCH201" in report["stats"].get("cpu_by_rule", {})) is bool(asked)

"""What the variants spend in launchlint's dry run, and what the machine at hand can check in one command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fixed_receiver import __main__ as command_line
from fixed_receiver import budgets, checks, ids
from fixed_receiver.budgets import Spent, check_budgets, count_call
from fixed_receiver.layouts import Layout, published_layout, spread
from fixed_receiver.validation import Part
from fixed_receiver.variants import CODES

ROOT = Path(__file__).resolve().parents[2]


def test_the_loop_launches_once_for_each_busy_expert() -> None:
    spent, report = count_call("V0", published_layout())
    assert spent == Spent(launches=22, pinned_uploads=0, pageable_uploads=0, downloads=0, waits=0, may_waits=0)
    busiest = report.lines[0]
    assert busiest.launches == 22
    assert ".fill_(i + first)" in busiest.source


def test_the_fixed_form_is_constant_with_one_pinned_upload_and_no_wait() -> None:
    spent = {count_call("V3", Layout(spread("holes", number, 4 * number)))[0] for number in (2, 28, 256)}
    assert len(spent) == 1
    once = spent.pop()
    assert once.launches < 8
    assert (once.pinned_uploads, once.pageable_uploads, once.downloads, once.waits, once.may_waits) == (1, 0, 0, 0, 0)


def test_the_search_is_two_launches_and_nothing_else() -> None:
    for number in (1, 28, 256):
        assert count_call("V5", Layout(spread("zipf", number, 300)))[0] == Spent(2, 0, 0, 0, 0, 0)


def test_kept_ids_save_launches() -> None:
    fixed, cached, rebuilt = (count_call(code, published_layout())[0].launches for code in ("V3", "V3c", "V3u"))
    assert cached == fixed - 1 == rebuilt - 2


def test_waits_show() -> None:
    naive = count_call("V1", published_layout())[0]
    assert (naive.waits, naive.pageable_uploads) == (1, 1)
    half = count_call("V2", published_layout())[0]
    assert (half.waits, half.downloads) == (2, 2)
    pageable = count_call("V2b", published_layout())[0]
    assert (pageable.waits, pageable.may_waits, pageable.pageable_uploads) == (0, 1, 1)


def test_every_variant_is_within_budget() -> None:
    check = check_budgets((8, 28, 256))
    assert check.failures == []
    assert {row["variant"] for row in check.rows} == set(budgets.BUDGETS) - set(budgets.NOT_COUNTED)


def test_an_overspent_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_a_read(psum: torch.Tensor, row_numbers: torch.Tensor, first: int) -> torch.Tensor:
        return torch.searchsorted(psum, row_numbers[: int(psum[-1])], right=True).add_(first).unsqueeze(1)

    monkeypatch.setattr(ids, "expand_by_search", with_a_read)
    failures = check_budgets((8,)).failures
    assert any(failure.startswith("V5 at 8 experts: 1 waits") for failure in failures)


def test_staging_is_left_as_it_was() -> None:
    before = ids.PIN_MEMORY
    with pytest.raises(KeyError), budgets.pinning():
        assert ids.PIN_MEMORY
        raise KeyError
    assert before == ids.PIN_MEMORY


def test_nothing_but_half_a_fix_reads_the_device() -> None:
    check = checks.check_meta(published_layout())
    assert check.failures == []
    assert [row["variant"] for row in check.rows if row["reads the device"]] == ["V2"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="pinned memory can be had here")
def test_pinned_memory_cannot_be_had_without_an_accelerator() -> None:
    """Why the staging asks first."""
    assert not ids.PIN_MEMORY
    with pytest.raises(RuntimeError):
        torch.tensor([1], pin_memory=True)


def test_the_page_says_what_the_dry_run_counts() -> None:
    """The table of variants in the README; a number in front of a cell is the count."""
    text = (ROOT / "fixed_receiver" / "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| \**V\d", line)]
    assert [row[0] for row in rows] == list(CODES)
    for code, _, launches, uploads, waits, *_ in rows:
        if code in budgets.NOT_COUNTED:
            continue
        spent, _ = count_call(code, published_layout())
        assert int(launches.split(",")[0]) == spent.launches, code
        kinds = {"0": (0, 0), "1 pinned": (1, 0), "1 pageable": (0, 1)}
        assert kinds[uploads] == (spent.pinned_uploads, spent.pageable_uploads), code
        assert waits == ("not guaranteed 0" if spent.may_waits else str(spent.waits)), code


def test_the_command_prints_tables_and_fails_where_a_part_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    meta = Part("meta", lambda: checks.check_meta(published_layout()))
    monkeypatch.setattr(command_line, "host_parts", lambda: [meta])
    assert command_line.main(["validate"]) == 0
    printed = capsys.readouterr().out
    assert "variant  reads the device" in printed
    assert "passed in" in printed
    monkeypatch.setattr(command_line, "host_parts", lambda: [meta, Part("broken", lambda: checks.Check("broken", passed=False))])
    assert command_line.main(["validate", "--quiet"]) == 1
    assert "variant" not in capsys.readouterr().out


def test_it_runs_from_a_bare_checkout(tmp_path: Path) -> None:
    """Only this folder beside it, nothing installed: the dry run is then skipped with its reason, all else holds."""
    shutil.copytree(ROOT / "fixed_receiver", tmp_path / "fixed_receiver", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "fixed_receiver", "validate", "--quiet", "--json", "report.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    outcomes = {part["code"]: part for part in report["parts"]}
    assert report["device"] == "cpu"
    assert set(outcomes) == {"values", "marking", "decode", "round trip", "meta", "budgets", "kernels"}
    assert all(part["passed"] for part in outcomes.values())
    assert outcomes["values"]["cases"] > 1000
    skipped = outcomes["budgets"]["skipped"]
    assert skipped == "" or "the dry run does not import" in skipped

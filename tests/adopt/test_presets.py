"""Presets: files of settings that load, mean something, and give way to the project's own."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from launchlint import cli, settings
from launchlint.settings import presets, read
from tests.doors.environment import ROOT

PLUGIN = """\
import torch


class FastModelRunner:
    def execute_model(self, plan):
        return self._pack(plan)

    def _pack(self, plan: list[int]) -> torch.Tensor:
        return torch.tensor(plan, dtype=torch.int32, device="cuda")
"""
TRAINING = """\
import torch


class Task:
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.net(batch).float().mean()
        self.total += loss.item()
        return loss

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        score = self.net(batch).float().mean()
        self.scores.append(score.item())
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    cli.main(["check", "--format", "json", *arguments])
    return [f"{each['path']}:{each['line']}:{each['code']}" for each in json.loads(capsys.readouterr().out)["findings"]]


@pytest.mark.parametrize("name", presets())
def test_each_is_settings_that_somebody_can_read(name: str) -> None:
    """Unknown keys and wrong types are errors of the reader, so loading is most of the check."""
    loaded = settings.load(".", preset=name)
    given = dict(loaded.given)
    assert {who for field, who in given.items() if field != "preset"} == {f"preset {name}"}
    assert loaded.hot and loaded.pin_memory
    ast.parse(loaded.pin_memory, mode="eval")
    assert loaded.min_confidence == settings.Settings().min_confidence, "a preset says what a project is like, not how strict to be"
    assert not loaded.select and not loaded.ignore
    for pattern in (*loaded.hot, *loaded.cold):
        assert pattern.split("*")[-1] or pattern.count("*") < 3, f"{pattern} catches whatever there is"
    assert f"`{name}`" in (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")
    text = (ROOT / "launchlint" / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# "), "says whom it is for"


def test_the_own_settings_come_on_top() -> None:
    loaded = read(
        {"preset": "vllm", "hot": ["mine.*"], "pin-memory": "off", "extend-exclude": ["old"], "h2d-helper": ""}, "launchlint.toml"
    )
    preset = settings.load(".", preset="vllm")
    assert loaded.hot == (*preset.hot, "mine.*")
    assert loaded.extend_exclude == (*preset.extend_exclude, "old")
    assert (loaded.pin_memory, loaded.h2d_helper) == ("", "")
    given = dict(loaded.given)
    assert given["hot"] == "preset vllm, then launchlint.toml"
    assert given["pin_memory"] == "launchlint.toml"
    assert given["cold"] == "preset vllm"


def test_the_command_line_chooses_another(capsys: pytest.CaptureFixture[str]) -> None:
    Path("launchlint.toml").write_text('preset = "vllm"\nhot = ["mine.*"]\n', encoding="utf-8")
    assert cli.main(["settings", "--preset", "training"]) == 0
    out = capsys.readouterr().out
    assert 'preset = "training"  # --preset' in out
    assert '"*.training_step"' in out and '"mine.*"]  # preset training, then ' in out
    assert "ModelRunner" not in out
    assert cli.main(["check", "--preset", "vlm", "."]) == 2
    assert "--preset: no preset is called 'vlm', did you mean 'vllm'?" in capsys.readouterr().err


def test_a_plugin_outside_the_package_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plugin.py").write_text(PLUGIN, encoding="utf-8")
    cli.main(["check", "plugin.py", "--preset", "vllm", "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert "the setting `hot` names it" in finding["hot"]["reason"]
    assert finding["hot"]["chain"] == ["FastModelRunner.execute_model", "FastModelRunner._pack"]
    assert check(capsys, "plugin.py", "--preset", "vllm") == ["plugin.py:9:LCH201"]
    assert cli.main(["check", "plugin.py", "--preset", "vllm", "--fix", "--unsafe-fixes"]) == 0
    fixed = Path("plugin.py").read_text(encoding="utf-8")
    assert "from vllm.utils.torch_utils import async_tensor_h2d" in fixed
    assert 'return async_tensor_h2d(plan, dtype=torch.int32, device="cuda")' in fixed


def test_hooks_of_a_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("task.py").write_text(TRAINING, encoding="utf-8")
    assert check(capsys, "task.py", "--preset", "training") == ["task.py:7:LCH301"]
    Path("launchlint.toml").write_text('preset = "training"\nhot = ["*.validation_step"]\n', encoding="utf-8")
    assert check(capsys, "task.py") == ["task.py:7:LCH301", "task.py:12:LCH301"], (
        "what the project calls hot outranks what a preset calls cold"
    )


def test_what_a_preset_leaves_out_where_the_package_lies_deeper(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("vllm/third_party", "python/vllm/third_party", "vllm/worker"):
        Path(folder).mkdir(parents=True)
        Path(folder, "plugin.py").write_text(PLUGIN, encoding="utf-8")
    assert check(capsys, ".", "--preset", "vllm") == ["vllm/worker/plugin.py:9:LCH201"]


@pytest.mark.parametrize(
    "place",
    ["        with sync_is_fine():\n            return {}", "        with quiet() if pinned else sync_is_fine():\n            return {}"],
)
def test_a_region_of_the_project(capsys: pytest.CaptureFixture[str], place: str) -> None:
    line = 'torch.tensor(plan, dtype=torch.int32, device="cuda")'
    text = PLUGIN.replace(f"        return {line}", place.format(line)).replace("def _pack(self,", "def _pack(self, pinned: bool,")
    Path("plugin.py").write_text(text, encoding="utf-8")
    assert len(check(capsys, "plugin.py", "--preset", "vllm")) == 1
    Path("launchlint.toml").write_text('preset = "vllm"\nallow-regions = ["sync_is_fine"]\n', encoding="utf-8")
    assert check(capsys, "plugin.py") == []
    cli.main(["check", "plugin.py"])
    assert "silenced: 1 by region" in capsys.readouterr().out


@pytest.mark.parametrize("decorator", ["sync_is_fine", "sync_is_fine()", "engine.sync_is_fine(reason='once')"])
def test_a_region_as_a_decorator(capsys: pytest.CaptureFixture[str], decorator: str) -> None:
    Path("launchlint.toml").write_text('preset = "vllm"\nallow-regions = ["sync_is_fine"]\n', encoding="utf-8")
    Path("plugin.py").write_text(PLUGIN.replace("    def _pack", f"    @{decorator}\n    def _pack"), encoding="utf-8")
    assert check(capsys, "plugin.py") == []
    Path("plugin.py").write_text(PLUGIN.replace("    def execute", f"    @{decorator}\n    def execute"), encoding="utf-8")
    assert check(capsys, "plugin.py") == ["plugin.py:10:LCH201"], "it speaks for its own function and not for what that calls"


def test_settings_of_one_file_say_which_override_set_what(capsys: pytest.CaptureFixture[str]) -> None:
    Path("launchlint.toml").write_text(
        'min-confidence = "high"\n[[overrides]]\nfiles = ["kernels/**"]\nignore = ["LCH1"]\nmin-confidence = "low"\n', encoding="utf-8"
    )
    for name in ("kernels/a.py", "other.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("x = 1\n", encoding="utf-8")
    cli.main(["settings", "kernels/a.py"])
    lines = capsys.readouterr().out.splitlines()
    (confidence,) = (line for line in lines if line.startswith("min-confidence"))
    assert confidence.startswith('min-confidence = "low"  # ') and confidence.endswith("launchlint.toml: overrides[1]")
    cli.main(["settings", "other.py"])
    assert 'min-confidence = "high"' in capsys.readouterr().out


def test_what_settings_prints_can_be_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    Path("launchlint.toml").write_text('cold = ["a.*"]\n[per-file-ignores]\n"x*" = ["LCH1"]\n', encoding="utf-8")
    cli.main(["settings"])
    first = capsys.readouterr().out
    Path("again").mkdir()
    Path("again/launchlint.toml").write_text(first, encoding="utf-8")
    cli.main(["settings", "--config", "again/launchlint.toml"])
    again = capsys.readouterr().out
    assert [line.partition("  # ")[0] for line in again.splitlines()[1:]] == [line.partition("  # ")[0] for line in first.splitlines()[1:]]

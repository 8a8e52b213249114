"""Where settings come from, what they may say, and what is said about wrong ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from launchlint.model import Confidence
from launchlint.settings import Settings, SettingsError, check_codes, find, keys, load, names_rule, read, start_of

KNOWN = [("LCH101", "slice-fill-loop"), ("LCH201", "list-to-device"), ("LCH202", "unpinned-non-blocking")]


def complaint(table: dict[str, object]) -> str:
    with pytest.raises(SettingsError) as caught:
        check_codes(read(table, "pyproject.toml"), KNOWN)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_without_a_file(tmp_path: Path) -> None:
    settings = load(str(tmp_path), isolated=True)
    assert settings.min_confidence is Confidence.MEDIUM
    assert settings.devices == ()
    assert settings.pin_memory == "True"
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    assert load(str(tmp_path / "deep"), isolated=True).root == str(tmp_path), "names do not depend on what was asked for"


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """
        [tool.launchlint]
        select = ["LCH1"]
        extend-select = ["LCH201"]
        ignore = ["LCH202"]
        preview = true
        min-confidence = "low"
        exclude = ["gen"]
        extend-exclude = ["*_pb2.py"]
        force-exclude = true
        respect-gitignore = false
        hot = ["a.*.step"]
        cold = ["a.*.load"]
        h2d-helper = "app.copy.async_h2d"
        pin-memory = "PIN"
        devices = ["cuda", "xpu"]
        allow-regions = ["sync_ok"]
        waivers = ["perf-ok"]
        require-reasons = true
        extend-safe-fixes = ["LCH202"]
        extend-unsafe-fixes = ["LCH101"]
        baseline = "known.json"
        fix = true
        unsafe-fixes = true
        [tool.launchlint.per-file-ignores]
        "tests/*" = ["LCH101"]
        [[tool.launchlint.overrides]]
        files = ["kernels/**"]
        pin-memory = "off"
        select = ["list-to-device"]
    """
    settings = load(str(write(tmp_path / "pyproject.toml", text).parent))
    assert settings.select == ("LCH1",)
    assert settings.min_confidence is Confidence.LOW
    assert settings.h2d_helper == "app.copy.async_h2d"
    assert settings.devices == ("cuda", "xpu")
    assert settings.per_file_ignores == (("tests/*", ("LCH101",)),)
    mentioned = {line.partition("=")[0].strip() for line in text.splitlines()} | {"per-file-ignores", "overrides"}
    assert set(keys()) - mentioned == {"preset"}, "a key that this test forgets"
    inner = settings.for_file(str(tmp_path / "kernels" / "deep" / "a.py"))
    assert (inner.pin_memory, inner.select) == ("", ("list-to-device",))
    assert settings.for_file(str(tmp_path / "other.py")).pin_memory == "PIN"
    assert settings.ignored_in(str(tmp_path / "tests" / "a.py")) == ("LCH101",)
    assert settings.ignored_in(str(tmp_path / "a.py")) == ()


def test_settings_pickle_and_hash() -> None:
    settings = read({"per-file-ignores": {"a": ["LCH101"]}, "overrides": [{"files": ["x"], "select": ["LCH1"]}]}, "pyproject.toml")
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(pickle.loads(pickle.dumps(settings)))


def test_nearest_file_with_our_table_wins(tmp_path: Path) -> None:
    outer = write(tmp_path / "pyproject.toml", "[tool.launchlint]\npreview = true\n")
    inner = write(tmp_path / "package" / "pyproject.toml", "[project]\nname = 'launchlint-user'\n")
    assert find(str(inner.parent)) == str(outer)
    own = write(tmp_path / "package" / "launchlint.toml", 'min-confidence = "high"\n')
    assert find(str(inner.parent / "deeper")) == str(own)
    assert load(str(inner.parent)).min_confidence is Confidence.HIGH


def test_start_is_the_folder_that_holds_all(tmp_path: Path) -> None:
    for name in ("a/x.py", "a/b/y.py"):
        write(tmp_path / name, "")
    assert start_of([str(tmp_path / "a" / "x.py"), str(tmp_path / "a" / "b")]) == str(tmp_path / "a")


def test_config_file_without_table_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", "[tool.other]\n")
    with pytest.raises(SettingsError, match=r"has no \[tool\.launchlint\] table"):
        load(str(tmp_path), config=str(path))
    with pytest.raises(SettingsError, match=r"gone\.toml: No such file"):
        load(str(tmp_path), config=str(tmp_path / "gone.toml"))


@pytest.mark.parametrize("data", [b"[tool.launchlint]\nselect = [\n", b"[tool.launchlint]\n# \xff\n"])
def test_broken_toml_is_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        load(str(tmp_path))
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "launchlint.toml").write_bytes(b"\xef\xbb\xbfpreview = true\n")
    assert load(str(tmp_path)).preview is True


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"selct": ["LCH101"]}, "unknown setting 'selct', did you mean 'select'?"),
        ({"min_confidence": "low"}, "unknown setting 'min_confidence', did you mean 'min-confidence'?"),
        ({"zzz": 1}, "unknown setting 'zzz'"),
        ({"preview": "yes"}, "preview must be true or false, not 'yes'"),
        ({"select": "LCH101"}, "select must be a list of strings, not 'LCH101'"),
        ({"select": [101]}, "select must be a list of strings"),
        ({"h2d-helper": 3}, "h2d-helper must be a string, not 3"),
        ({"min-confidence": "hihg"}, "min-confidence must be one of low, medium, high, not 'hihg', did you mean 'high'?"),
        ({"min-confidence": 2}, "min-confidence must be one of low, medium, high, not 2"),
        ({"pin-memory": "x ="}, 'pin-memory must be a Python expression or "off"'),
        ({"per-file-ignores": ["LCH101"]}, "per-file-ignores must be a table of globs"),
        ({"per-file-ignores": {"t/*": "LCH101"}}, "per-file-ignores.'t/*' must be a list of strings"),
        ({"preset": "vlm"}, "no preset is called 'vlm'"),
        ({"select": ["LCH999"]}, "select: no rule has the code or name 'LCH999'"),
        ({"ignore": ["slice-fil-loop"]}, "ignore: no rule has the code or name 'slice-fil-loop', did you mean 'slice-fill-loop'?"),
        ({"ignore": ["LHC101"]}, "did you mean 'LCH101'?"),
        ({"per-file-ignores": {"t/*": ["E501"]}}, "per-file-ignores.'t/*': no rule has the code or name 'E501'"),
        ({"overrides": {"files": ["a"]}}, "overrides must be an array of tables"),
        ({"overrides": [{"select": ["LCH101"]}]}, "overrides[1] has no files"),
        ({"overrides": [{"files": ["a"], "slect": []}]}, "unknown setting 'overrides[1].slect', did you mean 'select'?"),
        ({"overrides": [{"files": ["a"], "exclude": ["b"]}]}, "overrides[1].exclude holds for a whole run"),
        ({"overrides": [{"files": ["a"], "select": ["LCH9"]}]}, "overrides[1].select: no rule has the code or name 'LCH9'"),
    ],
)
def test_wrong_settings_name_file_and_key(table: dict[str, object], said: str) -> None:
    text = complaint(table)
    assert text.startswith("pyproject.toml: ")
    assert said in text


@pytest.mark.parametrize(("given", "kept"), [(True, "True"), (False, ""), ("off", ""), ("PIN_MEMORY", "PIN_MEMORY"), (" a.b() ", "a.b()")])
def test_pin_memory(given: object, kept: str) -> None:
    assert read({"pin-memory": given}, "launchlint.toml").pin_memory == kept


@pytest.mark.parametrize(
    ("word", "means"),
    [
        ("LCH101", True),
        ("lch1", True),
        ("LCH", True),
        ("ALL", True),
        ("slice-fill-loop", True),
        ("LCH2", False),
        ("slice", False),
        ("", False),
    ],
)
def test_words_that_mean_a_rule(word: str, means: bool) -> None:
    assert names_rule(word, "LCH101", "slice-fill-loop") is means


def test_options_remember_who_set_them() -> None:
    settings = read({"preview": True}, "launchlint.toml").but("--select", select=("LCH101",))
    assert dict(settings.given) == {"preview": "launchlint.toml", "select": "--select"}
    with pytest.raises(SettingsError, match=r"^--select: no rule has the code or name 'LCH109', did you mean 'LCH101'\?$"):
        check_codes(Settings().but("--select", select=("LCH109",)), KNOWN[:1])

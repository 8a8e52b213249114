"""Sessions of an editor with the server, over standard input and output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the editor server is an extra: it needs pygls")

from launchlint.server import command
from tests.server.client import CAPABILITIES, Client, Text

HEAD = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor, rows: list[int]) -> torch.Tensor:\n"
UPLOAD = "torch.tensor(rows).to(x.device)"
PINNED = "torch.tensor(rows, pin_memory=True).to(x.device, non_blocking=True)"
MOVED = "torch.zeros(3).to(x.device)"
CREATED = "torch.zeros(3, device=x.device)"


def forward(*lines: str) -> str:
    """A module whose forward has these lines."""
    return HEAD + "".join(f"        {line}\n" for line in lines)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One editor for the tests that change no settings; each opens a text of its own."""
    with Client(tmp_path_factory.mktemp("project"), "--delay", "0") as client:
        yield client


@pytest.fixture
def opened(editor: Client, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens a text and closes it afterwards."""
    texts: list[Text] = []

    def open_text(text: str) -> Text:
        texts.append(editor.open(f"{request.node.name} {len(texts)}.py", text))
        return texts[-1]

    yield open_text
    for text in texts:
        text.close()


def codes(text: Text) -> list[str]:
    return [diagnostic["code"] for diagnostic in text.diagnostics]


def only(text: Text, code: str) -> dict[str, Any]:
    """The one diagnostic of a rule."""
    (found,) = [diagnostic for diagnostic in text.diagnostics if diagnostic["code"] == code]
    return found


def action(text: Text, diagnostic: dict[str, Any], beginning: str) -> dict[str, Any]:
    """The one action for a diagnostic whose title begins like this."""
    (found,) = [each for each in text.actions(diagnostic["range"]) if each["title"].startswith(beginning)]
    return found


def test_a_session_from_opening_to_the_fixed_text(tmp_path: Path) -> None:
    """What a person does: open, look, fix, ignore, break the syntax, mend it, close; the file on the disk never changes."""
    file = tmp_path / "net.py"
    file.write_text("x = 1  # what lies on the disk is not what is being written\n")
    before = forward(f'a = "\N{ROCKET}\N{SNOWMAN}"; b = {UPLOAD}', "return x + b")
    with Client(tmp_path) as editor:
        text = editor.open("net.py", before)
        found = only(text, "LCH203")
        column = len('        a = "') + 3 + len('"; b = ')  # the rocket is two units, the snowman one
        assert found["range"]["start"] == {"line": 5, "character": column}
        assert text.cut(found["range"]) == UPLOAD
        assert (found["source"], found["severity"], found["data"]["name"]) == ("launchlint", 2, "blocking-upload")
        assert found["codeDescription"]["href"].endswith("/lch203_blocking_upload/README.md")

        text.change(before.replace("b = ", "bb = ").replace("x + b", "x + bb"))
        found = only(text, "LCH203")
        assert found["range"]["start"]["character"] == column + 1

        fix = action(text, found, "make the host tensor in pinned memory")
        assert fix["kind"] == "quickfix"
        text.change(text.applied(fix["edit"]))
        assert text.text == forward(f'a = "\N{ROCKET}\N{SNOWMAN}"; bb = {PINNED}', "return x + bb")
        assert codes(text) == []

        text.change(before)
        text.change(text.applied(action(text, only(text, "LCH203"), "ignore blocking-upload")["edit"]))
        assert f"{UPLOAD}  # launchlint: ignore[blocking-upload] <reason>\n" in text.text
        assert codes(text) == []

        text.change(before + "        return (\n")
        (broken,) = text.diagnostics
        assert (broken["code"], broken["severity"], broken["range"]["start"]["line"]) == ("LCH003", 1, 7)
        assert "syntax error" in broken["message"]
        assert text.actions(broken["range"]) == []

        text.change(before)
        assert codes(text) == ["LCH203"]
        text.close()
        assert editor.wait(text.uri, None) == []
    assert editor.process.returncode == 0
    assert editor.errors == b""
    assert file.read_text().startswith("x = 1")


# ---------------------------------------------------------------- fixes


def test_a_safe_fix_is_preferred(opened: Any) -> None:
    text = opened(forward(f"return x + {MOVED}"))
    fix = text.actions(only(text, "LCH204")["range"])[0]
    assert fix["isPreferred"] is True
    assert text.applied(fix["edit"]) == forward(f"return x + {CREATED}")


def test_an_unsafe_fix_says_so_and_is_not_preferred(opened: Any) -> None:
    text = opened(forward(f"return x + {UPLOAD}"))
    fix = action(text, only(text, "LCH203"), "make the host tensor in pinned memory")
    assert "unsafe" in fix["title"]
    assert not fix.get("isPreferred")
    assert fix["diagnostics"][0]["code"] == "LCH203"


def test_a_fix_that_is_only_shown_is_part_of_the_message(opened: Any) -> None:
    text = opened(forward("host = torch.empty(8)", "host.copy_(torch.rand(8, device=x.device), non_blocking=True)", "return host"))
    found = only(text, "LCH209")
    assert "\nuse instead: " in found["message"]
    assert [each["title"] for each in text.actions(found["range"])] == ["ignore unpinned-download here, with a reason"]


def test_fixing_all_applies_what_is_safe_and_nothing_else(editor: Client, opened: Any) -> None:
    text = opened(forward(f"a = {MOVED}", f"b = {UPLOAD}", f"c = {MOVED}", "return a + b + c"))
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    (offered,) = text.actions(everything, only=["source.fixAll"])
    assert offered["kind"] == "source.fixAll.launchlint"
    edit = editor.ask("codeAction/resolve", offered)["edit"]
    assert text.applied(edit) == forward(f"a = {CREATED}", f"b = {UPLOAD}", f"c = {CREATED}", "return a + b + c")
    assert len(edit["documentChanges"][0]["edits"]) == 2, "lines between the fixed ones are left alone"


def test_nothing_is_offered_to_fix_all_where_nothing_is_safe(opened: Any) -> None:
    text = opened(forward(f"b = {UPLOAD}", "return x + b"))
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    assert text.actions(everything, only=["source.fixAll.launchlint"]) == []
    assert all(each["kind"] == "quickfix" for each in text.actions(everything))


def test_actions_are_for_the_text_as_it_is_now(opened: Any, tmp_path: Path) -> None:
    """A request that comes right after a key, before the pause is over, is answered for the new text."""
    with Client(tmp_path, "--delay", "60000") as editor:
        text = editor.open("net.py", forward(f"return x + {UPLOAD}"))
        found = only(text, "LCH203")
        text.change("\n\n" + text.text)
        assert text.actions(found["range"]) == []
        moved = {key: {"line": place["line"] + 2, "character": place["character"]} for key, place in found["range"].items()}
        fix = next(each for each in text.actions(moved) if "pinned" in each["title"])
        assert text.applied(fix["edit"]) == "\n\n" + forward(f"return x + {PINNED}")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_ends_are_kept(opened: Any, newline: str) -> None:
    text = opened(forward(f"return x + {MOVED}").replace("\n", newline))
    found = only(text, "LCH204")
    assert found["range"]["start"] == {"line": 5, "character": 19}
    (change,) = text.actions(found["range"])[0]["edit"]["documentChanges"]
    assert all("\n" not in each["newText"] for each in change["edits"])


def test_a_cell_of_a_notebook_is_left_to_the_command_line(opened: Any, editor: Client) -> None:
    """Editors open each cell as a text of its own, with a path that ends as the notebook's; magics are no errors there."""
    text = editor.open("train.ipynb", "%time x\n" + forward(f"return x + {UPLOAD}"))
    assert text.diagnostics == []
    text.close()


def test_a_form_feed_and_a_unicode_line_separator_end_no_line(opened: Any) -> None:
    text = opened(forward('a = "\N{LINE SEPARATOR}\f"', f"return x + {UPLOAD}"))
    assert text.cut(only(text, "LCH203")["range"]) == UPLOAD


# ---------------------------------------------------------------- ignoring


def test_a_second_rule_joins_the_comment_that_is_there(opened: Any) -> None:
    text = opened(forward(f"return x + {UPLOAD}  # launchlint: ignore[scalar-read] once per epoch"))
    edit = action(text, only(text, "LCH203"), "ignore")["edit"]
    assert "# launchlint: ignore[scalar-read, blocking-upload] once per epoch\n" in text.applied(edit)


def test_another_comment_stays_in_front(opened: Any) -> None:
    text = opened(forward(f"return x + {UPLOAD}  # sums"))
    text.change(text.applied(action(text, only(text, "LCH203"), "ignore")["edit"]))
    assert "  # sums  # launchlint: ignore[blocking-upload] <reason>\n" in text.text
    assert codes(text) == []


def test_where_the_line_goes_on_the_comment_stands_above(opened: Any) -> None:
    text = opened(forward(f"y = {UPLOAD} + \\", "    1", "return x + y"))
    text.change(text.applied(action(text, only(text, "LCH203"), "ignore")["edit"]))
    assert f"        # launchlint: ignore[blocking-upload] <reason>\n        y = {UPLOAD}" in text.text
    assert codes(text) == []


# ---------------------------------------------------------------- showing


def test_hover_shows_the_chain_and_the_head_of_the_page(opened: Any) -> None:
    text = opened(
        forward("self.pack(x, rows)", "return x")
        + "\n    def pack(self, x: torch.Tensor, rows: list[int]) -> None:\n"
        + "        self.rows = torch.tensor(rows, device=x.device)\n"
    )
    start = only(text, "LCH201")["range"]["start"]
    shown = text.hover(start["line"], start["character"] + 3)
    assert shown is not None
    assert shown.startswith("**LCH201 list-to-device**")
    assert "Chain: `Net.forward` → `Net.pack`" in shown
    assert "**Why it costs**" in shown
    assert "](../" not in shown and "| Group |" not in shown
    assert text.hover(0, 0) is None


def test_related_places_are_shown(opened: Any) -> None:
    lines = (
        "ids = torch.empty(sum(rows), device=x.device)",
        "at = 0",
        "for row in rows:",
        "    ids[at : at + row].fill_(1)",
        "    at += row",
    )
    text = opened(forward(*lines, "return ids"))
    notes = {each["message"]: text.cut(each["location"]["range"]) for each in only(text, "LCH101")["relatedInformation"]}
    assert notes["the loop"] == "for row in rows:"


def test_an_editor_that_can_do_little_gets_what_it_understands(tmp_path: Path) -> None:
    with Client(tmp_path, capabilities={}) as editor:
        text = editor.open("net.py", forward(f"return x + {MOVED}"))
        found = only(text, "LCH204")
        assert "relatedInformation" not in found
        for each in text.actions(found["range"]):
            assert list(each["edit"]) == ["changes"]
        (everything,) = text.actions(found["range"], only=["source.fixAll.launchlint"])
        assert text.edited(everything["edit"]["changes"][text.uri]) == forward(f"return x + {CREATED}")


@pytest.mark.parametrize(("encoding", "rocket"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
def test_columns_are_counted_as_both_sides_agreed(tmp_path: Path, encoding: str, rocket: int) -> None:
    with Client(tmp_path, capabilities={**CAPABILITIES, "general": {"positionEncodings": [encoding]}}) as editor:
        assert editor.server["capabilities"]["positionEncoding"] == encoding
        text = editor.open("net.py", forward(f'a = "\N{ROCKET}"; b = {UPLOAD}', "return x + b"))
        start = only(text, "LCH203")["range"]["start"]
        assert start == {"line": 5, "character": len('        a = ""; b = ') + rocket}
        assert text.hover(5, start["character"]) is not None


# ---------------------------------------------------------------- settings


def test_settings_are_those_of_the_project_and_are_read_again(tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.launchlint]\nignore = ["LCH203"]\n')
    with Client(tmp_path, "--delay", "0") as editor:
        text = editor.open("net.py", forward(f"return x + {UPLOAD}"))
        assert codes(text) == []
        settings.write_text("[tool.launchlint]\n")
        text.change(text.text + "\n")
        assert codes(text) == ["LCH203"]
        settings.write_text('[tool.launchlint]\nignore = ["LCH999"]\n')
        text.change(text.text + "\n")
        (found,) = text.diagnostics
        assert (found["code"], found["severity"]) == ("LCH003", 1)
        assert "'LCH999'" in found["message"]
        settings.write_text('[tool.launchlint]\nextend-exclude = ["net.py"]\n')
        text.change(text.text + "\n")
        assert codes(text) == []


def test_saving_checks_at_once(tmp_path: Path) -> None:
    with Client(tmp_path, "--delay", "60000") as editor:
        text = editor.open("net.py", forward("return x"))
        assert codes(text) == []
        text.change(forward(f"return x + {UPLOAD}"))
        text.save()
        assert codes(text) == ["LCH203"]


def test_what_the_baseline_knows_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "launchlint.toml").write_text('baseline = "known.json"\n')
    entry = {"path": "net.py", "code": "LCH203", "text": f"return x + {UPLOAD}", "count": 1}
    (tmp_path / "known.json").write_text(json.dumps({"schema": 1, "findings": [entry]}))
    with Client(tmp_path, "--delay", "0") as editor:
        text = editor.open("net.py", forward(f"return x + {UPLOAD}"))
        assert codes(text) == []
        text.change(forward(f"b = {UPLOAD}", f"return b + {UPLOAD}"))
        assert codes(text) == ["LCH203", "LCH203"]


def test_settings_that_cannot_be_read_are_one_diagnostic(tmp_path: Path) -> None:
    (tmp_path / "launchlint.toml").write_bytes(b"\xff\xfe")
    with Client(tmp_path) as editor:
        text = editor.open("net.py", forward(f"return x + {UPLOAD}"))
        (found,) = text.diagnostics
        assert found["code"] == "LCH003" and "launchlint.toml" in found["message"]


# ---------------------------------------------------------------- many edits


def test_fast_typing_is_checked_once_it_pauses(tmp_path: Path) -> None:
    """Changes that come faster than the pause are not checked one by one, and the last is never lost."""
    with Client(tmp_path, "--delay", "100") as editor:
        text = editor.open("net.py", forward("return x"))
        assert codes(text) == []
        for count in range(1000):
            text.change(forward(f"a = {count}", f"return x + {UPLOAD}"))
        assert codes(text) == ["LCH203"]
        versions = [params["version"] for params in editor.published]
    assert versions[0] == 1 and versions[-1] == 1001
    assert len(versions) < 100
    assert versions == sorted(versions)


# ---------------------------------------------------------------- without pygls


def test_without_pygls_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import argparse
    import sys

    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    assert command.run(argparse.Namespace()) == 2
    assert capsys.readouterr().err == "launchlint: the editor server needs pygls 2: pip install 'launchlint[lsp]'\n"

"""The formats: positions, frames, fingerprints and the JSON contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from launchlint import report
from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Problem, Related, Span
from launchlint.settings import Settings
from launchlint.source import Source
from tests.doors import fake

pytestmark = pytest.mark.usefixtures("fake_rules")

RANGE = {
    "line": {"type": "integer", "minimum": 1},
    "column": {"type": "integer", "minimum": 1},
    "end_line": {"type": "integer", "minimum": 1},
    "end_column": {"type": "integer", "minimum": 1},
}


def closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT = {"type": "string"}
CONTRACT = closed(
    schema={"const": 1},
    findings={
        "type": "array",
        "items": closed(
            code={"type": "string", "pattern": r"^LCH\d{3}$"},
            name=TEXT,
            message=TEXT,
            path=TEXT,
            **RANGE,
            confidence={"enum": ["low", "medium", "high"]},
            hot={"anyOf": [{"type": "null"}, closed(reason=TEXT, chain={"type": "array", "items": TEXT})]},
            related={"type": "array", "items": closed(path=TEXT, **RANGE, note=TEXT)},
            fix={
                "anyOf": [
                    {"type": "null"},
                    closed(
                        title=TEXT,
                        applicability={"enum": ["display", "unsafe", "safe"]},
                        edits={"type": "array", "items": closed(**RANGE, text=TEXT)},
                    ),
                ]
            },
            fingerprint={"type": "string", "pattern": "^[0-9a-f]{32}$"},
            url=TEXT,
        ),
    },
    errors={"type": "array", "items": closed(path=TEXT, line={"type": ["integer", "null"]}, reason=TEXT)},
    stats={"type": "object"},
)


def gathered(text: str, path: str = "a.py", **changes: object) -> report.Result:
    source = Source(path, text)
    return report.gather([FileReport(path, fake.findings(source))], Settings(**changes), sources={path: source})  # type: ignore[arg-type]


def test_json_keeps_the_contract() -> None:
    result = gathered("x = '\N{ROCKET}'\nfor i in x:\n    fill(i)\nupload(\n 1)\n")
    result.problems.append(Problem("b.py", "syntax error: no", 3))
    result.problems.append(Problem("c.py", "no such file or folder"))
    document = json.loads(report.render("json", result))
    jsonschema.validate(document, CONTRACT)
    fill, upload = document["findings"]
    assert (fill["line"], fill["column"], fill["end_line"], fill["end_column"]) == (3, 5, 3, 12)
    assert fill["hot"] == {"reason": "it is called from forward", "chain": ["Net.forward", "pack"]}
    assert (fill["related"][0]["line"], fill["related"][0]["note"]) == (2, "the loop")
    assert fill["fix"]["edits"] == [{"line": 3, "column": 5, "end_line": 3, "end_column": 12, "text": "once()"}]
    assert (upload["line"], upload["end_line"], upload["fix"]) == (4, 5, None)
    assert [error["line"] for error in document["errors"]] == [3, None]


def test_empty_json_keeps_the_contract() -> None:
    jsonschema.validate(json.loads(report.render("json", report.gather([], Settings()))), CONTRACT)


def test_columns_count_code_points() -> None:
    (entry,) = gathered("x = '\N{ROCKET}'; fill(1)\n").entries
    assert entry.place.column == 10


def prints(text: str, path: str = "a.py", root: str = "") -> list[str]:
    return [entry.fingerprint for entry in gathered(text, path, root=root).entries]


def test_fingerprints_survive_other_lines_and_differ_from_each_other() -> None:
    before = prints("fill(1)\nfill(1)\nupload(1)\n")
    assert len(set(before)) == 3
    assert prints("import os\n\nfill(1)\n# more\nif x:\n    fill(1)\nupload(1)\n") == before
    assert prints("fill(2)\n")[0] not in before
    assert prints("fill(1)\n", path="b.py")[0] not in before


def test_fingerprints_do_not_depend_on_where_the_run_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    outside = prints("fill(1)\n", path="sub/a.py", root=str(tmp_path))
    monkeypatch.chdir(tmp_path / "sub")
    assert prints("fill(1)\n", path="a.py", root=str(tmp_path)) == outside


def test_concise() -> None:
    out = report.render("concise", gathered("fill(1)\n"))
    assert out.splitlines()[0] == "a.py:1:1: LCH101 [slice-fill-loop] [*] `fill(1)` costs"


def test_text() -> None:
    out = report.render("text", gathered("def pack(x):\n    for i in x:\n        fill(i)\n"))
    assert out == (
        "a.py:3:9: LCH101 [slice-fill-loop] [*] `fill(i)` costs\n"
        "  |\n"
        "2 |     for i in x:\n"
        "  |     --- the loop\n"
        "3 |         fill(i)\n"
        "  |         ^^^^^^^\n"
        "  = hot because it is called from forward\n"
        "  = chain: Net.forward -> pack\n"
        "  = fix with --fix: fill once\n"
        "\n"
        "1 finding in 1 of 1 file\n"
        "1 fixable with --fix\n"
    )


def frame(text: str, start: str, end: str, *related: Related) -> list[str]:
    """The frame of a finding from the first `start` to the first `end` after it."""
    source = Source("a.py", text)
    first = text.index(start)
    span = Span(first, text.index(end, first) + len(end))
    finding = Finding("LCH201", span, "m", Confidence.HIGH, related=related)
    result = report.gather([FileReport("a.py", [finding])], Settings(), sources={"a.py": source})
    return report.render("text", result).split("\n\n")[0].splitlines()[1:]


def test_carets_stand_below_tabs_and_wide_characters() -> None:
    assert frame("\tx = '\u6f22'; f()\n", "f()", ")")[1:] == ["1 |     x = '\u6f22'; f()", "  |               ^^^"]


def test_long_ranges_lose_their_middle() -> None:
    lines = frame("f(\n" + "  1,\n" * 30 + ")\n", "f(", ")")
    assert "..." in lines
    assert lines[:3] == ["   |", " 1 | f(", "   | ^^"]
    assert lines[-2:] == ["...", "32 | )"]
    assert len(lines) < 10


def test_long_lines_are_cut_around_the_place() -> None:
    lines = frame("x = [" + "1, " * 200 + "f(), " + "2, " * 200 + "]\n", "f()", ")")
    assert all(len(line) < 200 for line in lines)
    text, carets = lines[1], lines[2]
    assert text[carets.index("^") : carets.index("^") + 3] == "f()"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(frame("x = '\x1b[31m'; f()\n", "f()", ")"))


def test_related_places_after_the_finding_and_on_its_line() -> None:
    text = "a = 1\nf(a)\nb = 2\n\n\ng()\n"
    lines = frame(text, "f(a)", ")", Related(Span(8, 9), "same line"), Related(Span(text.index("g()"), text.index("g()") + 3), "later"))
    assert lines == ["  |", "2 | f(a)", "  | ^^^^", "  |   - same line", "...", "6 | g()", "  | --- later"]


def test_a_file_that_changed_meanwhile_is_no_crash(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.py")
    finding = Finding("LCH201", Span(50, 60), "m", Confidence.HIGH, fix=Fix("t", (Edit(Span(50, 60), "x"),), Applicability.SAFE))
    for name in report.formats():
        assert report.render(name, report.gather([FileReport(path, [finding])], Settings()))


def test_summary_counts_what_was_silenced() -> None:
    finding = fake.findings(Source("a.py", "fill(1)\n"))[0]
    silenced = [(finding, "noqa"), (finding, "ignore: why"), (finding, "ignore: other")]
    out = report.render("text", report.gather([FileReport("a.py", silenced=silenced)], Settings()))
    assert "silenced: 2 by ignore, 1 by noqa" in out


def test_a_name_that_is_no_utf8_is_shown_with_escapes() -> None:
    out = report.render("json", gathered("fill(1)\n", path="caf\udce9.py"))
    assert json.loads(out)["findings"][0]["path"] == "caf\\xe9.py"
    assert report.render("text", gathered("fill(1)\n", path="caf\udce9.py")).encode().startswith(b"caf\\xe9.py:1:1:")


def test_formats_are_the_modules_of_the_package() -> None:
    assert {"text", "concise", "json"} <= set(report.formats())
    for name in report.formats():
        empty = report.render(name, report.gather([], Settings()))
        assert empty.endswith("\n") or (empty == "" and name in ("github", "rdjsonl")), "nothing to say is said in one way by each"

"""Columns in each format's own unit, odd names, limits, and what else a consumer relies on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from launchlint import registry
from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Hot, Problem, Related, Span
from launchlint.report import Result, formats, gather, render
from launchlint.settings import Settings
from launchlint.source import Source
from tests.adopt.readers import READERS, Found, read_github, read_sarif
from tests.doors.environment import ROOT

ROCKET = "\N{ROCKET}"  # one code point, two UTF-16 units, four bytes
TEXT = f'def forward(self):\n    name = "{ROCKET}"; value = upload(1)\n    for row in rows:\n        fill(row)\n'
PLACE = Span(TEXT.index("upload"), TEXT.index("upload") + len("upload(1)"))
COLUMNS = {"gitlab": 0, "sarif": 26, "rdjsonl": 28}  # every other format counts code points
CODE_POINTS = 25


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finding(
    span: Span = PLACE, confidence: Confidence = Confidence.HIGH, message: str = "a list goes up", fix: Fix | None = None
) -> Finding:
    hot = Hot("a framework calls it every step", ("Net.forward", "pack"))
    return Finding(
        "LCH201", span, message, confidence, hot, (Related(Span(TEXT.index("for row"), TEXT.index("for row") + 3), "the loop"),), fix
    )


def result(findings: Sequence[Finding], path: str = "net.py", text: str = TEXT, problems: Sequence[Problem] = ()) -> Result:
    report = FileReport(path, list(findings), [], list(problems))
    return gather([report], Settings(), sources={path: Source(path, text)})


@pytest.mark.parametrize("shape", formats())
def test_columns_after_an_emoji(shape: str) -> None:
    text = render(shape, result([finding()]))
    assert READERS[shape](text) == [Found("net.py", 2, COLUMNS.get(shape, CODE_POINTS), "LCH201")]


@pytest.mark.parametrize("shape", formats())
@pytest.mark.parametrize("name", ["a b,c:1%.py", "d/\N{LATIN SMALL LETTER O WITH DIAERESIS}#?.py", "'q\"<&>.py"])
def test_odd_names_survive(shape: str, name: str) -> None:
    (found,) = READERS[shape](render(shape, result([finding()], name)))
    assert found.path == name


@pytest.mark.parametrize("shape", ["github", "gitlab", "junit", "sarif"])
def test_servers_get_paths_from_the_top_of_the_repository(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    for path in ("net.py", str(tmp_path / "src" / "net.py")):
        assert [found.path for found in READERS[shape](render(shape, result([finding()], path)))] == ["src/net.py"]


@pytest.mark.parametrize("shape", formats())
def test_nothing_found(shape: str) -> None:
    text = render(shape, result([]))
    assert READERS[shape](text) == []
    assert text == {"github": "", "gitlab": "[]\n", "rdjsonl": ""}.get(shape, text)


def test_a_file_that_could_not_be_checked_is_told_by_every_format() -> None:
    for shape in formats():
        text = render(shape, result([], problems=[Problem("bad,name.py", "syntax error: 100% wrong\nhere", 3)]))
        assert "syntax error" in text, shape
    github = render("github", result([], problems=[Problem("bad,name.py", "100% wrong\r\nhere", 3)]))
    assert github == "::error file=bad%2Cname.py,line=3,title=launchlint::100%25 wrong%0D%0Ahere\n"
    assert (
        json.loads(render("sarif", result([], problems=[Problem("x.py", "no", 0)])))["runs"][0]["invocations"][0]["executionSuccessful"]
        is False
    )


# ---------------------------------------------------------------- github


def test_github_shows_the_surest_and_counts_the_rest() -> None:
    spans = [Span(start, start + 1) for start in range(19, 60)]
    levels = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]
    text = render("github", result([finding(span, levels[number % 3]) for number, span in enumerate(spans)]))
    lines = text.splitlines()
    counts = {level: sum(line.startswith(f"::{level} ") for line in lines) for level in ("error", "warning", "notice")}
    assert counts == {"error": 0, "warning": 10, "notice": 10}, "GitHub drops what is beyond ten of a level"
    shown = read_github(text)
    assert len(shown) == 19
    high = result([finding(span, Confidence.HIGH) for span in spans[2::3]]).entries
    assert [(each.line, each.column) for each in shown[:10]] == [(each.place.line, each.place.column) for each in high[:10]]
    (rest,) = (line for line in lines if "more" in line and line.startswith("::notice title=launchlint::"))
    assert "22 findings more (41 findings in all)" in rest
    assert sum(line.startswith("- net.py:") for line in lines) == 22, "the log of the step has them all"


def test_no_name_becomes_a_command() -> None:
    spans = [Span(start, start + 1) for start in range(19, 40)]
    text = render("github", result([finding(span, message="::add-mask::x\n##[error]y") for span in spans], "::error::\n##[group]x.py"))
    for line in text.splitlines():
        assert line.startswith(("::warning file=%3A%3A", "::notice title=launchlint::", "- "))
        assert line.startswith("::") or "##[" not in line


def test_the_problem_matcher_of_the_page_reads_the_concise_format() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    ((pattern,),) = (each["pattern"] for each in json.loads(page.partition("```json\n")[2].partition("```")[0])["problemMatcher"])
    first = render("concise", result([finding()], "a b.py")).splitlines()[0]
    match = re.fullmatch(pattern["regexp"], first)
    assert match
    read = {key: match[group] for key, group in pattern.items() if key != "regexp"}
    assert read == {"file": "a b.py", "line": "2", "column": "25", "code": "LCH201", "message": "[list-to-device] a list goes up"}


def test_the_jobs_of_the_page_are_yaml_and_use_inputs_and_hooks_that_exist() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab, precommit = (yaml.safe_load(text.partition("```")[0]) for text in page.split("```yaml\n")[1:])
    step = next(step for step in github["jobs"]["launchlint"]["steps"] if "launchlint" in step.get("uses", ""))
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert set(step["with"]) <= set(inputs)
    asked = [word.partition("=")[0] for line in gitlab["launchlint"]["script"] for word in line.split() if word in formats() or "=" in word]
    assert set(asked) == {"concise", "gitlab"}
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    assert {hook["id"] for hook in precommit["repos"][0]["hooks"]} <= hooks


# ---------------------------------------------------------------- sarif, rdjsonl, gitlab


def apply(text: str, region: dict[str, int], new: str, unit: str) -> str:
    """Replace a region of `text`, counted in UTF-16 units or bytes as the reader of the format does."""

    def offset(line: int, column: int) -> int:
        before = "".join(text.splitlines(keepends=True)[: line - 1])
        rest = text[len(before) :].encode(unit)[: (column - 1) * (2 if unit == "utf-16-le" else 1)]
        return len(before) + len(rest.decode(unit))

    start = offset(region["startLine"], region["startColumn"])
    return text[:start] + new + text[offset(region["endLine"], region["endColumn"]) :]


FIX = Fix(
    "make it there", (Edit(PLACE, "make(1)"), Edit(Span(PLACE.start - 8, PLACE.start - 8), "the_")), Applicability.UNSAFE, ("import there",)
)


def test_a_fix_of_sarif_gives_the_fixed_file() -> None:
    document = json.loads(render("sarif", result([finding(fix=FIX)])))
    (fix,) = document["runs"][0]["results"][0]["fixes"]
    text = TEXT
    for change in reversed(fix["artifactChanges"][0]["replacements"]):
        text = apply(text, change["deletedRegion"], change["insertedContent"]["text"], "utf-16-le")
    assert text == "import there\n" + TEXT.replace("value = upload(1)", "the_value = make(1)")


def test_a_suggestion_of_reviewdog_is_the_whole_fix() -> None:
    fix = Fix("make it there", FIX.edits, Applicability.UNSAFE)
    (suggestion,) = json.loads(render("rdjsonl", result([finding(fix=fix)])))["suggestions"]
    start, end = suggestion["range"]["start"], suggestion["range"]["end"]
    region = {"startLine": start["line"], "startColumn": start["column"], "endLine": end["line"], "endColumn": end["column"]}
    assert apply(TEXT, region, suggestion["text"], "utf-8") == TEXT.replace("value = upload(1)", "the_value = make(1)")


def test_what_is_only_shown_is_offered_nowhere() -> None:
    fix = Fix("a better shape", (), Applicability.DISPLAY, shows="better()")
    assert "fixes" not in json.loads(render("sarif", result([finding(fix=fix)])))["runs"][0]["results"][0]
    assert "suggestions" not in json.loads(render("rdjsonl", result([finding(fix=fix)])))


def test_sarif_has_rules_with_help_and_places_that_belong_to_a_finding() -> None:
    text = render("sarif", result([finding()]))
    read_sarif(text)
    run = json.loads(text)["runs"][0]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert set(rules) == set(registry.load())
    assert "Why it costs" in rules["LCH201"]["help"]["markdown"]
    assert len(rules["LCH201"]["properties"]["tags"]) <= 20
    (related,) = run["results"][0]["relatedLocations"]
    assert related["message"]["text"] == "the loop"
    assert related["physicalLocation"]["region"]["startLine"] == 3
    assert "Net.forward -> pack" in run["results"][0]["message"]["text"]
    assert "\n" not in text.rstrip("\n"), "compact: GitHub takes ten megabytes at most"


def test_equal_lines_have_fingerprints_of_their_own() -> None:
    text = "upload(1)\nupload(1)\n"
    twice = result([finding(Span(0, 9)), finding(Span(10, 19))], text=text)
    assert len(READERS["gitlab"](render("gitlab", twice))) == 2
    first = [each["fingerprint"] for each in json.loads(render("gitlab", twice))]
    moved = result([finding(Span(12, 21)), finding(Span(22, 31))], text="# new line\n\n" + text)
    assert [each["fingerprint"] for each in json.loads(render("gitlab", moved))] == first


def test_junit_takes_what_xml_does_not() -> None:
    text = render("junit", result([finding(message="a \x00 \x1b[31m <b> & ]]> \ud800")]))
    assert READERS["junit"](text)[0].code == "LCH201"
    text.encode("utf-8")

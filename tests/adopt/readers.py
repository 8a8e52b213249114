"""Reads each format back as its consumer would: strictly, and into one shape."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema

SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
GITHUB = re.compile(r"::(?P<level>error|warning|notice) (?P<properties>[^:]*)::(?P<data>.*)")
CONCISE = re.compile(r"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<code>LCH\d{3}) \[")


@dataclass(frozen=True, order=True)
class Found:
    """A finding as a format tells it; the columns in the unit of the format, 0 where it has none."""

    path: str
    line: int
    column: int
    code: str


def read_github(text: str) -> list[Found]:
    found = []
    for line in text.splitlines():
        if line.startswith("- "):
            continue
        command = GITHUB.fullmatch(line)
        assert command, f"not a workflow command: {line!r}"
        properties = {key: _unescape(value) for key, _, value in (each.partition("=") for each in command["properties"].split(","))}
        assert "\n" not in command["data"] and _unescape(command["data"]).strip()
        if "file" not in properties:
            assert command["level"] == "notice"
            continue
        assert ("col" in properties) == (properties["line"] == properties["endLine"]), "columns of several lines are dropped"
        code = properties["title"].split()[1]
        found.append(Found(properties["file"], int(properties["line"]), int(properties.get("col", 0)), code))
    return found


def _unescape(text: str) -> str:
    return unquote(text)


def read_sarif(text: str) -> list[Found]:
    document = json.loads(text)
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    (run,) = document["runs"]
    assert run["columnKind"] == "utf16CodeUnits"
    rules = run["tool"]["driver"]["rules"]
    found = []
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"]
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert region["startColumn"] >= 1 and (region["endLine"], region["endColumn"]) > (region["startLine"], region["startColumn"])
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri), uri
        found.append(Found(unquote(uri), region["startLine"], region["startColumn"], result["ruleId"]))
    return found


def read_gitlab(text: str) -> list[Found]:
    entries = json.loads(text)
    assert isinstance(entries, list)
    fingerprints = [entry["fingerprint"] for entry in entries]
    assert len(set(fingerprints)) == len(fingerprints), "GitLab hides all but the first of equal ones"
    found = []
    for entry in entries:
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert entry["description"]
        location = entry["location"]
        assert not location["path"].startswith(("./", "/"))
        found.append(Found(location["path"], location["lines"]["begin"], 0, entry["check_name"].split()[0]))
    return found


def read_rdjsonl(text: str) -> list[Found]:
    found = []
    for line in text.splitlines():
        each = json.loads(line)
        assert each["severity"] in ("ERROR", "WARNING", "INFO")
        assert each["message"]
        start = each["location"]["range"]["start"]
        end = each["location"]["range"]["end"]
        assert (end["line"], end["column"]) > (start["line"], start["column"]) >= (1, 1)
        found.append(Found(each["location"]["path"], start["line"], start["column"], each["code"]["value"].split()[0]))
    return found


def read_junit(text: str) -> list[Found]:
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    cases = root.findall("./testsuite/testcase")
    assert cases, "an empty report looks like a broken one"
    assert int(root.attrib["tests"]) == len(cases) == sum(int(suite.attrib["tests"]) for suite in root)
    failures = root.findall("./testsuite/testcase/failure")
    assert int(root.attrib["failures"]) == len(failures)
    found = []
    for case in cases:
        for failure in case.findall("failure"):
            column = re.search(r"column (\d+)", case.attrib["name"])
            assert column
            found.append(Found(case.attrib["file"], int(case.attrib["line"]), int(column[1]), failure.attrib["type"].split()[0]))
    return found


def read_json(text: str) -> list[Found]:
    document = json.loads(text)
    assert document["schema"] == 1
    return [_of_object(each) for each in document["findings"]]


def read_jsonl(text: str) -> list[Found]:
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["type"] for line in lines].count("stats") == 1
    assert lines[-1]["type"] == "stats"
    found = [_of_object(line) for line in lines if line["type"] == "finding"]
    assert lines[-1]["findings"] == len(found)
    return found


def _of_object(each: dict[str, Any]) -> Found:
    return Found(each["path"], each["line"], each["column"], each["code"])


def read_concise(text: str) -> list[Found]:
    matches = [match for line in text.splitlines() if (match := CONCISE.match(line))]
    return [Found(match["path"], int(match["line"]), int(match["column"]), match["code"]) for match in matches]


READERS: dict[str, Callable[[str], list[Found]]] = {
    "concise": read_concise,
    "github": read_github,
    "gitlab": read_gitlab,
    "json": read_json,
    "jsonl": read_jsonl,
    "junit": read_junit,
    "rdjsonl": read_rdjsonl,
    "sarif": read_sarif,
    "text": read_concise,
}

"""Reading a trace piece by piece."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from launchlint.trace import events
from launchlint.trace.events import TraceError, read

EVENTS = [
    {"ph": "X", "name": 'quote " and \\ and \u20ac', "ts": 1.5, "dur": 0, "args": {"nested": [1, {"a": None}], "big": 10**18}},
    {"ph": "M", "name": "]}{[,:", "args": {}},
    {"ph": "X", "name": "last", "ts": -3e-2, "flag": True},
]
DOCUMENT = {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "number": 12, "traceEvents": EVENTS, "traceName": "a.json"}


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("document", [DOCUMENT, EVENTS, {"traceEvents": EVENTS}], ids=["object", "list", "bare"])
def test_every_event_comes_back_wherever_the_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None, document: object
) -> None:
    monkeypatch.setattr(events, "CHUNK", chunk)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document, indent=indent, ensure_ascii=False), encoding="utf-8")
    assert list(read(str(path))) == EVENTS


def test_compressed_files_are_known_by_their_content(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(json.dumps(DOCUMENT).encode()))
    assert list(read(str(path))) == EVENTS


@pytest.mark.parametrize("chunk", [5, 1 << 20])
def test_a_file_that_is_cut_off_anywhere_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(events, "CHUNK", chunk)
    text = json.dumps(DOCUMENT, indent=1)
    path = tmp_path / "trace.json"
    for length in range(len(text)):
        path.write_text(text[:length])
        with pytest.raises(TraceError, match=r"cut off|not a trace") as caught:
            list(read(str(path)))
        assert "\n" not in str(caught.value)


def test_a_cut_says_how_much_was_read(tmp_path: Path) -> None:
    text = json.dumps(DOCUMENT)
    path = tmp_path / "trace.json"
    path.write_text(text[: text.index('"last"')])
    with pytest.raises(TraceError, match="cut off after 2 events"):
        list(read(str(path)))
    path.write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(TraceError, match="compressed data end too early"):
        list(read(str(path)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a trace"),
        (b"import torch\n", "not a JSON object"),
        (b"{}", "without a list `traceEvents`"),
        (b'{"version": "2.1.0", "runs": []}', "without a list `traceEvents`"),
        (b'{"traceEvents": {"a": 1}}', "without a list `traceEvents`"),
        (b'{"traceEvents": [{"a": 1}, oops' + b" " * 50 + b"]}", "malformed JSON after 1 events"),
        (b'{"traceEvents": [{"a": 1} {"a": 2}], "b": 1}', "malformed JSON after 1 events"),
        (b"[" * 100_000, "malformed|not a trace"),
        (b"\x1f\x8bnot gzip at all", "compressed"),
        (b"\x89PNG\r\n\x1a\n", "not a JSON object"),
    ],
)
def test_foreign_files_are_named_as_such(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message):
        list(read(str(path)))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(TraceError, match="cannot be read"):
            list(read(str(path)))


def test_a_broken_file_is_not_read_to_its_end_in_search_of_the_end_of_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "CHUNK", 100)
    monkeypatch.setattr(events, "LARGEST", 10_000)
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"name": "' + "x" * 1_000_000)
    with open(path, "rb") as data, io.TextIOWrapper(data, encoding="utf-8-sig") as text:
        with pytest.raises(TraceError):
            list(events._Reader(str(path), text).events())
        assert data.tell() < 200_000

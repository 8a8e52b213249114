"""A patch that `git apply` takes, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from launchlint.source import Source

CONTEXT = 3  # lines around a change, as git shows them
NO_NEWLINE = b"\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `[old_start:old_end]` that become `[new_start:new_end]`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(source: Source, new_text: str) -> bytes:
    """The change from `source` to `new_text` as a unified diff in the encoding of the file; empty if there is none.

    Lines are split at LF only, as git does: a bare CR is a byte of its line and a CRLF keeps its CR. Names are relative
    to the working directory where the file lies below it.
    """
    old, new = _lines(source.encode(source.text)), _lines(source.encode(new_text))
    if old == new:
        return b""
    name = _name(source.path)
    return b"".join([b"--- " + _quote("a/" + name), b"+++ " + _quote("b/" + name), *_hunks(old, new)])


def _lines(data: bytes) -> list[bytes]:
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    for group in _groups(_changes(old, new)):
        before = min(CONTEXT, group[0].old_start)
        after = min(CONTEXT, len(old) - group[-1].old_end)
        old_start, old_end = group[0].old_start - before, group[-1].old_end + after
        new_start, new_end = group[0].new_start - before, group[-1].new_end + after
        yield b"@@ -%s +%s @@\n" % (_range(old_start, old_end), _range(new_start, new_end))
        for change in group:
            yield from (_line(b" ", line) for line in old[old_start : change.old_start])
            yield from (_line(b"-", line) for line in old[change.old_start : change.old_end])
            yield from (_line(b"+", line) for line in new[change.new_start : change.new_end])
            old_start = change.old_end
        yield from (_line(b" ", line) for line in old[old_start:old_end])


def _changes(old: list[bytes], new: list[bytes]) -> Iterator[Change]:
    """Lines that differ. Equal ends are cut off first: the matcher alone is slow and coarse on long files."""
    from difflib import SequenceMatcher  # not needed to start

    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield Change(old_start + head, old_end + head, new_start + head, new_end + head)


def _groups(changes: Iterator[Change]) -> Iterator[list[Change]]:
    """Changes whose contexts touch, together."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _range(start: int, end: int) -> bytes:
    length = end - start
    return b"%d,%d" % (start + 1 if length else start, length)


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n" + NO_NEWLINE


def _name(path: str) -> str:
    full = os.path.abspath(path)
    here = os.path.join(os.getcwd(), "")
    return (full[len(here) :] if full.startswith(here) else os.path.splitdrive(full)[1].lstrip(os.sep)).replace(os.sep, "/")


def _quote(name: str) -> bytes:
    """A file name as git reads it: quoted like a C string where it has odd characters, ended by a tab where it has spaces."""
    data = os.fsencode(name)
    if any(byte < 32 or byte in b'"\\\x7f' for byte in data):
        return b'"' + b"".join(_escape(byte) for byte in data) + b'"\n'
    return data + (b"\t\n" if b" " in data else b"\n")


def _escape(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\" + bytes([byte])
    return bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte

"""A patch that `git apply` takes, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator

from launchlint.source import Source

CONTEXT = 3
NO_NEWLINE = b"\\ No newline at end of file\n"


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
    from difflib import SequenceMatcher  # not needed to start

    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield b"@@ -%s +%s @@\n" % (_range(first[1], last[2]), _range(first[3], last[4]))
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (_line(b" ", line) for line in old[old_start:old_end])
                continue
            yield from (_line(b"-", line) for line in old[old_start:old_end])
            yield from (_line(b"+", line) for line in new[new_start:new_end])


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

"""The events of a Chrome trace, one after the other: a file of gigabytes is never in memory as a whole.

The format is a JSON object whose key `traceEvents` holds the list of events, or that list alone
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). PyTorch's profiler writes the object.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn, cast

CHUNK = 1 << 20  # characters read at a time
LARGEST = 64 << 20  # characters of one value; a larger one is no event
NEAR_END = 16  # an error this close to the end of what was read may be a value that goes on; no literal is longer
SPACE = " \t\r\n"


class TraceError(Exception):
    """A file that cannot be used as a trace; the message is one line and names the file."""


def read(path: str) -> Iterator[dict[str, Any]]:
    """The events of the file, which may be compressed with gzip; raise TraceError where it is no whole trace."""
    try:
        with _open(path) as file:
            yield from _Reader(path, io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace")).events()
    except EOFError:
        raise TraceError(f"{path}: cut off: the compressed data end too early; was the recording interrupted?") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: broken compressed data: {error}") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None


def _open(path: str) -> BinaryIO:
    """The uncompressed bytes; what is compressed is known by its first bytes, not by its name."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else open(path, "rb")


class _Reader:
    """A JSON reader that holds one piece of the text."""

    def __init__(self, path: str, file: io.TextIOWrapper) -> None:
        self.path = path
        self.file = file
        self.decode = json.JSONDecoder(strict=False).raw_decode  # names of kernels may hold raw control characters
        self.text = ""
        self.at = 0
        self.whole = False  # everything has been read
        self.count = 0  # events so far

    def events(self) -> Iterator[dict[str, Any]]:
        match self.peek():
            case "[":
                yield from self.array()
            case "{":
                yield from self.members()
            case _:
                raise TraceError(f"{self.path}: not a trace: not a JSON object")

    def members(self) -> Iterator[dict[str, Any]]:
        """The events in the top-level object; its other keys are passed over."""
        found = False
        separator = "{"
        while separator != "}":
            self.take(separator)
            if self.peek() == "}":
                break
            name = self.value()
            self.take(":")
            if name == "traceEvents" and self.peek() == "[":
                found = True
                yield from self.array()
            else:
                self.value()
            separator = self.peek()
            if separator not in (",", "}"):
                self.fail()
        if not found:
            raise TraceError(f"{self.path}: not a trace: a JSON object without a list `traceEvents`")

    def array(self) -> Iterator[dict[str, Any]]:
        self.take("[")
        if self.peek() != "]":
            while True:
                event = self.value()
                if isinstance(event, dict):
                    self.count += 1
                    yield event
                if self.peek() != ",":
                    break
                self.at += 1
        self.take("]")

    # ---------------------------------------------------------------- text

    def peek(self) -> str:
        """The next character that is no space; empty at the end of the file."""
        while True:
            text, at, end = self.text, self.at, len(self.text)
            while at < end and text[at] in SPACE:
                at += 1
            self.at = at
            if at < end:
                return text[at]
            if not self.more():
                return ""

    def take(self, character: str) -> None:
        if self.peek() != character:
            self.fail()
        self.at += 1

    def value(self) -> Any:
        """The next value, whole; numbers are only sure to end where something follows them."""
        self.peek()
        while True:
            try:
                value, end = self.decode(self.text, self.at)
            except json.JSONDecodeError as error:
                incomplete = error.msg.startswith("Unterminated string") or error.pos + NEAR_END >= len(self.text)
                if not incomplete or len(self.text) - self.at > LARGEST or not self.more():
                    self.fail(incomplete)
            except RecursionError:
                self.fail(False)
            else:
                if end < len(self.text) or not self.more():
                    self.at = end
                    return value

    def more(self) -> bool:
        """Read on, twice as much as is left, so that a long value is not tried too often; False at the end of the file."""
        left = self.text[self.at :]
        piece = "" if self.whole else self.file.read(max(CHUNK, 2 * len(left)))
        if not piece:
            self.whole = True
            return False
        self.text, self.at = left + piece, 0
        return True

    def fail(self, incomplete: bool = True) -> NoReturn:
        """Say what is wrong: the text ends too early, or it is no JSON."""
        if incomplete and self.whole and not self.count:
            raise TraceError(f"{self.path}: not a trace, or cut off before its first event")
        if incomplete and self.whole:
            raise TraceError(f"{self.path}: cut off after {self.count:,} events; was the recording interrupted?")
        raise TraceError(f"{self.path}: not a trace: malformed JSON after {self.count:,} events")

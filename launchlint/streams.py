"""Standard output and standard error, which may be terminals, pipes whose reader has gone, or know ASCII only."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` alone costs as much as the rest of `launchlint --version`
if TYPE_CHECKING:
    import argparse
    from typing import TextIO


class Trouble(Exception):
    """A thing that ends the run with one line and exit code 2."""


def put(text: str, stream: TextIO | None = None) -> int:
    """Write to standard output; a reader that has gone (`| head`) is no error and no traceback. Returns 0, the exit code."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 0


def put_bytes(data: bytes) -> None:
    """Write to standard output as it is: patches and fixed files keep their encoding and line ends."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(line: str) -> None:
    try:
        print(line, file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}") from error


def wants_colour(options: argparse.Namespace, stream: TextIO) -> bool:
    if options.color != "auto":
        return bool(options.color == "always")
    if os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"

"""Putting a fixed file onto the disk: whole or not at all, and still the same file."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from launchlint.source import Source

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class WriteError(OSError):
    """A file that was to be fixed and was not written; its text is the reason, the file is as it was."""


def write(path: str, source: Source, text: str) -> None:
    """Store `text` in the file that `source` was read from; raise WriteError and leave the file as it was if that fails.

    The new bytes go to a temporary file beside the target, which then takes its place, so no reader and no crash sees half
    a file. Mode bits stay. A symlink stays and its target is written. A file with more than one hard link, of another
    owner, or in a directory that takes no new file is written in place, with the old bytes put back if that fails. An
    interrupt waits until the file is whole.
    """
    target = os.path.realpath(path)
    try:
        old = _read(target)
        if old != source.encode(source.text):
            raise WriteError("not fixed: the file changed since it was read")
        status = os.stat(target)
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise WriteError("not fixed: the file is read-only")
        new = source.encode(text)
        with _signals_held():
            if status.st_nlink > 1 or not _replace(target, new, status):
                _overwrite(target, old, new)
    except WriteError:
        raise
    except (OSError, UnicodeEncodeError) as error:
        raise WriteError(f"not fixed: {getattr(error, 'strerror', None) or error}") from error


def _read(target: str) -> bytes:
    with open(target, "rb") as file:
        return file.read()


def _replace(target: str, data: bytes, status: os.stat_result) -> bool:
    """Write beside and rename; False if the directory or the owner does not allow it, with nothing changed."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".launchlint-", suffix=".tmp", dir=os.path.dirname(target))
    except PermissionError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            made = os.fstat(handle)
            if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
                os.unlink(temporary)
                return False
            file.write(data)
            file.flush()
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
            os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return True


def _overwrite(target: str, old: bytes, new: bytes) -> None:
    """Write into the same file; put the old bytes back if that fails."""
    with open(target, "r+b", buffering=0) as file:
        try:
            _fill(file.fileno(), new)
        except BaseException:
            _fill(file.fileno(), old)
            raise


def _fill(handle: int, data: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.ftruncate(handle, len(data))
    os.fsync(handle)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let an interrupt that arrives meanwhile happen afterwards; other threads than the main one are never interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, hold) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        for late in arrived:
            signal.raise_signal(late)

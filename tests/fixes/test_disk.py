"""A fixed file on disk: whole or untouched, and still the same file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import pytest

from launchlint.fixes import WriteError, write
from launchlint.source import Source

OLD, NEW = "x = 1\n", "x = 22\n"
posix = pytest.mark.skipif(os.name != "posix", reason="links and mode bits are those of POSIX")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "some.py"
    path.write_bytes(OLD.encode())
    return path


def put(path: Path) -> None:
    write(str(path), Source.from_bytes(str(path), OLD.encode()), NEW)


def left_over(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if "launchlint" in name]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfx = '\xc3\xa4'\r\n", b"# coding: latin-1\nx = '\xe4'", b"x = 1\r# \xe2\x82\xac"])
def test_encoding_and_mark_survive(data: bytes, target: Path) -> None:
    target.write_bytes(data)
    source = Source.from_bytes(str(target), data)
    write(str(target), source, source.text.replace("x", "long_name"))
    assert target.read_bytes() == data.replace(b"x", b"long_name")


@posix
@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664, 0o644])
def test_mode_bits_survive(mode: int, target: Path) -> None:
    target.chmod(mode)
    put(target)
    assert target.read_text() == NEW
    assert stat.S_IMODE(target.stat().st_mode) == mode


@posix
def test_a_symlink_stays_and_its_target_is_written(target: Path) -> None:
    link = target.parent / "elsewhere" / "link.py"
    link.parent.mkdir()
    link.symlink_to("../some.py")
    put(link)
    assert link.is_symlink()
    assert os.readlink(link) == "../some.py"
    assert target.read_text() == NEW


@posix
def test_hard_links_stay_together(target: Path) -> None:
    twin = target.parent / "twin.py"
    os.link(target, twin)
    inode = target.stat().st_ino
    put(target)
    assert twin.read_text() == target.read_text() == NEW
    assert target.stat().st_ino == twin.stat().st_ino == inode


@posix
def test_a_hard_linked_file_gets_its_bytes_back_if_writing_fails(target: Path) -> None:
    os.link(target, target.parent / "twin.py")
    real, calls = os.write, []

    def full_disk(handle: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            real(handle, bytes(data)[:3])
            raise OSError(28, "No space left on device")
        return real(handle, data)

    with mock.patch.object(os, "write", full_disk), pytest.raises(WriteError, match="No space left"):
        put(target)
    assert target.read_text() == OLD


def test_a_file_without_write_permission_is_left_alone(target: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(WriteError, match="read-only"):
        put(target)
    assert target.read_text() == OLD
    assert left_over(target.parent) == []


def test_a_file_that_changed_meanwhile_is_left_alone(target: Path) -> None:
    target.write_text("somebody else\n")
    with pytest.raises(WriteError, match="changed since"):
        put(target)
    assert target.read_text() == "somebody else\n"


def test_a_file_that_is_gone_is_a_write_error(target: Path) -> None:
    target.unlink()
    with pytest.raises(WriteError, match="not fixed"):
        put(target)


@pytest.mark.parametrize("failing", ["fsync", "replace", "chmod"])
def test_nothing_is_left_over_when_writing_fails(failing: str, target: Path) -> None:
    with mock.patch.object(os, failing, side_effect=OSError(5, "Input/output error")), pytest.raises(WriteError, match="Input/output"):
        put(target)
    assert target.read_text() == OLD
    assert left_over(target.parent) == []


def test_a_directory_that_takes_no_new_file(target: Path) -> None:
    with mock.patch.object(tempfile, "mkstemp", side_effect=PermissionError(13, "Permission denied")):
        put(target)
    assert target.read_text() == NEW


INTERRUPTED = """
import sys
from launchlint.fixes import write
from launchlint.source import Source

while True:  # the same files again and again, until the interrupt
    for number in range(40):
        path = f"{sys.argv[1]}/{number}.py"
        with open(path, "rb") as file:
            source = Source.from_bytes(path, file.read())
        write(path, source, source.text.swapcase())
    print("turn", flush=True)
"""


@posix
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("delay_ms", [0, 1, 3, 7])
def test_an_interrupt_leaves_whole_files_and_no_temporary_file(delay_ms: int, linked: bool, tmp_path: Path) -> None:
    text = "x = 'abcdefgh'\n" * 4000
    for number in range(40):
        path = tmp_path / f"{number}.py"
        path.write_text(text)
        if linked:
            (tmp_path / "twins").mkdir(exist_ok=True)
            os.link(path, tmp_path / "twins" / f"{number}.py")
    run = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"turn\n"
    time.sleep(delay_ms / 1000)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert {path.read_text() for path in tmp_path.glob("*.py")} <= {text, text.swapcase()}
    assert left_over(tmp_path) == []

"""What earlier runs found out, kept by the content of the files, so that an unchanged tree costs hardly more than reading it.

Kept are, for each file, its summary for the call graph and its report, and for a whole run the reports of all files. Each
entry names everything that it depends on (the bytes of the file, its module, Python's version, launchlint's own source, the
settings, and for a report the hotness of its functions and the annotations of all other files); an entry that names anything
else is no entry. Entries are JSON with a checksum and are read into checked plain data, never unpickled: a cache that was
damaged, or written by somebody else, costs time and nothing more. They are written beside their place and moved there, so
that runs at the same time see whole entries only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from launchlint import __version__
from launchlint.hot.summary import FileSummary
from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Hot, Problem, Related, Span
from launchlint.rule import Rule
from launchlint.settings import Settings

FOLDER = ".launchlint_cache"
FORMAT = 2
MAX_BYTES = 300_000_000  # of all entries; the oldest go first
MAX_ENTRY = 30_000_000
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of launchlint; it may be deleted at any time.\n"
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))  # no link, and no wait for a pipe
_CHECKSUM = 32  # hexadecimal digits in front of an entry


def clean(root: str) -> bool:
    """Delete the cache of a project; True if there was one. A link in its place is left alone."""
    folder = os.path.join(root, FOLDER)
    if not _is_folder(folder):
        return False
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.exists(folder)


def open_cache(settings: Settings, rules: Sequence[Rule]) -> Cache | None:
    """The cache of the project that the settings belong to; None where none can be kept."""
    folder = os.path.join(settings.root or os.getcwd(), FOLDER)
    try:
        os.makedirs(folder, exist_ok=True)
        if not _is_folder(folder):
            return None
        for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
            path = os.path.join(folder, name)
            if not os.path.lexists(path):
                _write(path, text.encode())
    except OSError:
        return None
    return Cache(folder, settings, rules)


class Cache:
    """The entries of one project. Nothing here raises: what cannot be read is missing, what cannot be written is not kept."""

    def __init__(self, folder: str, settings: Settings, rules: Sequence[Rule]) -> None:
        self.folder = folder
        own = digest_of(f"{FORMAT} {__version__} {sys.version_info[:3]} {_own_source()}".encode())
        self._own = f"{own} {bool(settings.hot)}"  # a setting that may call any function hot asks for fuller summaries
        self.asked = digest_of(f"{own} {[rule.meta.code for rule in rules]} {settings!r}".encode())
        self._written = False

    # ---------------------------------------------------------------- one file

    def entry(self, path: str, digest: str, module: str) -> Entry:
        """What is kept of a file; an empty entry where nothing is."""
        made_of = digest_of(f"{self._own} {digest} {module} {path}".encode())
        entry = Entry(made_of)
        data = self._read(self._place(path))
        if isinstance(data, dict) and data.get("of") == made_of:
            entry.take(data)
        return entry

    def keep(self, path: str, entry: Entry) -> None:
        """Write an entry if it holds anything new."""
        if entry.changed:
            self._store(self._place(path), entry.plain())

    def _place(self, path: str) -> str:
        name = digest_of(os.path.abspath(path).encode("utf-8", "surrogatepass"))
        return os.path.join(self.folder, name[:2], name[2:])

    # ---------------------------------------------------------------- a whole run

    def run(self, key: str, paths: Sequence[str]) -> list[FileReport] | None:
        """The reports of a run over exactly this."""
        data = self._read(self._run_place())
        if not isinstance(data, dict) or data.get("key") != key:
            return None
        try:
            told = {path: read_report(path, plain) for path, plain in data["reports"].items()}
        except _WRONG:
            return None
        return [told.get(path) or FileReport(path) for path in paths]

    def keep_run(self, key: str, reports: Iterable[FileReport]) -> None:
        """Keep the reports of a run, and make room for them."""
        said = {report.path: plain_report(report) for report in reports if report.findings or report.silenced or report.problems}
        self._store(self._run_place(), {"key": key, "reports": said})
        self._prune()

    def _run_place(self) -> str:
        return os.path.join(self.folder, "runs", self.asked)

    # ---------------------------------------------------------------- the disk

    def _read(self, place: str) -> Any:
        try:
            descriptor = os.open(place, _READ)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            try:
                about = os.fstat(descriptor)
                if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_ENTRY:
                    return None
                data = file.read()
            except OSError:
                return None
        body = data[_CHECKSUM:]
        if digest_of(body).encode() != data[:_CHECKSUM]:
            return None
        import json

        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return None

    def _store(self, place: str, data: Any) -> None:
        import json

        body = json.dumps(data, separators=(",", ":")).encode()
        if len(body) > MAX_ENTRY:
            return
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if _is_folder(os.path.dirname(place)):
                _write(place, digest_of(body).encode() + body)
        self._written = True

    def _prune(self) -> None:
        """Delete the oldest entries where all of them are too much."""
        found: list[tuple[float, int, str]] = []
        for folder in _folders(self.folder):
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode):
                        found.append((about.st_mtime, about.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= MAX_BYTES:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


class Entry:
    """What is kept of one file: what a first look at it gave, and the report with the key that it holds for."""

    def __init__(self, made_of: str) -> None:
        self.made_of = made_of
        self.look: Any = None
        self.key = ""
        self.report: Any = None
        self.asked: tuple[int, ...] = ()  # functions whose callers had a say in the report
        self.callers = ""  # and a digest of these callers
        self.changed = False

    def take(self, data: dict[str, Any]) -> None:
        self.look = data.get("look")
        self.key = str(data.get("key"))
        self.report = data.get("report")
        asked = data.get("asked")
        self.asked = tuple(index for index in asked if isinstance(index, int)) if isinstance(asked, list) else ()
        self.callers = str(data.get("callers"))

    def plain(self) -> dict[str, Any]:
        """The entry as JSON can hold it."""
        asked = list(self.asked)
        return {"of": self.made_of, "look": self.look, "key": self.key, "report": self.report, "asked": asked, "callers": self.callers}

    def report_for(self, path: str, key: str, callers_of: Callable[[Sequence[int]], str]) -> FileReport | None:
        """The report, if it is kept for this key and for the same callers, of which `callers_of` makes a digest."""
        if self.report is None or self.key != key or self.callers != callers_of(self.asked):
            return None
        try:
            return replace(read_report(path, self.report), asked=self.asked)
        except _WRONG:
            return None

    def keep_look(self, look: Any) -> None:
        self.look, self.changed = look, True

    def keep_report(self, key: str, report: FileReport, callers_of: Callable[[Sequence[int]], str]) -> None:
        self.key, self.report, self.changed = key, plain_report(report), True
        self.asked, self.callers = report.asked, callers_of(report.asked)


# ---------------------------------------------------------------- plain data

_WRONG = (KeyError, ValueError, TypeError, IndexError, AttributeError)


def plain_report(report: FileReport) -> list[Any]:
    """A report as JSON can hold it; its path is left out."""
    return [
        [_plain_finding(finding) for finding in report.findings],
        [[_plain_finding(finding), reason] for finding, reason in report.silenced],
        [[problem.reason, problem.line] for problem in report.problems],
    ]


def read_report(path: str, plain: Any) -> FileReport:
    """The report that `plain_report` made `plain` of; raise one of _WRONG for anything else."""
    findings, silenced, problems = plain
    return FileReport(
        path,
        [_read_finding(item) for item in findings],
        [(_read_finding(item), _text(reason)) for item, reason in silenced],
        [Problem(path, _text(reason), _number(line)) for reason, line in problems],
    )


def _plain_finding(finding: Finding) -> list[Any]:
    hot = [finding.hot.reason, list(finding.hot.chain)] if finding.hot else None
    related = [[item.span.start, item.span.end, item.note] for item in finding.related]
    fix = _plain_fix(finding.fix) if finding.fix is not None else None
    start, end = finding.span.start, finding.span.end
    return [finding.code, start, end, finding.message, int(finding.confidence), hot, related, fix, finding.group]


def _plain_fix(fix: Fix) -> list[Any]:
    edits = [[edit.span.start, edit.span.end, edit.text] for edit in fix.edits]
    return [fix.title, edits, int(fix.applicability), list(fix.imports), fix.shows]


def _read_finding(plain: Any) -> Finding:
    code, start, end, message, confidence, hot, related, fix, group = plain
    return Finding(
        _text(code),
        Span(_number(start), _number(end)),
        _text(message),
        Confidence(confidence),
        None if hot is None else Hot(_text(hot[0]), _texts(hot[1])),
        tuple(Related(Span(_number(first), _number(last)), _text(note)) for first, last, note in related),
        None if fix is None else _read_fix(fix),
        _text(group),
    )


def _read_fix(plain: Any) -> Fix:
    title, edits, applicability, imports, shows = plain
    read = tuple(Edit(Span(_number(start), _number(end)), _text(text)) for start, end, text in edits)
    return Fix(_text(title), read, Applicability(applicability), _texts(imports), _text(shows))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def plain_look(summary: FileSummary | None, problem: Problem | None, worth: bool) -> list[Any]:
    """What a first look at a file gave, as JSON can hold it."""
    return [summary.plain() if summary is not None else None, [problem.reason, problem.line] if problem is not None else None, worth]


def read_look(path: str, module: str, plain: Any) -> tuple[FileSummary | None, Problem | None, bool] | None:
    """What `plain_look` was given, or None where `plain` is anything else."""
    try:
        summary, problem, worth = plain
        return (
            None if summary is None else FileSummary.read(path, module, summary),
            None if problem is None else Problem(path, _text(problem[0]), _number(problem[1])),
            bool(worth),
        )
    except _WRONG:
        return None


# ---------------------------------------------------------------- digests and files


def digest_of(data: bytes) -> str:
    """32 hexadecimal digits."""
    import hashlib  # a tenth of the time in which a small file is checked without a cache

    return hashlib.blake2b(data, digest_size=16).hexdigest()


@functools.cache
def _own_source() -> str:
    """A digest of everything that decides what is found: launchlint's own code, its facts and its rules."""
    import hashlib

    import launchlint
    import launchlint.rules

    hasher = hashlib.blake2b(digest_size=16)
    for root in (*launchlint.__path__, *launchlint.rules.__path__):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "audit", "demo", "dev", "report"))
            for name in sorted(names):
                if name.endswith((".py", ".json")):
                    hasher.update(name.encode())
                    with open(os.path.join(folder, name), "rb") as file:
                        hasher.update(file.read())
    return hasher.hexdigest()


def _folders(root: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _is_folder(path: str) -> bool:
    """True for a real folder; a link could lead out of the project."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _write(place: str, data: bytes) -> None:
    """Write beside the place and move there: whoever reads sees the old entry or the new one."""
    import tempfile

    descriptor, beside = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(place))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(beside, place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise

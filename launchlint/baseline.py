"""Known findings: what was there when a project began to use launchlint, and is not to be told again.

An entry is a rule, a path, the text of the reported line without its spacing, and how often that occurs. Line numbers
are not part of it, so it survives changes of all other lines. The file is sorted JSON with one entry a line, made to be
committed and read in reviews.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from launchlint.model import FileReport, Finding
from launchlint.settings import Settings, SettingsError
from launchlint.source import Source

SCHEMA = 1
FILE_NAME = "launchlint-baseline.json"
Key = tuple[str, str, str]  # path, code, text


@dataclass(slots=True)
class Baseline:
    """Entries with their counts."""

    path: str
    known: Counter[Key] = field(default_factory=Counter)

    def apply(self, report: FileReport, source: Source, settings: Settings) -> FileReport:
        """The report with its known findings moved to what is silenced; the first of several equal ones are the known."""
        left = Counter(self.known)
        kept: list[Finding] = []
        silenced = list(report.silenced)
        for finding in report.findings:
            key = _key(finding, source, settings)
            if left[key] > 0:
                left[key] -= 1
                silenced.append((finding, "baseline"))
            else:
                kept.append(finding)
        return replace(report, findings=kept, silenced=silenced)

    def gone(self, seen: Counter[Key], checked: Iterable[str], settings: Settings) -> Counter[Key]:
        """Entries that are no longer found, among those of the files `checked` and of files that are no longer there."""
        paths = {settings.relative(path) for path in checked}
        mine = Counter({key: count for key, count in self.known.items() if key[0] in paths or not _exists(key[0], settings)})
        return mine - seen

    def write(self) -> None:
        """Store the entries; raise OSError and leave the old file as it was if that fails."""
        entries = [{"path": path, "code": code, "text": text, "count": count} for (path, code, text), count in sorted(self.known.items())]
        lines = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
        body = f"[\n{lines}\n  ]" if entries else "[]"
        import tempfile

        handle, temporary = tempfile.mkstemp(prefix=".launchlint-", dir=os.path.dirname(os.path.abspath(self.path)))
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(f'{{\n  "schema": {SCHEMA},\n  "findings": {body}\n}}\n')
            os.chmod(temporary, 0o644)
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise


def load(path: str) -> Baseline:
    """Read a baseline; raise SettingsError where it is missing or is none."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}; `launchlint baseline write` makes a baseline") from None
    except ValueError as error:
        raise SettingsError(f"{path}: not a baseline: {error}") from None
    match document:
        case {"schema": 1, "findings": list(entries)}:
            return Baseline(path, Counter(dict(_entry(entry, path) for entry in entries)))
        case {"schema": int(schema)}:
            raise SettingsError(f"{path}: a baseline of schema {schema}, and this launchlint reads {SCHEMA}")
    raise SettingsError(f"{path}: not a baseline")


def _entry(entry: object, path: str) -> tuple[Key, int]:
    match entry:
        case {"path": str(where), "code": str(code), "text": str(text), "count": int(count)} if count > 0:
            return (where, code, text), count
    raise SettingsError(f"{path}: not an entry of a baseline: {json.dumps(entry)[:100]}")


def keys_of(report: FileReport, source: Source, settings: Settings) -> list[Key]:
    """What identifies each finding of a file while the lines around it change."""
    return [_key(finding, source, settings) for finding in report.findings]


def _key(finding: Finding, source: Source, settings: Settings) -> Key:
    line = source.position(finding.span.start).line
    path = os.fsencode(settings.relative(source.path)).decode("utf-8", "backslashreplace")
    return path, finding.code, " ".join(source.line(line).split())


def _exists(path: str, settings: Settings) -> bool:
    return os.path.exists(os.path.join(settings.root or os.curdir, path))

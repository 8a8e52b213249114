"""Annotations of GitHub Actions: workflow commands on standard output.

GitHub shows ten errors, ten warnings and ten notices of a step and drops the rest without a word. So the surest findings
come first, the last notice counts what did not fit, and that stands in the log below it. Columns count code points; where
a finding ends on another line GitHub takes no columns.
"""

from __future__ import annotations

from launchlint.model import Confidence
from launchlint.report import Entry, Result, from_top, in_words, plural, readable, worst_first

SHOWN = 10  # annotations of one level that GitHub keeps of a step


def render(result: Result) -> str:
    """Problems as errors, findings as warnings or (of low confidence) notices, and one notice for what did not fit."""
    errors = [_command("error", _readable(problem.path), problem.line, "launchlint", problem.reason) for problem in result.problems]
    levels: dict[str, list[Entry]] = {"warning": [], "notice": []}
    for entry in worst_first(result.entries):
        levels["notice" if entry.finding.confidence == Confidence.LOW else "warning"].append(entry)
    warnings, notices = levels.values()
    room = SHOWN - 1 if len(warnings) > SHOWN or len(notices) > SHOWN or len(errors) > SHOWN else SHOWN
    shown = [*warnings[:SHOWN], *notices[:room]]
    rest = [*warnings[SHOWN:], *notices[room:]]
    lines = [*errors[:SHOWN], *(_annotation("warning", entry) for entry in warnings[:SHOWN])]
    lines += [_annotation("notice", entry) for entry in notices[:room]]
    if rest or errors[SHOWN:]:
        what = [plural(len(rest), "finding")] * bool(rest) + [plural(len(errors[SHOWN:]), "error")] * bool(errors[SHOWN:])
        total = len(shown) + len(rest)
        text = f"{' and '.join(what)} more ({total} findings in all): see the log of this step, or write SARIF for all of them"
        lines.append(f"::notice title=launchlint::{_data(text)}")
        lines += [_plain(f"{_readable(problem.path)}:{problem.line}: {problem.reason}") for problem in result.problems[SHOWN:]]
        lines += [_plain(f"{_place(each)}: {_title(each)} {each.finding.message}") for each in rest]
    return "".join(f"{line}\n" for line in lines)


def _annotation(level: str, entry: Entry) -> str:
    place = entry.on_disk
    command = f"::{level} file={_property(_path(entry))},line={place.line},endLine={place.end_line}"
    if place.line == place.end_line:
        command += f",col={place.column},endColumn={place.end_column}"
    return f"{command},title={_property(f'launchlint {_title(entry)}')}::{_data(in_words(entry))}"


def _command(level: str, path: str, line: int, title: str, message: str) -> str:
    place = f"file={_property(path)}" + (f",line={line}" if line else "")
    return f"::{level} {place},title={_property(title)}::{_data(message)}"


def _title(entry: Entry) -> str:
    return f"{entry.meta.code} [{entry.meta.name}]"


def _path(entry: Entry) -> str:
    return _readable(entry.source.path)


def _place(entry: Entry) -> str:
    return _path(entry) + str(entry.place).removeprefix(entry.place.path)


def _readable(path: str) -> str:
    return readable(from_top(path))


def _data(text: str) -> str:
    """Text after the `::` of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property of a command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """A line of the log that no name of a file can turn into a command."""
    return f"- {_data(text).replace('##[', '## [')}"

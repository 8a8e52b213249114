"""For people: each finding with its lines of code, the places it refers to, why it is hot, and how to get rid of it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass

from launchlint import registry
from launchlint.model import Applicability, Finding
from launchlint.report import Entry, Place, Result, plural, readable

TAB = "    "
WIDEST = 160  # a longer line of code is cut around the place
CPU = {"cpu_by_stage": "CPU seconds by stage, over all processes", "cpu_by_rule": "CPU seconds by rule, part of the stage rules"}
LONGEST = 6  # lines shown of one range; the middle of a longer one is left out


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours, or none."""

    on: bool

    def _wrap(self, codes: str, text: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self.on and text else text

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def red(self, text: str) -> str:
        return self._wrap("1;31", text)

    def blue(self, text: str) -> str:
        return self._wrap("34", text)

    def green(self, text: str) -> str:
        return self._wrap("32", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)


def render(result: Result) -> str:
    """Every finding in full, then the summary."""
    paint = Paint(result.colour)
    blocks = ["\n".join(_block(entry, result, paint)) + "\n" for entry in result.entries]
    return "\n".join([*blocks, "\n".join(summary(result, paint))]) + "\n"


def one_line(entry: Entry, paint: Paint) -> str:
    """`path:line:column: CODE [name] message`, with `[*]` where `--fix` would change it."""
    place = f"{paint.bold(entry.place.path)}{str(entry.place).removeprefix(entry.place.path)}:"
    star = f" {paint.green('[*]')}" if _is_safe(entry.finding) else ""
    return f"{place} {paint.red(entry.finding.code)} [{entry.meta.name}]{star} {entry.finding.message}"


def _block(entry: Entry, result: Result, paint: Paint) -> list[str]:
    finding = entry.finding
    lines = [one_line(entry, paint), *_frame(entry, paint)]
    if finding.hot:
        lines.append(f"  {paint.blue('=')} hot because {finding.hot.reason}")
        if len(finding.hot.chain) > 1:
            lines.append(f"  {paint.blue('=')} chain: {' -> '.join(finding.hot.chain)}")
    if finding.fix:
        lines.append(f"  {paint.blue('=')} {_offer(finding)}")
        lines += [paint.green(f"      {line}".rstrip()) for line in finding.fix.shows.splitlines()]
    if entry.measured:
        from launchlint.trace.words import measured_in_words

        lines.append(f"  {paint.blue('=')} {measured_in_words(entry.measured)}")
    return [*lines]


def _offer(finding: Finding) -> str:
    """What the fix is and which option applies it."""
    assert finding.fix is not None
    title = finding.fix.title
    match finding.fix.applicability:
        case Applicability.SAFE:
            return f"fix with --fix: {title}"
        case Applicability.UNSAFE:
            return f"fix with --fix --unsafe-fixes: {title}"
    return f"use instead: {title}"


# ---------------------------------------------------------------- frame


@dataclass(frozen=True, slots=True)
class _Mark:
    place: Place
    note: str
    main: bool


def _frame(entry: Entry, paint: Paint) -> list[str]:
    """The lines of the finding and of its related places in order; what is meant is marked below its first line."""
    marks = [_Mark(entry.place, "", True), *(_Mark(place, note, False) for place, note in entry.related)]
    marks.sort(key=lambda mark: (mark.place.cell, mark.place.line, mark.place.column, not mark.main))
    cells = {mark.place.cell for mark in marks}
    width = len(str(max(_last(mark) for mark in marks)))
    bar = paint.blue("|")
    lines = [f"{' ' * width} {bar}"]
    shown, cell = 0, 0
    for mark in marks:
        if len(cells) > 1 and mark.place.cell != cell:
            shown, cell = 0, mark.place.cell
            lines.append(paint.blue(f"cell {cell}"))
        elif shown and mark.place.line > shown + 1:
            lines.append(paint.blue("..."))
        for number in _numbers(mark):
            if number is None:
                lines.append(paint.blue("..."))
                continue
            text, start, end = _cut(entry, mark, number)
            if number > shown:
                lines.append(f"{paint.blue(str(number).rjust(width))} {bar} {text}".rstrip())
                shown = number
            if number == mark.place.line:
                tint = paint.red if mark.main else paint.blue
                carets = ("^" if mark.main else "-") * max(end - start, 1)
                lines.append(f"{' ' * width} {bar} {' ' * start}{tint(f'{carets} {mark.note}'.rstrip())}")
    return lines


def _last(mark: _Mark) -> int:
    return mark.place.end_line if mark.main else mark.place.line


def _numbers(mark: _Mark) -> list[int | None]:
    """Lines to show: all of a finding, but not the middle of a long one; the first of a related place."""
    first, last = mark.place.line, _last(mark)
    if last - first < LONGEST:
        return list(range(first, last + 1))
    return [*range(first, first + LONGEST - 2), None, last]


def _cut(entry: Entry, mark: _Mark, number: int) -> tuple[str, int, int]:
    """The line for the screen, and from where to where to mark it, in columns of the screen."""
    line = entry.source.line(number + mark.place.above)
    place = mark.place
    indent = len(line) - len(line.lstrip())
    start = place.column - 1 if number == place.line else indent
    end = place.end_column - 1 if number == place.end_line else len(line.rstrip())
    drop = max(0, start - WIDEST // 4) if len(line) > WIDEST else 0
    head = "..." if drop else ""
    piece = line[drop : drop + WIDEST]
    tail = "..." if len(line) > drop + WIDEST else ""
    left = len(head) + _cells(line[drop:start])
    right = left + max(1, _cells(line[start : min(end, drop + WIDEST)]))
    return head + _visible(piece) + tail, left, right


def _visible(text: str) -> str:
    """Text that moves no cursor: tabs become spaces, other control characters a middle dot."""
    return "".join(TAB if c == "\t" else "\N{MIDDLE DOT}" if unicodedata.category(c) == "Cc" else c for c in text)


def _cells(text: str) -> int:
    """How many columns of a terminal `text` takes: East Asian wide characters two, combining marks none."""
    if text.isascii():
        return len(text) + text.count("\t") * (len(TAB) - 1)
    cells = 0
    for c in text:
        if c == "\t":
            cells += len(TAB)
        elif not unicodedata.combining(c) and c != "\N{ZERO WIDTH JOINER}":
            cells += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return cells


# ---------------------------------------------------------------- summary


def summary(result: Result, paint: Paint) -> list[str]:
    """What could not be checked, counts, how many can be fixed, what was silenced."""
    lines = [f"{paint.red('error')}: {readable(str(problem))}" for problem in result.problems]
    if result.statistics:
        lines += _statistics(result)
    if result.quiet:
        return lines
    lines += [f"note: {note}" for note in result.notes]
    if result.fixed:
        total = sum(result.fixed.values())
        lines.append(f"fixed {plural(total, 'finding')} ({', '.join(f'{code}: {n}' for code, n in sorted(result.fixed.items()))})")
    lines.append(_counts(result, paint))
    if hint := _fixable(result):
        lines.append(hint)
    if result.silenced:
        each = ", ".join(f"{number} by {what}" for what, number in sorted(result.silenced.items(), key=lambda item: (-item[1], item[0])))
        lines.append(f"silenced: {each}")
    return lines


def _counts(result: Result, paint: Paint) -> str:
    checked = plural(result.files, "file")
    if not result.entries:
        if result.problems:
            return f"no findings in {checked}, {plural(len(result.problems), 'error')}"
        return paint.green(f"no findings in {checked}")
    inside = len({entry.place.path for entry in result.entries})
    errors = f", {plural(len(result.problems), 'error')}" if result.problems else ""
    return f"{plural(len(result.entries), 'finding')} in {inside} of {checked}{errors}"


def _fixable(result: Result) -> str:
    safe = sum(_is_safe(entry.finding) for entry in result.entries)
    unsafe = sum(bool(entry.finding.fix and entry.finding.fix.applicability is Applicability.UNSAFE) for entry in result.entries)
    if safe and unsafe:
        return f"{safe} fixable with --fix, {unsafe} more with --fix --unsafe-fixes"
    if safe:
        return f"{safe} fixable with --fix"
    return f"{unsafe} fixable with --fix --unsafe-fixes" if unsafe else ""


def _is_safe(finding: Finding) -> bool:
    return bool(finding.fix and finding.fix.applicability is Applicability.SAFE)


def _statistics(result: Result) -> list[str]:
    """Findings per rule, most first, then what the engine counted."""
    names = {entry.meta.code: entry.meta.name for entry in result.entries}
    counts = Counter(entry.meta.code for entry in result.entries)
    lines = [f"{number:6,}  {code}  {names[code]}" for code, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    for key, value in result.stats.items():
        if key in CPU:
            lines += _cpu(CPU[key], value)
            continue
        parts = value.items() if isinstance(value, dict) else [("", value)]
        lines.append(f"{key}: {', '.join(f'{name} {_number(part)}'.strip() for name, part in parts)}")
    return lines


def _cpu(title: str, seconds: object) -> list[str]:
    """A table of CPU seconds, the dearest first; nothing was timed where nothing was done."""
    if not isinstance(seconds, dict) or not seconds:
        return []
    names = {code: rule.meta.name for code, rule in registry.load().items()}
    rows = sorted(seconds.items(), key=lambda item: (-item[1], item[0]))
    return [f"{title}:", *(f"{spent:8.3f}  {name}  {names.get(name, '')}".rstrip() for name, spent in rows)]


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)

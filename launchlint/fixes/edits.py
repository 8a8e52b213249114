"""Edits as arithmetic on offsets: apply them, and say where an old place is in the new text."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from launchlint.model import Edit, Span
from launchlint.source import LINE_END, Source


class Edits:
    """Edits of one round, in order and without overlap.

    Line ends inside inserted text follow the place: a rule writes LF, and what is inserted into a CRLF line is CRLF.
    """

    def __init__(self, source: Source, edits: Sequence[Edit]) -> None:
        self.source = source
        self.edits = sorted(Edit(edit.span, localize(source, edit)) for edit in edits)
        for before, after in zip(self.edits, self.edits[1:], strict=False):
            if before.span.end > after.span.start:
                raise ValueError(f"edits overlap: {before} and {after}")
        self._ends = [edit.span.end for edit in self.edits]
        self._growth = [0]
        for edit in self.edits:
            self._growth.append(self._growth[-1] + len(edit.text) - (edit.span.end - edit.span.start))

    def new_text(self) -> str:
        """The text with every edit applied; everything outside the spans is taken over as it is."""
        text = self.source.text
        parts: list[str] = []
        done = 0
        for edit in self.edits:
            parts += (text[done : edit.span.start], edit.text)
            done = edit.span.end
        return "".join([*parts, text[done:]])

    def moved(self, offset: int) -> int:
        """Where `offset`, which lies in no edited span, is in the new text; text inserted right there comes before it."""
        return offset + self._growth[bisect.bisect_right(self._ends, offset)]

    def new_span(self, span: Span) -> Span:
        """The image of `span`, grown to whole edits where it cuts one."""
        start, end = span.start, span.end
        for edit in self.edits:
            if edit.span.start < span.end and span.start < edit.span.end:
                start, end = min(start, edit.span.start), max(end, edit.span.end)
        before = sum(_growth(edit) for edit in self.edits if edit.span.end < start or edit.span.start < edit.span.end == start)
        within = sum(_growth(edit) for edit in self.edits if edit.span.end <= end)
        return Span(start + before, end + within)


def _growth(edit: Edit) -> int:
    return len(edit.text) - (edit.span.end - edit.span.start)


def localize(source: Source, edit: Edit) -> str:
    """The text of `edit` with the line end of the place where it goes."""
    if "\n" not in edit.text and "\r" not in edit.text:
        return edit.text
    return LINE_END.sub(newline_at(source, edit.span.start).replace("\\", r"\\"), edit.text)


def newline_at(source: Source, offset: int) -> str:
    """The line end of the line that holds `offset`; of the line before, where the last line has none."""
    found = LINE_END.search(source.text, offset)
    if found:
        return found.group()
    line = source.position(offset).line
    if line < 2:
        return source.newline
    ended = LINE_END.search(source.text, source.line_starts[line - 2])
    return ended.group() if ended else source.newline

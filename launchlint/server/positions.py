"""Places as editors count them: 0-based lines, and columns in UTF-16 units unless the two sides agreed on something else."""

from __future__ import annotations

from lsprotocol import types

from launchlint.model import Edit, Span
from launchlint.source import Source

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}  # with the bytes of one unit


class Positions:
    """Converts between offsets of one text and positions of the protocol."""

    def __init__(self, source: Source, encoding: str = "utf-16") -> None:
        self.source = source
        self.encoding = encoding

    def position(self, offset: int) -> types.Position:
        """The position of an offset."""
        place = self.source.position(offset)
        match self.encoding:
            case "utf-8":
                column = self.source.byte_column(offset)
            case "utf-32":
                column = place.column - 1
            case _:
                column = self.source.utf16_column(offset)
        return types.Position(place.line - 1, column)

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def line(self, number: int) -> types.Range:
        """The code on a 1-based line; of the first where there is no such line."""
        if not 1 <= number <= len(self.source.line_starts):
            number = 1
        start, text = self.source.line_starts[number - 1], self.source.line(number)
        end = start + len(text.rstrip())
        return self.range(Span(min(start + len(text) - len(text.lstrip()), end), end))

    def offset(self, position: types.Position) -> int:
        """The offset of a position; the nearest one where the position is outside the text or inside a character."""
        starts = self.source.line_starts
        if position.line >= len(starts):
            return len(self.source.text)
        line = self.source.line(position.line + 1)
        if self.encoding in _CODECS:
            codec, width = _CODECS[self.encoding]
            units = line.encode(codec, "surrogatepass")[: position.character * width]
            column = len(units.decode(codec, "ignore"))
        else:
            column = min(position.character, len(line))
        return starts[position.line] + column

    def span(self, range_: types.Range) -> Span:
        """The span of a range."""
        return Span(self.offset(range_.start), self.offset(range_.end))

    def edits(self, edits: list[Edit]) -> list[types.TextEdit]:
        """Edits of the text as the protocol has them."""
        return [types.TextEdit(self.range(edit.span), edit.text) for edit in edits]

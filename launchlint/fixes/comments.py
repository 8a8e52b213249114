"""Comments of a file, by offset: a fix must know which it would take away."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

from launchlint.model import Edit, Span
from launchlint.patterns import Pattern
from launchlint.source import LINE_END, Source

# A comment that a tool reads means something only where it stands.
PRAGMA = Pattern(
    r"#\s*(noqa|nosec|pragma|(type|fmt|isort|ruff|pylint|mypy|pyright|flake8|launchlint|yapf):|[\w-]*sync[\w-]*ok)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment from its `#` to the end of its line."""

    span: Span
    text: str

    @property
    def is_pragma(self) -> bool:
        return PRAGMA.match(self.text) is not None


def comments(source: Source) -> tuple[Comment, ...] | None:
    """Every comment in order; None where the tokenizer gives up, which callers must treat as "there may be one"."""
    found: list[Comment] = []
    lines = io.StringIO(LINE_END.sub("\n", source.text))  # same lines and columns, one kind of line end
    try:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT:
                start = source.line_starts[token.start[0] - 1] + token.start[1]
                found.append(Comment(Span(start, start + len(token.string)), token.string))
    except (tokenize.TokenError, SyntaxError, RecursionError, SystemError):
        return None
    return tuple(found)


def inside(found: tuple[Comment, ...] | None, span: Span) -> tuple[Comment, ...] | None:
    """The comments that `span` touches."""
    if found is None:
        return None
    return tuple(comment for comment in found if comment.span.start < span.end and span.start < comment.span.end)


def loses_comment(found: tuple[Comment, ...] | None, edits: tuple[Edit, ...]) -> bool:
    """True if applying `edits` takes a comment away that the new text does not repeat."""
    kept = "\n".join(edit.text for edit in edits)
    for edit in edits:
        touched = inside(found, edit.span)
        if touched is None or any(comment.text not in kept for comment in touched):
            return True
    return False

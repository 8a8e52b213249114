"""The edit that silences one finding with a comment, where a person then says why."""

from __future__ import annotations

import re
import tokenize

from launchlint.fixes.untouched import same
from launchlint.model import Edit, Finding, Span
from launchlint.source import Source, SourceError, parse
from launchlint.suppress import IGNORE, tokens_of

REASON = "<reason>"  # stands out, so that it is not left there


def ignoring(source: Source, finding: Finding, name: str) -> Edit | None:
    """Add the rule `name` to the ignore comment of the reported line, or write one: behind the line, or above it where a
    string or a backslash goes on to the next line. None where neither leaves the code as it is."""
    number = source.position(finding.span.start).line
    start, line = source.line_starts[number - 1], source.line(number)
    comment = _comments(source).get(number)
    if comment is not None and (edit := _added(start + comment, line[comment:], name)):
        return edit
    mark = f"# launchlint: ignore[{name}] {REASON}"
    if number in _open_ends(source):
        indent = line[: len(line) - len(line.lstrip())]
        above = Edit(Span(start, start), f"{indent}{mark}{source.newline}")
        return above if _is_comment_only(source, above) else None
    end = len(line.rstrip())
    return Edit(Span(start + end, start + len(line)), f"  {mark}")


def _added(start: int, comment: str, name: str) -> Edit | None:
    """One more name in an ignore comment that has names already."""
    for found in IGNORE.finditer(comment):
        if found["kind"] == "ignore" and found["words"] is not None:
            end = start + found.end("words")
            words = [word for word in re.split(r"[,\s]+", found["words"]) if word]
            return Edit(Span(start + found.start("words"), end), ", ".join(dict.fromkeys([*words, name])))
    return None


def _is_comment_only(source: Source, edit: Edit) -> bool:
    try:
        return same(source.tree, parse(f"{source.text[: edit.span.start]}{edit.text}{source.text[edit.span.end :]}"))
    except SourceError:
        return False


def _comments(source: Source) -> dict[int, int]:
    """The column of the comment of each line that has one."""
    return {token.start[0]: token.start[1] for token in tokens_of(source.text) if token.type == tokenize.COMMENT}


def _open_ends(source: Source) -> set[int]:
    """Lines behind which no comment can stand."""
    ended = {token.start[0] for token in tokens_of(source.text) if token.type in (tokenize.NEWLINE, tokenize.NL)}
    return {number for number in range(1, len(source.line_starts) + 1) if number not in ended and source.line(number).strip()}

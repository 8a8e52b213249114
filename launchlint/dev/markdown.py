"""Markdown as far as rule pages and cases need it: headings, prose and fenced blocks.

A fence stands at the start of a line; anything indented is prose. Lines are 1-based.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^`]*)$")


class MarkdownError(Exception):
    """Text that does not hold together. `line` is 1-based."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the words after the fence, and its text, which ends with a newline unless it is empty."""

    words: tuple[str, ...]
    text: str
    line: int  # of the opening fence

    @property
    def language(self) -> str:
        """The first word after the fence, or an empty string."""
        return self.words[0] if self.words else ""

    @property
    def lines(self) -> int:
        """How many lines stand between the fences."""
        return self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what follows it, up to the next heading of any level. Text before the first has level 0."""

    level: int
    title: str
    line: int
    prose: str
    blocks: tuple[Block, ...]


def sections(text: str) -> list[Section]:
    """Cut a page at its headings; raise MarkdownError for a fence that is never closed."""
    found: list[Section] = []
    level, title, start = 0, "", 1
    prose: list[str] = []
    blocks: list[Block] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        if fence := FENCE.match(line):
            block = _block(lines, number, fence)
            blocks.append(block)
            number += block.lines + 2
            continue
        if heading := HEADING.match(line):
            found.append(Section(level, title, start, "\n".join(prose).strip(), tuple(blocks)))
            level, title, start = len(heading[1]), heading[2], number + 1
            prose, blocks = [], []
        else:
            prose.append(line)
        number += 1
    found.append(Section(level, title, start, "\n".join(prose).strip(), tuple(blocks)))
    return [section for section in found if section.level or section.prose or section.blocks]


def replace_block(text: str, block: Block, new: str) -> str:
    """The page with the text of one of its blocks replaced; everything else stays as it is."""
    lines = text.split("\n")
    body = new.removesuffix("\n").split("\n") if new else []
    lines[block.line : block.line + block.lines] = body
    return "\n".join(lines)


def _block(lines: list[str], number: int, fence: re.Match[str]) -> Block:
    close = re.compile(re.escape(fence[1][0]) + "{" + str(len(fence[1])) + r",}[ \t]*$")
    for end in range(number + 1, len(lines)):
        if close.match(lines[end]):
            body = lines[number + 1 : end]
            return Block(tuple(fence[2].split()), "".join(line + "\n" for line in body), number + 1)
    raise MarkdownError(number + 1, "this fence is never closed")

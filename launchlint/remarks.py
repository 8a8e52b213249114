"""What comments and docstrings say about a place: that its cost is meant, or that it is a reference, a fallback, for debugging.

What an author wrote down is weaker than what the code shows, so a remark only lowers the confidence. A comment counts
where it names the wait or the copy and says that there is one of it, or that it is on purpose; a comment that asks for
a repair counts as none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from launchlint.guards import Guard
from launchlint.names import dotted
from launchlint.rule import Frame
from launchlint.source import Source

_COPY = re.compile(
    r"\b(d2h|h2d|[dh]->[dh]|device[- ]to[- ]host|(cpu|host) transfers?|host[- ]to[- ]device|sync|synch?roni[sz]\w+|(?<!non-)blocking|"
    r"to the host|host read\w*|read-?back)\b|"
    r"\.(item|tolist|cpu|numpy)\(\)",
    re.I,
)
_ONE = re.compile(r"\b(one|once|single)\b", re.I)
_MEANT = re.compile(r"\b(deliberate(ly)?|intentional(ly)?|acceptable|on purpose|unavoidable)\b", re.I)
_ONE_WAIT = re.compile(r"\b(one|only|single) (D2H|device[- ]to[- ]host|((host|device|stream) )?sync(hronization)?)\b", re.I)
_REPAIR = re.compile(
    r"\b(TODO|FIXME|XXX|HACK)\b|\bslow|optimi[sz]e|expensive|\bacross\b|\bavoid[^.]{0,30}(d2h|h2d|sync|cop|transfer|wait)", re.I
)
_FALLBACK = re.compile(r"\bfall(ing)?[- ]?back\b|precomputed", re.I)
_FOR_DEBUGGING = re.compile(r"^(an? |the )?debug(ging)?\b|\bfor (\w+ )?(testing|debugging)\b", re.I)
_ASIDE = re.compile(
    r"^(an? |the )?(debug(ging)?|reference|fallback)\b(?! (counts?|points?|model|image|audio|video|frames?|latents?|encoder|decoder)\b)|"
    r"\bfor (\w+ )?(testing|debugging)\b",
    re.I,
)
_ASIDE_OF_PATH = re.compile(r"\boff the (launch|critical|hot) path\b", re.I)
_MAKES = re.compile(r"=\s*([\w.]+)\(")  # what an assignment calls
_NEAR = 6  # lines above a statement in which a remark still speaks of it


def remarks_on(
    source: Source,
    statement: ast.stmt,
    frame: Frame | None,
    definitions: Iterable[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef],
    is_read: bool,
) -> Iterator[Guard]:
    """What is said beside a statement, at the branches around it, and in the docstrings of what it is part of."""
    if _speaks_of_cost(_nearby(source, statement.lineno), _MEANT) or _speaks_of_cost(_beside(source, statement), _ONE, _MEANT):
        yield Guard("lower", "a comment says that this is meant")
    while frame is not None:
        if isinstance(frame.node, ast.If) and (name := _missing(frame.node, frame.part)):
            body = frame.node.body if frame.part == "body" else frame.node.orelse
            said = " ".join([name, *_above(source, frame.node.lineno), *_above(source, body[0].lineno)])
            if _FALLBACK.search(said):
                yield Guard("lower", f"only without `{name}`, the fallback by its comment or name")
        if isinstance(frame.node, ast.If) and frame.part == "body" and _speaks_of_cost(_above(source, frame.node.body[0].lineno), _MEANT):
            yield Guard("lower", "a comment at the head of the branch says that this is meant")
        frame = frame.outer
    for definition in definitions:
        words = _FOR_DEBUGGING if isinstance(definition, ast.ClassDef) else _ASIDE  # "a reference class" is often the one that runs
        if (text := ast.get_docstring(definition)) and (found := words.search(text)):
            yield Guard("lower", f'the docstring of `{definition.name}` says "{" ".join(found.group().split())}"')
        elif text and not isinstance(definition, ast.ClassDef) and _COPY.search(text) and _ASIDE_OF_PATH.search(text):
            yield Guard("lower", f"the docstring of `{definition.name}` knows of the wait and keeps it off the path")
        elif is_read and text and not isinstance(definition, ast.ClassDef) and _ONE_WAIT.search(text) and not _REPAIR.search(text):
            yield Guard("lower", f"the docstring of `{definition.name}` knows of the one wait")


def _speaks_of_cost(comments: list[str], *words: re.Pattern[str]) -> bool:
    """True for comments that name a wait or a copy with one of `words`, and ask for no repair."""
    text = " ".join(comments)
    return bool(_COPY.search(text)) and any(word.search(text) for word in words) and not _REPAIR.search(text)


def _beside(source: Source, statement: ast.stmt) -> list[str]:
    """The comments of a statement: right above it, at the ends of its lines, or above a group of statements that make the same call."""
    above = _above(source, statement.lineno) or _above_group(source, statement.lineno)
    return above + _behind(source, statement)


def _above_group(source: Source, line: int) -> list[str]:
    made = _MAKES.search(source.line(line))
    for number in range(line - 1, max(0, line - 1 - _NEAR), -1):
        if not source.line(number).strip():
            break
        if comments := _above(source, number):
            first = _MAKES.search(source.line(number))
            same = made and first and made[1].rpartition(".")[2] == first[1].rpartition(".")[2]
            return comments if same else []
    return []


def _above(source: Source, line: int) -> list[str]:
    """The comment lines that end right above a line."""
    found: list[str] = []
    while line > 1 and (text := source.line(line - 1).strip()).startswith("#"):
        found.insert(0, text)
        line -= 1
    return found


def _behind(source: Source, statement: ast.stmt) -> list[str]:
    """The comments at the ends of a statement's lines, of the header where it has a body."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno or statement.lineno
    lines = (source.line(number) for number in range(statement.lineno, min(last, statement.lineno + _NEAR) + 1))
    return [match.group() for text in lines if (match := re.search(r"#[^\"']*$", text.rstrip()))]


def _nearby(source: Source, line: int) -> list[str]:
    """The comment lines above a line, not farther than a blank line or a few lines."""
    found: list[str] = []
    for number in range(line - 1, max(0, line - 1 - _NEAR), -1):
        text = source.line(number).strip()
        if not text:
            break
        if text.startswith("#"):
            found.insert(0, text)
    return found


def _missing(node: ast.If, part: str) -> str:
    """`lengths` in the branch that runs when `lengths` is None."""
    match node.test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]) if part == "body":
            return dotted(left)
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]) if part == "orelse":
            return dotted(left)
        case _:
            return ""

"""Proof that a round of edits changed the statements it meant to change and no other.

An edit can parse and still be wrong: an indentation that moves a statement into another block, a quote that swallows
what follows. So each statement that no edit touches must be found in the new tree at the place where it must be now,
with the same structure and under the same parent, and the new tree must hold no statement outside the edits that the
old one did not hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from launchlint.fixes.edits import Edits
from launchlint.model import Edit, Span
from launchlint.source import Source


@dataclass(frozen=True, slots=True)
class Kept:
    """A statement that must survive: whole, or only its header where an edit is inside its body."""

    node: ast.stmt
    parent: ast.stmt | None
    whole: bool


def is_unchanged(old: Source, new: Source, edits: Edits) -> bool:
    """True if the trees differ only where `edits` are."""
    kept, edited = _sort_out(old, edits)
    by_start = {new.span(node).start: (node, parent) for node, parent in _statements(new.tree)}
    twin: dict[ast.stmt | None, ast.stmt | None] = {None: None}
    accounted: set[ast.stmt] = set()
    for item in kept:  # parents come before children
        found = by_start.get(edits.moved(old.span(item.node).start))
        if found is None or not same(item.node, found[0], headers_only=not item.whole) or found[1] is not twin[item.parent]:
            return False
        twin[item.node] = found[0]
        accounted.update(_descendants(found[0]) if item.whole else [found[0]])
    images = [edits.new_span(old.span(node)) for node in edited]
    images += [edits.new_span(edit.span) for edit in edits.edits]
    strangers = (start for start, (node, _) in by_start.items() if node not in accounted)
    return all(any(image.start <= start < max(image.end, image.start + 1) for image in images) for start in strangers)


def _sort_out(source: Source, edits: Edits) -> tuple[list[Kept], list[ast.stmt]]:
    """Statements that must survive, parents first, and those that an edit changes."""
    cores = [core for edit in edits.edits if (core := _core(source, edit)) is not None]
    kept: list[Kept] = []
    edited: list[ast.stmt] = []
    stack: list[tuple[ast.stmt, ast.stmt | None]] = [(node, None) for node in reversed(source.tree.body)]
    while stack:
        node, parent = stack.pop()
        span = _full_span(source, node)
        touching = [core for core in cores if _touches(core, span)]
        if not touching:
            kept.append(Kept(node, parent, whole=True))
        elif all(_within_block(source, node, core.span) for core in touching):
            kept.append(Kept(node, parent, whole=False))
            stack.extend((child, node) for block in reversed(list(_blocks(node))) for child in reversed(block))
        else:
            edited.append(node)
    return kept, edited


def _core(source: Source, edit: Edit) -> Edit | None:
    """The edit without the white space around it; None if it changes white space between statements only."""
    old = source.text[edit.span.start : edit.span.end]
    if not old.strip():
        return edit if old == "" and edit.text.strip() else (edit if edit.text.strip() else None)
    start = edit.span.start + len(old) - len(old.lstrip())
    return Edit(Span(start, edit.span.end - (len(old) - len(old.rstrip()))), edit.text)


def _touches(edit: Edit, span: Span) -> bool:
    if edit.span.start < edit.span.end:
        return edit.span.overlaps(span)
    if "\n" in edit.text or "\r" in edit.text:  # lines of its own, before or after a statement
        return span.start < edit.span.start < span.end
    return span.start <= edit.span.start <= span.end


def _within_block(source: Source, node: ast.stmt, span: Span) -> bool:
    for block in _blocks(node):
        start = _full_span(source, block[0]).start
        if start <= span.start and span.end <= source.span(block[-1]).end:
            return True
    return False


def _full_span(source: Source, node: ast.stmt) -> Span:
    span = source.span(node)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return Span(min([span.start, *(source.span(decorator).start for decorator in decorators)]), span.end)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists that `node` holds, those of its handlers and match arms included."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], ast.excepthandler | ast.match_case):
                for part in value:
                    yield from _blocks(part)


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    stack: list[tuple[ast.stmt, ast.stmt | None]] = [(node, None) for node in tree.body]
    while stack:
        node, parent = stack.pop()
        yield node, parent
        stack.extend((child, node) for block in _blocks(node) for child in block)


def _descendants(node: ast.stmt) -> Iterator[ast.stmt]:
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for block in _blocks(node) for child in block)


def same(one: ast.AST, other: ast.AST, headers_only: bool = False) -> bool:
    """True if two trees are equal but for positions. Walks with a stack: a parsed file may be deeper than Python recurses."""
    stack: list[tuple[object, object]] = [(one, other)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            stack.extend((getattr(left, name, None), getattr(right, name, None)) for name in left._fields)
        elif isinstance(left, list) and isinstance(right, list):
            if headers_only and left and right and isinstance(left[0], ast.stmt) and isinstance(right[0], ast.stmt):
                continue
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif isinstance(left, float | complex):
            if repr(left) != repr(right):  # nan equals nan, 0.0 is not -0.0
                return False
        elif left != right:
            return False
    return True

"""Whatever is in the cells: reading and writing is the identity, and an edit of one cell is an edit of that cell."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from launchlint.notebook import read

LINES = st.sampled_from(
    (
        *("x = 1", "!ls 'it is", "%time x", "y = '''", "'''", "torch.nn?", "\f", "\f\f", "", "    z", "%%bash", "%%time", "files = !ls \\"),
        *("s = '\N{ROCKET}\\n'", "\t", "# \N{LINE SEPARATOR}", "f(", ")", "\U00020000 = 2", "\x00", "\ud800", 'a = "\\""', "a\rb"),
    )
)
CELLS = st.lists(st.tuples(st.lists(LINES, max_size=5), st.booleans(), st.booleans()), max_size=5)
STYLES = st.tuples(st.sampled_from([None, 0, 1, 4, "\t"]), st.booleans())


def notebook(cells: list[tuple[list[str], bool, bool]], indent: Any, ascii_only: bool) -> bytes:
    """JSON of cells: lines, whether their source is one string, and whether the last line has an end."""
    sources: list[Any] = []
    for lines, joined, ended in cells:
        source = [f"{line}\n" for line in lines]
        if source and not ended:
            source[-1] = source[-1][:-1]
        sources.append("".join(source) if joined else source)
    document = {"cells": [{"cell_type": "code", "source": source} for source in sources]}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    return text.replace("\ud800", "\\ud800").encode()


@given(CELLS, STYLES)
@settings(max_examples=300, deadline=None)
def test_what_is_not_edited_is_written_as_it_was(cells: list[tuple[list[str], bool, bool]], style: tuple[Any, bool]) -> None:
    data = notebook(cells, *style)
    book = read("a.ipynb", data)
    assert book.encode(book.text) == data
    assert [book.text[start:end] for start, end in book.ranges][: len(book.cells)] == [cell.code for cell in book.cells]
    assert all(len(cell.code) == sum(len(piece.text) for piece in cell.pieces) for cell in book.cells)
    assert book.tree is not None, "cells that parse one by one parse together"


@given(CELLS, STYLES, st.integers(0, 4), st.sampled_from(["x = 2", "\N{ROCKET} = '\"\\'", "# gone\n", ""]))
@settings(max_examples=300, deadline=None)
def test_an_edit_of_one_cell_changes_that_cell_only(
    cells: list[tuple[list[str], bool, bool]], style: tuple[Any, bool], which: int, new: str
) -> None:
    data = notebook(cells, *style)
    book = read("a.ipynb", data)
    # A line that a magic continues on is no code: where it holds the text too, the two edits would be of different places.
    found = [
        index
        for index, cell in enumerate(book.cells)
        if 0 < cell.code.count("x = 1") == "".join(piece.text for piece in cell.pieces).count("x = 1")
    ]
    if not found:
        return
    index = found[which % len(found)]
    cell, (start, end) = book.cells[index], book.ranges[index]
    code = book.text[start:end].replace("x = 1", new, 1)
    after = book.encode(book.text[:start] + code + book.text[end:])
    before_text, after_text = data.decode(), after.decode()
    assert after_text[: cell.start] == before_text[: cell.start]
    assert after_text.endswith(before_text[cell.end :])
    source = json.loads(after)["cells"][cell.number - 1]["source"]
    written = "".join(piece.text for piece in cell.pieces).replace("x = 1", new, 1)
    assert "".join(source) == written

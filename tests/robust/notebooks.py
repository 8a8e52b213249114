"""Notebooks for the fuzzer: code put into cells as different programs write them, and what fixes may change of such a file."""

from __future__ import annotations

import json
import random
from typing import Any

from launchlint.notebook import read

NAME = "layer.ipynb"
MAGICS = (
    "%matplotlib inline",
    "!pip install torch",
    "files = !ls",
    "torch.nn?",
    "%time x = 1",
    "!echo \\\n  more",
    "%%time",
    "%%capture out",
)
OTHER_CELLS: tuple[dict[str, Any], ...] = (
    {"cell_type": "markdown", "source": ["# Title\n", "x.item()"]},
    {"cell_type": "raw", "source": "for i in range(n): t[i] = 0"},
    {"cell_type": "code", "source": ["%%bash\n", "for i in *; do echo $i; done"]},
    {"cell_type": "code", "source": []},
    {"cell_type": "code", "source": "x = (", "outputs": []},
    {"cell_type": "code", "source": "x = 1", "metadata": {"vscode": {"languageId": "rust"}}},
)
OUTPUTS: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"output_type": "stream", "name": "stdout", "text": ["1\n", "\N{ROCKET}"]}],
    [{"output_type": "display_data", "data": {"image/png": "aGVsbG8=" * 20}, "metadata": {"x": [1.0, 1e400]}}],
)


def make(code: str, chance: random.Random) -> bytes:
    """A notebook that holds `code`, one cell after another."""
    cells: list[dict[str, Any]] = []
    for text in _pieces(code, chance):
        if chance.random() < 0.3:
            text = f"{chance.choice(MAGICS)}\n{text}"
        source = text if chance.random() < 0.3 else text.splitlines(keepends=True)
        cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": chance.choice(OUTPUTS), "source": source})
        if chance.random() < 0.3:
            cells.append(dict(chance.choice(OTHER_CELLS)))
    document: dict[str, Any] = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    if chance.random() < 0.2:
        document = {"nbformat": 3, "worksheets": [{"cells": [_of_format_3(cell) for cell in cells]}], "metadata": {}}
    text = json.dumps(document, indent=chance.choice((None, 0, 1, 2, "\t")), ensure_ascii=chance.random() < 0.5)
    ends = chance.choice(("\n", "\n", "\r\n"))
    return chance.choice((b"", b"", b"\xef\xbb\xbf")) + text.replace("\n", ends).encode("utf-8", "replace") + b"\n"


def _pieces(code: str, chance: random.Random) -> list[str]:
    """The code cut before some of its top-level lines, and now and then in the middle of something."""
    lines, pieces, start = code.splitlines(keepends=True), list[str](), 0
    for at, line in enumerate(lines):
        is_top = line[:1].strip() != "" and (at == 0 or not lines[at - 1].startswith("@"))
        if at > start and chance.random() < (0.5 if is_top else 0.01):
            pieces.append("".join(lines[start:at]))
            start = at
    return [*pieces, "".join(lines[start:])]


def _of_format_3(cell: dict[str, Any]) -> dict[str, Any]:
    return {("input" if key == "source" and cell["cell_type"] == "code" else key): value for key, value in cell.items()}


def is_sound(data: bytes) -> bool:
    """True for JSON of the shape that a notebook has, in either of its formats."""
    try:
        match json.loads(data.decode("utf-8-sig")):
            case {"cells": list(cells)}:
                return all(_is_cell(cell, "source") for cell in cells)
            case {"worksheets": list(sheets)}:
                return bool(sheets) and all(
                    isinstance(sheet, dict)
                    and isinstance(sheet.get("cells"), list)
                    and all(_is_cell(cell, "input") for cell in sheet["cells"])
                    for sheet in sheets
                )
    except (ValueError, RecursionError):
        pass
    return False


def _is_cell(cell: Any, key: str) -> bool:
    if not isinstance(cell, dict):
        return False
    source = cell.get(key)
    return (
        cell.get("cell_type") != "code" or isinstance(source, str) or (isinstance(source, list) and all(isinstance(x, str) for x in source))
    )


def wrong_of_fixed(before: bytes, after: bytes) -> str:
    """What fixes changed that is not theirs to change; empty where they kept to the text of cells."""
    try:
        old, new = _without_sources(before), _without_sources(after)
    except ValueError as error:
        return f"what was written is no JSON: {error}"
    if old != new:
        return "something else than the text of cells was changed"
    first, second = read(NAME, before), read(NAME, after)
    if [cell.number for cell in first.cells] != [cell.number for cell in second.cells]:
        return "a cell parsed before and does not parse now"
    if [cell.magics for cell in first.cells] != [cell.magics for cell in second.cells]:
        return "a magic was changed"
    return ""


def _without_sources(data: bytes) -> str:
    """The document without the text of its code cells. As text, since what is no number equals nothing."""
    document = json.loads(data.decode("utf-8-sig"))
    sheets = [document] if "cells" in document else document["worksheets"]
    for cell in [cell for sheet in sheets for cell in sheet["cells"]]:
        if cell.get("cell_type") == "code":
            cell.pop("source" if "cells" in document else "input", None)
    return json.dumps(document)

"""Notebooks on the command line: cells, lines, magics, fixes, and files that are none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from launchlint import cli
from launchlint.notebook import Notebook, hide_magics, read
from launchlint.source import SourceError

HEAD = ("class Net(torch.nn.Module):\n", "    def forward(self, x: torch.Tensor, rows: list[int]) -> torch.Tensor:\n")
UPLOAD = "torch.tensor(rows).to(x.device)"
MOVED = "torch.zeros(3).to(x.device)"
CREATED = "torch.zeros(3, device=x.device)"


def code(*lines: str, **metadata: Any) -> dict[str, Any]:
    outputs = [{"name": "stdout", "output_type": "stream", "text": ["caf\N{LATIN SMALL LETTER E WITH ACUTE} \N{ROCKET}\n"]}]
    return {"cell_type": "code", "execution_count": 3, "metadata": metadata, "outputs": outputs, "source": list(lines)}


def markdown(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": list(lines)}


def document(*cells: dict[str, Any], language: str = "python") -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {"kernelspec": {"language": language}}, "nbformat": 4, "nbformat_minor": 5}


def write(path: Path, *cells: dict[str, Any], **options: Any) -> bytes:
    """A notebook as Jupyter writes it."""
    text = json.dumps(document(*cells), indent=options.pop("indent", 1), ensure_ascii=options.pop("ascii", False), **options) + "\n"
    path.write_bytes(text.encode())
    return text.encode()


def source(*cells: dict[str, Any], **options: Any) -> Notebook:
    return read("nb.ipynb", json.dumps(document(*cells, **options)).encode())


def check(*arguments: str | Path) -> int:
    return cli.main(["check", "--no-cache", "--isolated", *map(str, arguments)])


def found(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    """The findings of a folder as JSON."""
    check(folder, "--format", "json", *options)
    return list(json.loads(capsys.readouterr().out)["findings"])


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook with prose, magics, a cell of another language, and a finding in each of two cells."""
    path = tmp_path / "train.ipynb"
    write(
        path,
        markdown("# `loss.item()` here is prose\n"),
        code("%matplotlib inline\n", "!nvidia-smi \\\n", "  --list-gpus\n", "import torch"),
        code("%%bash\n", "for i in 1 2; do echo $i; done"),
        code("%%time\n", *HEAD, f"        note = '\N{ROCKET}'; y = {UPLOAD}\n", "        files = !ls\n", "        return pack(x) + y\n"),
        code("torch.nn?\n", "\n", "def pack(x: torch.Tensor) -> torch.Tensor:\n", f"    return x + {MOVED}"),
    )
    return path


# ---------------------------------------------------------------- cells and lines


def test_findings_have_the_cell_and_the_line_in_it(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named or met in a folder; a function of a later cell is hot because of one in an earlier cell."""
    for asked in (notebook, notebook.parent):
        assert [(each["code"], each["cell"], each["line"], each["column"]) for each in found(asked, capsys)] == [
            ("LCH203", 4, 4, 25),
            ("LCH204", 5, 4, 16),
        ]
    assert found(notebook, capsys)[1]["hot"]["chain"] == ["Net.forward", "pack"]


def test_text_shows_the_lines_of_the_cell(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(notebook) == 1
    shown = capsys.readouterr().out
    assert f"{notebook}:cell 4:4:25: LCH203" in shown
    assert f"4 |         note = '\N{ROCKET}'; y = {UPLOAD}\n" in shown
    assert "cell 4\n3 |     def forward" in shown, "a related place in another cell is named with its cell"
    assert "cell 5\n4 |     return x + torch.zeros(3)" in shown


def test_a_frame_that_spans_a_magic_shows_the_magic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path / "a.ipynb",
        code(
            "import torch\n",
            *HEAD,
            "        y = torch.zeros(\n",
            "            3\n",
            "        ).to(x.device)\n",
            "        %timeit y\n",
            "        return y",
        ),
    )
    (finding,) = found(tmp_path, capsys)
    assert (finding["line"], finding["end_line"]) == (4, 6)
    book = read("a.ipynb", (tmp_path / "a.ipynb").read_bytes())
    assert book.line(7) == "        %timeit y"


def test_formats_for_files_have_the_line_of_the_json_and_name_the_cell(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = notebook.read_text().split("\n")
    wanted = next(number for number, line in enumerate(lines, 1) if UPLOAD in line)
    column = lines[wanted - 1].index(UPLOAD)
    units = column + 1  # the rocket before it is two units of UTF-16

    check(notebook, "--format", "github")
    assert f",line={wanted},endLine={wanted},col={column + 1}," in capsys.readouterr().out
    check(notebook, "--format", "gitlab")
    entry = json.loads(capsys.readouterr().out)[0]
    assert entry["location"]["lines"]["begin"] == wanted
    assert "cell 4, line 4: " in entry["description"]
    check(notebook, "--format", "sarif")
    result = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (wanted, units + 1, units + 1 + len(UPLOAD))
    assert result["message"]["text"].startswith("cell 4, line 4: ") and "fixes" not in result
    check(notebook, "--format", "rdjsonl")
    said = json.loads(capsys.readouterr().out.splitlines()[0])
    assert said["location"]["range"]["start"] == {"line": wanted, "column": len(lines[wanted - 1][:column].encode()) + 1}
    check(notebook, "--format", "junit")
    assert 'cell 4, line 4, column 25" classname="' in (out := capsys.readouterr().out) and f'line="{wanted}"' in out
    check(notebook, "--format", "concise")
    assert f"{notebook}:cell 4:4:25: " in capsys.readouterr().out


def test_cells_are_one_module_and_their_comments_do_not_reach_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ignore comment at the end of a cell says nothing about the first line of the next."""
    body = ("def pack(x, rows: list[int]): return " + UPLOAD,)
    first = code(
        "import torch\n", *HEAD, "        return pack(x, rows)\n", "# launchlint: ignore[blocking-upload] not meant for the next cell"
    )
    write(tmp_path / "a.ipynb", first, code(*body))
    assert [(each["code"], each["cell"]) for each in found(tmp_path, capsys, "--min-confidence", "low")] == [("LCH203", 2)]
    write(tmp_path / "a.ipynb", first, code("# launchlint: ignore[blocking-upload] once\n", *body))
    assert found(tmp_path, capsys, "--min-confidence", "low") == []


def test_unchanged_cells_are_known_to_git(tmp_path: Path, capsys: pytest.CaptureFixture[str], notebook: Path) -> None:
    """`--diff-file` speaks of lines of the JSON."""
    lines = notebook.read_text().split("\n")
    number = next(index for index, line in enumerate(lines, 1) if MOVED in line)
    patch = tmp_path / "change.patch"
    patch.write_text(f"--- a/{notebook.name}\n+++ b/{notebook.name}\n@@ -{number},0 +{number},1 @@\n+{lines[number - 1]}\n")
    import os

    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        check(notebook, "--diff-file", patch, "--format", "json")
    finally:
        os.chdir(here)
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["findings"]] == ["LCH204"]


# ---------------------------------------------------------------- magics


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("!ls\nx = 1", "@  \nx = 1"),
        ("%time x\n", "@      \n"),
        ("    %timeit f(\n    y = 1", "    @         \n    y = 1"),
        ("files = !ls *.py", "files = @       "),
        ("a, b = %sql select", "a, b = @          "),
        ("torch.nn?", "@        "),
        ("torch.nn.Module??  \n", "@                  \n"),
        ("?torch", "@     "),
        ("!pip install \\\n    torch\nx = 1", "@             \n         \nx = 1"),
        ("s = '''\n%time\n!ls\n'''\n!ls", "s = '''\n%time\n!ls\n'''\n@  "),
        ("y = (a\n%b)\n!ls", "y = (a\n%b)\n@  "),
        ("y = a \\\n  % b\n!ls", "y = a \\\n  % b\n@  "),
        ("s = 'it is (' # not closed (\n!ls", "s = 'it is (' # not closed (\n@  "),
        ("%cd a\r\n%cd b\r\nx = 1", "@    \r\n@    \r\nx = 1"),
    ],
)
def test_magics_give_way_to_a_name_of_the_same_length(text: str, hidden: str) -> None:
    code, magics = hide_magics(text, iter("@" * 9))
    assert code == hidden
    assert len(code) == len(text)
    for stand_in, magic in magics:
        code = code.replace(stand_in, magic, 1)
    assert code == text


@pytest.mark.parametrize("magic", ["%%bash", "%%html\n<b>", "%%writefile a.py", "%%capture\n%%bash", "%%javascript", "%sql"])
def test_cells_of_another_language_are_left_out(magic: str) -> None:
    book = source(code("x = 1"), code(f"{magic}\n", "this is :- no Python"), code("y = 2"))
    assert [cell.number for cell in book.cells] == [1, 3]
    assert book.fault == ""


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n 3 x = 1", "%%capture out", "\n%%time", "%%capture\n%%time"])
def test_cells_that_a_magic_only_watches_are_python(magic: str) -> None:
    book = source(code(f"{magic}\n", "y = 2"))
    assert len(book.cells) == 1 and book.tree.body


def test_a_letter_of_the_notebook_is_never_taken_for_a_magic() -> None:
    book = source(code("\U00020000 = 1\n", "!ls"))
    assert book.text == "\U00020000 = 1\n\U00020001  "


def test_other_languages_are_left_out() -> None:
    assert source(code("x <- 1"), language="R").cells == ()
    assert [cell.number for cell in source(code("SELECT 1", vscode={"languageId": "sql"}), code("x")).cells] == [2]


def test_await_at_the_top_of_a_cell_is_fine() -> None:
    assert source(code("x = await f()")).fault == ""


# ---------------------------------------------------------------- fixes


def test_nothing_fixed_leaves_every_byte(notebook: Path) -> None:
    book = read(str(notebook), notebook.read_bytes())
    assert book.encode(book.text) == notebook.read_bytes()


@pytest.mark.parametrize("style", [{"indent": 1}, {"indent": 4}, {"indent": None}, {"indent": 1, "ascii": True}, {"indent": "\t"}])
def test_a_fix_changes_one_cell_and_no_byte_elsewhere(tmp_path: Path, style: dict[str, Any]) -> None:
    path = tmp_path / "a.ipynb"
    lines = (*HEAD, f"        y = {MOVED}; s = '\N{ROCKET}\\n\\\\'\n", "        %time y\n", "        return y")
    before = write(
        path, markdown("# caf\N{LATIN SMALL LETTER E WITH ACUTE}"), code("import torch"), code(*lines), code("x = 1  # the last"), **style
    )
    assert check(path, "--fix", "-q") == 0
    after = path.read_bytes()
    assert after == before.replace(MOVED.encode(), CREATED.encode())
    assert after != before
    assert json.loads(after)["cells"][2]["source"][3] == "        %time y\n"


def test_a_source_that_is_one_string_is_fixed_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    text = "".join(("import torch\n", *HEAD, f"        y = {MOVED}; s = '\\u00e9\\t'\n", "        return y"))
    cell = {**code(), "source": text}
    raw = json.dumps(document(cell), indent=1, ensure_ascii=True).replace("import", "\\u0069mport").encode()
    path.write_bytes(raw)
    assert check(path, "--fix", "-q") == 0
    assert path.read_bytes() == raw.replace(MOVED.encode(), CREATED.encode())


@pytest.mark.parametrize(("newline", "mark"), [("\r\n", b""), ("\n", b"\xef\xbb\xbf")])
def test_line_ends_and_the_mark_of_the_file_stay(tmp_path: Path, newline: str, mark: bytes) -> None:
    path = tmp_path / "a.ipynb"
    text = json.dumps(document(code("import torch\n", *HEAD, f"        return {MOVED}")), indent=1).replace("\n", newline)
    before = mark + text.encode()
    path.write_bytes(before)
    assert check(path, "--fix", "-q") == 0
    assert path.read_bytes() == before.replace(MOVED.encode(), CREATED.encode())


def test_lines_that_come_and_go_keep_the_layout(tmp_path: Path) -> None:
    """The loop of one cell becomes one expression: other strings of the list and all other cells stay as written."""
    path = tmp_path / "a.ipynb"
    loop: tuple[str, ...] = ("ids = torch.empty(sum(rows), dtype=torch.int64, device=x.device)", "at = 0", "for e, row in enumerate(rows):")
    loop += ("    ids[at : at + row].fill_(e)", "    at += row")
    lines = (*HEAD, "        !ls\n", *(f"        {line}\n" for line in loop), "        return ids")
    before = write(path, code("import torch"), code(*lines), code("last = 1")).decode().split("\n")
    assert check(path, "--fix", "--unsafe-fixes", "-q") == 0
    after = path.read_text().split("\n")
    start = next(number for number, line in enumerate(before) if "torch.empty" in line)
    end = next(number for number, line in enumerate(before) if "at += row" in line) + 1
    assert after[:start] == before[:start]
    assert after[len(after) - len(before) + end :] == before[end:]
    assert "repeat_interleave" in "".join(json.loads(path.read_text())["cells"][1]["source"])


def test_an_import_that_would_go_to_another_cell_makes_a_fix_only_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "launchlint.toml").write_text('h2d-helper = "uploads.to_device"\n')
    path = tmp_path / "a.ipynb"
    forward = (*HEAD, "        return x + torch.tensor(rows).to(x.device, non_blocking=True)")

    def fix_of(*cells: Sequence[str]) -> dict[str, Any]:
        write(path, *(code(*lines) for lines in cells))
        cli.main(["check", "--no-cache", "--config", str(tmp_path / "launchlint.toml"), "--format", "json", str(path)])
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        return dict(finding["fix"])

    assert fix_of(["import torch"], forward)["applicability"] == "display"
    assert fix_of(["import torch\n", *forward])["applicability"] == "unsafe"
    assert fix_of(["import torch\n", "from uploads import to_device"], forward)["applicability"] == "unsafe"
    fix_of(["import torch"], forward)
    before = path.read_bytes()
    cli.main(["check", "--no-cache", "--config", str(tmp_path / "launchlint.toml"), "--fix", "--unsafe-fixes", str(path)])
    assert path.read_bytes() == before


def test_a_fix_that_would_take_a_magic_away_is_only_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ipynb"
    loop: tuple[str, ...] = (
        "ids = torch.empty(sum(rows), dtype=torch.int64, device=x.device)",
        "at = 0",
        "%time at",
        "for e, row in enumerate(rows):",
    )
    loop += ("    ids[at : at + row].fill_(e)", "    at += row")
    before = write(path, code("import torch\n", *HEAD, *(f"        {line}\n" for line in loop), "        return ids"))
    check(path, "--fix", "--unsafe-fixes", "-q")
    assert path.read_bytes() == before


def test_an_unused_comment_is_removed_wherever_it_stands(tmp_path: Path) -> None:
    """Also where it is all of a cell, or its last line."""
    path = tmp_path / "a.ipynb"
    comment = "# launchlint: ignore[scalar-read] gone"
    hot = ("import torch\n", *HEAD, "        return x")
    write(path, code(*hot), code("x = 1\n", comment), code(comment), code(f"y = 2  {comment}\n", "z = 3"))
    assert check(path, "--fix", "--unsafe-fixes", "--extend-select", "LCH001", "-q") == 0
    assert [cell["source"] for cell in json.loads(path.read_text())["cells"][1:]] == [["x = 1"], [], ["y = 2\n", "z = 3"]]


def test_diff_is_a_patch_of_the_json(notebook: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert check(notebook, "--diff") == 1
    patch = capsysbinary.readouterr().out.decode()
    changed = [line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [f'-    "    return x + {MOVED}"', f'+    "    return x + {CREATED}"']


def test_standard_input_may_be_a_notebook(
    notebook: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    data = notebook.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    check("--fix", "--stdin-filename", "a.ipynb", "-")
    assert capsysbinary.readouterr().out == data.replace(MOVED.encode(), CREATED.encode())


# ---------------------------------------------------------------- what is no notebook


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b'{"cells": [', "not valid JSON"),
        (b"[]", "has no cells"),
        (b'{"nbformat": 4}', "has no cells"),
        (b'{"cells": 3}', "its cells are no list"),
        (b'{"cells": [{"cell_type": "code"}]}', "cell 1 has no source"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "the source of cell 1 is no text"),
        (b'{"cells": [{"cell_type": "code", "source": {}}]}', "the source of cell 1 is no text"),
        (b'{"cells": "\xff"}', "not valid UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_notebook_is_one_line_and_exit_2(tmp_path: Path, data: bytes, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ipynb").write_bytes(data)
    assert check(tmp_path) == 2
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error: ")]
    assert "not a notebook" in line and reason in line


def test_cells_that_do_not_parse_are_named_and_the_others_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ipynb"
    write(path, code("import torch"), code("x = 1\n", "if x"), code(*HEAD, f"        return x + {MOVED}"), code("def"))
    before = path.read_bytes()
    assert check(path) == 2
    shown = capsys.readouterr().out
    assert f"{path}:cell 3:3:20: LCH204" in shown
    assert f"error: {path}: cell 2, line 2: syntax error: expected ':' (and 1 more)" in shown
    assert check(path, "--fix", "-q") == 2
    assert path.read_bytes() == before.replace(MOVED.encode(), CREATED.encode())


def test_cells_that_do_not_parse_are_named_where_nothing_is_hot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.ipynb", code("x = 1"), code("if"))
    assert check(tmp_path) == 2
    assert "a.ipynb: cell 2, line 1: syntax error" in capsys.readouterr().out


def test_odd_but_valid_notebooks_are_read() -> None:
    """Empty ones, sources of one string, worksheets as before format 4, form feeds, escapes, and keys that come twice."""
    assert source().text == ""
    assert source(code(), code("x"), code()).text == "\n\f\nx\n\f\n"
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y"]}]}, {"cells": []}]}
    assert read("a.ipynb", json.dumps(old).encode()).text == "x = 1\ny"
    assert "\n\f\f\n" in source(code("a\f"), code("b")).text
    twice = b'{"cells": [], "cells": [{"cell_type": "code", "source": "\\u0078\\n\\ud83d\\ude80 = 1", "source": "\\u0078 = 1"}]}'
    assert read("a.ipynb", twice).text == "x = 1"


def test_places_in_the_json_count_escapes() -> None:
    raw = b'{"cells": [{"cell_type": "code", "source": ["\\u0061 = \'\\ud83d\\ude80\\t\\"\'; ", "b = 2\\n", "c = 3"]}]}'
    book = read("a.ipynb", raw)
    for name in "bc":
        json_text, span = book.on_disk(book.span(book.tree.body["abc".index(name)]))
        assert json_text.text[span.start] == name


def test_a_text_whose_cells_cannot_be_told_apart_is_not_written() -> None:
    book = source(code("a"), code("b"))
    with pytest.raises(SourceError, match="told apart"):
        book.encode("a\nb")


def test_why_takes_a_place_as_it_is_shown(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (f"{notebook}:cell 5:4", f"{notebook}:5:4"):
        assert cli.main(["why", "--isolated", place]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{notebook}:cell 5:4: return x + {MOVED}\n")
        assert "chain: Net.forward -> pack" in said and "from parameter x: torch.Tensor (line 3 of cell 5)" in said
    for place, reason in (
        (f"{notebook}:4", "FILE:CELL:LINE"),
        (f"{notebook}:5:9", "no line 9"),
        (f"{notebook}:3:1", "cell 3 has no line 1"),
    ):
        assert cli.main(["why", "--isolated", place]) == 2
        assert reason in capsys.readouterr().err

"""The parts of the ecosystem run that need no wheel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.ecosystem import run
from tests.ecosystem.run import Label, Mark, Place, Wheel

HOT = "import torch\n\n\nclass Layer(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda().sum().item()\n"


def place(line: int, text: str = "x.item()", code: str = "LCH301", path: str = "a/b.py", covers: tuple[int, ...] = ()) -> Place:
    return Place(path, code, line, run.hash_of(text), covers=covers)


def label(line: int, verdict: str = "cost", code: str = "LCH301", path: str = "a/b.py") -> Label:
    return Label("toy-1.0", code, path, line, run.hash_of("x.item()"), verdict, "because")


def test_a_hash_sees_words_and_no_white_space() -> None:
    assert run.hash_of("    x  =  y.item()\r") == run.hash_of("x = y.item()")
    assert run.hash_of("x = y.item()") != run.hash_of("x = z.item()")
    assert len(run.hash_of("\udc80")) == 16, "bytes that are no UTF-8 have a hash too"


def test_equal_lines_are_told_apart_by_their_order() -> None:
    marks = run.marks_of([place(9), place(4), place(7, "y.item()"), place(2, code="LCH302")])
    assert {(mark.code, mark.occurrence, found.line) for mark, found in marks.items()} == {
        ("LCH301", 1, 4), ("LCH301", 2, 9), ("LCH301", 1, 7), ("LCH302", 1, 2),
    }  # fmt: skip


def test_moved_code_keeps_its_marks() -> None:
    assert set(run.marks_of([place(4), place(9)])) == set(run.marks_of([place(104), place(209)]))


def test_a_baseline_is_read_back() -> None:
    marks = set(run.marks_of([place(4), place(9), place(1, path="with space/c.py")]))
    text = run.render(marks)
    assert run.parse(text) == marks
    assert text == run.render(sorted(marks, reverse=True)), "the order is fixed"
    assert "x.item()" not in text, "no source"
    with pytest.raises(ValueError):
        Mark.parse("a/b.py LCH301")


def test_a_mark_finds_its_line_again() -> None:
    text = "x.item()\nother\n    x.item()\n"
    assert [run.line_of(mark, text) for mark in sorted(run.marks_of([place(1), place(3)]))] == [1, 3]
    assert run.line_of(Mark("a/b.py", "LCH301", run.hash_of("gone"), 1), text) == 0


def test_changes_are_counted_per_rule() -> None:
    old = run.marks_of([place(1), place(5, "z.cpu()", "LCH302")])
    new = run.marks_of([place(2), place(3), place(8, "w.any()", "LCH303")])
    assert run.changes_per_rule(old, new) == [("LCH301", 1, 0, 2), ("LCH302", 0, 1, 0), ("LCH303", 1, 0, 1)]
    assert run.changes_per_rule(old, old) == []


def test_labels_that_fire_no_more_say_what_became_of_them() -> None:
    labels = [label(1), label(2, "harmless"), label(3, "false alarm"), label(4), label(1, path="a/c.py")]
    found = [place(1, covers=(3,)), place(2, code="LCH304"), place(9)]
    fires, gone = run.sort_labels(labels, found)
    assert fires == [labels[0]]
    assert gone == {labels[1]: "now LCH304", labels[2]: "shown with line 1, LCH301", labels[3]: "", labels[4]: ""}


def test_shares_per_rule() -> None:
    labels = [label(1), label(2), label(3, "harmless"), label(4, "false alarm", "LCH302")]
    assert run.shares(labels, "code") == [("LCH301", Counter({"cost": 2, "harmless": 1})), ("LCH302", Counter({"false alarm": 1}))]
    assert run.in_words({"cost": 3, "false alarm": 1}) == "  3 cost ( 75%),   0 harmless (  0%),   1 false alarm ( 25%)"
    assert "nan" not in run.in_words({})


def test_an_entry_is_read_back_as_a_label() -> None:
    text = run.entry("toy-1.0", Place('a/"b".py', "LCH301", 7, "0" * 16, "said \\ so"))
    (read,) = run.read_labels(text.replace('verdict = ""', 'verdict = "cost"'))
    assert read == Label("toy-1.0", "LCH301", 'a/"b".py', 7, "0" * 16, "cost", "")
    with pytest.raises(ValueError, match="no such verdict"):
        run.read_labels(text)


def test_a_wheel_is_checked_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands, on a folder that stands for an unpacked wheel."""
    monkeypatch.setenv("LAUNCHLINT_CORPUS", str(tmp_path))
    monkeypatch.setattr(run, "HERE", tmp_path)
    file = tmp_path / "toy-1.0" / "toy" / "layer.py"
    file.parent.mkdir(parents=True)
    file.write_text(HOT)
    (tmp_path / "toy-1.0" / ".complete").touch()
    wheel = Wheel("toy", "1.0", run.digest(tmp_path / "toy-1.0"))
    (tmp_path / "wheels.toml").write_text(
        f'[download]\n[[wheel]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\nsources = "{wheel.sources}"\n'
    )
    assert run.main(["fetch"]) == 0, "what is there is not downloaded again"
    assert run.main(["baseline", "--jobs", "1"]) == 0
    assert run.main(["diff", "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    (found,) = run.check(wheel, 1)
    assert (found.path, found.line, found.hash) == ("toy/layer.py", 6, run.hash_of("return x.cuda().sum().item()"))
    assert "toy-1.0: 1 findings before, 1 now" in said

    (tmp_path / "labels.toml").write_text(run.entry("toy-1.0", found).replace('verdict = ""', 'verdict = "cost"'))
    assert run.main(["labels", "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert "among 1 labels that still fire" in said
    assert "  toy-1.0                    1 cost (100%)" in said
    assert "silent, 0                    0 cost (  0%)" in said
    assert run.main(["sample", "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "", "what has a label is not drawn"

    file.write_text(HOT.replace(".item()", ""))
    assert run.main(["diff", "--jobs", "1"]) == 1
    assert f"  {found.code} +0 -1 = 0\n  - toy/layer.py:0 {found.code}\n" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="not the pinned sources"):
        run.main(["fetch"])


def test_labels_in_the_project_are_well_formed() -> None:
    labels = run.read_labels((run.HERE / "labels.toml").read_text(encoding="utf-8"))
    titles = {wheel.title for wheel in run.read_wheels()[1]}
    assert min(Counter(label.package for label in labels).values()) >= 40
    assert {label.package for label in labels} <= titles
    places = [(label.package, label.code, label.path, label.line) for label in labels]
    assert len(set(places)) == len(places)
    assert all(label.reason and len(label.hash) == 16 for label in labels)


def test_every_wheel_has_a_baseline_of_known_rules() -> None:
    from launchlint import registry

    for wheel in run.read_wheels()[1]:
        marks = run.parse(wheel.baseline.read_text(encoding="utf-8"))
        assert marks and {mark.code for mark in marks} <= registry.load().keys()

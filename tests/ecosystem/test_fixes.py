"""The fixing of trees, on a tree of two files."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchlint.model import Applicability, Confidence, Finding, Related, Span
from launchlint.source import Source
from tests.ecosystem import fixes
from tests.ecosystem.fixes import Outcome, Shown, Tally

SAFE_AND_UNSAFE = """\
import torch


class Layer(torch.nn.Module):
    def forward(self, x, lengths: list[int]):
        zero = torch.tensor([0], dtype=torch.int32, device="cuda")
        return torch.tensor(lengths, dtype=torch.int32, device="cuda") + zero
"""


def found(code: str, start: int = 0, *, related: int | None = None) -> Finding:
    places = () if related is None else (Related(Span(related, related + 5), "also a read per element"),)
    return Finding(code, Span(start, start + 5), "", Confidence.HIGH, related=places)


def test_a_finding_is_known_by_what_it_points_at_wherever_that_moves() -> None:
    before, after = Source("a.py", "x = 1\n"), Source("a.py", "import torch\n\n  x = 1; y\n")
    assert fixes.shown(before, [found("LCH301", 0)]) == fixes.shown(after, [found("LCH301", 16)]) == {Shown("LCH301", "x = 1"): 1}


def test_what_is_folded_into_a_finding_is_known() -> None:
    assert fixes.covered(Source("a.py", "x = 1\ny = 2\n"), [found("LCH301", 0, related=6)]) == {"y = 2"}


@pytest.mark.parametrize(("left", "expected"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_a_finding_stays_where_more_are_left_than_were_not_fixed(left: int, expected: int) -> None:
    after = [found("LCH201")] * left + [found("LCH301")] * 5
    assert fixes.stayed([found("LCH201")] * 2, [found("LCH201")], after)["LCH201"] == expected
    assert fixes.stayed([], [found("LCH201")], after)["LCH301"] == 0, "a rule that fixed nothing"


def test_what_was_folded_into_a_fixed_finding_is_not_one_that_stays() -> None:
    leader = found("LCH307", related=6)
    assert not fixes.stayed([leader], [leader], [found("LCH307", 6)])
    assert fixes.stayed([leader], [leader], [found("LCH307", 6), found("LCH307", 0)]) == {"LCH307": 1}


def test_the_table_has_a_line_for_each_rule_and_one_for_all() -> None:
    outcome = Outcome({"LCH206": Tally(1, 2, {"a.py"}), "LCH101": Tally(0, 3, {"a.py", "b.py"}, left=1)})
    assert [line.split() for line in fixes.table(outcome).splitlines()] == [
        list(fixes.COLUMNS),
        ["LCH101", "0", "3", "2", "0", "1", "0"],
        ["LCH206", "1", "2", "1", "0", "0", "0"],
        ["all", "1", "5", "2", "0", "1", "0"],
    ]
    assert not outcome.is_clean


def test_a_tree_is_fixed_in_a_copy(tmp_path: Path) -> None:
    package = tmp_path / "toy" / "layers"
    package.mkdir(parents=True)
    (package / "hot.py").write_bytes(SAFE_AND_UNSAFE.encode())
    (package / "cold.py").write_bytes(b"x = 1")
    outcome = fixes.fix_tree(tmp_path / "toy", jobs=1)
    assert outcome.is_clean and not outcome.new
    assert {code: (tally.safe, tally.unsafe) for code, tally in outcome.rules.items()} == {"LCH106": (1, 0), "LCH201": (0, 1)}
    assert b'+        zero = torch.full((1,), 0, dtype=torch.int32, device="cuda")' in outcome.patches[Applicability.SAFE]
    assert b"pin_memory=True" in outcome.patches[Applicability.UNSAFE]
    assert (package / "hot.py").read_bytes() == SAFE_AND_UNSAFE.encode(), "the tree itself is left alone"


def test_a_patch_that_gives_other_bytes_is_a_problem(tmp_path: Path) -> None:
    for name, text in (("old", "x = 1\n"), ("new", "x = 3\n"), ("other", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(text, encoding="utf-8")
    patch = b"--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n-x = 1\n+x = 2\n"
    roots = (tmp_path / "old", tmp_path / "new", tmp_path / "other")
    assert fixes.check_patches(*roots, ["a.py"], [patch]) == ["a.py: the patch gives other bytes"]
    assert fixes.check_patches(*roots, ["a.py"], [patch.replace(b"-x = 1", b"-y = 1")])[0].startswith("git apply:")

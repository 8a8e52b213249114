"""Fixing a file in memory: what is applied, in which order, and what makes the whole file stay as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import pytest

from launchlint.fixes import MAX_ROUNDS, fix_source
from launchlint.fixes.untouched import same
from launchlint.model import Applicability, Confidence, Edit, Finding, Fix, Span
from launchlint.settings import Settings
from launchlint.source import Source

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
Check = Callable[[Source], list[Finding]]


def source(text: str | bytes) -> Source:
    return Source.from_bytes("some.py", text if isinstance(text, bytes) else text.encode())


def finding(
    start: int, end: int, text: str, applicability: Applicability = SAFE, code: str = "LCH901", imports: tuple[str, ...] = ()
) -> Finding:
    fix = Fix("test", (Edit(Span(start, end), text),), applicability, imports)
    return Finding(code, Span(start, end), "test", Confidence.HIGH, fix=fix)


def replacer(old: str, new: str, applicability: Applicability = SAFE, code: str = "LCH901", imports: tuple[str, ...] = ()) -> Check:
    """Offers to replace every `old`."""

    def check(current: Source) -> list[Finding]:
        return [finding(*found.span(), new, applicability, code, imports) for found in re.finditer(re.escape(old), current.text)]

    return check


def fixed(text: str | bytes, check: Check, floor: Applicability = SAFE, settings: Settings | None = None) -> str:
    done = fix_source(source(text), check, floor, settings or Settings())
    assert not done.problems
    return done.text


# -------------------------------------------------------------------- what is applied


@pytest.mark.parametrize(
    ("offered", "floor", "applied"),
    [
        (SAFE, SAFE, True),
        (UNSAFE, SAFE, False),
        (UNSAFE, UNSAFE, True),
        (SAFE, UNSAFE, True),
        (DISPLAY, SAFE, False),
        (DISPLAY, UNSAFE, False),
    ],
)
def test_a_fix_is_applied_from_its_floor_on(offered: Applicability, floor: Applicability, applied: bool) -> None:
    assert (fixed("x = old\n", replacer("old", "new", offered), floor) == "x = new\n") is applied


def test_a_fix_that_is_only_shown_is_never_applied_even_if_asked() -> None:
    assert fixed("x = old\n", replacer("old", "new", DISPLAY), DISPLAY) == "x = old\n"
    assert fixed("x = old\n", replacer("old", "new", DISPLAY), SAFE, Settings(extend_safe_fixes=("LCH901",))) == "x = old\n"


@pytest.mark.parametrize("word", ["LCH901", "LCH9", "ALL"])
def test_the_user_decides_what_counts_as_safe(word: str) -> None:
    assert fixed("x = old\n", replacer("old", "new", UNSAFE), SAFE, Settings(extend_safe_fixes=(word,))) == "x = new\n"
    assert fixed("x = old\n", replacer("old", "new", SAFE), SAFE, Settings(extend_unsafe_fixes=(word,))) == "x = old\n"


def test_unsafe_wins_where_both_lists_name_a_rule() -> None:
    settings = Settings(extend_safe_fixes=("LCH9",), extend_unsafe_fixes=("LCH901",))
    assert fixed("x = old\n", replacer("old", "new", SAFE), SAFE, settings) == "x = old\n"


def test_all_edits_of_a_fix_are_applied() -> None:
    text = "a = 1\nb = 2\n"
    both = Fix("test", (Edit(Span(4, 5), "b0"), Edit(Span(10, 11), "a0")), SAFE)

    def check(current: Source) -> list[Finding]:
        return [Finding("LCH901", Span(4, 5), "test", Confidence.HIGH, fix=both)] if current.text == text else []

    assert fixed(text, check) == "a = b0\nb = a0\n"


def test_a_safe_fix_that_would_take_a_comment_away_is_not_safe() -> None:
    text = "x = f(\n    1,  # why one\n)\n"
    check = replacer("f(\n    1,  # why one\n)", "g(1)")
    assert fixed(text, check) == text
    assert fixed(text, check, UNSAFE) == "x = g(1)\n"
    kept = replacer("f(\n    1,  # why one\n)", "g(1)  # why one")
    assert fixed(text, kept) == "x = g(1)  # why one\n"


def test_a_hash_in_a_string_is_no_comment() -> None:
    assert fixed('x = f("# no")\n', replacer('f("# no")', "g()")) == "x = g()\n"


# -------------------------------------------------------------------- overlap and rounds


def test_of_two_overlapping_fixes_the_first_wins_and_the_other_waits() -> None:
    seen: list[str] = []

    def check(current: Source) -> list[Finding]:
        seen.append(current.text)
        outer = [finding(*found.span(), "outer(inner)", code="LCH901") for found in re.finditer(r"f\(inner\)", current.text)]
        inner = [finding(*found.span(), "done", code="LCH902") for found in re.finditer("inner", current.text)]
        return inner + outer

    done = fix_source(source("x = f(inner)\n"), check, SAFE, Settings())
    assert done.text == "x = outer(done)\n"
    assert [item.code for item in done.applied] == ["LCH901", "LCH902"]
    assert done.rounds == 2
    assert seen == ["x = f(inner)\n", "x = outer(inner)\n", "x = outer(done)\n"]


def test_a_fix_with_one_overlapping_edit_waits_as_a_whole() -> None:
    text = "a = old\nb = old\n"
    pair = Fix("test", (Edit(Span(4, 7), "p1"), Edit(Span(12, 15), "p2")), SAFE)

    def check(current: Source) -> list[Finding]:
        if current.text != text:
            return []
        return [finding(4, 7, "first"), Finding("LCH902", Span(4, 15), "test", Confidence.HIGH, fix=pair)]

    assert fixed(text, check) == "a = first\nb = old\n"


def test_fixes_that_never_settle_leave_the_file_alone() -> None:
    def grow(current: Source) -> list[Finding]:
        return [finding(4, 4, "-")]

    done = fix_source(source("x = 1\n"), grow, SAFE, Settings())
    assert done.text == "x = 1\n"
    assert not done.applied
    assert f"did not settle after {MAX_ROUNDS} rounds" in str(done.problems[0])
    assert "LCH901" in str(done.problems[0])


def test_fixes_that_undo_each_other_leave_the_file_alone() -> None:
    def swap(current: Source) -> list[Finding]:
        return [finding(4, 5, "2" if "1" in current.text else "1")]

    done = fix_source(source("x = 1\n"), swap, SAFE, Settings())
    assert done.text == "x = 1\n"
    assert "undo each other" in str(done.problems[0])


def test_a_second_run_changes_nothing() -> None:
    check = replacer("old", "new")
    once = fixed("x = [old, old]\n", check)
    assert fixed(once, check) == once == "x = [new, new]\n"


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = old\ny = 2\n", "old", "(1"),
        ("x = old\ny = 2\n", "old", '"""'),
        ("if x:\n    a()\n    old()\nb()\n", "    old()\nb()", "old()\n    b()"),
    ],
)
def test_a_fix_after_which_the_text_does_not_parse_is_refused(text: str, old: str, new: str) -> None:
    done = fix_source(source(text), replacer(old, new), SAFE, Settings())
    assert done.text == text
    assert "not fixed (LCH901)" in str(done.problems[0])


BEYOND = [
    ("x = old; y = 2\n", "old", "1 #"),  # hides the next statement
    ("if x:\n    a()\n    old()\n    b()\n", "    old()\n", "if y:\n"),  # b moves into another block
    ("if x:\n    old()\n    b()\n", "old()", "new()\nelse:\n    c()"),
    ("if x:\n    old()\n    b()\nelse:\n    c()\n", "old()", "new()\nelif y:\n    d()"),
    ("try:\n    old()\n    b()\nexcept A:\n    c()\n", "old()", "new()\nexcept B:\n    d()"),
    ("def f():\n    old()\n    return 1\n", "old()", "new()\ndef g():\n    pass"),
    ("for x in y:\n    old()\n    b()\n", "old()\n", "new()\nfor z in y:\n"),
    ("match x:\n    case 1:\n        old()\n        b()\n", "old()", "new()\n    case 2:\n        c()"),
]


@pytest.mark.parametrize(("text", "old", "new"), BEYOND)
def test_a_fix_that_changes_another_statement_is_refused(text: str, old: str, new: str) -> None:
    assert ast.parse(text.replace(old, new))  # parsing alone would let it through
    done = fix_source(source(text), replacer(old, new), SAFE, Settings())
    assert done.text == text
    assert "a statement outside the fix would change" in str(done.problems[0])


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = old\ny = 2\n", "x = old", "x = 1\nz = 3"),
        ("if x:\n    old()\n    b()\n", "    old()\n", ""),
        ("if x:\n    a()\n    old()\nb()\n", "    old()\n", "    c()\n    d()\n"),
        ("@old\ndef f(): pass\ny = 2\n", "old", "new"),
        ("class A:\n    def f(self):\n        return old\n\n    def g(self): pass\n", "old", "(1\n + 2)"),
        ("match x:\n    case 1:\n        old()\n    case _:\n        b()\n", "old()", "new()"),
        ("with a as b:\n    async def f():\n        async with c: old()\n", "old()", "new(); b()"),
    ],
)
def test_a_fix_that_changes_its_own_statements_is_taken(text: str, old: str, new: str) -> None:
    assert fixed(text, replacer(old, new)) == text.replace(old, new)


def test_fixed_code_that_the_encoding_of_the_file_lacks_is_refused() -> None:
    text = "# coding: latin-1\nx = 'ä' + old\n".encode("latin-1")
    done = fix_source(source(text), replacer("old", "'€'"), SAFE, Settings())
    assert "cannot be written in iso-8859-1" in str(done.problems[0])


def test_a_deep_expression_elsewhere_does_not_matter() -> None:
    deep = " + ".join(["1"] * 2500)
    assert fixed(f"y = {deep}\nx = old\n", replacer("old", "new")) == f"y = {deep}\nx = new\n"


def test_numbers_that_python_does_not_print_do_not_matter() -> None:
    text = f"y = [0x{'f' * 5000}, 1e999 - 1e999, -0.0, 2j, True, ...]\nx = old\n"
    assert fixed(text, replacer("old", "new")) == text.replace("old", "new")


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("1", "True"), ("'a'", "b'a'"), ("0.0", "0"), ("1e400", "1e300"), ("2", "0x3")])
def test_literals_are_told_apart(one: str, other: str) -> None:
    assert not same(ast.parse(one), ast.parse(other))
    assert same(ast.parse(one), ast.parse(f"({one})"))


# -------------------------------------------------------------------- bytes


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_inserted_lines_end_as_the_lines_there_do(newline: str) -> None:
    text = f"a = 1{newline}x = old{newline}b = 2"
    expected = f"a = 1{newline}x = 1{newline}y = 2{newline}b = 2"
    assert fixed(text, replacer("old", "1\ny = 2")) == expected


def test_mixed_line_ends_are_kept_where_nothing_is_edited() -> None:
    assert fixed("a = 1\nx = old\r\nb = 2\n", replacer("old", "1\ny = 2")) == "a = 1\nx = 1\r\ny = 2\r\nb = 2\n"


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfx = '\xc3\xa4', old\r\n# \xe2\x82\xac", b"# coding: latin-1\r\nx = '\xe4', old\n# \xe4 \t"])
def test_bytes_outside_the_edits_are_identical(data: bytes) -> None:
    given = source(data)
    done = fix_source(given, replacer("old", "new"), SAFE, Settings())
    assert given.encode(done.text) == data.replace(b"old", b"new")


# -------------------------------------------------------------------- imports


IMPORTS = [
    ("x = old\n", "from a import b\nx = b\n"),
    ('"""Doc."""\nx = old\n', '"""Doc."""\nfrom a import b\nx = b\n'),
    ('"""Doc."""; y = 1\nx = old\n', '"""Doc."""; y = 1\nfrom a import b\nx = b\n'),
    ("from __future__ import annotations\nx = old\n", "from __future__ import annotations\nfrom a import b\nx = b\n"),
    ("import torch\n\nx = old\n", "import torch\nfrom a import b\n\nx = b\n"),
    ("import torch; y = (\n 1)\nx = old\n", "import torch; y = (\n 1)\nfrom a import b\nx = b\n"),
    ("from q import (\n    r,\n)\nx = old\n", "from q import (\n    r,\n)\nfrom a import b\nx = b\n"),
    ("from a import b\nx = old\n", "from a import b\nx = b\n"),
    ("# licence\nx = old\n", "# licence\nfrom a import b\nx = b\n"),
    ("@old\ndef f(): pass\n", "from a import b\n@b\ndef f(): pass\n"),
    ("import torch\r\nx = old", "import torch\r\nfrom a import b\r\nx = b"),
    ("x = old", "from a import b\nx = b"),
]


@pytest.mark.parametrize(("text", "expected"), IMPORTS)
def test_a_missing_import_goes_behind_docstring_and_future(text: str, expected: str) -> None:
    assert fixed(text, replacer("old", "b", imports=("from a import b",))) == expected


def test_an_import_that_two_fixes_need_is_added_once() -> None:
    assert (
        fixed("import torch\nx = [old, old]\n", replacer("old", "b", imports=("from a import b",)))
        == "import torch\nfrom a import b\nx = [b, b]\n"
    )


@pytest.mark.parametrize("other", ["b = 1", "from c import b", "import b", "def b(): pass", "def f(b): pass", "class b: pass"])
def test_a_fix_is_left_out_where_its_import_has_another_meaning(other: str) -> None:
    text = f"{other}\nx = old\n"
    assert fixed(text, replacer("old", "b", imports=("from a import b",))) == text


def test_an_import_inside_a_branch_does_not_count() -> None:
    text = "if TYPE_CHECKING:\n    from a import b\nx = old\n"
    assert fixed(text, replacer("old", "b", imports=("from a import b",))).startswith(
        "from a import b\nif TYPE_CHECKING:\n    from a import b\n"
    )


def test_submodules_of_one_package_share_their_name() -> None:
    check = replacer("old", "p.b()", imports=("import p.b",))
    assert fixed("import p.a\nx = old\n", check) == "import p.a\nimport p.b\nx = p.b()\n"

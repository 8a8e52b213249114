"""The rewrite of the running-offset fill loop, executed beside the original."""

from __future__ import annotations

import ast
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from launchlint.rules.lch101_slice_fill_loop.fix import rewrite
from launchlint.rules.lch101_slice_fill_loop.running_offset import running_offset

from launchlint.fixes import Fixed, fix_source
from launchlint.model import Applicability, Fix
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.context import PlainContext, checker
from tests.fixes.execution import assert_same, define, run

HEADS = {
    "enumerate": ("for i, count in enumerate(counts):", "count"),
    "enumerate from 3": ("for i, count in enumerate(counts, 3):", "count"),
    "enumerate start": ("for i, count in enumerate(counts, start=1):", "count"),
    "range": ("for i in range(len(counts)):", "counts[i]"),
    "range, named": ("for i in range(len(counts)):\n        count = counts[i]", "count"),
    "zip": ("for i, count in zip(ids, counts):", "count"),
    "zip strict": ("for i, count in zip(ids, counts, strict=True):", "count"),
}
SHIFTED = ("i", "i + first", "first + i", "i - first", "i + 2", "i + first * 2")
VALUES: dict[str, tuple[str, ...]] = {name: ("i",) if name.startswith("zip") else SHIFTED for name in HEADS}
VALUES |= {"range": (*SHIFTED, "ids[i]"), "enumerate": (*SHIFTED, "ids[i]")}
BODIES = {
    "guarded": "if {count} > 0:\n            {store}\n            offset += {count}",
    "advance outside": "if {count} != 0:\n            {store}\n        offset += {count}",
    "truth": "if {count}:\n            {store}\n        offset = offset + {count}",
    "continue": "if {count} == 0:\n            continue\n        {store}\n        offset += {count}",
    "continue not": "if not {count}:\n            continue\n        {store}\n        offset += {count}",
    "no guard": "{store}\n        offset += {count}",
    "end": "end = offset + {count}\n        out[offset:end] = {value}\n        offset = end",
    "start follows": "start, offset = offset, offset + {count}\n        out[start:offset] = {value}",
    "one line": "{store}; offset += {count}",
}
STORES = ("out[offset : offset + {count}].fill_({value})", "out[offset:{count} + offset] = {value}")
MAKERS = {
    "empty": "torch.empty(total, dtype=torch.int64, device=like.device)",
    "zeros, int32": "torch.zeros((total,), dtype=torch.int32, device=like.device)",
    "default dtype": "torch.empty([total], device=like.device)",
    "default device": "torch.empty(size=(total,), dtype=torch.long)",
    "sum": "torch.ones(sum(counts), dtype=torch.int16, device=like.device)",
    "new": "like.new_empty(total)",
    "new, typed": "like.new_zeros(total, dtype=torch.int32)",
}
MODULE = """
import torch

def fill(counts: list, ids: list, first: int, like: torch.Tensor):
    total = sum(counts)
    out = {make}
    offset = 0
    {head}
        {body}
    return out
"""
SHAPES = [
    (head, body, store, value, make)
    for head in HEADS
    for body, store in itertools.product(BODIES, STORES)
    for value in VALUES[head]
    for make in MAKERS
]
counts_lists = st.lists(st.one_of(st.just(0), st.integers(0, 6)), max_size=12)


def text_of(head: str, body: str, store: str, value: str, make: str) -> str:
    line, count = HEADS[head]
    stored = store.format(count=count, value=value)
    inside = BODIES[body].format(count=count, value=value, store=stored)
    if body == "one line":
        inside = BODIES[body].format(count=count, value=value, store=stored)
    return MODULE.format(make=MAKERS[make], head=line, body=inside)


def fixed(text: str, options: Settings | None = None, path: str = "some.py") -> Fixed:
    options = options or Settings()
    return fix_source(Source.from_bytes(path, text.encode()), checker("LCH101", rewrite, ast.For, options), Applicability.UNSAFE, options)


def only_fix(text: str, options: Settings | None = None) -> Fix | None:
    """What the rewrite offers for the first loop of a module."""
    source = Source.from_bytes("some.py", text.encode())
    function = next(node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    loop = next(node for node in ast.walk(function) if isinstance(node, ast.For | ast.AsyncFor))
    fix: Fix | None = rewrite(loop, PlainContext.of(source, function, options or Settings()))
    return fix


# -------------------------------------------------------------------- every spelling, executed


@settings(max_examples=250, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    counts=counts_lists,
    first=st.integers(-3, 70),
    like=st.sampled_from([torch.int64, torch.int32, torch.float32]),
    surplus=st.integers(0, 2),
)
def test_the_rewrite_gives_the_same_tensor_with_fewer_operators(
    shape: tuple[str, str, str, str, str], counts: list[int], first: int, like: torch.dtype, surplus: int
) -> None:
    text = text_of(*shape)
    done = fixed(text)
    assert not done.problems
    assert len(done.applied) == 1, text
    assert "for " not in done.text
    assert "offset" not in done.text
    spare = 0 if "strict" in shape[0] else surplus  # ids that no count belongs to
    ids = [(7 * position + first) % 50 for position in range(len(counts) + spare)]
    example = torch.zeros(2, dtype=like)
    before, operators_before = run(define(text, "fill"), counts, ids, first, example)
    after, operators_after = run(define(done.text, "fill"), counts, ids, first, example)
    assert_same(before, after)
    filled = sum(count > 0 for count in counts)
    if filled > 6:  # two operators for each filled slice, against a number that does not grow
        assert operators_after < operators_before
    assert operators_after <= 12


def test_the_number_of_operators_does_not_grow_with_the_number_of_slices() -> None:
    text = text_of("enumerate", "guarded", STORES[0], "i + first", "empty")
    operators = {}
    for name, code in (("loop", text), ("fixed", fixed(text).text)):
        operators[name] = [run(define(code, "fill"), [1] * length, [], 5, torch.zeros(1))[1] for length in (8, 256)]
    assert operators["loop"][1] - operators["loop"][0] == 2 * (256 - 8)
    assert operators["fixed"][0] == operators["fixed"][1] < operators["loop"][0]


# -------------------------------------------------------------------- how it is written


CANONICAL = """
import torch

def f(counts: list[int], first, device):
    total = sum(counts)
    if total > 0:
        ids = torch.empty(total, dtype=torch.int64, device=device)
        offset = 0
        for i, count in enumerate(counts):
            if count > 0:
                ids[offset : offset + count].fill_(i + first)
                offset += count
    else:
        ids = torch.empty(0, dtype=torch.int64, device=device)
    return ids.unsqueeze(1)
"""


def test_the_branch_without_rows_stays_as_it_is() -> None:
    before, after = CANONICAL.splitlines(), fixed(CANONICAL).text.splitlines()
    assert after[:6] == before[:6]
    assert after[-3:] == before[-3:]
    assert fixed(CANONICAL).text == CANONICAL.replace(
        CANONICAL[CANONICAL.index("        ids = torch.empty(total") : CANONICAL.index("    else:")],
        """        ids = torch.repeat_interleave(
            torch.arange(first, first + len(counts), dtype=torch.int64, device=device),
            torch.tensor(counts, dtype=torch.int64, pin_memory=True).to(
                device, non_blocking=True
            ),
            output_size=total,
        )
""",
    )


@pytest.mark.parametrize(
    ("options", "upload"),
    [
        (Settings(pin_memory="True"), "torch.tensor(counts, dtype=torch.int64, pin_memory=True).to(device, non_blocking=True)"),
        (Settings(pin_memory="off"), "torch.tensor(counts, dtype=torch.int64).to(device, non_blocking=True)"),
        (Settings(pin_memory=""), "torch.tensor(counts, dtype=torch.int64).to(device, non_blocking=True)"),
        (Settings(pin_memory="a.b.PIN"), "torch.tensor(counts, dtype=torch.int64, pin_memory=PIN).to(device, non_blocking=True)"),
        (Settings(h2d_helper="a.b.upload"), "upload(counts, dtype=torch.int64, device=device)"),
    ],
)
def test_the_counts_are_staged_as_configured(options: Settings, upload: str) -> None:
    text = fixed(CANONICAL, options).text
    assert ast.unparse(ast.parse(upload)) in ast.unparse(ast.parse(text))
    assert ("from a.b import PIN\n" in text) == (options.pin_memory == "a.b.PIN")
    assert ("from a.b import upload\n" in text) == bool(options.h2d_helper)


def test_a_pin_expression_that_the_file_does_not_know_is_not_written() -> None:
    assert fixed(CANONICAL, Settings(pin_memory="PIN_MEMORY")).text == CANONICAL
    known = CANONICAL.replace("import torch\n", "import torch\nPIN_MEMORY = False\n")
    assert "pin_memory=PIN_MEMORY" in fixed(known, Settings(pin_memory="PIN_MEMORY")).text


@pytest.mark.parametrize(("spelled", "name"), [("import torch as t", "t."), ("from torch import empty, int64", "")])
def test_torch_is_spelled_as_the_file_spells_it(spelled: str, name: str) -> None:
    text = CANONICAL.replace("import torch", spelled).replace("torch.", name).replace("import t.", "import torch.")
    done = fixed(text.replace(f"{spelled.replace('torch', name)}", spelled))
    module = "t" if name else "torch"
    assert f"ids = {module}.repeat_interleave(" in done.text
    assert ("\nimport torch\n" in done.text) == (not name)


def test_data_of_which_nothing_is_known_is_made_a_list_before_it_is_pinned() -> None:
    """torch.tensor refuses to pin what it makes from a numpy array."""
    assert "torch.tensor(list(counts), dtype=torch.int64, pin_memory=True)" in fixed(CANONICAL.replace(": list[int]", "")).text


def test_tabs_crlf_and_a_missing_final_newline_stay() -> None:
    text = CANONICAL.replace("    ", "\t").rstrip("\n").replace("\n", "\r\n")
    done = fixed(text).text
    assert "\t\tids = torch.repeat_interleave(\r\n\t\t\ttorch.arange(" in done
    assert "\n" not in done.replace("\r\n", "")
    assert not done.endswith("\n")


def test_an_annotation_stays() -> None:
    assert (
        "ids: torch.Tensor = torch.repeat_interleave("
        in fixed(CANONICAL.replace("ids = torch.empty(total", "ids: torch.Tensor = torch.empty(total")).text
    )


def test_comments_are_kept_above_the_new_statement() -> None:
    text = CANONICAL.replace("        offset = 0\n", "        offset = 0  # first row\n        # one slice per expert\n")
    text = text.replace("if count > 0:\n", "if count > 0:  # skip empty ones\n")
    done = fixed(text).text
    assert "        # first row\n        # one slice per expert\n        # skip empty ones\n        ids = torch.repeat_interleave(" in done


def test_a_target_that_is_made_before_the_branch_serves_the_case_of_no_rows() -> None:
    text = """
import torch

def f(counts: list[int], device):
    total = sum(counts)
    ids = torch.zeros(total, dtype=torch.int64, device=device)
    if total > 0:
        start = 0
        for expert, n in enumerate(counts):
            ids[start : start + n] = expert
            start += n
    return ids
"""
    done = fixed(text)
    assert (
        "ids = torch.zeros(total, dtype=torch.int64, device=device)\n    if total > 0:\n        ids = torch.repeat_interleave(" in done.text
    )
    for counts in ([], [0, 0], [3], [0, 2, 0, 1]):
        assert_same(run(define(text, "f"), counts, torch.device("cpu"))[0], run(define(done.text, "f"), counts, torch.device("cpu"))[0])


def test_statements_between_are_left_where_they_are() -> None:
    text = CANONICAL.replace("        offset = 0\n", "        limit = first * 2\n        offset = 0\n")
    done = fixed(text).text
    assert "    if total > 0:\n        limit = first * 2\n        ids = torch.repeat_interleave(" in done


# -------------------------------------------------------------------- what is not rewritten


REFUSED = {
    "else": ("    else:\n        ids = torch.empty(0", "        else:\n            print()\n    else:\n        ids = torch.empty(0"),
    "break": ("offset += count", "offset += count\n                break"),
    "return": ("offset += count", "offset += count\n                return ids"),
    "await or call in the value": ("i + first", "i + first()"),
    "value is the count": ("i + first", "count"),
    "value is the offset": ("i + first", "i + offset"),
    "value is a constant": ("i + first", "first"),
    "product": ("i + first", "i * first"),
    "float": ("i + first", "i + 0.5"),
    "something else in the body": ("offset += count", "offset += count\n                print(i)"),
    "other guard": ("count > 0", "count > 1"),
    "other step": ("offset += count", "offset += count + 1"),
    "other width": ("offset : offset + count", "offset : offset + 2"),
    "strided slice": ("offset : offset + count", "offset : offset + count : 2"),
    "other accumulation": (".fill_(i + first)", ".add_(i + first)"),
    "index used afterwards": ("return ids.unsqueeze(1)", "return ids.unsqueeze(1), i"),
    "offset used afterwards": ("return ids.unsqueeze(1)", "return ids[:offset]"),
    "count in a closure": ("return ids.unsqueeze(1)", "return lambda: count"),
    "locals": ("return ids.unsqueeze(1)", "return locals()"),
    "offset starts elsewhere": ("offset = 0", "offset = 1"),
    "offset is not set": ("        offset = 0\n", ""),
    "target longer than the counts": ("torch.empty(total", "torch.empty(total + 1"),
    "target is two-dimensional": ("torch.empty(total", "torch.empty(total, 1"),
    "target is bool": ("torch.empty(total, dtype=torch.int64", "torch.empty(total, dtype=torch.bool"),
    "target is pinned": ("torch.empty(total,", "torch.empty(total, pin_memory=True,"),
    "target wants gradients": ("torch.empty(total,", "torch.empty(total, requires_grad=True,"),
    "target is a parameter": ("        ids = torch.empty(total, dtype=torch.int64, device=device)\n", ""),
    "target is aliased": ("        offset = 0\n", "        offset = 0\n        keep = ids\n"),
    "target is handed on": ("        offset = 0\n", "        offset = 0\n        watch(ids)\n"),
    "target on the host": ("device=device)\n        offset", 'device="cpu")\n        offset'),
    "total is of other counts": ("total = sum(counts)", "total = sum(first)"),
    "total is bound twice": ("    if total > 0:", "    total = first\n    if total > 0:"),
    "counts change after the sum": ("    if total > 0:", "    counts.append(1)\n    if total > 0:"),
    "counts are bound again": ("    if total > 0:", "    counts = counts[1:]\n    if total > 0:"),
    "counts may change in a call": ("    if total > 0:", "    shuffle(counts)\n    if total > 0:"),
    "counts element stored": ("    if total > 0:", "    counts[0] = 1\n    if total > 0:"),
    "in try": ("        for i, count in enumerate(counts):", "        try:\n          for i, count in enumerate(counts):"),
    "pragma": ("if count > 0:", "if count > 0:  # noqa: SIM102"),
    "semicolon": ("        offset = 0\n", "        offset = 0; print()\n"),
    "global": ("    total = sum(counts)\n", "    global offset\n    total = sum(counts)\n"),
    "counts are a tensor": ("counts: list[int]", "counts: torch.Tensor"),
    "shift is a tensor": ("first, device", "first: torch.Tensor, device"),
    "sum is something else": ("    total = sum(counts)\n", "    total = math.fsum(counts)\n"),
    "index written": ("offset += count", "offset += count\n                i = 0"),
    "target is an attribute": ("ids[offset : offset + count]", "self.ids[offset : offset + count]"),
    "async": ("def f(counts: list[int], first, device):", "async def f(counts: list[int], first, device):\n    async for x in y: pass"),
}
NOT_UNSAFE = {name: edit for name, edit in REFUSED.items() if name not in ("in try", "async")}


@pytest.mark.parametrize("name", NOT_UNSAFE)
def test_what_is_not_provably_the_form_is_left_alone(name: str) -> None:
    old, new = NOT_UNSAFE[name]
    assert old in CANONICAL
    text = CANONICAL.replace(old, new, 1)
    ast.parse(text)
    assert fixed(text).text == text


@pytest.mark.parametrize("around", ["try:", "with torch_stream():", "with suppress(Exception):"])
def test_a_loop_whose_exceptions_may_be_swallowed_is_only_shown(around: str) -> None:
    body = CANONICAL[CANONICAL.index("        ids = torch.empty(total") : CANONICAL.index("    else:")]
    inner = f"        {around}\n" + "".join(f"    {line}\n" for line in body.splitlines())
    inner += "        finally:\n            pass\n" if around == "try:" else ""
    text = CANONICAL.replace(body, inner)
    fix = only_fix(text)
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert "torch.repeat_interleave(" in fix.shows
    assert "output_size=sum(counts)" in fix.shows
    assert fixed(text).text == text


def test_inside_a_torch_context_the_loop_is_rewritten() -> None:
    body = CANONICAL[CANONICAL.index("        ids = torch.empty(total") : CANONICAL.index("    else:")]
    inner = "        with torch.no_grad():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert "            ids = torch.repeat_interleave(" in fixed(CANONICAL.replace(body, inner)).text


def test_a_name_that_is_bound_again_before_it_is_read_does_not_matter() -> None:
    text = CANONICAL.replace(
        "    return ids.unsqueeze(1)\n",
        "    for i in range(3):\n        print(i)\n    offset = 4\n    return ids, offset, [i for i in counts]\n",
    )
    assert "repeat_interleave" in fixed(text).text


def test_in_an_outer_loop_a_read_before_the_loop_sees_the_last_turn() -> None:
    inner = CANONICAL[CANONICAL.index("    total =") : CANONICAL.index("    return")]
    nested = "    for turn in range(2):\n" + "".join(f"    {line}\n" for line in inner.splitlines())
    text = CANONICAL.replace(inner, nested)
    assert "repeat_interleave" in fixed(text).text
    early = text.replace("range(2):\n", "range(2):\n        print(offset)\n")
    assert fixed(early).text == early


@pytest.mark.parametrize(
    "loop",
    [
        "for i, n in enumerate(rows):\n    table[i, :n].fill_(i)",
        "for i, n in enumerate(rows): table[i, :n].fill_(i)",
        "for i, n in enumerate(rows):\n    a = n; table[i, :n].fill_(a); b = a\n    print(b);",
        "for i, n in enumerate(rows):\n    if n < 0:\n        break\n    table[i, :n].fill_(i)\nelse:\n    print()",
        "for offset, count in enumerate(counts):\n    out[offset : offset + count] = offset\n    offset += count",
        "for i, i in enumerate(counts):\n    out[o : o + i] = i\n    o += i",
        "while True:\n    out[o : o + n] = 1\n    o += n",
        "for i, count in enumerate(out):\n    out[o : o + count] = i\n    o += count",
        "for i, count in enumerate(counts()):\n    out[o : o + count] = i\n    o += count",
    ],
)
def test_other_loops_are_not_the_form(loop: str) -> None:
    assert running_offset(ast.parse(loop).body[0]) is None


def test_the_form_is_described() -> None:
    form = running_offset(ast.parse("for i, n in enumerate(self.counts, 2):\n    out[o : o + n] = i - self.first\n    o += n").body[0])
    assert form is not None
    assert (form.target, form.offset, ast.unparse(form.counts), form.ids.start, form.ids.negative) == ("out", "o", "self.counts", 2, True)
    assert form.ids.shift is not None
    assert ast.unparse(form.ids.shift) == "self.first"
    assert form.locals == {"i", "n", "o"}

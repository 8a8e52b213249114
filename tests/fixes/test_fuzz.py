"""Generated code with comments, odd spacing, nested brackets and other scripts: no fix breaks a file or changes a result."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from launchlint.rules.lch101_slice_fill_loop import fix as slice_fill
from launchlint.rules.lch201_list_to_device import fix as list_to_device
from launchlint.rules.lch202_unpinned_non_blocking import fix as unpinned

from launchlint.fixes import fix_source
from launchlint.model import Applicability, Finding
from launchlint.settings import Settings
from launchlint.source import Source
from tests.fixes.context import checker
from tests.fixes.execution import assert_same, define, run

SETTINGS = Settings()
CHECKS = (
    checker("LCH101", slice_fill.rewrite, ast.For, SETTINGS),
    checker("LCH201", list_to_device.rewrite, ast.Call, SETTINGS),
    checker("LCH202", unpinned.rewrite, ast.Call, SETTINGS),
)

spaces = st.sampled_from(["", "", " ", "  ", "\t", "\f"])
breaks = st.sampled_from(["", "", " ", "\n", "\n        ", "  # note ünï 𝒳\n", "\n# left\n", " \\\n"])
comments = st.sampled_from(["", "", "  # why", "  # 数える", "  # a 'quote", "  # noqa", '  # """'])
names = st.sampled_from(["i", "expert", "größe", "_", "数", "lambda_"])
literals = st.sampled_from(
    ["0", "-1", "1.5", "True", "[0]", "[-1]", "[0, 0]", "(1,)", "[0] * 3", "[[1, 2], [3, 4]]", "[n, 2]", "[v + 1 for v in x]", "x", "n"]
)
dtypes = st.sampled_from(["", ", dtype=torch.int64", ",dtype = torch.float32", ", dtype=(torch.int32)"])


def all_findings(source: Source) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(source)]


def assert_sound(text: str, name: str, *arguments: Any, seen: dict[str, int]) -> None:
    """The fixed text parses, settles, keeps comments, and gives equal tensors."""
    source = Source.from_bytes("some.py", text.encode())
    try:
        before = run(define(text, name), *arguments)[0]
    except (TypeError, ValueError, RuntimeError):  # [[..]] * n and the like: not code that runs
        return
    done = fix_source(source, all_findings, Applicability.UNSAFE, SETTINGS)
    assert not done.problems
    seen["fixed"] += bool(done.applied)
    again = fix_source(Source.from_bytes("some.py", done.text.encode()), all_findings, Applicability.UNSAFE, SETTINGS)
    assert again.text == done.text
    for old, new in zip(before, run(define(done.text, name), *arguments)[0], strict=True):
        assert_same(old, new)
    for word in ("ünï", "why", "数える"):
        assert done.text.count(word) >= min(1, text.count(word))


@st.composite
def calls(draw: st.DrawFn) -> str:
    gap = [draw(breaks) for _ in range(5)]
    maker = draw(st.sampled_from(["torch.tensor", "torch.as_tensor", "torch . tensor", "torch.asarray"]))
    made = draw(
        st.sampled_from(
            [
                "{m}({a}{x}{b}{t},{c}device{d}={e}d)",
                "{m}({a}{x}{b}{t}{c}).to(d,{d}non_blocking=True)",
                "{m}({a}{x}{b}{t},{c}device=(d),{d})",
            ]
        )
    )
    text = made.format(m=maker, x=draw(literals), t=draw(dtypes), a=gap[0], b=gap[1], c=gap[2], d=gap[3], e=gap[4])
    return draw(
        st.sampled_from(["{}", "({})", "[{}][0]", "({}).clone()", "{}.reshape(-1)", "torch.cat([({}).reshape(-1)])", "max([{}], key=id)"])
    ).format(text)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    expressions=st.lists(calls(), min_size=1, max_size=3), text_before=st.sampled_from(["", "s = 'ä𝒳'; ", "s = f'{d}{{}}'; "]), end=comments
)
def test_uploads(expressions: list[str], text_before: str, end: str) -> None:
    lines = "\n".join(f"    {text_before}out.append(({expression})){end}" for expression in expressions)
    text = f"import torch\n\ndef f(x: list, n: int, d):\n    out = []\n{lines}\n    return out\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return
    assert_sound(text, "f", [3, 4, 5], 2, "cpu", seen=SEEN)


@st.composite
def loops(draw: st.DrawFn) -> str:
    i, s, (a, b, c, d) = draw(names), draw(spaces), [draw(comments) for _ in range(4)]
    shift = draw(st.sampled_from(["", " + n", "+n", " - n", " + n * 2", " + len(x)", " + x[0]"]))
    gap = draw(st.sampled_from(["", "\n", "    # between\n", "\n\n    # one\n    # two 数える\n"]))
    wide = draw(st.sampled_from(["o{s}:{s}o + k", "o:o+k", "(o) : (o + k)", "o : (\n            o + k)", "o : o + k  # why\n        "]))
    store = draw(
        st.sampled_from(["out[{w}].fill_({v})", "out[{w}]={v}", "out [ {w} ] . fill_ ( {v} )", "out[{w}].fill_(\n            {v})"])
    )
    body = draw(
        st.sampled_from(
            [
                "{st}{c}\n        o += k{d}",
                "if k > 0:{c}\n            {st}\n            o += k{d}",
                "if k == 0:{c}\n            continue\n        {st}\n        o = o + k{d}",
                "{st}; o += k{d}",
            ]
        )
    )
    inner = body.format(st=store.format(w=wide.format(s=s), v=f"{i}{shift}"), c=c, d=d)
    tail = draw(st.sampled_from(["", "", "    n = o\n", f"    {i} = 0\n    n = {i}\n", "    keep = lambda: o\n"]))
    return (
        f"    total = sum(x){a}\n    out = torch.empty(total,{s}dtype=torch.int64, device=d){b}\n{gap}    o = 0\n{gap}"
        f"    for {i}, k in enumerate({s}x{s}):{a}\n        {inner}\n{tail}    return [out]\n"
    )


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(loop=loops(), x=st.lists(st.integers(0, 5), min_size=1, max_size=6), n=st.integers(-2, 9), crlf=st.booleans())
def test_loops(loop: str, x: list[int], n: int, crlf: bool) -> None:
    text = f"# ä\nimport torch\n\ndef f(x: list, n: int, d):\n{loop}"
    try:
        ast.parse(text)
    except SyntaxError:
        return
    assert_sound(text.replace("\n", "\r\n") if crlf else text, "f", x, n, "cpu", seen=SEEN)


SEEN = {"fixed": 0}


def test_the_generated_code_was_really_fixed() -> None:
    """Without fixes in it the search above would prove nothing."""
    assert SEEN["fixed"] > 100

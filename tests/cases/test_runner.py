"""The runner is seen to fail: every refusal, every complaint and every variant, with a linter that has that fault."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from launchlint.model import Applicability, Confidence
from tests.cases.case import Case, CaseError, Expect, Options, read
from tests.cases.faulty import Faulty, honest_fix
from tests.cases.linter import Linter, NotFixed
from tests.cases.update import rewrite
from tests.cases.variants import VARIANTS
from tests.cases.verdict import Judge, unbound

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
CODE = """\
import torch


def forward(rows):
    return [torch.slow(row) for row in rows]  # error: [slow-call] "once per turn"
"""
FIXED = CODE.replace("slow(", "fast(").partition("  # error")[0] + "\n"


def page(*cases: str) -> str:
    return "# Cases\n\n" + "\n".join(cases)


def case_text(code: str = CODE, *blocks: str, title: str = "A call per row", sentence: str = "It says why.", info: str = "py") -> str:
    fenced = "".join(f"\n{block}" for block in (f"```{info}\n{code}```\n", *blocks))
    return f"## {title}\n\n{sentence}\n{fenced}\n"


def load(tmp_path: Path, *cases: str) -> list[Case]:
    path = tmp_path / "cases.md"
    path.write_text(page(*cases), encoding="utf-8")
    return read(path, frozenset(VARIANTS))


def one(tmp_path: Path, code: str = CODE, *blocks: str, info: str = "py") -> Case:
    (case,) = load(tmp_path, case_text(code, *blocks, info=info))
    return case


def judge(case: Case, linter: Linter) -> Judge:
    return Judge(case, "slow-call", linter)


# -------------------------------------------------------------------- reading


def test_reads_a_case(tmp_path: Path) -> None:
    case = one(
        tmp_path, CODE, f"```fixed unsafe\n{FIXED}```\n", "```inputs\nforward([])\n```\n", info="py min-confidence=low hot=a.f,a.g preview"
    )
    assert case.code == CODE.partition("  # error")[0] + "\n"
    assert [(mark.line, mark.expect, mark.rule, mark.part) for mark in case.marks] == [(5, Expect.ERROR, "slow-call", "once per turn")]
    assert [(fixed.floor, fixed.text) for fixed in case.fixed] == [(UNSAFE, FIXED)]
    assert case.inputs == "forward([])\n"
    settings = case.options.settings
    assert (settings.min_confidence, settings.hot, settings.preview) == (Confidence.LOW, ("a.f", "a.g"), True)


def test_reads_several_marks_on_a_line(tmp_path: Path) -> None:
    code = 'f(1)  # keep this # error: [slow-call] "a" # todo-ok: [other-call] reads like one # todo-error: [third-call]\n'
    case = one(tmp_path, code)
    assert case.code == "f(1)  # keep this\n"
    assert [(mark.expect, mark.rule, mark.part) for mark in case.marks] == [
        (Expect.ERROR, "slow-call", "a"),
        (Expect.TODO_OK, "other-call", "reads like one"),
        (Expect.TODO_ERROR, "third-call", ""),
    ]


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ([case_text(), case_text("f(2)\n")], "same heading"),
        ([case_text(), case_text(CODE.replace("\n\n\n", "\n\n"), title="Other")], "same code"),
        ([case_text(sentence="")], "sentence"),
        ([case_text("def f(:\n")], "does not parse"),
        ([case_text("f()  # error: slow-call\n")], "a mark reads"),
        ([case_text("f()  # error: [slow-call] once per turn\n")], "a mark reads"),
        ([case_text("f()  # error [slow-call]\n")], "looks like a mark"),
        ([case_text(info="py no-such-thing=1")], "no such option or setting: no-such-thing"),
        ([case_text(info="py skip=allias")], "no such variant: allias"),
        ([case_text(CODE, "```fixed maybe\nf()\n```\n")], "`fixed` or `fixed unsafe`"),
        ([case_text(CODE, "```fixed\nf()\n```\n", "```fixed\ng()\n```\n")], "two `fixed` blocks"),
        ([case_text(CODE, "```py\ng()\n```\n")], "one `py` block"),
        ([case_text(CODE, "```sh\nls\n```\n")], "'sh'"),
        ([case_text(CODE, "```inputs\nforward([])\n```\n")], "beside its fixed form"),
        (["## Late\n\nWhy.\n\n```fixed\nf()\n```\n\n```py\nf()\n```\n"], "comes first"),
        (["## Open\n\nWhy.\n\n```py\nf()\n"], "never closed"),
        (["Nothing here.\n"], "without a case"),
        (["Before a heading.\n\n```py\nf()\n```\n"], "heading of its own"),
    ],
)
def test_refuses_pages(tmp_path: Path, cases: list[str], reason: str) -> None:
    with pytest.raises(CaseError) as caught:
        load(tmp_path, *cases)
    assert reason in str(caught.value)


def test_the_same_code_under_other_settings_is_another_case(tmp_path: Path) -> None:
    assert len(load(tmp_path, case_text(), case_text(title="Other", info="py preview"))) == 2


def test_syntax_of_a_later_python_is_left_alone(tmp_path: Path) -> None:
    case = one(tmp_path, "a b c\n", info="py python=3.99")
    assert not case.options.runs_here


# -------------------------------------------------------------------- as written


def test_accepts_what_is_right(tmp_path: Path) -> None:
    at_work = judge(one(tmp_path, CODE, f"```fixed\n{FIXED}```\n"), Faulty(applicability=SAFE))
    assert at_work.as_written() == []
    assert {name: at_work.variant(name) for name in VARIANTS} == {name: [] for name in VARIANTS}
    assert at_work.fixes() == []


@pytest.mark.parametrize(
    ("code", "linter", "complaint"),
    [
        ("import torch\ntorch.slow(1)\n", Faulty(), "line 2: unmarked finding [slow-call]"),
        ("torch.slow(1)  # error: [slow-call]\n", Faulty(), "line 1: nothing that meets"),
        ('import torch\ntorch.slow(1)  # error: [slow-call] "twice"\n', Faulty(), "line 2: unmarked finding"),
        ("import torch\ntorch.slow(1)  # error: [other-call]\n", Faulty(), "line 2: nothing that meets `# error: [other-call]`"),
        ("import torch\ntorch.slow(1)  # todo-error: [slow-call] hard\n", Faulty(), "known miss is found now"),
        ("f(1)  # todo-ok: [slow-call] looks alike\n", Faulty(), "known false alarm is gone"),
        ("import torch\ntorch.slow(1)  # error: [slow-call] # error: [slow-call]\n", Faulty(), "nothing that meets"),
        ("import torch\ntorch.slow(torch.slow(1))  # error: [slow-call]\n", Faulty(), "unmarked finding"),
        ("import torch\n\n\ntorch.slow(\n    1)  # error: [slow-call]\n", Faulty(), "line 4: unmarked finding"),
        ("import torch\ntorch.slow(1)  # error: [slow-call]\n", Faulty(message="Slow."), "without a capital"),
        ("import torch\ntorch.slow(1)  # error: [slow-call]\n", Faulty(message="it is slow."), "without a full stop"),
        (
            'import torch\ntorch.slow(1)  # todo-error: [slow-call] also the second # error: [slow-call] "thrice"\n',
            Faulty(),
            "known miss is found now",
        ),
        ("f(1)  # error: [no-such-rule]\n", Faulty(), "no such rule: no-such-rule"),
    ],
)
def test_complains_as_written(tmp_path: Path, code: str, linter: Faulty, complaint: str) -> None:
    complaints = judge(one(tmp_path, code), linter).as_written()
    assert any(complaint in each for each in complaints), complaints


@pytest.mark.parametrize(
    "code", ["import torch\ntorch.slow(1)  # todo-ok: [slow-call] never on a host\n", "f(1)  # todo-error: [slow-call] by name only\n"]
)
def test_accepts_what_is_known_to_be_wrong(tmp_path: Path, code: str) -> None:
    assert judge(one(tmp_path, code), Faulty()).as_written() == []


def test_tells_what_could_not_be_analysed(tmp_path: Path) -> None:
    case = dataclasses.replace(one(tmp_path), code="def f(:\n")
    assert "not analysed" in judge(case, Faulty()).as_written()[0]


def test_runs_another_rule_only_when_named(tmp_path: Path) -> None:
    linter = Faulty(extra="extra")
    assert judge(one(tmp_path, "extra(1)\n"), linter).as_written() == []
    assert judge(one(tmp_path, "extra(1)\n", info="py with=other-call"), linter).as_written()
    assert judge(one(tmp_path, "extra(1)\n", info="py with=all"), linter).as_written()
    assert judge(one(tmp_path, "extra(1)  # error: [other-call]\n"), linter).as_written() == []


# -------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    ("variant", "linter", "complaint"),
    [
        ("crlf", Faulty(reads_crlf=False), "lost"),
        ("noqa", Faulty(sees_noqa=False), "fires, must be silent"),
        ("twin", Faulty(resolves=False), "fires, must be silent"),
    ],
)
def test_complains_in_a_variant(tmp_path: Path, variant: str, linter: Faulty, complaint: str) -> None:
    at_work = judge(one(tmp_path), linter)
    assert at_work.as_written() == []
    assert complaint in (at_work.variant(variant) or [""])[0]


def test_complains_of_columns_in_bytes(tmp_path: Path) -> None:
    code = "import torch\n\n\ndef forward(rows):\n    torch.slow(rows)  # error: [slow-call]\n"
    at_work = judge(one(tmp_path, code), Faulty(counts_bytes=True))
    assert at_work.as_written() == []
    assert any("appears" in complaint for complaint in at_work.variant("wide") or [])


@dataclasses.dataclass
class ByText(Faulty):
    """Looks for `torch.slow(` in the text, so a name under which torch is imported defeats it."""

    def _name(self, tree: object, func: object) -> str:
        import ast

        assert isinstance(func, ast.expr)
        return ast.unparse(func)


@pytest.mark.parametrize("variant", ["alias", "members"])
def test_complains_where_imports_are_not_followed(tmp_path: Path, variant: str) -> None:
    at_work = judge(one(tmp_path), ByText())
    assert at_work.as_written() == []
    assert "lost" in (at_work.variant(variant) or [""])[0]


@pytest.mark.parametrize(
    ("variant", "code", "text"),
    [
        ("alias", "import torch\nt = torch.slow(torch.int32)\n", "import torch as th\nt = th.slow(th.int32)\n"),
        (
            "members",
            "import torch\ntorch.slow(torch.nn.f, sum, torch.sum)\n",
            "from torch import nn, slow, sum as torch_sum\nslow(nn.f, sum, torch_sum)\n",
        ),
        ("twin", "import torch.nn as nn, os\nfrom torch import cuda\n", "import tinygrad.nn as nn, os\nfrom tinygrad import cuda\n"),
        ("twin", "import torch.distributed\nimport torchvision\n", "import tinygrad as torch\nimport torchvision\n"),
    ],
)
def test_writes_variants(tmp_path: Path, variant: str, code: str, text: str) -> None:
    written = VARIANTS[variant](one(tmp_path, code), {})
    assert written is not None
    assert written.text == text


@pytest.mark.parametrize(
    ("variant", "code"),
    [
        ("alias", "def f(torch):\n    return torch.slow(1)\n"),
        ("alias", "import torch\nimport torch.distributed\ntorch.slow(1)\n"),
        ("alias", "import torch\n\n\ndef f(x: 'torch.Tensor'):\n    return x\n"),
        ("members", "import torch\nf(torch)\ntorch.slow(1)\n"),
        ("twin", "f(1)\n"),
        ("noqa", "f(1)\n"),
        ("noqa", 'import torch\ntorch.slow("""  # error: [slow-call]\n""")\n'),
    ],
)
def test_leaves_out_variants_that_make_no_sense(tmp_path: Path, variant: str, code: str) -> None:
    assert VARIANTS[variant](one(tmp_path, code), {"slow-call": "LCH901"}) is None


# -------------------------------------------------------------------- fixes

COMMENTED = CODE.replace("import torch\n", "import torch  # needed\n")


@pytest.mark.parametrize(
    ("fixer", "complaint"),
    [
        (lambda text: text, "changes nothing"),
        (lambda text: text.replace("(rows)", "(rows"), "does not parse"),
        (lambda text: honest_fix(text) + "# again\n", "does not converge"),
        (lambda text: text.replace("rows", "lines"), "leaves or makes findings: slow-call x1"),
        (lambda text: honest_fix(text).replace("  # needed", ""), "loses a comment: # needed"),
        (lambda text: honest_fix(text).replace("for row in rows", "for row in lines"), "reads names that nothing binds: lines"),
        (lambda text: honest_fix(text).replace("\r\n", "\n"), "differs in the crlf variant"),
        (lambda text: text if not text.isascii() else honest_fix(text), "differs in the wide variant"),
        (lambda text: text.replace("torch.slow", "torch.fast"), "differs in the alias variant"),
        (lambda text: text.replace("torch.slow", "torch.fast").replace("slow(", "torch.fast("), "binds in the members variant: torch"),
    ],
)
def test_refuses_fixes(tmp_path: Path, fixer: Callable[[str], str], complaint: str) -> None:
    case = one(tmp_path, COMMENTED)
    assert judge(case, Faulty(applicability=SAFE)).fixes() == []
    complaints = judge(case, Faulty(applicability=SAFE, fixer=fixer)).fixes()
    assert any(complaint in each for each in complaints), complaints


def test_tells_of_a_fixer_that_refuses(tmp_path: Path) -> None:
    def refuse(text: str) -> str:
        raise NotFixed("fixes did not settle")

    assert judge(one(tmp_path), Faulty(applicability=SAFE, fixer=refuse)).fixes() == ["safe fix: fixes did not settle"]


def test_an_unsafe_fix_may_lose_a_comment(tmp_path: Path) -> None:
    linter = Faulty(applicability=UNSAFE, fixer=lambda text: honest_fix(text).replace("  # needed", ""))
    assert judge(one(tmp_path, COMMENTED), linter).fixes() == []


@pytest.mark.parametrize(
    ("block", "linter", "complaint"),
    [
        (f"```fixed\n{FIXED}```\n", Faulty(), "no finding has a safe fix"),
        (f"```fixed\n{FIXED}```\n", Faulty(applicability=UNSAFE), "no finding has a safe fix"),
        (f"```fixed unsafe\n{FIXED}```\n", Faulty(applicability=SAFE), "not for the safe fix"),
        (f"```fixed\n{FIXED}# and more\n```\n", Faulty(applicability=SAFE), "other than the `fixed` block"),
    ],
)
def test_holds_fixes_against_the_block(tmp_path: Path, block: str, linter: Faulty, complaint: str) -> None:
    complaints = judge(one(tmp_path, CODE, block), linter).fixes()
    assert any(complaint in each for each in complaints), complaints


def test_update_rewrites_fixed_blocks_and_nothing_else(tmp_path: Path) -> None:
    stale = case_text(CODE, "```fixed\nold\n```\n", "```inputs\nforward([])\n```\n")
    cases = load(tmp_path, stale, case_text("f(1)\n", title="Silent"))
    linter = Faulty(applicability=SAFE)
    changes = [(fixed, judge(case, linter).fixed(fixed.floor)) for case in cases for fixed in case.fixed]
    assert rewrite(tmp_path / "cases.md", changes)
    after = (tmp_path / "cases.md").read_text(encoding="utf-8")
    assert after == page(stale, case_text("f(1)\n", title="Silent")).replace("old\n", FIXED)
    assert [complaint for case in read(tmp_path / "cases.md", frozenset(VARIANTS)) for complaint in judge(case, linter).fixes()] == []
    assert not rewrite(tmp_path / "cases.md", [])


def test_unbound_names() -> None:
    assert unbound("import a.b as c\nfrom d import e\n\n\ndef f(g):\n    h = len(c) + e + g + i\n    return [j for j in h]\n") == {"i"}


def test_default_options_are_default_settings() -> None:
    assert Options().settings == type(Options().settings)()

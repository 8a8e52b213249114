"""What silences a finding, and what does not."""

from __future__ import annotations

import pytest

from launchlint.model import Applicability, Finding
from launchlint.settings import Settings
from launchlint.source import Source
from launchlint.suppress import Silenced, apply
from tests.doors import fake

pytestmark = pytest.mark.usefixtures("fake_rules")


def run(text: str, **changes: object) -> tuple[list[Finding], list[Silenced]]:
    source = Source("a.py", text)
    return apply(source, fake.findings(source), Settings(**changes))  # type: ignore[arg-type]


def why(text: str, **changes: object) -> str | None:
    """What silenced the only finding of `text`; None where it was reported."""
    kept, silenced = run(text, **changes)
    assert len(kept) + len(silenced) == 1
    return silenced[0][1] if silenced else None


LOOP = "for i in x:{header}\n    # plain\n    fill(i){line}\n"

SILENT = [
    ("fill(1)  # noqa\n", "noqa"),
    ("fill(1)  # NOQA: lch101\n", "noqa"),
    ("fill(1)  # noqa:E501,LCH101\n", "noqa"),
    ("fill(1)  # noqa: E501 LCH1\n", "noqa"),
    ("# flake8: noqa\nfill(1)\n", "noqa"),
    ("# flake8: noqa: LCH101\nfill(1)\n", "noqa"),
    ('f(fill(1), """\n""")  # noqa: LCH101\n', "noqa"),  # one line to flake8
    ("x = fill(1) + \\\n  2  # noqa: LCH101\n", "noqa"),
    ("fill(1)  # launchlint: ignore[LCH101] warm-up only\n", "ignore: warm-up only"),
    ("fill(1)  # launchlint: ignore[slice-fill-loop]\n", "ignore"),
    ("fill(1)  # launchlint:ignore[scalar-read, LCH101]: both\n", "ignore: both"),
    ("fill(1)  # launchlint: ignore\n", "ignore"),
    ("fill(1)  # type: ignore  # launchlint: ignore[LCH1] as above  # see 12\n", "ignore: as above"),
    ("# launchlint: ignore[LCH101] rare\nfill(1)\n", "ignore: rare"),
    ("# launchlint: ignore[LCH101] rare\n# and more about it\nfill(1)\n", "ignore: rare"),
    ("upload(\n  1,\n)  # launchlint: ignore[LCH201] end\n", "ignore: end"),
    (LOOP.format(header="  # launchlint: ignore[LCH101] two turns", line=""), "ignore: two turns"),
    ("# launchlint: ignore[LCH101] above\n" + LOOP.format(header="", line=""), "ignore: above"),
    ("x = 1\n\nfill(1)\n# launchlint: ignore-file[slice-fill-loop] generated\n", "ignore-file: generated"),
    ("# launchlint: ignore-file generated\nfill(1)\n", "ignore-file: generated"),
    ("upload(1)  # gpu-sync-ok: once per request\n", "gpu-sync-ok: once per request"),
    ("# gpu-sync-ok: rare\nitem()\n", "gpu-sync-ok: rare"),
    ("upload(1)\r\n# x\r\nx  # launchlint: ignore-file[LCH201] crlf\r\n", "ignore-file: crlf"),
    ("upload(1)  # launchlint: ignore[LCH201] bare\rx = 1\r", "ignore: bare"),
    ("x = '\N{ROCKET}'; upload(1)  # launchlint: ignore[LCH201] \N{ROCKET}\n", "ignore: \N{ROCKET}"),
]


@pytest.mark.parametrize(("text", "reason"), SILENT)
def test_silenced(text: str, reason: str) -> None:
    assert why(text) == reason


REPORTED = [
    "fill(1)  # noqa: E501\n",
    "fill(1)  # noqa: LCH2\n",
    "fill(1)\n# noqa: LCH101\n",
    "# noqa: LCH101\nfill(1)\n",
    "upload(\n  1,\n)  # noqa: LCH201\n",  # flake8 looks at the reported line only
    "x = '# launchlint: ignore[LCH101]'; fill(1)\n",
    "fill(1)  # launchlint: ignore[LCH201]\n",
    "fill(1)  # launchlint: ignored\n",
    "fill(1)  # launchlint: ignore[slice]\n",
    "# launchlint: ignore[LCH101] too far away\n\nfill(1)\n",
    "x = 1  # launchlint: ignore[LCH101] of another statement\nfill(1)\n",
    "fill(1)  # gpu-sync-ok: a launch is no wait\n",
    "upload(1)  # gpu-sync-okay\n",
    "upload(1)  # perf-ok: not configured\n",
]


@pytest.mark.parametrize("text", REPORTED)
def test_reported(text: str) -> None:
    assert why(text) is None


def test_configured_waivers_silence_every_rule() -> None:
    assert why("fill(1)  # perf-ok: measured\n", waivers=("perf-ok",)) == "perf-ok: measured"


def test_per_file_ignores() -> None:
    assert why("fill(1)\n", per_file_ignores=(("*.py", ("slice-fill-loop",)),)) == "per-file-ignores"
    assert why("fill(1)\n", per_file_ignores=(("b.py", ("LCH101",)),)) is None


def test_required_reasons() -> None:
    assert why("fill(1)  # launchlint: ignore[LCH101] measured\n", require_reasons=True) == "ignore: measured"
    kept, _ = run("fill(1)  # launchlint: ignore[LCH101]\n", require_reasons=True)
    assert "gives no reason" in kept[0].related[-1].note
    assert why("upload(1)  # gpu-sync-ok\n", require_reasons=True) is None


def test_a_misspelt_name_is_told_at_the_finding() -> None:
    kept, _ = run("fill(1)  # launchlint: ignore[slice-fil-loop] why\n")
    assert "did you mean 'slice-fill-loop'" in kept[0].related[-1].note


def test_name_after_noqa() -> None:
    kept, silenced = run("fill(1)  # noqa: slice-fill-loop\n")
    assert [reason for _, reason in silenced] == ["noqa"], "flake8 takes it for a noqa of everything"
    assert [finding.code for finding in kept] == ["LCH002"]
    assert "write LCH101" in kept[0].message
    assert kept[0].fix is not None
    assert kept[0].fix.edits[0].text == "LCH101"


@pytest.mark.parametrize("text", ["x = '# noqa: slice-fill-loop'\n", "x = 1  # noqa: some-other-name\n", "x = 1  # noqa\n"])
def test_no_name_after_noqa(text: str) -> None:
    assert run(text) == ([], [])


def unused(text: str, **changes: object) -> list[Finding]:
    kept, _ = run(text, extend_select=("LCH001",), **changes)
    return [finding for finding in kept if finding.code == "LCH001"]


def fixed(text: str) -> str:
    (finding,) = unused(text)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    (edit,) = finding.fix.edits
    return text[: edit.span.start] + edit.text + text[edit.span.end :]


def test_unused_ignore_is_opt_in() -> None:
    assert run("x = 1  # launchlint: ignore[LCH101] why\n") == ([], [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # launchlint: ignore[LCH101] why\ny\n", "x = 1\ny\n"),
        ("a\n    # launchlint: ignore[LCH101] why\nb\n", "a\nb\n"),
        ("fill(1)  # launchlint: ignore[LCH101, LCH201] why\n", "fill(1)  # launchlint: ignore[LCH101] why\n"),
        ("a\n# launchlint: ignore-file[LCH201]", "a\n"),
        ("x = 1  # noqa: LCH101\ny\n", "x = 1\ny\n"),
        ("x = 1  # noqa: E501, LCH101\n", "x = 1  # noqa: E501\n"),
        ("fill(1)  # noqa: LCH101, LCH201 # see 12\n", "fill(1)  # noqa: LCH101 # see 12\n"),
    ],
)
def test_unused_ignore_and_its_fix(before: str, after: str) -> None:
    assert fixed(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "fill(1)  # launchlint: ignore[LCH101] why\n",
        "fill(1)  # launchlint: ignore why\n",
        "fill(1)  # noqa: LCH1\n",
        "fill(1)  # noqa: E501\n",
        "x = 1  # noqa\n",
        "x = fill(1) + \\\n  2  # noqa: LCH101\n",
        "item()  # launchlint: ignore[LCH306] a rule that did not run\n",
    ],
)
def test_used_or_undecided_ignores(text: str) -> None:
    assert unused(text) == []


def test_unknown_name_in_an_ignore() -> None:
    (finding,) = unused("x = 1  # launchlint: ignore[slice-fil-loop]\n")
    assert "no rule has the code or name 'slice-fil-loop', did you mean 'slice-fill-loop'" in finding.message


def test_an_ignore_for_what_is_below_the_confidence_is_in_use() -> None:
    source = Source("a.py", "fill(1)  # launchlint: ignore[LCH101] why\n")
    settings = Settings(extend_select=("LCH001",))
    assert apply(source, [], settings, below=fake.findings(source)) == ([], [])
    assert [finding.code for finding in apply(source, [], settings)[0]] == ["LCH001"]

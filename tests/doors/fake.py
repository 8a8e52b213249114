"""A small linter to stand in for the real one: rules that report what the text of a line says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from launchlint import suppress
from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Hot, Meta, Policy, Problem, Related, Span
from launchlint.rule import Rule
from launchlint.settings import Settings
from launchlint.source import Source, SourceError

METAS = (
    Meta("LCH001", "unused-ignore", "an ignore comment that silences nothing", "own", "0.1.0", Policy(()), opt_in=True),
    Meta("LCH002", "name-after-noqa", "a name after noqa", "own", "0.1.0", Policy(())),
    Meta("LCH003", "not-analysed", "a file that could not be analysed", "own", "0.1.0", Policy(())),
    Meta("LCH101", "slice-fill-loop", "a loop that fills slices", "launches", "0.1.0", Policy(()), fix=Applicability.SAFE),
    Meta("LCH201", "list-to-device", "a list sent to the device", "uploads", "0.1.0", Policy(())),
    Meta("LCH301", "scalar-read", "a scalar read back", "reads", "0.1.0", Policy(()), preview=True),
    Meta("LCH306", "explicit-synchronize", "a synchronize", "reads", "0.1.0", Policy(()), opt_in=True),
)
RULES = {meta.code: Rule(meta) for meta in METAS}
LINE = re.compile(r"fill\(.*?\)|upload\((?:.|\n)*?\)|item\(\)")
CODES = {"f": "LCH101", "u": "LCH201", "i": "LCH301"}


class Report:
    """What `engine.check_files` gives."""

    def __init__(self, files: list[FileReport]) -> None:
        self.files = files
        self.stats: dict[str, object] = {"seconds": 0.5}


def findings(source: Source) -> list[Finding]:
    """`fill(...)`, `upload(...)` and `item()` are findings; a `for` line above a fill is its loop."""
    found: list[Finding] = []
    for match in LINE.finditer(source.text):
        code = CODES[match.group()[0]]
        related: tuple[Related, ...] = ()
        fix = None
        if code == "LCH101":
            loop = source.text.rfind("for ", 0, match.start())
            related = (Related(Span(loop, loop + 3), "the loop"),) if loop >= 0 else ()
            edit = _edits(match)
            fix = Fix("fill once", tuple(edit), Applicability.SAFE)
        hot = Hot("it is called from forward", ("Net.forward", "pack"))
        found.append(Finding(code, Span(*match.span()), f"`{match.group()[:20]}` costs", Confidence.MEDIUM, hot, related, fix))
    return found


def _edits(match: re.Match[str]) -> Sequence[Edit]:

    return (Edit(Span(*match.span()), "once()"),)


def check_source(source: Source, rules: Sequence[Rule], settings: Settings, project: object = None, spent: object = None) -> FileReport:
    """The findings of the chosen rules, after suppression; `crash` in the text is a fault of the linter."""
    if "crash" in source.text:
        raise RuntimeError("made to crash")
    source.tree  # noqa: B018 - raises SourceError for what does not parse
    codes = {rule.meta.code for rule in rules}
    kept, silenced = suppress.apply(source, [each for each in findings(source) if each.code in codes], settings)
    return FileReport(source.path, kept, silenced)


def check_files(
    paths: Sequence[str],
    rules: Sequence[Rule],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    cache: object = None,
    timed: bool = False,
) -> Report:
    """Each file on its own."""
    reports: list[FileReport] = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                reports.append(check_source(Source.from_bytes(path, file.read()), rules, settings))
        except SourceError as error:
            reports.append(FileReport(path, problems=[Problem(path, error.reason, error.line)]))
        except OSError as error:
            reports.append(FileReport(path, problems=[Problem(path, error.strerror or str(error))]))
    return Report(reports)

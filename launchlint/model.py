"""What flows through launchlint: spans, edits, fixes, findings and what is known about a rule.

Everything here is plain data: it pickles, compares and sorts, and it imports nothing else of launchlint.
Offsets are half-open and count code points of the decoded text; lines and columns exist only in `source`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Confidence(enum.IntEnum):
    """How a finding is known."""

    LOW = 1  # by a name or a convention
    MEDIUM = 2  # inferred from the code around it
    HIGH = 3  # by syntax and facts

    def __str__(self) -> str:
        return self.name.lower()


class Applicability(enum.IntEnum):
    """What applying a fix may change; ordered, so `fix.applicability >= floor` reads well."""

    DISPLAY = 1  # shows the shape of the cure, is never applied
    UNSAFE = 2  # timing, exceptions or memory may change
    SAFE = 3  # same values, same order of device work, comments kept

    def __str__(self) -> str:
        return self.name.lower()


class Level(enum.IntEnum):
    """How well the value that a rule looks at is known."""

    NO = 0  # known not to be what the rule is about: silence
    UNKNOWN = 1  # nothing known
    INFERRED = 2  # a tensor, its device not proven
    KNOWN = 3  # a fact in the source

    def __str__(self) -> str:
        return self.name.lower()


class Heat(enum.IntEnum):
    """Why a function is thought to run every step."""

    COLD = -1  # known to run rarely: loading, warm-up, capture, tests
    NOTHING = 0  # nothing known
    NAMED = 1  # a name that sounds hot, reached by nothing
    REACHED = 2  # called, directly or not, from a role
    ROLE = 3  # a framework calls it every step

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """Half-open range of code points in the decoded text of a file."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """True if the two share a code point, or if both are the same empty place."""
        if self.start == self.end or other.start == other.end:
            return self.start <= other.end and other.start <= self.end
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, order=True, slots=True)
class Edit:
    """Replace `span` by `text`; an empty span inserts, an empty text deletes."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all are applied or none is.

    `imports` are statements (`import a.b`, `from a import b`) that the fixed code needs; the fixer adds those that
    are missing after the docstring and the `__future__` imports. `shows` is the sketch of a DISPLAY fix.
    """

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    imports: tuple[str, ...] = ()
    shows: str = ""


@dataclass(frozen=True, order=True, slots=True)
class Related:
    """A second place in the same file that a reader needs to see, and why."""

    span: Span
    note: str


@dataclass(frozen=True, slots=True)
class Hot:
    """Why the code of a finding runs every step: a sentence and the calls that lead there, root first."""

    reason: str
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth changing, at one place."""

    code: str
    span: Span
    message: str
    confidence: Confidence
    hot: Hot | None = None
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    group: str = ""  # findings of one family with the same non-empty group are shown as one

    def key(self) -> tuple[int, int, str, str]:
        """Order of output within a file."""
        return (self.span.start, self.span.end, self.code, self.message)


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be checked, or a thing that was asked for and is not there."""

    path: str
    reason: str
    line: int = 0  # 0: the whole file

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Policy:
    """From which pair of value level and heat on a rule reports, and with which confidence.

    `cells` maps `(level, heat)` to a confidence; a pair that is missing is silent. It is data, so that `launchlint
    why` can name the cell that decided.
    """

    cells: tuple[tuple[Level, Heat, Confidence], ...]

    @classmethod
    def grid(cls, known: str, inferred: str = "- - - -", unknown: str = "- - - -") -> Policy:
        """Read a grid: a row per value level, a column each for nothing, named, reached and role.

        >>> Policy.grid(known="- low high high").confidence(Level.KNOWN, Heat.NAMED)
        <Confidence.LOW: 1>
        """
        cells: list[tuple[Level, Heat, Confidence]] = []
        rows = ((Level.KNOWN, known), (Level.INFERRED, inferred), (Level.UNKNOWN, unknown))
        for level, row in rows:
            words = row.split()
            if len(words) != 4:
                raise ValueError(f"a policy row has four cells (nothing named reached role), not {row!r}")
            for heat, word in zip((Heat.NOTHING, Heat.NAMED, Heat.REACHED, Heat.ROLE), words, strict=True):
                if word != "-":
                    cells.append((level, heat, Confidence[word.upper()]))
        return cls(tuple(cells))

    def confidence(self, level: Level, heat: Heat) -> Confidence | None:
        """The confidence of the cell, or None where the rule is silent."""
        for cell_level, cell_heat, confidence in self.cells:
            if cell_level == level and cell_heat == heat:
                return confidence
        return None


@dataclass(frozen=True, slots=True)
class Meta:
    """What a machine needs to know of a rule; the README of its folder is for people."""

    code: str  # LCH and three digits
    name: str  # kebab-case, the pattern and not the cure
    summary: str  # one line, no full stop
    group: str  # launches | uploads | reads | hazards | own
    since: str  # first version that had it
    policy: Policy
    fix: Applicability | None = None  # the best fix the rule may offer
    preview: bool = False  # off unless asked for
    opt_in: bool = False  # off unless selected by code or name
    outranks: tuple[str, ...] = ()  # codes that say less about the same call


@dataclass(slots=True)
class FileReport:
    """What checking one file gave: findings in order, what was silenced, and problems."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    silenced: list[tuple[Finding, str]] = field(default_factory=list)  # with the reason that silenced it
    problems: list[Problem] = field(default_factory=list)
    asked: tuple[int, ...] = field(default=(), compare=False)  # functions, by number in the file's summary, whose callers had a say

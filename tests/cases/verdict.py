"""Judges a case: as written, in its variants, and with its fixes applied. Every complaint is one line."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from launchlint.fixes.rounds import ABOUT_COMMENTS
from launchlint.model import Applicability, Finding
from launchlint.source import Source
from tests.cases.case import Case, Expect, Fixed, Mark
from tests.cases.linter import Linter, NotFixed
from tests.cases.variants import VARIANTS, WIDE, free_alias, with_alias, with_members

Place = tuple[int, str]  # line of the code, name of the rule


@dataclass
class Judge:
    """Runs one case with the rule that owns it, the rules that its marks name and those that it asks for."""

    case: Case
    rule: str
    linter: Linter
    names: dict[str, str] = field(init=False)  # code -> name

    def __post_init__(self) -> None:
        self.names = {code: name for name, code in self.linter.codes.items()}

    @property
    def rules(self) -> Sequence[str]:
        """Names of the rules that run."""
        if "all" in self.case.options.others:
            return sorted(self.linter.codes)
        return sorted({self.rule, *self.case.options.others, *(mark.rule for mark in self.case.marks)})

    # ---------------------------------------------------------------- as written

    def as_written(self) -> list[str]:
        """Complaints about the findings against the marks, strict both ways."""
        if unknown := [name for name in self.rules if name not in self.linter.codes]:
            return [f"no such rule: {', '.join(unknown)}"]
        source = Source(self.case.options.path, self.case.code)
        report = self.linter.check(source.path, source.text, self.rules, self.case.options.settings)
        complaints = [f"not analysed: {problem}" for problem in report.problems]
        open_marks = sorted(self.case.marks, key=lambda mark: (mark.expect is not Expect.ERROR, -len(mark.part)))
        for finding in report.findings:
            complaints += self._style(finding)
            place = (source.position(finding.span.start).line, self.names[finding.code])
            mark = next((mark for mark in open_marks if _claims(mark, place, finding)), None)
            if mark is None:
                complaints.append(f"line {place[0]}: unmarked finding [{place[1]}] {finding.message!r}")
                continue
            open_marks.remove(mark)
            if mark.expect is Expect.TODO_ERROR:
                complaints.append(f"line {mark.line}: the known miss is found now, make it `# error:` ({finding.message!r})")
        for mark in sorted(open_marks, key=lambda mark: mark.line):
            match mark.expect:
                case Expect.ERROR:
                    complaints.append(f"line {mark.line}: nothing that meets `{mark}`")
                case Expect.TODO_OK:
                    complaints.append(f"line {mark.line}: the known false alarm is gone, remove `{mark}`")
        return complaints

    def _style(self, finding: Finding) -> list[str]:
        message = finding.message
        if not message or message[0].isupper() or message.rstrip("`'\"").endswith("."):
            return [f"a message starts without a capital and ends without a full stop: {message!r}"]
        return []

    # ---------------------------------------------------------------- variants

    def variant(self, name: str) -> list[str] | None:
        """Complaints about one variant against the case as written; None where it makes no sense for the code."""
        written = VARIANTS[name](self.case, self.linter.codes)
        if written is None:
            return None
        before = self._facts(self.case.code)
        after = [(fact[0] - written.lines_on_top, *fact[1:]) for fact in self._facts(written.text)]
        if name in ("alias", "members"):  # the text of a finding holds the name that was changed
            before, after = [(*fact[:3], "") for fact in before], [(*fact[:3], "") for fact in after]
        if written.silent:
            return [f"line {line}: [{rule}] fires, must be silent in:\n{written.text}" for line, rule, *_ in after]
        lost, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
        complaints = [f"line {line}: [{rule}] ({confidence}) lost: {text!r}" for line, rule, confidence, text in lost]
        complaints += [f"line {line}: [{rule}] ({confidence}) appears: {text!r}" for line, rule, confidence, text in new]
        return [*complaints, f"in:\n{written.text}"] if complaints else []

    def _facts(self, text: str) -> list[tuple[int, str, str, str]]:
        """Line, rule, confidence and text of each finding."""
        source = Source(self.case.options.path, text)
        report = self.linter.check(source.path, text, self.rules, self.case.options.settings)
        return [
            (
                source.position(found.span.start).line,
                self.names[found.code],
                str(found.confidence),
                text[found.span.start : found.span.end].replace("\r\n", "\n"),
            )
            for found in report.findings
        ]

    # ---------------------------------------------------------------- fixes

    def fixes(self) -> list[str]:
        """Complaints about what fixing gives, at either floor."""
        findings = self._findings(self.case.code)
        complaints: list[str] = []
        for floor in (Applicability.SAFE, Applicability.UNSAFE):
            shown = next((fixed for fixed in self.case.fixed if fixed.floor is floor), None)
            offered = [found for found in findings if found.fix is not None and found.fix.applicability >= floor]
            exact = [found for found in offered if found.fix is not None and found.fix.applicability is floor]
            if not exact:
                if shown:
                    complaints.append(f"a `fixed` block, but no finding has a {floor} fix")
                continue
            if shown is None and self.case.fixed:
                complaints.append(f"the case shows what its fixes give, but not for the {floor} fix {exact[0].fix.title!r}")  # type: ignore[union-attr]
            try:
                complaints += [f"{floor} fix: {complaint}" for complaint in self._fix(findings, offered, floor, shown)]
            except NotFixed as error:
                complaints.append(f"{floor} fix: {error}")
        return complaints

    def fixed(self, floor: Applicability) -> str:
        """The code with its fixes applied."""
        return self._apply(self.case.code, floor)

    def _fix(self, findings: list[Finding], offered: list[Finding], floor: Applicability, shown: Fixed | None) -> list[str]:
        code = self.case.code
        after = self._apply(code, floor)
        if after == code:
            return ["changes nothing"]
        try:
            ast.parse(after)
        except SyntaxError as error:
            return [f"does not parse ({error.msg}):\n{after}"]
        complaints: list[str] = []
        if self._apply(after, floor) != after:
            complaints.append(f"does not converge:\n{after}")
        if left := self._left(findings, offered, after):
            complaints.append(f"leaves or makes findings: {left}, in:\n{after}")
        about_code = [finding for finding in offered if finding.code not in ABOUT_COMMENTS]
        if floor is Applicability.SAFE and about_code and (lost := Counter(_comments(code)) - Counter(_comments(after))):
            complaints.append(f"is safe and loses a comment: {', '.join(lost)}")
        if loose := unbound(after) - unbound(code):
            complaints.append(f"reads names that nothing binds: {', '.join(sorted(loose))}, in:\n{after}")
        if shown is not None and shown.text != after:
            complaints.append(f"gives, other than the `fixed` block (run with --update to take it over):\n{after}")
        return complaints or self._fix_of_variants(after, floor)

    def _left(self, findings: list[Finding], offered: list[Finding], after: str) -> str:
        allowed = Counter(found.code for found in findings) - Counter(found.code for found in offered)
        left = Counter(found.code for found in self._findings(after)) - allowed
        return ", ".join(f"{self.names[code]} x{count}" for code, count in sorted(left.items()))

    def _fix_of_variants(self, after: str, floor: Applicability) -> list[str]:
        code = self.case.code
        complaints: list[str] = []
        pairs: dict[str, Callable[[str], str]] = {
            "crlf": lambda text: text.replace("\n", "\r\n"),
            "wide": lambda text: f"# {WIDE}\n{text}",
        }
        for name, write in pairs.items():
            if name not in self.case.options.skip and self._apply(write(code), floor) != write(after):
                complaints.append(f"differs in the {name} variant:\n{self._apply(write(code), floor)}")
        return complaints + self._fix_of_alias(after, floor) + self._fix_of_members(floor)

    def _fix_of_alias(self, after: str, floor: Applicability) -> list[str]:
        name = free_alias(self.case.code, after)
        before, expected = with_alias(self.case.code, name), with_alias(after, name)
        if "alias" in self.case.options.skip or before is None or expected is None:
            return []
        got = self._apply(before, floor)
        return [] if _dump(got) == _dump(expected) else [f"differs in the alias variant:\n{got}"]

    def _fix_of_members(self, floor: Applicability) -> list[str]:
        before = with_members(self.case.code)
        if "members" in self.case.options.skip or before is None:
            return []
        got = self._apply(before, floor)
        if _dump(got) is None:
            return [f"does not parse in the members variant:\n{got}"]
        if loose := unbound(got) - unbound(before):
            return [f"reads names that nothing binds in the members variant: {', '.join(sorted(loose))}, in:\n{got}"]
        return []

    def _findings(self, text: str) -> list[Finding]:
        return self.linter.check(self.case.options.path, text, self.rules, self.case.options.settings).findings

    def _apply(self, text: str, floor: Applicability) -> str:
        return self.linter.fix(self.case.options.path, text, self.rules, self.case.options.settings, floor)


def unbound(code: str) -> set[str]:
    """Names that are read and bound nowhere in the text: a rough check, without scopes."""
    bound: set[str] = set(dir(builtins))
    read: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                bound |= {each.asname or each.name.split(".")[0] for each in imported}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
    return read - bound


def _claims(mark: Mark, place: Place, finding: Finding) -> bool:
    if (mark.line, mark.rule) != place:
        return False
    return mark.expect is not Expect.ERROR or mark.part in finding.message


def _comments(code: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _dump(code: str) -> str | None:
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return None

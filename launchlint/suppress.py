"""What silences a finding: noqa, ignore comments, waivers and settings; and what is said about those comments.

* `# noqa` and `# noqa: LCH101` on the reported line, read exactly as flake8 reads them, so that both doors agree.
* `# launchlint: ignore[slice-fill-loop, LCH201] reason` on the first or last line of the finding, in the comment lines
  right above it, or on (or right above) the header of the loop that the finding names.
* `# launchlint: ignore-file[slice-fill-loop] reason` anywhere, and `# flake8: noqa` on a line of its own.
* waivers: `# gpu-sync-ok: reason` is known without configuration and silences uploads and reads; the beginnings of
  comments that `waivers` lists silence every rule. They stand where an ignore comment may stand.
* `per-file-ignores`.

Regions such as `with gpu_sync_allowed():` are no comments: the engine decides about them and adds what they silence.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from launchlint import registry
from launchlint.model import Applicability, Confidence, Edit, Finding, Fix, Meta, Related, Span
from launchlint.patterns import Pattern
from launchlint.settings import Settings, did_you_mean, names_rule
from launchlint.source import Source

NOQA = Pattern(r"# noqa(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)
NOQA_FILE = Pattern(r"^\s*# flake8[:=]\s*noqa(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?\s*$", re.IGNORECASE | re.MULTILINE)
NOQA_NAME = Pattern(r"# noqa:\s*(?P<name>[a-z0-9]+(?:-[a-z0-9]+)+)", re.IGNORECASE)
IGNORE = Pattern(r"#\s*launchlint:\s*(?P<kind>ignore-file|ignore)(?=[\s\[:#]|$)\s*(?:\[(?P<words>[^\]]*)\])?[\s:,-]*(?P<reason>[^#]*)")
OUR_MARK = Pattern(r"launchlint:\s*ignore|noqa:[\w,\s]*LCH\d", re.IGNORECASE)
LOOP_HEADER = Pattern(r"(?:async\s+)?for\b|while\b")
WAIVERS = ("gpu-sync-ok",)  # what frameworks themselves write beside a deliberate wait
WAIVER_GROUPS = frozenset({"uploads", "reads"})

Silenced = tuple[Finding, str]


@dataclass(slots=True)
class Directive:
    """One comment of ours. `words` is empty where it means every rule of `groups` (empty: every group)."""

    kind: str  # "ignore", "ignore-file" or the waiver's own word
    span: Span
    line: int
    words: tuple[str, ...]
    reason: str
    groups: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)  # the words that silenced something; "" for a comment without words

    def silences(self, meta: Meta) -> bool:
        """Whether the comment means this rule; remembers that it was of use."""
        if self.groups and meta.group not in self.groups:
            return False
        if not self.words:
            self.used.add("")
            return True
        hits = [word for word in self.words if names_rule(word, meta.code, meta.name)]
        self.used.update(hits)
        return bool(hits)

    def said(self) -> str:
        """How the silence is explained: the kind, and the reason where one is given."""
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def apply(
    source: Source, findings: Sequence[Finding], settings: Settings, below: Sequence[Finding] = ()
) -> tuple[list[Finding], list[Silenced]]:
    """Split `findings` into those that stay and those that are silenced, each with what silenced it.

    Findings about the comments themselves (LCH001, LCH002) are added to those that stay. `below` are findings under
    the asked confidence: they are not reported, but a comment that silences one of them is in use.
    """
    if settings.overrides or settings.of_file:
        findings = [finding for finding in findings if registry.is_selected(_meta(finding.code), settings)]
    wanted = _own_rules(settings)
    if not findings and not _may_say_something(source.text, wanted):
        return [], []
    comments = _Comments(source, settings)
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    ignored = settings.ignored_in(source.path)
    for finding in findings:
        meta = _meta(finding.code)
        if any(names_rule(word, meta.code, meta.name) for word in ignored):
            silenced.append((finding, "per-file-ignores"))
        elif reason := comments.silence(finding, meta):
            silenced.append((finding, reason))
        else:
            kept.append(comments.explain(finding))
    for finding in below:
        comments.silence(finding, _meta(finding.code))
    own = [*comments.names_after_noqa()] if "LCH002" in wanted else []
    own += comments.unused() if "LCH001" in wanted else []
    kept += [finding for finding in own if not any(names_rule(word, finding.code, _meta(finding.code).name) for word in ignored)]
    return sorted(kept, key=Finding.key), silenced


@functools.lru_cache(maxsize=8)
def _own_rules(settings: Settings) -> frozenset[str]:
    return frozenset(code for code in ("LCH001", "LCH002") if registry.is_selected(_meta(code), settings))


def _may_say_something(text: str, wanted: frozenset[str]) -> bool:
    if "noqa:" not in (lowered := text.lower()) and "launchlint:" not in lowered:
        return False  # a hundred times as fast as looking for the patterns in any case
    return ("LCH001" in wanted and OUR_MARK.search(text) is not None) or (
        "LCH002" in wanted and any(_rule_names(found["name"]) for found in NOQA_NAME.finditer(text))
    )


def _meta(code: str) -> Meta:
    return registry.load()[code].meta


def _rule_names(name: str) -> bool:
    return registry.find(name.lower()) is not None


def tokens_of(text: str) -> list[tokenize.TokenInfo]:
    """Tokens up to the first error; lines are counted as everywhere in launchlint."""
    found: list[tokenize.TokenInfo] = []
    try:
        found.extend(tokenize.generate_tokens(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n")).readline))
    except (tokenize.TokenError, SyntaxError, SystemError):  # the last is a fault of CPython 3.13.0 in f-strings
        pass  # the file parses, so what is lost is a corner that only the tokenizer of this Python minds
    return found


class _Comments:
    """The comments of one file; tokenised only if something in the text looks like one of ours."""

    def __init__(self, source: Source, settings: Settings) -> None:
        self.source = source
        self.settings = settings
        text = source.text
        self.waivers = dict.fromkeys(WAIVERS, WAIVER_GROUPS) | {word: frozenset[str]() for word in settings.waivers}
        self.has_noqa = "noqa" in text.lower()
        self.noqa_used: set[tuple[int, str]] = set()  # first line of what flake8 reads as one, and a code
        self.has_ours = "launchlint:" in text or any(word in text for word in self.waivers)

    # ------------------------------------------------------------ reading

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return tokens_of(self.source.text)

    @cached_property
    def texts(self) -> dict[int, tuple[Span, str]]:
        """The comment of every line that has one."""
        found: dict[int, tuple[Span, str]] = {}
        for token in self.tokens:
            if token.type == tokenize.COMMENT:
                start = self.source.line_starts[token.start[0] - 1] + token.start[1]
                found[token.start[0]] = (Span(start, start + len(token.string)), token.string)
        return found

    @cached_property
    def joined(self) -> dict[int, tuple[int, int]]:
        """Lines that flake8 reads as one when it looks for noqa: strings of several lines and backslashes."""
        found: dict[int, tuple[int, int]] = {}
        first, last = 0, 0
        for token in self.tokens:
            if token.type in (tokenize.ENDMARKER, tokenize.DEDENT):
                continue
            first = min(first or token.start[0], token.start[0])
            last = max(last, token.end[0])
            if token.type in (tokenize.NL, tokenize.NEWLINE):
                if last > first:
                    found.update((line, (first, last)) for line in range(first, last + 1))
                first, last = 0, 0
        return found

    @cached_property
    def directives(self) -> dict[int, list[Directive]]:
        """Ignore comments and waivers by line."""
        found: dict[int, list[Directive]] = {}
        if self.has_ours:
            for line, (span, text) in self.texts.items():
                if here := [*self._read(span, line, text)]:
                    found[line] = here
        return found

    def _read(self, span: Span, line: int, text: str) -> Iterator[Directive]:
        for match in IGNORE.finditer(text):
            words = tuple(word for word in re.split(r"[,\s]+", match["words"] or "") if word)
            place = Span(span.start + match.start(), span.start + match.end())
            yield Directive(match["kind"], place, line, words, match["reason"].strip())
        for word, groups in self.waivers.items():
            if match_waiver := re.search(rf"#\s*{re.escape(word)}(?![\w-])[\s:,-]*(?P<reason>[^#]*)", text):
                yield Directive(word, span, line, (), match_waiver["reason"].strip(), groups)

    # ------------------------------------------------------------ silencing

    def silence(self, finding: Finding, meta: Meta) -> str | None:
        """What silences the finding, or None."""
        line = self.source.position(finding.span.start).line
        if self.has_noqa and self._noqa(line, meta):
            return "noqa"
        if not self.has_ours:
            return None
        for directive in self._near(finding, line):
            if self._counts(directive) and directive.silences(meta):
                return directive.said()
        return None

    def _noqa(self, line: int, meta: Meta) -> bool:
        for found in NOQA_FILE.finditer(self.source.text):
            if _lists(found["codes"], meta.code):
                return True
        if "noqa" not in self.source.line(line).lower() and not self._is_joined(line):
            return False
        first, last = self.joined.get(line, (line, line))
        mark = NOQA.search("\n".join(self.source.line(number) for number in range(first, last + 1)))
        if mark is None or not _lists(mark["codes"], meta.code):
            return False
        self.noqa_used.add((first, meta.code))
        return True

    def _is_joined(self, line: int) -> bool:
        """Cheap test before tokenising: only quotes of three and backslashes join lines, and braces may stand inside such quotes."""
        here = self.source.line(line)
        may_be = here.endswith("\\") or self.source.line(line - 1).endswith("\\") or any(mark in here for mark in ('"""', "'''", "{"))
        return may_be and line in self.joined

    def _counts(self, directive: Directive) -> bool:
        return bool(directive.reason) or not self.settings.require_reasons

    def _near(self, finding: Finding, line: int) -> Iterator[Directive]:
        """The comments that may speak about the finding, nearest first."""
        last = self.source.position(max(finding.span.start, finding.span.end - 1)).line
        lines = [line, *([last] if last != line else []), *self._above(line)]
        for related in finding.related:
            if LOOP_HEADER.match(self.source.text, related.span.start):
                header = self.source.position(related.span.start).line
                lines += [header, *self._above(header)]
        for number in dict.fromkeys(lines):
            yield from (found for found in self.directives.get(number, ()) if found.kind != "ignore-file")
        for here in self.directives.values():
            yield from (found for found in here if found.kind == "ignore-file")

    def _above(self, line: int) -> Iterator[int]:
        """The lines right above that hold nothing but a comment."""
        line -= 1
        while line >= 1 and self.source.line(line).lstrip().startswith("#") and line in self.texts:
            yield line
            line -= 1

    def explain(self, finding: Finding) -> Finding:
        """Say at the finding why a comment that looks as if it silenced it does not."""
        if not self.has_ours:
            return finding
        meta = _meta(finding.code)
        notes: list[Related] = []
        for directive in self._near(finding, self.source.position(finding.span.start).line):
            if not self._counts(directive) and (not directive.words or any(names_rule(w, meta.code, meta.name) for w in directive.words)):
                notes.append(Related(directive.span, "this comment gives no reason, and require-reasons asks for one"))
            notes += [Related(directive.span, _unknown(word)) for word in directive.words if not _is_known(word)]
        return replace(finding, related=(*finding.related, *notes)) if notes else finding

    # ------------------------------------------------------------ about the comments themselves

    def names_after_noqa(self) -> Iterator[Finding]:
        """LCH002: a name after noqa. flake8 takes no names there and silences everything on the line."""
        if not self.has_noqa or not NOQA_NAME.search(self.source.text):
            return
        for span, text in self.texts.values():
            if not (found := NOQA_NAME.search(text)) or not (rule := registry.find(found["name"].lower())):
                continue
            place = Span(span.start + found.start(), span.start + found.end())
            name = Span(span.start + found.start("name"), span.start + found.end("name"))
            message = f"`noqa: {found['name']}` silences every linter on this line, since noqa takes codes only: write {rule.meta.code}"
            fix = Fix(f"write {rule.meta.code}", (Edit(name, rule.meta.code),), Applicability.UNSAFE)
            yield Finding("LCH002", place, message, Confidence.HIGH, fix=fix)

    def unused(self) -> Iterator[Finding]:
        """LCH001: an ignore comment that silences nothing, or one that names no rule. Call it after all of `silence`."""
        selected = {rule.meta.code for rule in registry.load().values() if registry.is_selected(rule.meta, self.settings)}
        for here in self.directives.values():
            for directive in here:
                if directive.kind not in ("ignore", "ignore-file") or not self._counts(directive):
                    continue
                idle = [word for word in directive.words if word not in directive.used and _ran(word, selected)]
                if idle or (not directive.words and not directive.used and not self.settings.select):
                    yield self._unused(directive, idle)
        for line, (span, text) in self.texts.items():
            if (mark := NOQA.search(text)) and mark["codes"]:
                yield from self._unused_codes(line, span, mark, selected)

    def _unused_codes(self, line: int, comment: Span, mark: re.Match[str], selected: set[str]) -> Iterator[Finding]:
        """Codes of ours after noqa that silence nothing; those of other linters are their business."""
        first = self.joined.get(line, (line, line))[0]
        codes = [code for code in re.split(r"[,\s]+", mark["codes"]) if code]
        used = {code for place, code in self.noqa_used if place == first}
        idle = [
            code for code in codes if _is_known(code) and _ran(code, selected) and not any(each.startswith(code.upper()) for each in used)
        ]
        if not idle:
            return
        left = [code for code in codes if code not in idle]
        place = Span(comment.start + mark.start(), comment.start + mark.start() + len(mark.group().rstrip(", ")))
        fix: Fix | None = None
        if left:
            codes_at = Span(comment.start + mark.start("codes"), place.end)
            fix = Fix("remove what is unused", (Edit(codes_at, ", ".join(left)),), Applicability.SAFE)
        elif place == comment:
            fix = Fix("remove the unused comment", (Edit(self._whole(line, comment), ""),), Applicability.SAFE)
        yield Finding("LCH001", place, f"`noqa: {', '.join(idle)}` silences nothing here", Confidence.HIGH, fix=fix)

    def _unused(self, directive: Directive, idle: Sequence[str]) -> Finding:
        if unknown := [word for word in idle if not _is_known(word)]:
            return Finding("LCH001", directive.span, _unknown(unknown[0]), Confidence.HIGH)
        what = f"`{', '.join(idle)}`" if idle else "this comment"
        message = f"{what} silences nothing here"
        return Finding("LCH001", directive.span, message, Confidence.HIGH, fix=self._without(directive, idle))

    def _without(self, directive: Directive, idle: Sequence[str]) -> Fix | None:
        text = self.source.text[directive.span.start : directive.span.end]
        left = [word for word in directive.words if word not in idle]
        if left:
            start, end = directive.span.start + text.index("[") + 1, directive.span.start + text.index("]")
            return Fix("remove what is unused", (Edit(Span(start, end), ", ".join(left)),), Applicability.SAFE)
        whole, _ = self.texts[directive.line]
        if whole != directive.span:
            return None  # something else stands in the same comment
        return Fix("remove the unused comment", (Edit(self._whole(directive.line, whole), ""),), Applicability.SAFE)

    def _whole(self, line: int, comment: Span) -> Span:
        """What goes with the comment: the space before it, or the line if it has that to itself."""
        line_start = self.source.line_starts[line - 1]
        before = self.source.text[line_start : comment.start]
        if before.strip():
            return Span(line_start + len(before.rstrip()), comment.end)
        starts = self.source.line_starts
        return Span(line_start, starts[line] if line < len(starts) else comment.end)


def _lists(codes: str | None, code: str) -> bool:
    """Whether the codes after noqa mean `code`; no codes at all mean every code."""
    if codes is None:
        return True
    return any(word and code.startswith(word.upper()) for word in re.split(r"[,\s]+", codes))


def _metas() -> Iterable[Meta]:
    return (rule.meta for rule in registry.load().values())


def _is_known(word: str) -> bool:
    return any(names_rule(word, meta.code, meta.name) for meta in _metas())


def _ran(word: str, selected: set[str]) -> bool:
    """Whether a rule that `word` means took part in this run; an unknown word counts, so that it is told."""
    meant = {meta.code for meta in _metas() if names_rule(word, meta.code, meta.name)}
    return not meant or bool(meant & selected)


def _unknown(word: str) -> str:
    near = did_you_mean(word, [meta.name for meta in _metas()])
    return f"no rule has the code or name {word!r}{near}"

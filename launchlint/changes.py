"""Which lines have changed: since a revision of git, or as a patch says.

Only findings that touch a changed line are then reported, or whose loop holds one: the cost of a loop is the loop's, and
a line added to it is what the reviewer is asked about.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from launchlint.model import Finding, Span
from launchlint.source import Source, SourceError
from launchlint.streams import Trouble

HUNK = re.compile(rb"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@")
ESCAPE = re.compile(rb'\\(?:([0-7]{3})|([abtnvfr"\\]))')
NAMED_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
AUTO = "auto"
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Range = tuple[int, int]  # first and last line, 1-based, as git counts: lines end at LF


@dataclass(slots=True)
class Changes:
    """The changed lines of each file, by the file's real path. A file that is `whole` has changed in all its lines."""

    option: str  # the option that asked, for the count of what it leaves out
    lines: dict[str, list[Range]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    def split(self, source: Source, findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings on changed lines or in a loop that holds one, and the others."""
        findings = list(findings)
        path = os.path.realpath(source.path)
        if path in self.whole or not findings:
            return findings, []
        ranges = self.lines.get(path, [])
        if not ranges:
            return [], findings
        loops = _Loops(source)
        kept: list[Finding] = []
        left: list[Finding] = []
        for finding in findings:
            spans = [finding.span, *(loop for related in finding.related if (loop := loops.at(related.span)) is not None)]
            touched = any(_overlap(_git_lines(*source.on_disk(span)), ranges) for span in spans)
            (kept if touched else left).append(finding)
        return kept, left


def _overlap(lines: Range, ranges: list[Range]) -> bool:
    return any(first <= lines[1] and lines[0] <= last for first, last in ranges)


def _git_lines(source: Source, span: Span) -> Range:
    first = source.text.count("\n", 0, span.start) + 1
    return first, first + source.text.count("\n", span.start, max(span.start, span.end - 1))


class _Loops:
    """The loops of a file by where they start: a related place shows the header only, and the body belongs to it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._spans: dict[int, Span] | None = None

    def at(self, place: Span) -> Span | None:
        """The whole loop whose header, or the comprehension that, `place` is."""
        if self._spans is None:
            self._spans = {span.start: span for span in self._read()}
        return self._spans.get(place.start)

    def _read(self) -> Iterator[Span]:
        try:
            pending: list[ast.AST] = [self.source.tree]
        except SourceError:
            return
        while pending:
            node = pending.pop()
            if isinstance(node, (*LOOPS, *COMPREHENSIONS)):
                yield self.source.span(node)
            pending.extend(ast.iter_child_nodes(node))


# ---------------------------------------------------------------- git


def since(revision: str, folder: str) -> Changes:
    """What the working tree around `folder` has beyond the last commit it shares with `revision`, files not yet added included.

    `auto` stands for what the surroundings name: what a push would send under pre-commit, the target of a pull or merge
    request in CI, the upstream branch, or the default branch of `origin`. Raise Trouble where git cannot say.
    """
    git = Git(folder)
    top = git.top()
    commit = git.commit(git.automatic() if revision == AUTO else revision)
    base = git.attempt("merge-base", commit, "HEAD")
    start = base.decode().strip() if base else commit
    options = ("--unified=0", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")
    git = Git(top)
    patch = git.run("-c", "core.quotePath=false", "diff", *options, "--diff-filter=d", "--ignore-submodules", start, "--")
    changes = Changes("--since", _resolve(read_patch(patch), [top]))
    untracked = git.run("ls-files", "--others", "--exclude-standard", "-z")
    changes.whole = {os.path.join(top, os.fsdecode(name)) for name in untracked.split(b"\0") if name}
    return changes


@dataclass(frozen=True, slots=True)
class Git:
    """git, asked in a folder."""

    folder: str

    def run(self, *arguments: str) -> bytes:
        """What git prints; raise Trouble with its own words where it fails."""
        try:
            done = subprocess.run(["git", *arguments], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise Trouble(f"--since: git cannot be run: {error.strerror or error}") from error
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().splitlines()
            raise Trouble(f"--since: git {arguments[0]} failed: {reason[-1] if reason else f'exit code {done.returncode}'}")
        return done.stdout

    def attempt(self, *arguments: str) -> bytes | None:
        """What git prints, or None where it fails."""
        try:
            return self.run(*arguments)
        except Trouble:
            return None

    def top(self) -> str:
        """The real path of the top of the working tree."""
        return os.path.realpath(os.fsdecode(self.run("rev-parse", "--show-toplevel")).rstrip("\n"))

    def commit(self, revision: str) -> str:
        """The name of the commit that a revision means."""
        found = self.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if not found:
            shallow = (self.attempt("rev-parse", "--is-shallow-repository") or b"").strip() == b"true"
            hint = "; this clone is shallow, fetch its history first" if shallow else ""
            raise Trouble(f"--since {revision}: git knows no such revision here{hint}")
        return found.decode().strip()

    def automatic(self) -> str:
        """The revision that `auto` stands for."""
        for variable, prefix in (("PRE_COMMIT_FROM_REF", ""), ("GITHUB_BASE_REF", "origin/"), ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")):
            if value := os.environ.get(variable):
                return prefix + value
        for revision in ("@{upstream}", "origin/HEAD"):
            if self.attempt("rev-parse", "--verify", "--quiet", revision):
                return revision
        raise Trouble(
            "--since auto: nothing says what to compare with: no pull request, no upstream branch, no origin/HEAD; name a revision"
        )


# ---------------------------------------------------------------- patches


def of_patch(path: str, folder: str) -> Changes:
    """What a patch says (`-` reads standard input); its paths are those of the repository around `folder`, or of the working
    directory.

    Raise Trouble where the file cannot be read or is no patch.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror or error}") from error
    if data.strip() and b"\n+++ " not in b"\n" + data and b"diff --git " not in data:
        raise Trouble(f"{path}: not a unified diff")
    top = Git(folder).attempt("rev-parse", "--show-toplevel")
    roots = [os.fsdecode(top).rstrip("\n")] if top else []
    return Changes("--diff-file", _resolve(read_patch(data), [*roots, os.getcwd()]))


def read_patch(data: bytes) -> dict[bytes, list[Range]]:
    """Added and changed lines by the path of the new side, as it is written after `+++ `."""
    found: dict[bytes, list[Range]] = {}
    ranges: list[Range] = []
    old = new = number = 0
    for line in data.split(b"\n"):
        if old > 0 or new > 0:
            match line[:1]:
                case b"+":
                    _extend(ranges, number)
                    number, new = number + 1, new - 1
                case b"-":
                    old -= 1
                case b"\\":
                    pass  # "No newline at end of file" is no line
                case _:
                    number, old, new = number + 1, old - 1, new - 1
        elif line.startswith(b"+++ "):
            ranges = found.setdefault(_unquote(line[4:].rstrip(b"\r")), [])
        elif hunk := HUNK.match(line):
            old = int(hunk["old"] or 1)
            new = int(hunk["new"] or 1)
            number = int(hunk["start"])
    return found


def _extend(ranges: list[Range], number: int) -> None:
    if ranges and ranges[-1][1] == number - 1:
        ranges[-1] = (ranges[-1][0], number)
    else:
        ranges.append((number, number))


def _unquote(name: bytes) -> bytes:
    """A path as patches write it: git quotes odd names as C does, and diff puts a tab and a time after it."""
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        return ESCAPE.sub(lambda found: bytes([int(found[1], 8) & 0xFF]) if found[1] else NAMED_ESCAPES.get(found[2], found[2]), name[1:-1])
    return name.partition(b"\t")[0]


def _resolve(patch: Mapping[bytes, list[Range]], roots: list[str]) -> dict[str, list[Range]]:
    """Real paths of the files of a patch that are there, with git's `b/` taken off or, where that leads nowhere, left on."""
    found: dict[str, list[Range]] = {}
    for name, ranges in patch.items():
        written = os.fsdecode(name)
        stripped = written.partition("/")[2] if written[:2] in ("a/", "b/", "i/", "w/") else written
        for root in roots:
            path = next((path for each in (stripped, written) if os.path.isfile(path := os.path.join(root, each))), None)
            if path is not None:
                found.setdefault(os.path.realpath(path), []).extend(ranges)
                break
    return found

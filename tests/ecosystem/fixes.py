"""What fixing does to whole source trees: `python -m tests.ecosystem.fixes ROOT ... [--jobs N] [--patches FOLDER]`

The `*.py` files of each ROOT are copied to a temporary folder, checked at default settings without a configuration file, and
fixed there twice: the safe fixes first, then the unsafe ones as well. After each, every file is checked again with the call graph
of the whole tree. A table says, per rule, how many fixes were applied, in how many files, how many findings stayed although their
fix was applied, how many could still be fixed (a second run would change them) and how many are new in changed files;
what a fixed finding had folded into itself does not count as new.

Every changed file must parse, and `git apply` must turn an untouched copy into the same bytes. Exits with 1 where one of these
fails. ROOT is only read, nothing of it is imported, and no source is kept unless `--patches` names a folder for the patches.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launchlint import discover, engine, fixes, registry, settings
from launchlint.cache import Cache
from launchlint.engine import read_source
from launchlint.model import Applicability, FileReport, Finding, Span
from launchlint.rule import Rule
from launchlint.settings import Settings
from launchlint.source import Source
from tests.ecosystem.run import inside

FLOORS = (Applicability.SAFE, Applicability.UNSAFE)
COLUMNS = ("rule", "safe", "unsafe", "files", "stayed", "left", "new")


@dataclass(frozen=True, order=True, slots=True)
class Shown:
    """A finding as its reader sees it: the rule and the first line of what it points at, which stay when lines move."""

    code: str
    text: str


@dataclass(slots=True)
class Tally:
    """What became of one rule's fixes in one tree."""

    safe: int = 0
    unsafe: int = 0
    files: set[str] = field(default_factory=set)
    stayed: int = 0  # the fix was applied and the finding is still there
    left: int = 0  # could be fixed and was not
    new: int = 0  # found in changed files at what had no such finding

    def row(self, code: str) -> tuple[str, ...]:
        """The cells of COLUMNS."""
        return (code, *map(str, (self.safe, self.unsafe, len(self.files), self.stayed, self.left, self.new)))


@dataclass(slots=True)
class Outcome:
    """What fixing one tree gave. `new` are the new findings with their files, `patches` the patch of each floor."""

    rules: dict[str, Tally] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    new: list[tuple[str, Shown]] = field(default_factory=list)
    patches: dict[Applicability, bytes] = field(default_factory=dict)

    def of(self, code: str) -> Tally:
        """The tally of a rule."""
        return self.rules.setdefault(code, Tally())

    @property
    def is_clean(self) -> bool:
        """True if nothing broke, every fixed finding is gone and a second run would change nothing."""
        return not self.problems and not any(tally.stayed or tally.left for tally in self.rules.values())


# ---------------------------------------------------------------- pure parts


def shown(source: Source, findings: Iterable[Finding]) -> Counter[Shown]:
    """The findings of a file, however often each is there."""
    return Counter(Shown(found.code, first_line(source, found.span)) for found in findings)


def first_line(source: Source, span: Span) -> str:
    """What stands at `span`, up to the end of its line."""
    return "".join(source.text[span.start : span.end].splitlines()[:1]).strip()


def covered(source: Source, findings: Iterable[Finding]) -> set[str]:
    """What findings of a file name as related: what is folded into a finding stands alone when that is fixed."""
    return {first_line(source, related.span) for found in findings for related in found.related}


def stayed(before: Iterable[Finding], applied: Iterable[Finding], after: Iterable[Finding]) -> Counter[str]:
    """For each rule with an applied fix, how many more findings a file has than it had less those that were fixed.

    What a fixed finding had folded into itself was there before, and is shown now.
    """
    before, applied = list(before), list(applied)
    fixed = Counter(found.code for found in applied)
    folded = Counter(found.code for found in applied for related in found.related if related.note.startswith("also "))
    was, now = Counter(found.code for found in before), Counter(found.code for found in after)
    return +Counter({code: now[code] - max(was[code] - count, 0) - folded[code] for code, count in fixed.items()})


def table(outcome: Outcome) -> str:
    """The tallies as aligned text, one line per rule and one for all."""
    whole = Tally()
    for tally in outcome.rules.values():
        whole.safe += tally.safe
        whole.unsafe += tally.unsafe
        whole.files |= tally.files
        whole.stayed += tally.stayed
        whole.left += tally.left
        whole.new += tally.new
    rows = [COLUMNS, *(tally.row(code) for code, tally in sorted(outcome.rules.items())), whole.row("all")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + "\n" for row in rows)


# ---------------------------------------------------------------- one tree


class Tree:
    """The copy of a source tree in the working directory, and what is found in it."""

    def __init__(self, jobs: int, known: Path) -> None:
        self.settings: Settings = settings.load(".", isolated=True)
        self.rules: Sequence[Rule] = registry.select(self.settings)
        self.paths = discover.find(["."], self.settings).files
        self.jobs = jobs
        self.cache = Cache(str(known), self.settings, self.rules)  # of files that no fix has changed
        self.outcome = Outcome()
        self.reports = self._check()

    def _check(self) -> dict[str, FileReport]:
        report = engine.check_files(self.paths, self.rules, self.settings, self.jobs, cache=self.cache)
        return {file.path: file for file in report.files}

    def fix(self, floor: Applicability) -> None:
        """Apply every fix of at least `floor`, and compare what is found then with what was found before."""
        before, done = self.reports, dict(self._fixed(floor))
        self.outcome.patches[floor] = b"".join(fixes.unified_diff(source, fixed.text) for source, fixed in done.values())
        for path, (source, fixed) in done.items():
            fixes.write(path, source, fixed.text)
            try:
                ast.parse(Path(path).read_bytes())
            except (SyntaxError, ValueError) as error:
                self.outcome.problems.append(f"{path}: does not parse ({error})")
        self.reports = self._check()
        for path, (source, fixed) in done.items():
            self._compare(path, source, before[path].findings, fixed)
        self._count_left(floor)

    def _fixed(self, floor: Applicability) -> Iterator[tuple[str, tuple[Source, fixes.Fixed]]]:
        """The files that fixing changes."""
        for path, report in self.reports.items():
            if not self._fixable(report.findings, floor):
                continue
            source, check = self._rounds(path, report)
            fixed = fixes.fix_source(source, check, floor, self.settings)
            self.outcome.problems += [str(problem) for problem in fixed.problems]
            if fixed.text != source.text:
                for finding in fixed.applied:
                    self._count_applied(path, finding)
                yield path, (source, fixed)

    def _rounds(self, path: str, report: FileReport) -> tuple[Source, Callable[[Source], Sequence[Finding]]]:
        """A file, and what is found in each round: after the first the file is seen alone, as by the command line."""
        source = read_source(path)

        def check(current: Source) -> Sequence[Finding]:
            return report.findings if current.text == source.text else engine.check_source(current, self.rules, self.settings).findings

        return source, check

    def _fixable(self, findings: Iterable[Finding], floor: Applicability) -> list[Finding]:
        return [found for found in findings if fixes.applicability(found, self.settings) >= floor]

    def _count_applied(self, path: str, finding: Finding) -> None:
        tally = self.outcome.of(finding.code)
        tally.files.add(path)
        if fixes.applicability(finding, self.settings) is Applicability.SAFE:
            tally.safe += 1
        else:
            tally.unsafe += 1

    def _compare(self, path: str, source: Source, before: Sequence[Finding], fixed: fixes.Fixed) -> None:
        after = self.reports[path]
        self.outcome.problems += [str(problem) for problem in after.problems]
        for code, count in stayed(before, fixed.applied, after.findings).items():
            self.outcome.of(code).stayed += count
        known = covered(source, before)
        for new, count in (shown(read_source(path), after.findings) - shown(source, before)).items():
            if new.text not in known:
                self.outcome.of(new.code).new += count
                self.outcome.new += [(path, new)] * count

    def _count_left(self, floor: Applicability) -> None:
        """What a second run would change; a safe fix that would take a comment away is left to the unsafe ones."""
        for path, report in self.reports.items():
            if self._fixable(report.findings, floor):
                for finding in fixes.fix_source(*self._rounds(path, report), floor, self.settings).applied:
                    self.outcome.of(finding.code).left += 1


def fix_tree(root: Path, jobs: int) -> Outcome:
    """Fix a copy of the `*.py` files below `root`, and check the patches on another."""
    with tempfile.TemporaryDirectory() as folder:
        copy, other = Path(folder, "fixed"), Path(folder, "patched")
        copy_python(root, copy)
        with inside(copy):
            tree = Tree(jobs, Path(folder, "known"))
            for floor in FLOORS:
                tree.fix(floor)
        changed = {path for tally in tree.outcome.rules.values() for path in tally.files}
        tree.outcome.problems += check_patches(root, copy, other, sorted(changed), list(tree.outcome.patches.values()))
    return tree.outcome


def copy_python(root: Path, target: Path) -> None:
    """Copy the Python files of a tree."""
    for path in sorted(root.rglob("*.py")):
        place = target / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def check_patches(root: Path, fixed: Path, folder: Path, names: Sequence[str], patches: Sequence[bytes]) -> list[str]:
    """What is wrong with `patches`, applied in order to the files `names` of `root`: they must give those of `fixed`."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, folder / name)
    if not names:
        return []
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    for patch in filter(None, patches):
        done = subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, capture_output=True, check=False)
        if done.returncode:
            return [f"git apply: {done.stderr.decode(errors='replace').strip()}"]
    return [f"{name}: the patch gives other bytes" for name in names if (folder / name).read_bytes() != (fixed / name).read_bytes()]


# ---------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="+", metavar="ROOT", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--patches", type=Path, metavar="FOLDER", help="keep the patches there, as NAME.safe.patch and NAME.unsafe.patch")
    options = parser.parse_args(arguments)
    is_clean = True
    for root in options.roots:
        outcome = fix_tree(root.absolute(), options.jobs)
        is_clean = is_clean and outcome.is_clean
        print(f"{root.name}\n{table(outcome)}", end="")
        for problem in outcome.problems:
            print(f"  problem: {problem}")
        for path, new in sorted(outcome.new):
            print(f"  new: {path} {new.code} {new.text}")
        sys.stdout.flush()
        if options.patches is not None:
            options.patches.mkdir(parents=True, exist_ok=True)
            for floor, patch in outcome.patches.items():
                (options.patches / f"{root.name}.{floor}.patch").write_bytes(patch)
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())

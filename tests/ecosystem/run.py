"""Findings on pinned public wheels: `python -m tests.ecosystem.run COMMAND [--package NAME ...] [--jobs N]`

    fetch     download the wheels of wheels.toml and unpack their *.py files; nothing is installed or imported
    baseline  write what is found now at default settings to baseline/
    diff      compare what is found now with baseline/: what a change adds and removes, per rule and place; exits with 1 on a difference
    labels    what a reader said of a sample: counts among the labels that still fire, and which fire no more
    sample    draw findings that nobody has labelled yet (`--count`, `--seed`), as entries to fill in

Sources lie in $LAUNCHLINT_CORPUS, or in ~/.cache/launchlint-corpus. Baselines and labels name places by path and by a hash of
the line's text: no source is kept here.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchlint import discover, engine, registry, settings
from launchlint.engine import read_source
from launchlint.model import FileReport, Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
VERDICTS = ("cost", "harmless", "false alarm")


@dataclass(frozen=True, order=True, slots=True)
class Mark:
    """A finding as a baseline keeps it. `occurrence` counts findings of one rule on lines of equal text in a file, from 1."""

    path: str
    code: str
    hash: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.path} {self.code} {self.hash} {self.occurrence}"

    @classmethod
    def parse(cls, text: str) -> Mark:
        """Read `str(mark)`; a path may hold spaces. Raises ValueError for anything else."""
        path, code, line_hash, occurrence = text.rsplit(" ", 3)
        return cls(path, code, line_hash, int(occurrence))


@dataclass(frozen=True, slots=True)
class Place:
    """A finding of this run. `covers` are the lines of its related places."""

    path: str
    code: str
    line: int
    hash: str
    message: str = ""
    covers: tuple[int, ...] = ()


@dataclass(frozen=True, order=True, slots=True)
class Label:
    """What a reader said of one finding."""

    package: str
    code: str
    path: str
    line: int
    hash: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wheel:
    """A pinned wheel. `sources` is the digest of its *.py files."""

    name: str
    version: str
    sources: str

    @property
    def title(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def root(self) -> Path:
        return corpus() / self.title

    @property
    def baseline(self) -> Path:
        return HERE / "baseline" / f"{self.title}.txt"


# ---------------------------------------------------------------- pure parts


def hash_of(line: str) -> str:
    """16 hexadecimal digits for a line's text; white space between words and around them does not count."""
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def marks_of(places: Iterable[Place]) -> dict[Mark, Place]:
    """The places under the names that a baseline gives them."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found: dict[Mark, Place] = {}
    for place in sorted(places, key=lambda place: (place.path, place.code, place.line)):
        key = (place.path, place.code, place.hash)
        seen[key] += 1
        found[Mark(*key, seen[key])] = place
    return found


def line_of(mark: Mark, text: str) -> int:
    """The line in the text of a file that a mark most likely stood on; 0 where no line has its hash."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if hash_of(line) == mark.hash]
    return lines[min(mark.occurrence, len(lines)) - 1] if lines else 0


def render(marks: Iterable[Mark]) -> str:
    """The text of a baseline."""
    return "".join(f"{mark}\n" for mark in sorted(marks))


def parse(text: str) -> set[Mark]:
    """The marks of a baseline."""
    return {Mark.parse(line) for line in text.splitlines() if line}


def changes_per_rule(old: Iterable[Mark], new: Iterable[Mark]) -> list[tuple[str, int, int, int]]:
    """For each rule with a difference: code, how many were added, removed, and are found now."""
    before, after = set(old), set(new)
    added = Counter(mark.code for mark in after - before)
    removed = Counter(mark.code for mark in before - after)
    total = Counter(mark.code for mark in after)
    return [(code, added[code], removed[code], total[code]) for code in sorted(added | removed)]


def sort_labels(labels: Iterable[Label], found: Iterable[Place]) -> tuple[list[Label], dict[Label, str]]:
    """The labels that still fire, and the others with what is known of them: another rule, or a finding that covers the line."""
    by_line: dict[tuple[str, int], list[Place]] = defaultdict(list)
    covering: dict[tuple[str, int], Place] = {}
    for place in found:
        by_line[place.path, place.line].append(place)
        for line in place.covers:
            covering.setdefault((place.path, line), place)
    fires: list[Label] = []
    gone: dict[Label, str] = {}
    for label in labels:
        here = by_line.get((label.path, label.line), [])
        cover = covering.get((label.path, label.line))
        if any(place.code == label.code for place in here):
            fires.append(label)
        elif here:
            gone[label] = f"now {here[0].code}"
        else:
            gone[label] = f"shown with line {cover.line}, {cover.code}" if cover is not None else ""
    return fires, gone


def shares(labels: Iterable[Label], by: str) -> list[tuple[str, Counter[str]]]:
    """Counts of verdicts per value of the attribute `by`, in order."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for label in labels:
        counts[getattr(label, by)][label.verdict] += 1
    return sorted(counts.items())


def in_words(counts: Mapping[str, int]) -> str:
    """`12 cost (60 %), 6 harmless (30 %), 2 false alarm (10 %)`."""
    total = sum(counts.values()) or 1
    return ", ".join(f"{counts.get(verdict, 0):3} {verdict} ({counts.get(verdict, 0) / total:4.0%})" for verdict in VERDICTS)


def read_labels(text: str) -> list[Label]:
    """The labels of labels.toml; raises ValueError for a verdict that is none."""
    found = [Label(**entry) for entry in tomllib.loads(text).get("label", ())]
    for label in found:
        if label.verdict not in VERDICTS:
            raise ValueError(f"{label.path}:{label.line}: no such verdict: {label.verdict}")
    return found


def entry(package: str, place: Place) -> str:
    """An entry of labels.toml, still without verdict and reason. Strings of JSON are strings of TOML too."""
    quoted = place.path.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'[[label]]\npackage = "{package}"\ncode = "{place.code}"\npath = "{quoted}"\nline = {place.line}\n'
        f'hash = "{place.hash}"\nverdict = ""\nreason = ""  # {place.message}\n'
    )


# ---------------------------------------------------------------- wheels


def corpus() -> Path:
    """The folder of the unpacked wheels."""
    return Path(os.environ.get("LAUNCHLINT_CORPUS") or Path.home() / ".cache" / "launchlint-corpus").absolute()


def read_wheels() -> tuple[dict[str, Any], list[Wheel]]:
    """How to download, and what."""
    table = tomllib.loads((HERE / "wheels.toml").read_text(encoding="utf-8"))
    return table["download"], [Wheel(**entry) for entry in table["wheel"]]


def digest(root: Path) -> str:
    """One digest for all *.py files below `root`, with their paths."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        found.update(f"{path.relative_to(root).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def fetch(wheel: Wheel, download: Mapping[str, Any]) -> None:
    """Download and unpack, unless it is there; exits where the sources are not the pinned ones."""
    if not (wheel.root / ".complete").exists():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder]
            command += ["--python-version", download["python"]]
            for platform in download["platforms"]:
                command += ["--platform", platform]
            subprocess.run([*command, f"{wheel.name.replace('_', '-')}=={wheel.version}"], check=True)
            (archive,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(wheel.root, [name for name in opened.namelist() if name.endswith(".py")])
        (wheel.root / ".complete").touch()
    if digest(wheel.root) != wheel.sources:
        sys.exit(f"{wheel.root}: not the pinned sources; remove the folder and fetch again")


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """With `folder` as the working directory, so that paths are relative to the wheel."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def check(wheel: Wheel, jobs: int) -> list[Place]:
    """What is found in a wheel at default settings, without any configuration file."""
    if not (wheel.root / ".complete").exists():
        sys.exit(f"{wheel.root}: not there; `python -m tests.ecosystem.run fetch --package {wheel.name}` gets it")
    with inside(wheel.root):
        chosen = settings.load(".", isolated=True)
        report = engine.check_files(discover.find(["."], chosen).files, registry.select(chosen), chosen, jobs)
        return [place for file in report.files if file.findings for place in _places(file)]


def _places(file: FileReport) -> Iterator[Place]:
    source = read_source(file.path)
    lines = source.text.split("\n")
    path = Path(os.path.normpath(file.path)).as_posix()

    def line_at(offset: int) -> int:
        return source.position(offset).line

    def place(finding: Finding) -> Place:
        line = line_at(finding.span.start)
        covers = tuple(line_at(related.span.start) for related in finding.related)
        return Place(path, finding.code, line, hash_of(lines[line - 1]), finding.message, covers)

    return map(place, file.findings)


# ---------------------------------------------------------------- commands


def write_baseline(wheel: Wheel, jobs: int) -> None:
    """Write what is found now, and say how much that is."""
    start = time.perf_counter()
    places = check(wheel, jobs)
    took = time.perf_counter() - start
    wheel.baseline.parent.mkdir(exist_ok=True)
    wheel.baseline.write_text(render(marks_of(places)), encoding="utf-8")
    lines = sum(path.read_bytes().count(b"\n") for path in wheel.root.rglob("*.py"))
    print(f"{wheel.title:24} {len(places):5} findings in {lines:9,} lines, {1000 * len(places) / lines:.2f} a thousand, {took:.1f} s")


def show_difference(wheel: Wheel, jobs: int, labels: Sequence[Label]) -> bool:
    """Print what differs from the baseline; true if anything does."""
    old = parse(wheel.baseline.read_text(encoding="utf-8")) if wheel.baseline.exists() else set()
    new = marks_of(check(wheel, jobs))
    said = {(label.code, label.path, label.line): label.verdict for label in labels if label.package == wheel.title}
    changes = changes_per_rule(old, new)
    print(f"{wheel.title}: {len(old)} findings before, {len(new)} now")
    for code, added, removed, total in changes:
        print(f"  {code} +{added} -{removed} = {total}")
    for mark in sorted(old ^ new.keys()):
        place = new.get(mark)
        if place is None:
            text = (wheel.root / mark.path).read_text(encoding="utf-8", errors="surrogateescape")
            sign, line, message = "-", line_of(mark, text), ""
        else:
            sign, line, message = "+", place.line, place.message
        verdict = said.get((mark.code, mark.path, line))
        print(f"  {sign} {mark.path}:{line} {mark.code} {message}{f' [labelled {verdict}]' if verdict else ''}".rstrip())
    return bool(changes)


def show_labels(wheels: Sequence[Wheel], jobs: int, labels: Sequence[Label]) -> None:
    """Print the shares among the labels that still fire, per package and per rule, and those that fire no more."""
    fires: list[Label] = []
    gone: dict[Label, str] = {}
    for wheel in wheels:
        mine = [label for label in labels if label.package == wheel.title]
        if mine:
            still, rest = sort_labels(mine, check(wheel, jobs))
            fires += still
            gone |= rest
    for title, group in (("package", "package"), ("rule", "code")):
        print(f"per {title}, among {len(fires)} labels that still fire")
        for name, counts in shares(fires, group):
            print(f"  {name:24} {in_words(counts)}")
    print(f"{'together':26} {in_words(Counter(label.verdict for label in fires))}")
    for title, notes in (("shown by another finding", True), ("silent", False)):
        these = sorted((label for label, note in gone.items() if bool(note) is notes), key=lambda label: (label.verdict, label))
        print(f"{title + ', ' + str(len(these)):26} {in_words(Counter(label.verdict for label in these))}")
        for label in these:
            print(f"  {label.verdict:11} {label.package} {label.path}:{label.line} {label.code} {gone[label]}".rstrip())


def draw(wheel: Wheel, jobs: int, labels: Sequence[Label], count: int, seed: int) -> None:
    """Print findings that have no label, drawn with a fixed seed."""
    known = {(label.code, label.path, label.line) for label in labels if label.package == wheel.title}
    fresh = [place for place in check(wheel, jobs) if (place.code, place.path, place.line) not in known]
    fresh.sort(key=lambda place: (place.path, place.line, place.code))
    for place in sorted(random.Random(seed).sample(fresh, min(count, len(fresh))), key=lambda place: (place.path, place.line)):
        print(entry(wheel.title, place))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["fetch", "baseline", "diff", "labels", "sample"])
    parser.add_argument("--package", action="append", metavar="NAME", help="only this one, as NAME or NAME-VERSION; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    download, wheels = read_wheels()
    if options.package:
        wanted = {name.replace("-", "_") for name in options.package}
        wheels = [wheel for wheel in wheels if wanted & {wheel.name, wheel.title.replace("-", "_")}]
        if not wheels:
            parser.error(f"no such package in wheels.toml: {', '.join(options.package)}")
    labelled = HERE / "labels.toml"
    labels = read_labels(labelled.read_text(encoding="utf-8")) if labelled.exists() else []
    differs = False
    for wheel in wheels if options.command != "labels" else ():
        match options.command:
            case "fetch":
                fetch(wheel, download)
            case "baseline":
                write_baseline(wheel, options.jobs)
            case "diff":
                differs |= show_difference(wheel, options.jobs, labels)
            case _:
                draw(wheel, options.jobs, labels, options.count, options.seed)
    if options.command == "labels":
        show_labels(wheels, options.jobs, labels)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())

"""The cache: never a different answer, whatever happened to its files or to those of the project."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from launchlint import cache as module
from launchlint import engine
from launchlint.cache import FOLDER, Cache, clean, open_cache, plain_report, read_report
from launchlint.hot.summary import FileSummary
from launchlint.model import Applicability, Confidence, Edit, FileReport, Finding, Fix, Hot, Problem, Related, Span
from launchlint.settings import Settings
from tests.engine import tree


class Project:
    """A made project and runs over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = tree.make(root, layers=30)
        self.settings = tree.settings_of(root)
        self.rules = tree.rules_of(self.settings)

    def write(self, name: str, text: str) -> None:
        (self.root / "pkg" / name).write_text(text)

    def cold(self) -> list[FileReport]:
        return engine.check_files(self.paths, self.rules, self.settings).files

    def kept(self, settings: Settings | None = None) -> engine.Report:
        settings = settings or self.settings
        rules = tree.rules_of(settings)
        return engine.check_files(self.paths, rules, settings, cache=open_cache(settings, rules))

    def codes(self, reports: list[FileReport], name: str) -> list[str]:
        return [finding.code for report in reports if report.path.endswith(name) for finding in report.findings]

    def entries(self) -> list[Path]:
        return sorted(path for path in (self.root / FOLDER).rglob("*") if path.is_file() and path.parent.name != FOLDER)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_second_run_reads_no_code(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = project.kept()
    assert (first.files, first.stats["from_cache"]) == (project.cold(), 0)

    def refuse(*_: object) -> None:
        raise AssertionError("a file was parsed")

    monkeypatch.setattr(engine, "summarize_file", refuse)
    monkeypatch.setattr(engine, "check_file", refuse)
    second = project.kept()
    assert (second.files, second.stats["from_cache"]) == (first.files, len(project.paths))


def test_only_what_changed_is_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.kept()
    project.write("plain003.py", "LIMIT = 4\n\n\ndef limit():\n    return LIMIT + 1\n")
    read: list[str] = []
    for name in ("summarize_file", "check_file"):
        monkeypatch.setattr(engine, name, _noting(read, getattr(engine, name)))
    again = project.kept()
    assert [os.path.basename(path) for path in read] == ["plain003.py"]
    assert again.files == project.cold()


def _noting(read: list[str], work: Callable[..., object]) -> Callable[..., object]:
    def note(path: str, *rest: object) -> object:
        read.append(path)
        return work(path, *rest)

    return note


def test_a_change_in_one_file_heats_and_cools_others(project: Project) -> None:
    """The helper does not change; what is hot in it does."""
    assert [finding.span.start for report in project.kept().files if report.path.endswith("helper.py") for finding in report.findings] == [
        tree.HELPER.index("torch.tensor")
    ]
    project.write("runner.py", tree.RUNNER.format(called="rest"))
    moved = project.kept().files
    assert [finding.span.start for report in moved if report.path.endswith("helper.py") for finding in report.findings] == [
        tree.HELPER.rindex("torch.tensor")
    ]
    assert moved == project.cold()
    project.write("runner.py", "")
    assert project.codes(project.kept().files, "helper.py") == []
    assert project.kept().files == project.cold()


def test_an_annotation_in_another_file_counts(project: Project) -> None:
    """What a field of another class holds decides what a line does."""
    project.write("state.py", "import torch\n\n\nclass State:\n    counts: {}\n".format("list[int]"))
    project.write(
        "user.py",
        "import torch\nfrom pkg.state import State\n\n\nclass User(torch.nn.Module):\n"
        "    def forward(self, state: State):\n        return torch.as_tensor(state.counts, device='cuda')\n",
    )
    project.paths += [str(project.root / "pkg" / name) for name in ("state.py", "user.py")]
    before = project.kept().files
    assert before == project.cold()
    project.write("state.py", "import torch\n\n\nclass State:\n    counts: torch.Tensor\n")
    after = project.kept().files
    assert after == project.cold()
    assert project.codes(before, "user.py") != project.codes(after, "user.py")


def test_a_caller_in_another_file_counts(project: Project) -> None:
    """The body of a caller decides where a parameter lives; no annotation and no hotness changes with it."""
    helper = "import torch\n\n\ndef work(lengths: torch.Tensor):\n    return torch.unique(lengths)\n"
    runner = "from pkg.helper import work\n\n\nclass ModelRunner:\n    def execute_model(self, lengths):\n        return work({given})\n"
    project.write("helper.py", helper)
    for given, expected in (("lengths.cuda()", ["LCH304"]), ("lengths.cpu()", []), ("lengths.cuda()", ["LCH304"])):
        project.write("runner.py", runner.format(given=given))
        kept = project.kept()
        assert kept.files == project.cold()
        assert project.codes(kept.files, "helper.py") == expected


def test_settings_and_rules_are_part_of_the_question(project: Project) -> None:
    project.kept()
    assert project.codes(project.kept(replace(project.settings, cold=("pkg.helper.*",))).files, "helper.py") == []
    assert project.codes(project.kept(replace(project.settings, ignore=("LCH201",))).files, "helper.py") == []
    assert project.codes(project.kept().files, "helper.py") == ["LCH201"]


def test_a_new_package_file_renames_modules(project: Project) -> None:
    """The bytes stay, the module's name does not, and with it who calls whom."""
    project.kept()
    (project.root / "pkg" / "__init__.py").unlink()
    project.paths.remove(str(project.root / "pkg" / "__init__.py"))
    from launchlint import modules

    modules._is_package.cache_clear()
    assert project.kept().files == project.cold()
    modules._is_package.cache_clear()


def test_another_version_is_another_cache(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.kept()
    monkeypatch.setattr(module, "_own_source", lambda: "other code")
    assert project.kept().stats["from_cache"] == 0


def test_deleting_it_changes_nothing(project: Project) -> None:
    expected = project.kept().files
    assert clean(str(project.root))
    assert not (project.root / FOLDER).exists()
    assert not clean(str(project.root))
    assert project.kept().files == expected


@pytest.mark.parametrize("seed", range(6))
def test_damage_changes_nothing(project: Project, seed: int) -> None:
    """Bytes turned over, entries cut short, emptied, swapped and made folders."""
    expected = project.kept().files
    chance = random.Random(seed)
    entries = project.entries()
    contents = [path.read_bytes() for path in entries]
    for path in (path for path in entries if path.parent.name == "runs" or chance.random() < 0.5):
        data = bytearray(path.read_bytes())
        match chance.randrange(5):
            case 0:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                path.write_bytes(data)
            case 1:
                path.write_bytes(data[: chance.randrange(len(data))])
            case 2:
                path.write_bytes(b"")
            case 3:
                path.write_bytes(chance.choice(contents))
            case _:
                path.unlink()
                path.mkdir()
    assert project.kept().files == expected
    assert project.kept().files == expected


FORGERIES: tuple[object, ...] = (
    None,
    [],
    {},
    "text",
    [[], [], []],
    [{"a": 1}, [], [], {}, [], {}, True],
    [{}, [["f", "f", 1, 2, 0, -1, [], [], {}, {}, "", [], False, False, False, []]], [], {}, [], {}, True],
    [{}, [["f", "f", 1, 2, -1, 0, [], [], {}, {}, "", [], False, False, False, []]], [], {}, [], {}, True],
    [{}, [], [["C", ["C"], {"m": 7}, [], {}, {}, {}]], {}, [], {}, True],
)


@pytest.mark.parametrize("forged", FORGERIES)
def test_a_forged_summary_is_no_summary(project: Project, forged: object) -> None:
    """An entry with a right checksum and a wrong inside, as a project's author might ship: it is not believed and breaks nothing."""
    expected = project.kept().files
    for path in project.entries():
        if path.parent.name == "runs":
            path.unlink()
            continue
        entry = json.loads(path.read_bytes()[module._CHECKSUM :])
        body = json.dumps({**entry, "look": [forged, None, True], "report": [[["LCH101", "no", 0]], [], []]}).encode()
        path.write_bytes(module.digest_of(body).encode() + body)
    found = project.kept().files
    if forged is not None:  # a file without a summary is what a file that does not parse leaves
        assert found == expected


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of this kind are POSIX")
def test_links_and_pipes_are_not_followed(project: Project, tmp_path: Path) -> None:
    expected = project.kept().files
    entries = project.entries()
    secret = tmp_path / "outside"
    secret.write_text("untouched")
    for number, path in enumerate(entries):
        path.unlink()
        if number % 2:
            path.symlink_to(secret)
        else:
            os.mkfifo(path)
    assert project.kept().files == expected
    assert secret.read_text() == "untouched"


@pytest.mark.skipif(sys.platform == "win32", reason="links of this kind are POSIX")
def test_a_linked_folder_is_no_cache(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("kept")
    (project.root / FOLDER).symlink_to(elsewhere)
    assert open_cache(project.settings, project.rules) is None
    assert not clean(str(project.root))
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="modes do not bind this user")
def test_a_folder_that_cannot_be_written(project: Project) -> None:
    project.root.chmod(0o500)
    try:
        assert open_cache(project.settings, project.rules) is None
    finally:
        project.root.chmod(0o700)


def test_git_and_backups_leave_it_out(project: Project) -> None:
    project.kept()
    assert (project.root / FOLDER / ".gitignore").read_text() == "*\n"
    assert (project.root / FOLDER / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_it_does_not_grow_without_end(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.kept()
    size = sum(path.stat().st_size for path in project.entries())
    monkeypatch.setattr(module, "MAX_BYTES", size // 3)
    project.write("plain001.py", "LIMIT = 99\n")
    expected = project.kept().files
    assert sum(path.stat().st_size for path in project.entries()) <= size // 3
    assert project.kept().files == expected == project.cold()


RUN = """\
import sys
from pathlib import Path
from tests.engine import tree
from launchlint import engine
from launchlint.cache import open_cache
root = Path(sys.argv[1])
settings = tree.settings_of(root)
rules = tree.rules_of(settings)
paths = sorted(str(path) for path in (root / "pkg").iterdir())
for turn in range(3):
    cache = open_cache(settings, rules)
    report = engine.check_files(paths, rules, settings, cache=cache)
    print([(file.path, file.findings, file.problems) for file in report.files])
"""


def test_runs_at_the_same_time(project: Project) -> None:
    """Four processes write and read one cache; all say the same, each time."""
    command = [sys.executable, "-c", RUN, str(project.root)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) for _ in range(4)]
    outputs = {line for process in running for line in process.communicate()[0].splitlines()}
    assert [process.returncode for process in running] == [0] * 4
    assert outputs == {str([(file.path, file.findings, file.problems) for file in project.cold()])}
    assert not [path for path in project.entries() if path.name.startswith(".new-")]


def test_a_report_survives_json() -> None:
    fix = Fix("write it", (Edit(Span(1, 2), "\udc80é"),), Applicability.UNSAFE, ("import a.b",), "shows")
    finding = Finding("LCH101", Span(1, 9), "says", Confidence.HIGH, Hot("why", ("a.b", "c")), (Related(Span(0, 1), "there"),), fix, "g")
    report = FileReport("a.py", [finding, replace(finding, hot=None, fix=None)], [(finding, "noqa")], [Problem("a.py", "broken", 3)])
    assert read_report("a.py", json.loads(json.dumps(plain_report(report)))) == report


def test_a_summary_survives_json() -> None:
    summary, _, _ = engine.summarize_file(__file__)
    assert summary is not None
    assert FileSummary.read(summary.path, summary.module, json.loads(json.dumps(summary.plain()))) == summary


def test_every_field_of_a_summary_is_kept(tmp_path: Path) -> None:
    """A field that is added to a summary and not to its plain form would be lost on the way through a cache."""
    path = tmp_path / "rich.py"
    path.write_text(
        "import torch\nfrom functools import lru_cache\n\n\n"
        "class Base:\n    size: int\n    @property\n    def held(self) -> 'Base': return self.size\n\n\n"
        "class Child(Base):\n    def __init__(self, other: Base):\n        self.other = other\n"
        "    @lru_cache\n    def step(self, batches):\n        for batch in batches:\n            loss = self.held.step(batch)\n"
        "            loss.backward()\n        def inner(): pass\n        return inner\n\n\n"
        "def make() -> Child: ...\n\n\nTABLE = {'make': make}\n"
    )
    summary, _, _ = engine.summarize_file(str(path))
    assert summary is not None
    assert FileSummary.read(summary.path, summary.module, json.loads(json.dumps(summary.plain()))) == summary


def test_nothing_raises_without_a_disk(tmp_path: Path) -> None:
    settings = tree.settings_of(tmp_path)
    cache = Cache(str(tmp_path / "missing" / FOLDER), settings, tree.rules_of(settings))
    assert cache.run("key", []) is None
    cache.keep_run("key", [])

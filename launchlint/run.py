"""Many files: two passes over them, in this process or in several, with or without what earlier runs found out.

The first pass makes summaries, the call graph joins them, and the second pass checks the files that hold a function which may
run every step. Both passes hand out chunks of files and take the results in order, so nothing depends on how many processes
there are. Between processes travel plain data only. Where processes cannot be had, or one of them dies, this one does the work.
"""

from __future__ import annotations

import marshal
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launchlint import engine
from launchlint.cache import Cache, Entry, digest_of, plain_look, read_look
from launchlint.hot import FileSummary
from launchlint.model import FileReport, Problem
from launchlint.modules import module_of
from launchlint.rule import Rule
from launchlint.settings import Settings
from launchlint.source import MAX_BYTES
from launchlint.spent import Plain, Spent, stage_of

if TYPE_CHECKING:
    from concurrent.futures import Future

CHUNK = 24
Work = Callable[[list[str]], list[Any]]  # from the paths of a chunk to one result for each
_Parcel = tuple[bytes, "Plain | None"]

# What processes need (pools, pickles) is imported where they are started: it costs more than checking one file.


@dataclass(slots=True)
class Look:
    """What the first pass knows of a file."""

    path: str
    module: str
    digest: str  # of its bytes; empty where they were not needed
    summary: FileSummary | None = None
    problem: Problem | None = None
    worth: bool = False  # a rule may have something to say
    entry: Entry | None = None


class Run:
    """One run over files."""

    def __init__(
        self,
        paths: Sequence[str],
        rules: Sequence[Rule],
        settings: Settings,
        jobs: int,
        progress: engine.Progress | None,
        cache: Cache | None,
        timed: bool = False,
    ) -> None:
        self.paths = paths
        self.rules = rules
        self.settings = settings
        self.jobs = jobs if len(paths) >= engine.FEW_FILES else 1
        self.progress = progress
        self.cache = cache if len(paths) >= engine.FEW_FILES else None
        self.is_complete = True  # nothing but these files was asked, so that the reports may be kept
        self.seconds: dict[str, float] = {}
        self.from_cache = 0
        self.known_reports = 0
        self.spent = Spent() if timed else None
        self.stage = stage_of(self.spent)
        self.keeping = stage_of(self.spent if self.cache is not None else None)

    def report(self) -> engine.Report:
        """Check the files."""
        clock = time.perf_counter()
        with self.keeping("cache"):
            looks = [self._known(path) for path in self.paths]
            key = self._run_key(looks)
            files = self.cache.run(key, self.paths) if self.cache is not None else None
        if self.cache is not None:
            self._spent("cache", clock)
        if files is not None:
            self.from_cache = self.known_reports = len(files)
            self._advance(len(files))
        else:
            files = self._check(looks)
            if self.cache is not None and self.is_complete:
                with self.keeping("cache"):
                    self.cache.keep_run(key, files)
        return engine.Report(files, self._stats(len(files)))

    def _stats(self, files: int) -> dict[str, object]:
        seconds = {name: round(spent, 3) for name, spent in self.seconds.items()}
        stats: dict[str, object] = {"files": files, "seconds": seconds, "from_cache": self.from_cache}
        if self.spent is not None:
            stats["reports_from_cache"] = self.known_reports
            stats |= self.spent.stats()
        return stats

    def _check(self, looks: list[Look]) -> list[FileReport]:
        clock = time.perf_counter()
        self._look(looks)
        clock = self._spent("summaries", clock)
        with self.stage("graph"):
            project = engine.Project([look.summary for look in looks if look.summary is not None], self.settings)
        self.is_complete = not project.looks_closer
        clock = self._spent("graph", clock)
        reports = self._judge(looks, project)
        with self.keeping("cache"):
            for look in looks:
                if self.cache is not None and look.entry is not None:
                    self.cache.keep(look.path, look.entry)
        self._spent("rules", clock)
        return [reports.get(look.path) or FileReport(look.path, problems=[look.problem] if look.problem else []) for look in looks]

    # ---------------------------------------------------------------- first pass

    def _known(self, path: str) -> Look:
        """What is known of a file without parsing it."""
        look = Look(path, "", "")
        if self.cache is not None and (digest := _digest_of_file(path)):
            look.digest, look.module = digest, module_of(path)[0]
        return look

    def _run_key(self, looks: list[Look]) -> str:
        if self.cache is None:
            return ""
        lines = [self.cache.asked, *(f"{look.path}\t{look.module}\t{look.digest}" for look in looks)]
        return digest_of("\n".join(lines).encode("utf-8", "surrogatepass"))

    def _look(self, looks: list[Look]) -> None:
        """Fill in summaries: from the cache, and by parsing what it does not know."""
        unknown: list[Look] = []
        for look in looks:
            if self.cache is not None and look.digest:
                with self.keeping("cache"):
                    look.entry = self.cache.entry(look.path, look.digest, look.module)
                    known = read_look(look.path, look.module, look.entry.look) if look.entry.look is not None else None
                if known is not None:
                    look.summary, look.problem, look.worth = known
                    self.from_cache += 1
                    self._advance(1)
                    continue
            unknown.append(look)
        self._parse(unknown)

    def _parse(self, looks: list[Look]) -> None:
        done = 0
        for found in self._spread(_parse_chunk, [look.path for look in looks]):
            for summary, problem, worth in found:
                look = looks[done]
                done += 1
                look.summary, look.problem, look.worth = summary, problem, worth
                if look.entry is not None:
                    look.entry.keep_look(plain_look(summary, problem, worth))
            self._advance(len(found))

    # ---------------------------------------------------------------- second pass

    def _judge(self, looks: list[Look], project: engine.Project) -> dict[str, FileReport]:
        """The reports of the files that hold a function which may be reported."""
        reports: dict[str, FileReport] = {}
        asked: list[Look] = []
        keys: dict[str, str] = {}
        interfaces = self._interfaces(looks)
        digests = {look.path: look.digest for look in looks}

        def callers_of(path: str) -> Callable[[Sequence[int]], str]:
            return lambda asked: project.callers_digest(path, asked, digests)

        for look in looks:
            at_top = look.path.endswith(".ipynb")  # a notebook's loops stand outside functions
            if look.summary is None or not look.worth:
                continue
            with self.stage("graph"):  # which is walked as far as somebody asks
                may_report = at_top or project.may_report(look.path)
            if not may_report:
                continue
            if look.entry is not None and self.cache is not None:
                with self.keeping("cache"):
                    key = digest_of(f"{self.cache.asked} {interfaces} {project.heat_of(look.path)}".encode("utf-8", "surrogatepass"))
                    known = look.entry.report_for(look.path, key, callers_of(look.path))
                if known is not None:
                    reports[look.path] = known
                    self.known_reports += 1
                    continue
                keys[look.path] = key
            asked.append(look)
        done = 0
        for found in self._spread(_check_chunk, [look.path for look in asked], project):
            for report in found:
                look = asked[done]
                done += 1
                reports[look.path] = report
                if look.entry is not None and self.is_complete and not report.problems:
                    look.entry.keep_report(keys[look.path], report, callers_of(look.path))
        return reports

    def _interfaces(self, looks: list[Look]) -> str:
        """A digest of what values may depend on in other files."""
        if self.cache is None:
            return ""
        texts = [look.summary.interface() for look in looks if look.summary is not None]
        return digest_of("\n".join(texts).encode("utf-8", "surrogatepass"))

    # ---------------------------------------------------------------- processes

    def _spread(self, work: Work, paths: list[str], project: engine.Project | None = None) -> Iterator[list[Any]]:
        """Do the work chunk by chunk, in order; a chunk that no process returns is done here."""
        chunks = [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]
        here = _Shared(self.rules, self.settings, project, self.spent)
        workers = min(self.jobs, len(chunks))
        done = 0
        if workers > 1:
            try:
                for found in _in_processes(work, chunks, workers, here):
                    done += 1
                    yield found
            except (_Lost, OSError, ImportError, AttributeError):
                pass
        for chunk in chunks[done:]:
            with here:
                found = work(chunk)
            yield found

    def _advance(self, count: int) -> None:
        if self.progress is not None and count:
            self.progress(count)

    def _spent(self, name: str, since: float) -> float:
        now = time.perf_counter()
        self.seconds[name] = now - since
        return now


# ---------------------------------------------------------------- what runs in every process


class _Lost(Exception):
    """A process died, or what it should take or give cannot travel."""


class _Shared:
    """What the work of a pass needs, where `_parse_chunk` and `_check_chunk` find it."""

    current: _Shared | None = None

    def __init__(
        self, rules: Sequence[Rule], settings: Settings, project: engine.Project | None, spent: Spent | None = None
    ) -> None:
        self.rules = rules
        self.settings = settings
        self.project = project
        self.spent = spent

    def __enter__(self) -> None:
        _Shared.current = self

    def __exit__(self, *_: object) -> None:
        _Shared.current = None

    def packed(self) -> bytes:
        """For a process that does not inherit our memory."""
        import pickle

        summaries = [(file.path, file.module, file.plain()) for file in self.project.graph.files] if self.project is not None else None
        codes = [rule.meta.code for rule in self.rules]
        return pickle.dumps((codes, self.settings, marshal.dumps(summaries), self.spent is not None))


def _shared() -> _Shared:
    if _Shared.current is None:
        raise RuntimeError("a process was not made ready")
    return _Shared.current


def _start(packed: bytes | None) -> None:
    """Make a new process ready; without `packed` it has inherited everything."""
    import gc
    import pickle
    import signal

    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us says when to stop
    if packed is None:
        return
    from launchlint import registry

    codes, settings, plain, timed = pickle.loads(packed)  # what the process that started us has just written
    summaries = marshal.loads(plain)
    project = engine.Project([FileSummary.read(*each) for each in summaries], settings) if summaries is not None else None
    _Shared([registry.load()[code] for code in codes], settings, project, Spent() if timed else None).__enter__()


def _parse_chunk(paths: list[str]) -> list[tuple[FileSummary | None, Problem | None, bool]]:
    shared = _shared()
    lean = not shared.settings.hot  # such a setting may call any function hot, whatever the path says
    return [engine.summarize_file(path, lean, shared.spent) for path in paths]


def _check_chunk(paths: list[str]) -> list[FileReport]:
    shared = _shared()
    if shared.project is None:
        raise RuntimeError("the call graph is missing")
    return [engine.check_file(path, shared.rules, shared.settings, shared.project, shared.spent) for path in paths]


def _in_processes(work: Work, chunks: list[list[str]], workers: int, here: _Shared) -> Iterator[list[Any]]:
    import multiprocessing
    import pickle
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    method = _method(here)
    if method is None:
        raise OSError("these rules are known to this process only")
    with here:  # inherited where processes are forked
        packed = None if method == "fork" else here.packed()
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context(method), _start, (packed,))
        try:
            pending: list[Future[_Parcel]] = [pool.submit(_travel, work, chunk) for chunk in chunks]
            for future in pending:
                data, plain = future.result()
                if here.spent is not None and plain is not None:
                    here.spent.add(plain)
                yield _arrive(data)
        except (BrokenProcessPool, pickle.PicklingError) as error:
            raise _Lost from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _travel(work: Work, chunk: list[str]) -> _Parcel:
    """Results on their way to the process that asked, with what they took where somebody asked for that."""
    shared = _shared()
    if shared.spent is not None:
        shared.spent = Spent()  # of this chunk alone: what came before has been told, or belongs to the process that forked us
    data = _packed(work, work(chunk), chunk)
    return data, shared.spent.plain() if shared.spent is not None else None


def _packed(work: Work, found: list[Any], chunk: list[str]) -> bytes:
    """Summaries as plain data, which is faster than pickling them."""
    import pickle

    if work is _parse_chunk:
        plain = [
            (path, summary.module if summary is not None else "", plain_look(summary, problem, worth))
            for path, (summary, problem, worth) in zip(chunk, found, strict=True)
        ]
        return b"m" + marshal.dumps(plain)
    return b"p" + pickle.dumps(found)


def _arrive(data: bytes) -> list[Any]:
    if data[:1] == b"m":
        return [read_look(*each) for each in marshal.loads(data[1:])]
    import pickle

    found: list[Any] = pickle.loads(data[1:])
    return found


def _method(here: _Shared) -> str | None:
    """How to start processes: forked where that is safe (no other thread, and not on macOS), else anew."""
    import multiprocessing
    import threading

    methods = multiprocessing.get_all_start_methods()
    if "fork" in methods and threading.active_count() == 1 and os.uname().sysname == "Linux":
        return "fork"
    from launchlint import registry

    known = registry.load()
    return "spawn" if all(known.get(rule.meta.code) is rule for rule in here.rules) else None


def _digest_of_file(path: str) -> str:
    """Empty for what cannot be read, which is not cached."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return ""
    return digest_of(data) if len(data) <= MAX_BYTES else ""


def check(
    paths: Sequence[str],
    rules: Sequence[Rule],
    settings: Settings,
    jobs: int,
    progress: engine.Progress | None,
    cache: Cache | None,
    timed: bool = False,
) -> engine.Report:
    """Check files. Whatever a cache does to a run, the run is then made without it."""
    try:
        return Run(paths, rules, settings, jobs, progress, cache, timed).report()
    except Exception:
        if cache is None:
            raise
        return Run(paths, rules, settings, jobs, None, None, timed).report()


__all__ = ["Run", "check"]

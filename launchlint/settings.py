"""Settings of a run: what they are, where they are read from, and what is said about a wrong one.

They come from `[tool.launchlint]` of the nearest `pyproject.toml` that has that table, from the top level of a
`launchlint.toml` beside it or nearer, or from the file named by `--config`. Options of a command line are laid over
them. Keys are kebab-case. A key, code or value that nobody knows is an error and never silently ignored.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from launchlint.model import Confidence

PRESETS = os.path.join(os.path.dirname(__file__), "presets")
FILE_NAMES = ("launchlint.toml", "pyproject.toml")


class SettingsError(Exception):
    """A setting that cannot be used; the message is one line and names the file and the key."""


@dataclass(frozen=True, slots=True)
class Override:
    """Settings of some files only: `changes` are laid over the project's for paths that match one of `files`."""

    files: tuple[str, ...]
    changes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for; every field has the default of a fresh project."""

    select: tuple[str, ...] = ()  # codes, beginnings of codes, or names; empty: every rule that is on by default
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    min_confidence: Confidence = Confidence.MEDIUM
    exclude: tuple[str, ...] = ()  # replaces the built-in list when it is not empty
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False  # exclude also what was named on the command line
    respect_gitignore: bool = True
    hot: tuple[str, ...] = ()  # globs over qualified names, for example `engine.runner.*._prepare*`
    cold: tuple[str, ...] = ()
    h2d_helper: str = ""  # dotted name of the project's own upload function
    pin_memory: str = "True"  # expression that fixes write; empty: never write pinning
    devices: tuple[str, ...] = ()  # only these accelerators count, for example `cuda`; empty: all of them
    allow_regions: tuple[str, ...] = ()  # names of context managers inside which waiting is deliberate
    waivers: tuple[str, ...] = ()  # beginnings of comments that silence a line, for example `perf-ok`
    require_reasons: bool = False
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    baseline: str = ""  # file of known findings, relative to the root
    fix: bool = False
    unsafe_fixes: bool = False
    preset: str = ""
    overrides: tuple[Override, ...] = ()
    file: str = ""  # where they were read from; empty: nowhere
    root: str = ""  # what globs over paths are relative to; empty: the working directory
    given: tuple[tuple[str, str], ...] = ()  # which fields are not defaults, and who set them
    of_file: bool = False  # these are the settings of one file, and an override has changed which rules run there

    def for_file(self, path: str) -> Settings:
        """The settings that hold for `path`: overrides whose globs match are laid over, the last wins."""
        if not self.overrides:
            return self
        return _overridden(self, self.relative(path))

    def explained_for(self, path: str) -> Settings:
        """The same as `for_file`, with `given` saying which override set what."""
        relative = self.relative(path)
        given = dict(self.given)
        for number, override in enumerate(self.overrides, 1):
            if _matches(override.files, relative):
                given |= dict.fromkeys(dict(override.changes), f"{self.file}: overrides[{number}]")
        return dataclasses.replace(self.for_file(path), overrides=(), given=tuple(given.items()))

    def with_override(self, override: Override) -> Settings:
        """The settings of a file that this one override matches."""
        return dataclasses.replace(self, **dict(override.changes), overrides=(), of_file=True)

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Codes and names that `per-file-ignores` silences in `path`."""
        if not self.per_file_ignores:
            return ()
        relative = self.relative(path)
        return tuple(code for pattern, codes in self.per_file_ignores if _matches((pattern,), relative) for code in codes)

    def relative(self, path: str) -> str:
        """`path` from the root of the settings, with slashes; as it is where it lies outside."""
        full = os.path.abspath(path)
        root = self.root or os.getcwd()
        prefix = root if root.endswith(os.sep) else root + os.sep
        shown = full[len(prefix) :] if full.startswith(prefix) else path
        return shown.replace(os.sep, "/")

    def but(self, who: str, **changes: Any) -> Settings:
        """A copy with `changes`, which remembers that `who` made them."""
        given = dict(self.given) | dict.fromkeys(changes, who)
        return dataclasses.replace(self, **changes, given=tuple(given.items()))


# Fields that are about the run or about finding files, and therefore mean nothing for one file.
WHOLE_RUN = frozenset(
    (
        *("exclude", "extend_exclude", "force_exclude", "respect_gitignore", "hot", "cold", "per_file_ignores"),
        *("baseline", "fix", "unsafe_fixes", "preset"),
    )
)
INTERNAL = frozenset({"overrides", "file", "root", "given", "of_file"})
SELECTION = frozenset({"select", "extend_select", "ignore", "preview"})
# A preset's lists of these are the beginning and the project's own come after them; any other setting takes the preset's place.
ADDED_TO_PRESET = frozenset(
    (
        *("hot", "cold", "waivers", "allow_regions", "extend_exclude", "extend_select"),
        *("extend_safe_fixes", "extend_unsafe_fixes", "per_file_ignores"),
    )
)
CODE_FIELDS = ("select", "extend_select", "ignore", "extend_safe_fixes", "extend_unsafe_fixes")


def keys() -> tuple[str, ...]:
    """Every key that a settings file may have, in kebab-case."""
    return (*(kebab(name) for name in _defaults() if name not in INTERNAL), "overrides")


def kebab(name: str) -> str:
    """`min_confidence` -> `min-confidence`."""
    return name.replace("_", "-")


# ---------------------------------------------------------------- finding and reading


def load(start: str, config: str | None = None, isolated: bool = False, preset: str | None = None) -> Settings:
    """The settings for a run that starts in the folder `start`; raise SettingsError where they cannot be used.

    `preset` takes the place of the one that the file names.
    """
    path = None if isolated else config or find(start)
    if path is None:
        return dataclasses.replace(read({}, "", preset), root=_top(start))
    table = read_table(path)
    if table is None:
        raise SettingsError(f"{path}: has no [tool.launchlint] table")
    return read(table, path, preset)


def _top(start: str) -> str:
    """The top of the repository that `start` lies in, so that names do not depend on what was asked for; else here."""
    folder = os.path.abspath(start)
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.getcwd()
        folder = parent
    return folder


def find(start: str) -> str | None:
    """The nearest settings file in `start` or above; a `pyproject.toml` without our table does not count."""
    folder = os.path.abspath(start)
    while True:
        for name in FILE_NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and read_table(path) is not None:
                return path
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def read_table(path: str) -> dict[str, Any] | None:
    """Our table of a TOML file, or None where a `pyproject.toml` has none."""
    pyproject = os.path.basename(path) == "pyproject.toml"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from None
    if pyproject and b"launchlint" not in data:
        return None  # saves reading TOML in the usual case
    try:
        document = _toml(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError) as error:
        raise SettingsError(f"{path}: not valid TOML: {' '.join(str(error).split())}") from None
    tool = document.get("tool") if pyproject or "tool" in document else {"launchlint": document}
    if not isinstance(tool, dict) or "launchlint" not in tool:
        return None
    table = tool["launchlint"]
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.launchlint must be a table")
    return table


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(text)
    from importlib import import_module

    loaded: dict[str, Any] = import_module("tomli").loads(text)  # by name, so that mypy needs it on no newer Python
    return loaded


def read(table: Mapping[str, Any], path: str, preset: str | None = None) -> Settings:
    """Check a table and make settings of it; `path` is named in errors and fixes the root."""
    values: dict[str, Any] = {}
    overrides: tuple[Override, ...] = ()
    given: dict[str, str] = {}
    if preset is not None:
        table = {**table, "preset": preset}
    if isinstance(name := table.get("preset"), str) and name:
        values = _preset(name, "--preset" if preset is not None else f"{path}: preset")
        given = dict.fromkeys(values, f"preset {name}")
    for key, value in table.items():
        if key == "overrides":
            overrides = _read_overrides(value, path)
            given["overrides"] = path
        else:
            name = _field(key, path)
            own = convert(name, value, path, key)
            added = name in ADDED_TO_PRESET and name in values
            values[name] = values[name] + own if added else own
            given[name] = f"{given[name]}, then {path}" if added else path
    if preset is not None:
        given["preset"] = "--preset"
    root = os.path.dirname(os.path.abspath(path)) if path else ""
    return Settings(**values, overrides=overrides, file=path, root=root, given=tuple(given.items()))


def _read_overrides(value: Any, path: str) -> tuple[Override, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise SettingsError(f"{path}: overrides must be an array of tables: [[tool.launchlint.overrides]]")
    found: list[Override] = []
    for number, item in enumerate(value, 1):
        where = f"overrides[{number}]"
        if "files" not in item:
            raise SettingsError(f"{path}: {where} has no files, a list of globs")
        changes: dict[str, Any] = {}
        for key, inner in item.items():
            if key == "files":
                continue
            name = _field(key, path, where)
            if name in WHOLE_RUN:
                raise SettingsError(f"{path}: {where}.{key} holds for a whole run and cannot differ from file to file")
            changes[name] = convert(name, inner, path, f"{where}.{key}")
        found.append(Override(_strings(item["files"], path, f"{where}.files"), tuple(changes.items())))
    return tuple(found)


def _field(key: str, path: str, where: str = "") -> str:
    if key in keys():
        return key.replace("-", "_")
    shown = f"{where}.{key}" if where else key
    raise SettingsError(f"{path}: unknown setting {shown!r}{did_you_mean(key.replace('_', '-'), keys())}")


def presets() -> list[str]:
    """The names of the presets: each is a file of settings."""
    return sorted(entry[:-5] for entry in os.listdir(PRESETS) if entry.endswith(".toml"))


def _preset(name: str, where: str) -> dict[str, Any]:
    if name not in presets():
        raise SettingsError(f"{where}: no preset is called {name!r}{did_you_mean(name, presets())} (there are: {', '.join(presets())})")
    file = os.path.join(PRESETS, f"{name}.toml")
    table = read_table(file) or {}
    return {_field(key, file): convert(_field(key, file), value, file, key) for key, value in table.items()}


# ---------------------------------------------------------------- values


def convert(name: str, value: Any, path: str, key: str) -> Any:
    """`value` as the field `name` holds it; raise SettingsError where the type or the word is wrong."""
    default = _defaults()[name]
    if name == "min_confidence":
        return _confidence(value, path, key)
    if name == "pin_memory":
        return _pin_memory(value, path, key)
    if name == "per_file_ignores":
        return _per_file(value, path, key)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingsError(f"{path}: {key} must be true or false, not {_shown(value)}")
        return value
    if isinstance(default, str):
        if not isinstance(value, str):
            raise SettingsError(f"{path}: {key} must be a string, not {_shown(value)}")
        return value
    return _strings(value, path, key)


def _strings(value: Any, path: str, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{path}: {key} must be a list of strings, not {_shown(value)}")
    return tuple(value)


def _confidence(value: Any, path: str, key: str) -> Confidence:
    words = [str(level) for level in Confidence]
    if not isinstance(value, str) or value.lower() not in words:
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        raise SettingsError(f"{path}: {key} must be one of {', '.join(words)}, not {_shown(value)}{hint}")
    return Confidence[value.upper()]


def _pin_memory(value: Any, path: str, key: str) -> str:
    """`true`, `"PIN_MEMORY"` and the like; `false` and `"off"` mean that fixes never pin."""
    if isinstance(value, bool):
        return "True" if value else ""
    if not isinstance(value, str):
        raise SettingsError(f'{path}: {key} must be an expression as a string, or "off", not {_shown(value)}')
    if value.strip().lower() in ("off", "false", ""):
        return ""
    import ast

    try:
        ast.parse(value.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise SettingsError(f'{path}: {key} must be a Python expression or "off", not {_shown(value)}') from None
    return value.strip()


def _per_file(value: Any, path: str, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: {key} must be a table of globs, each with a list of codes, not {_shown(value)}")
    return tuple((pattern, _strings(codes, path, f"{key}.{pattern!r}")) for pattern, codes in value.items())


def _shown(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return repr(value)
        case list():
            return "a list" if all(isinstance(item, str) for item in value) else "a list with something else in it"
        case dict():
            return "a table"
    return type(value).__name__


@functools.cache
def _defaults() -> dict[str, Any]:
    return {field.name: field.default for field in dataclasses.fields(Settings)}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'select'?`, or nothing where nothing is near."""
    import difflib

    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""


def check_codes(settings: Settings, known: Collection[tuple[str, str]]) -> None:
    """Raise SettingsError for a code or name in the settings that no rule has; `known` are pairs of code and name."""
    given = dict(settings.given)
    for name in CODE_FIELDS:
        for code in getattr(settings, name):
            _check_code(code, known, given.get(name, settings.file), kebab(name))
    for pattern, codes in settings.per_file_ignores:
        for code in codes:
            _check_code(code, known, settings.file, f"per-file-ignores.{pattern!r}")
    for number, override in enumerate(settings.overrides, 1):
        for name, value in override.changes:
            for code in value if name in CODE_FIELDS else ():
                _check_code(code, known, settings.file, f"overrides[{number}].{kebab(name)}")


def _check_code(code: str, known: Collection[tuple[str, str]], path: str, key: str) -> None:
    if any(names_rule(code, *pair) for pair in known):
        return
    every = [word for pair in known for word in pair]
    near = did_you_mean(code, [word.lower() for word in every])
    for word in every:
        near = near.replace(f"'{word.lower()}'", f"'{word}'")
    where = path if path.startswith("--") else f"{path}: {key}"
    raise SettingsError(f"{where}: no rule has the code or name {code!r}{near}")


def names_rule(word: str, code: str, name: str) -> bool:
    """True if `word` (a code, the beginning of one, a name, or ALL) means the rule."""
    upper = word.upper()
    return bool(word) and (upper == "ALL" or (upper.startswith("L") and code.startswith(upper)) or word == name)


# ---------------------------------------------------------------- paths


@functools.lru_cache(maxsize=4096)
def _overridden(settings: Settings, relative: str) -> Settings:
    changes: dict[str, Any] = {}
    for override in settings.overrides:
        if _matches(override.files, relative):
            changes.update(override.changes)
    return dataclasses.replace(settings, **changes, overrides=(), of_file=not SELECTION.isdisjoint(changes))


def _matches(patterns: tuple[str, ...], relative: str) -> bool:
    return bool(_pathspec(patterns).match_file(relative))


@functools.lru_cache(maxsize=256)
def _pathspec(patterns: tuple[str, ...]) -> Any:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(patterns)


def start_of(paths: Iterable[str]) -> str:
    """The folder from which to look for a settings file: the deepest one that holds all of `paths`; here without any."""
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.abspath, paths)]
    try:
        return os.path.commonpath(folders) if folders else os.getcwd()
    except ValueError:  # different drives
        return os.getcwd()

"""Finds the rules and chooses those of a run.

Adding a rule is adding a folder to `rules/`: nothing lists the rules, the folders are looked up. A folder counts when
its name begins with `lch` and a digit and it is a package; it must hold a `Rule` called `rule`.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Iterable

from launchlint.model import Meta, Policy
from launchlint.rule import Rule
from launchlint.settings import Settings, check_codes, names_rule

FOLDER = re.compile(r"lch\d")
CODE = re.compile(r"LCH\d{3}")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")

# The linter's own rules are decided in `suppress`, the engine and the flake8 door, not by a walk over the tree. A
# folder with the same code (its page and its cases) takes the place of the entry here.
OWN = (
    Meta("LCH001", "unused-ignore", "an ignore comment that silences nothing", "own", "0.1.0", Policy(()), opt_in=True),
    Meta("LCH002", "name-after-noqa", "a rule's name after noqa, which silences everything on the line", "own", "0.1.0", Policy(())),
    Meta("LCH003", "not-analysed", "a file that could not be analysed", "own", "0.1.0", Policy(())),
)


class RegistryError(Exception):
    """A rule folder that cannot be used; the message names the folder."""


@functools.cache
def load() -> dict[str, Rule]:
    """Every rule by its code, in order of codes."""
    import launchlint.rules

    found: dict[str, Rule] = {}
    for folder in _folders(launchlint.rules.__path__):
        add(found, _import(folder), folder)
    for meta in OWN:
        found.setdefault(meta.code, Rule(meta))
    return dict(sorted(found.items()))


def _folders(roots: Iterable[str]) -> list[str]:
    names: set[str] = set()
    for root in roots:
        # A folder of a rule that another branch has keeps its __pycache__, and is no rule.
        found = (entry.name for entry in os.scandir(root) if FOLDER.match(entry.name))
        names.update(name for name in found if os.path.isfile(os.path.join(root, name, "__init__.py")))
    return sorted(names)


def _import(folder: str) -> Rule:
    module = importlib.import_module(f"launchlint.rules.{folder}")
    rule = getattr(module, "rule", None)
    if not isinstance(rule, Rule):
        raise RegistryError(f"rules/{folder}: has no `rule = Rule(...)`")
    return rule


def add(found: dict[str, Rule], rule: Rule, folder: str) -> None:
    """Put `rule` into `found`; raise RegistryError where its code or name is wrong or taken."""
    meta = rule.meta
    if not CODE.fullmatch(meta.code):
        raise RegistryError(f"rules/{folder}: the code {meta.code!r} is not LCH and three digits")
    if not NAME.fullmatch(meta.name):
        raise RegistryError(f"rules/{folder}: the name {meta.name!r} is not kebab-case of two words or more")
    if meta.code in found:
        raise RegistryError(f"rules/{folder}: the code {meta.code} is taken by {found[meta.code].meta.name}")
    for other in found.values():
        if other.meta.name == meta.name:
            raise RegistryError(f"rules/{folder}: the name {meta.name} is taken by {other.meta.code}")
    found[meta.code] = rule


def select(settings: Settings) -> tuple[Rule, ...]:
    """The rules that run, in order of codes; raise SettingsError for a code or name that no rule has.

    A rule that some override wants for some files is among them; `suppress` drops what it finds elsewhere.
    """
    rules = load()
    check_codes(settings, [(rule.meta.code, rule.meta.name) for rule in rules.values()])
    each = (settings, *(settings.with_override(override) for override in settings.overrides))
    return tuple(rule for rule in rules.values() if any(is_selected(rule.meta, one) for one in each))


def is_selected(meta: Meta, settings: Settings) -> bool:
    """Whether a rule runs: what says more about it wins, and `ignore` wins where both say as much.

    Preview rules also need `preview`, or to be asked for by full code or name; opt-in rules need the latter.
    """
    chosen = max((_strength(word, meta) for word in (*settings.select, *settings.extend_select)), default=0)
    if not settings.select:
        chosen = max(chosen, 1)
    ignored = max((_strength(word, meta) for word in settings.ignore), default=0)
    if chosen <= ignored or chosen == 0:
        return False
    if chosen >= EXACT:
        return True
    return not meta.opt_in and (settings.preview or not meta.preview)


EXACT = 100


def _strength(word: str, meta: Meta) -> int:
    """How much `word` says about the rule: 0 nothing, 1 ALL, 2 and more for each letter of a prefix, EXACT for itself."""
    if not names_rule(word, meta.code, meta.name):
        return 0
    if word.upper() == "ALL":
        return 1
    return EXACT if word == meta.name or word.upper() == meta.code else 1 + len(word)


def find(word: str) -> Rule | None:
    """The rule with this code (in any case) or name."""
    for rule in load().values():
        if word.upper() == rule.meta.code or word == rule.meta.name:
            return rule
    return None


def folder(meta: Meta) -> str:
    """Name of the folder of a rule: `lch101_slice_fill_loop`."""
    return f"{meta.code.lower()}_{meta.name.replace('-', '_')}"


def page(meta: Meta) -> str | None:
    """Text of the page of a rule, or None where it has none."""
    import launchlint.rules

    for root in launchlint.rules.__path__:
        path = os.path.join(root, folder(meta), "README.md")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    return None

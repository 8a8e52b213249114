"""A new rule folder whose page and cases have the right shape and pass, so that writing starts from green."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import launchlint
from launchlint import registry
from launchlint.dev import pages
from launchlint.model import Meta, Policy

CODE = '''\
"""{code} {name}: say in one sentence what the pattern is and why the host or the device pays for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.model import Meta, Policy
from launchlint.rule import Context, Hit, Outcome, Rule

rule = Rule(
    Meta(
        code="{code}",
        name="{name}",
        summary="{summary}",
        group="{group}",
        since="{since}",
        policy=Policy.grid(known="{known}"),
        preview=True,
    )
)


@rule.on(ast.Call, names=("{method}",))
def check(call: ast.Call, context: Context) -> Iterator[Outcome]:
    """Calls of the method on a device tensor."""
    if isinstance(call.func, ast.Attribute):
        level = context.value(call.func.value).device_level()
        yield Hit(call, "{message}", level)
'''

PAGE = """\

## Why it costs

Say what the host and the device do for each turn or call, and how that grows.

## Example

```py
{fires}```

## Use instead

```py
{silent}```

## Known false alarms

None known.

## Measured

Not measured yet.

## When to ignore

Say when the pattern is right as it is.
"""

CASES = """\
# Cases of {name}

## A device tensor

Say what this spelling is.

```py
{marked}```

## A host tensor

It never leaves the host.

```py
{host}```
"""

FIRES = """\
import torch


class Layer(torch.nn.Module):
    def forward(self, rows):
        table = torch.zeros(8, device="cuda")
        return table.{method}(rows)
"""
KNOWN = "- - high high"
MESSAGE = "say what happens, how often, and what it costs"
SUMMARY = "say in a line what it finds"


class ScaffoldError(Exception):
    """A rule that cannot be made."""


def create(root: Path, code: str, name: str, group: str, taken: Iterable[Meta]) -> Path:
    """Make the folder of a rule and return it; raise ScaffoldError for a code or name that is wrong or taken."""
    _refuse(code, name, group, taken)
    meta = Meta(code, name, SUMMARY, group, launchlint.__version__, Policy.grid(known=KNOWN), preview=True)
    folder = root / "rules" / registry.folder(meta)
    if folder.exists():
        raise ScaffoldError(f"{folder} exists already")
    folder.mkdir(parents=True)
    for path, text in files(meta).items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    return folder


def files(meta: Meta) -> dict[str, str]:
    """Text of each file of the new folder by its name."""
    method = meta.name.replace("-", "_")
    fires = FIRES.format(method=method)
    call = f"table.{method}(rows)"
    facts = {"code": meta.code, "name": meta.name, "group": meta.group, "since": meta.since, "summary": meta.summary}
    return {
        "__init__.py": CODE.format(**facts, known=KNOWN, method=method, message=MESSAGE),
        "README.md": pages.head(meta) + PAGE.format(fires=fires, silent=fires.replace(call, "table + rows")),
        "cases.md": CASES.format(
            name=meta.name,
            marked=fires.replace(call, f'{call}  # error: [{meta.name}] "what happens"'),
            host=fires.replace('"cuda"', '"cpu"'),
        ),
    }


def _refuse(code: str, name: str, group: str, taken: Iterable[Meta]) -> None:
    if not registry.CODE.fullmatch(code):
        raise ScaffoldError(f"a code is LCH and three digits, not {code!r}")
    if not registry.NAME.fullmatch(name):
        raise ScaffoldError(f"a name is kebab-case of two words or more, the pattern and not the cure, not {name!r}")
    if group not in pages.GROUPS:
        raise ScaffoldError(f"a group is one of {', '.join(pages.GROUPS)}, not {group!r}")
    for meta in taken:
        if meta.code == code or meta.name == name:
            raise ScaffoldError(f"taken by {meta.code} {meta.name}")

"""`python -m launchlint.dev new CODE NAME --group GROUP` and `python -m launchlint.dev tables [--check]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from launchlint import registry
from launchlint.dev import pages, scaffold, tables
from launchlint.model import Meta

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run one command in the checkout at `root`; 0 done, 1 not up to date (`tables --check`), 2 refused."""
    options = _parser().parse_args(arguments)
    metas = [rule.meta for rule in registry.load().values()]
    try:
        if options.command == "new":
            folder = scaffold.create(root, options.code, options.name, options.group, metas)
            print(f"{folder.relative_to(root)}: write the rule, then run `python -m launchlint.dev tables`")
            return 0
    except scaffold.ScaffoldError as error:
        print(f"launchlint.dev: {error}", file=sys.stderr)
        return 2
    return _tables(root, metas, options.check)


def _tables(root: Path, metas: Sequence[Meta], only_check: bool) -> int:
    changed = list(tables.outdated(root, metas)) if only_check else tables.refresh(root, metas)
    for path in changed:
        print(path.relative_to(root))
    readme = root / "README.md"
    if readme.is_file() and not tables.has_place(readme):
        print(f"launchlint.dev: README.md has no `{tables.BEGIN}` ... `{tables.END}` to put the table of rules between", file=sys.stderr)
        return 2
    return 1 if only_check and changed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m launchlint.dev", description="For those who write rules.")
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", help="make the folder of a rule")
    new.add_argument("code", metavar="LCHnnn")
    new.add_argument("name", metavar="kebab-name")
    new.add_argument("--group", required=True, choices=pages.GROUPS)
    table = commands.add_parser("tables", help="bring heads of pages, rules/README.md and the README's table up to date")
    table.add_argument("--check", action="store_true", help="write nothing, list what is out of date")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Make `torch.json` and `roles.json` from the tables beside them: `python -m launchlint.facts`.

With `--check` it only says whether they are current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from launchlint.facts import as_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent


def read_table(path: Path) -> list[dict[str, Any]]:
    """The groups of a TOML table of facts."""
    groups: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["ops"]
    return groups


KEPT = ("packages", "hot", "cold", "means", "waivers", "intermediate", "helpers", "mirrors")


def roles_as_json(path: Path) -> str:
    """The text of `roles.json`: what is asked at run time, a line for each framework; where a fact was read stays in the TOML."""
    tables = tomllib.loads(path.read_text("utf-8"))
    lines = []
    for name, table in tables.items():
        if not isinstance(table, dict):
            continue
        kept = {key: table[key] for key in KEPT if key in table}
        kept["hot"] = [{key: value for key, value in entry.items() if key != "see"} for entry in table.get("hot", [])]
        lines.append(f"{json.dumps(name)}:{json.dumps(kept, separators=(',', ':'))}")
    return '{"schema":1,\n' + ",\n".join(lines) + "\n}\n"


def main(arguments: list[str]) -> int:
    """Write the files, or compare them with `--check`; 0 if they are current afterwards."""
    texts = {"torch.json": as_json(read_table(FOLDER / "torch.toml")), "roles.json": roles_as_json(FOLDER / "roles.toml")}
    stale = 0
    for name, text in texts.items():
        made = FOLDER / name
        if "--check" in arguments:
            current = made.exists() and made.read_text("utf-8") == text
            print(f"{name} is current" if current else f"{name} is not current: run python -m launchlint.facts")
            stale += not current
        else:
            made.write_text(text, "utf-8", newline="\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

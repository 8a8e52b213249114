"""Make `torch.json` from `torch.toml`: `python -m launchlint.facts`, or with `--check` only say whether it is current."""

from __future__ import annotations

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


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with `--check`; 0 if it is current afterwards."""
    text = as_json(read_table(FOLDER / "torch.toml"))
    made = FOLDER / "torch.json"
    if "--check" in arguments:
        current = made.exists() and made.read_text("utf-8") == text
        print("torch.json is current" if current else "torch.json is not current: run python -m launchlint.facts")
        return 0 if current else 1
    made.write_text(text, "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""A small repository of git to try an adoption in."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

MODEL = """\
import torch


class Router(torch.nn.Module):
    def forward(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        ids = torch.empty(sum(counts), dtype=torch.int32, device=rows.device)
        start = 0
        for expert, count in enumerate(counts):
            ids[start : start + count].fill_(expert)
            start += count
        sizes = torch.tensor(counts, dtype=torch.int32, device=rows.device)
        return rows[ids] * sizes.sum()
"""
BAD = "        order = torch.tensor(sorted(counts), dtype=torch.int32, device=rows.device)\n"


@dataclass(frozen=True)
class Repository:
    """A working tree."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Repository:
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        made.git("init", "--quiet", "--initial-branch", "main")
        made.git("config", "user.name", "Test")
        made.git("config", "user.email", "test@localhost")
        return made

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, message: str = "a commit") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


def line_of(text: str, part: str) -> int:
    """The 1-based line of the first occurrence of `part`."""
    return text[: text.index(part)].count("\n") + 1

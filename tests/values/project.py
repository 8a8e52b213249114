"""A small project on disk, whose modules are looked into and never imported."""

from __future__ import annotations

import textwrap
from pathlib import Path

from launchlint.names import Names
from launchlint.values.astroid_session import Bounds, Session
from launchlint.values.astroid_values import AstroidValues
from launchlint.values.modules import package_of

BASE = """
raise RuntimeError("this module must never run")
import enum
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F
from . import missing
import nowhere_to_be_found

LIMIT = 5
NAMES = ["a", "b"]
TABLE = torch.zeros(3)
WHERE = torch.device("cuda")

class Mode(enum.IntEnum):
    FAST = 1

@dataclass
class Batch:
    tokens: torch.Tensor
    names: "list[str]"
    inner: "Inner"
    moved: torch.Tensor | None = None
    lens: torch.Tensor | None = None
    lens_cpu: torch.Tensor | None = None

class Inner:
    def __init__(self, device, scale=1.0):
        self.moved_rows = torch.zeros(4, device=device)
        self.plain_rows = torch.zeros(4)
        self.summed = self.moved_rows.cumsum(0)
        self.viewed = self.plain_rows.numpy()
        self.array = np.zeros(3)
        self.count = 0
        self.scale = scale
        self.nothing = None
        self.unknown = nowhere_to_be_found.make()

    @property
    def on_device(self):
        return self.plain_rows.to(self.moved_rows.device)

    def pack(self):
        return self.moved_rows[1:].view(-1)

    def both(self):
        return self.moved_rows, self.count

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.table = torch.ones(3, device="cuda")

    def lookup(self):
        return double(self.table)

def double(x):
    return x * 2

def make(n, device="cuda"):
    rows = torch.empty(n, device=device)
    return rows.view(-1)

def on_host(n):
    return torch.arange(n)

def promised(x) -> torch.Tensor: ...

def downloaded(x: torch.Tensor):
    return torch.cat([x, x]).cpu()

def moved(x: torch.Tensor, like: torch.Tensor):
    return x.to("cpu").to(like.device)

def largest(x: torch.Tensor):
    return x.max()

def along(x: torch.Tensor):
    return x.max(dim=0)

def activated(x: torch.Tensor):
    return F.softmax(x, dim=-1)

def batch() -> Batch: ...

def array():
    return np.cumsum([1, 2])

def numbers():
    return [1, 2, 3]

def maybe(x):
    if x:
        return 1
    return nowhere_to_be_found.make()

def loop(x):
    return loop(x)

async def later():
    return torch.zeros(3)

def rows():
    yield torch.zeros(3)

@nowhere_to_be_found.contextmanager
def changed():
    return torch.zeros(3)
"""

FILES = {
    "shop/__init__.py": "from .base import make as exported\n",
    "shop/base.py": BASE,
    "shop/star.py": "from shop.base import *\n",
    "shop/models/__init__.py": "",
    "shop/models/linted.py": """
        from shop.base import Inner, Batch
        from shop.star import Layer as Imported
        from elsewhere import Foreign

        class Mine(Imported): ...

        class Theirs(Mine, Foreign): ...
        """,
    "neighbour/__init__.py": "",
    "neighbour/tools.py": "import torch\ndef make():\n    return torch.zeros(3)\n",
}


def write_project(root: Path) -> Path:
    """Write the project; the path of the file that is linted."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root / "shop/models/linted.py"


def values_for(path: Path, bounds: Bounds | None = None, session: Session | None = None) -> AstroidValues:
    """Answers for one linted file, from a session of its own unless one is given."""
    package = package_of(str(path))
    assert package is not None
    return AstroidValues(package, session or Session(bounds))


def names_with(**targets: str) -> Names:
    """The imports of a linted file."""
    return Names("shop.models.linted", False, targets)

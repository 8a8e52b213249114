"""From the paths in a recording to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchlint.trace.code import Frame
from launchlint.trace.places import Places

STEP = "def step(x):\n    return x\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("pkg/model.py", "pkg/deep/model.py", "other/train.py", "twin/a/run.py", "twin/b/run.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(STEP)
    (tmp_path / "pkg/deep/model.py").write_text("import torch\n\n\n" + STEP)
    (tmp_path / "broken.py").write_text("def step(:\n")
    return tmp_path


def found(tree: Path, path: str, line: int = 1, name: str = "step") -> str | None:
    places = Places([str(file) for file in sorted(tree.rglob("*.py"))])
    place = places.find(Frame(path, line, name))
    return str(Path(place.path).relative_to(tree)) if place else None


@pytest.mark.parametrize(
    ("path", "line", "wanted"),
    [
        ("pkg/model.py", 1, "pkg/model.py"),  # cut at an entry of sys.path
        ("model.py", 1, "pkg/model.py"),  # two files have the name, one has such a function on the line
        ("model.py", 4, "pkg/deep/model.py"),
        ("/home/someone/checkout/pkg/model.py", 1, "pkg/model.py"),  # recorded on another machine
        ("/usr/lib/python3.11/train.py", 1, None),  # of a path from the root the name alone is too little
        ("torch/nn/train.py", 1, None),
        ("train.py", 1, "other/train.py"),
        ("train.py", 9, None),
        ("run.py", 1, None),  # two files fit
        ("twin/b/run.py", 1, "twin/b/run.py"),
        ("broken.py", 1, None),
    ],
)
def test_a_path_means_the_file_that_ends_like_it_and_has_the_function(tree: Path, path: str, line: int, wanted: str | None) -> None:
    assert found(tree, path, line) == wanted


def test_files_that_changed_and_paths_that_mean_two_are_remembered(tree: Path) -> None:
    places = Places([str(file) for file in sorted(tree.rglob("*.py"))])
    for path, name in (("train.py", "gone"), ("run.py", "step"), ("unheard_of.py", "step")):
        assert places.find(Frame(path, 1, name)) is None
    assert places.changed == {str(tree / "other/train.py")}
    assert places.ambiguous == {"run.py"}

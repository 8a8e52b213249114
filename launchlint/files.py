"""Functions that read a file from the disk each time they run: beside that, nothing they do with the device counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.guards import Guard
from launchlint.names import Names
from launchlint.rule import FunctionNode
from launchlint.trees import children

_READERS = frozenset(
    {
        "soundfile.read", "librosa.load", "librosa.core.load", "torchaudio.load", "PIL.Image.open", "cv2.imread", "imageio.imread",
        "torchvision.io.read_image", "torchvision.io.read_video", "scipy.io.wavfile.read", "skimage.io.imread", "numpy.load", "torch.load",
        "safetensors.torch.load_file",
    }
)  # fmt: skip


def guards_of_files(function: FunctionNode | None, names: Names) -> Iterator[Guard]:
    """`audio, rate = soundfile.read(path)`, in no branch; what a branch reads may be for a caller who gives a path."""
    if function is not None and (called := _reader(function, names)):
        yield Guard("lower", f"`{function.name}` reads files (`{called}`), which takes longer than anything beside it")


def _reader(function: FunctionNode, names: Names) -> str:
    """What a function reads files with, or an empty string."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        match node:
            case ast.If() | ast.IfExp() | ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                continue
            case ast.Call(func=called) if (name := names.canonical(called)) in _READERS:
                return name
        pending += children(node)
    return ""

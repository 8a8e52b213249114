"""The dotted name of a file, found without importing anything."""

from __future__ import annotations

import functools
import os

from launchlint.hot.roles import frameworks

_NO_PACKAGE = frozenset({"src", "lib", "python", "site-packages", "dist-packages", ""})


@functools.lru_cache(maxsize=65536)
def _is_package(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))


@functools.cache
def _known_packages() -> frozenset[str]:
    return frozenset(package for table in frameworks().values() for package in table.packages)


def module_of(path: str) -> tuple[str, bool]:
    """Dotted name of the module in `path`, and whether it is a package's `__init__`.

    Packages are followed upwards through their `__init__.py`. Some trees leave those out (namespace packages), so a folder
    with the name of a known framework starts a package too, and for a relative path its folders count.
    """
    folder, name = os.path.split(path.replace("\\", "/"))
    stem = (name[:-3] if name.endswith((".py", ".pyi")) else name).removesuffix(".ipynb")
    stem = stem.removesuffix(".")
    parts = [part for part in folder.split("/") if part not in (".", "")]
    start = len(parts)
    current = folder or "."
    while start > 0 and _is_package(current):
        start -= 1
        current = os.path.dirname(current) or ("/" if folder.startswith("/") else ".")
    for index in range(start):
        if parts[index] in _known_packages() and parts[index + 1 : index + 2] != [parts[index]]:
            start = index
            break
    if start == len(parts) and not os.path.isabs(folder):
        start = 0
    chosen = [part for part in parts[start:] if part not in _NO_PACKAGE and part != ".."]
    is_package = stem == "__init__"
    if not is_package:
        chosen.append(stem)
    return ".".join(chosen) or stem, is_package

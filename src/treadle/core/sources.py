"""The version of treadle's source: part of the names of objects that are kept on disk."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

# The packages that these may import (the test of layering says so): what they write depends on no
# others, and every first call asks for the sizes and times of these files.
BELOW = {
    "autograph": ("core", "graph", "kernel", "ops"),
    "runtime": ("core", "graph", "kernel", "ops"),
}


@functools.cache
def sources(package: str) -> str:
    """A digest of the names, sizes and times of change of the source files of a package of
    treadle's and of those below it.

    Args:
        package: a key of `BELOW`.
    """
    return _digest("".join(_of_package(name) for name in (package, *BELOW[package])))


@functools.cache
def _of_package(name: str) -> str:
    return _digest("\n".join(_files(str(Path(__file__).parent.parent / name))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files(folder: str) -> list[str]:
    """A line for each source file."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # not a folder: inside an archive
        archive = next(p for p in Path(folder).parents if p.exists())
        return [f"{folder} {archive.stat().st_mtime_ns}"]
    lines, folders = [], []
    for entry in entries:
        name = entry.name
        if name.endswith(".py"):
            status = entry.stat()
            lines.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
        elif name != "__pycache__" and entry.is_dir():
            folders.append(entry.path)
    lines.sort()
    for inner in sorted(folders):
        lines += _files(inner)
    return lines

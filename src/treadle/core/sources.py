"""The version of treadle's source: part of the names of objects that are kept on disk."""

from __future__ import annotations

import functools
import hashlib
import os

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
    package = os.path.dirname(os.path.dirname(__file__))
    return _digest("\n".join(_files(os.path.join(package, name))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files(folder: str) -> list[str]:
    """A line for each source file."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # not a folder: inside an archive
        archive = os.path.dirname(folder)
        while not os.path.exists(archive):
            archive = os.path.dirname(archive)
        return [f"{folder} {os.stat(archive).st_mtime_ns}"]
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

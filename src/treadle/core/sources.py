"""The version of treadle's source: part of the names of objects that are kept on disk."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

from treadle.core.digests import digest

# The packages that these may import (the test of layering says so): what they write depends on no
# others, and every first call asks for the sizes and times of these files.
BELOW = {
    "autograph": ("core", "graph", "kernel", "ops"),
    "runtime": ("core", "graph", "kernel", "ops"),
}
_ROOT = os.path.dirname(os.path.dirname(__file__))  # the folder of treadle


class SourceFile(NamedTuple):
    """A file, or what stands for it: its path, size in bytes and time of change in nanoseconds."""

    path: str
    size: int
    changed: int


@functools.cache
def sources(package: str) -> str:
    """A digest of the names, sizes and times of change of the source files of a package of
    treadle's and of those below it.

    Args:
        package: a key of `BELOW`.
    """
    return digest("".join(_of_package(name) for name in (package, *BELOW[package])), 16)


@functools.cache
def same_anywhere(package: str) -> tuple[str, int]:
    """A digest of the names and sizes of the same files, which is the same wherever treadle is
    installed, and the latest time at which one of them changed, in nanoseconds."""
    files = [file for name in (package, *BELOW[package]) for file in _files(name)]
    lines = [f"{file.path.removeprefix(_ROOT).replace(os.sep, '/')} {file.size}" for file in files]
    return digest("\n".join(lines), 16), max((file.changed for file in files), default=0)


@functools.cache
def _of_package(name: str) -> str:
    return digest("\n".join(f"{f.path} {f.size} {f.changed}" for f in _files(name)), 16)




@functools.cache
def _files(package: str) -> list[SourceFile]:
    return _in_folder(os.path.join(_ROOT, package))


def _in_folder(folder: str) -> list[SourceFile]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # not a folder: inside an archive
        archive = os.path.dirname(folder)
        while not os.path.exists(archive):
            archive = os.path.dirname(archive)
        return [SourceFile(folder, 0, os.stat(archive).st_mtime_ns)]
    found, folders = [], []
    for entry in entries:
        name = entry.name
        if name.endswith(".py"):
            status = entry.stat()
            found.append(SourceFile(entry.path, status.st_size, status.st_mtime_ns))
        elif name != "__pycache__" and entry.is_dir():
            folders.append(entry.path)
    found.sort()
    for inner in sorted(folders):
        found += _in_folder(inner)
    return found

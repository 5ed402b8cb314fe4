"""The version of treadle's source: part of the names of objects that are kept on disk."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


@functools.cache
def sources() -> str:
    """A digest of the names, sizes and times of change of treadle's source files."""
    digest = hashlib.sha256()
    for line in _files(str(Path(__file__).parent.parent)):
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def _files(folder: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # not a folder: inside an archive
        archive = next(p for p in Path(folder).parents if p.exists())
        yield f"{folder} {archive.stat().st_mtime_ns}\n"
        return
    for entry in entries:
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _files(entry.path)

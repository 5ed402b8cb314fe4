"""Files that appear whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from treadle.core.file_errors import file_error as file_error  # (keras uses it, too)
from treadle.core.overwriting import NewFile as NewFile
from treadle.core.overwriting import own_names, remove_left


def write(path: Path, parts: Iterable[Any], what: str) -> None:
    """Write a file under a name of its own, and rename it when all of it is on the disk.

    A file that was there stays until then, also when writing fails or the process is killed.

    Args:
        parts: bytes, or arrays of them, in order.
        what: what is written, for errors.

    Raises:
        ResourceExhaustedError: the disk or the quota is full.
        PermissionDeniedError: the directory cannot be written.
        NotFoundError, FailedPreconditionError, UnknownError: other faults of the file system.
    """
    own = own_names(path.name)
    part = path.with_name(f"{own}{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_left(path.parent, own)
        try:
            with open(part, "wb", buffering=0) as file:
                for piece in parts:
                    _write_all(file.fileno(), memoryview(piece))
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
        _sync(path.parent)
    except OSError as error:
        raise file_error(error, f"Could not write {what} {path}") from error


def write_folder(folder: Path, write: Callable[[Path], None], last: str, what: str) -> None:
    """Write several files of a folder under names of their own, and rename them when all of them
    are on the disk. Other files of the folder stay.

    Args:
        write: is given a new folder, and writes the files into it.
        last: the file that is renamed last: without it the others count for nothing.
        what: what is written, for errors.

    Raises: as `write`.
    """
    own = own_names("saving")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_left(folder, own)
        stage = Path(tempfile.mkdtemp(".part", f"{own}{os.getpid()}-", folder))
        try:
            write(stage)
            written = [path for path in stage.rglob("*") if path.is_file()]
            for path in sorted(written, key=lambda path: path == stage / last):
                _sync(path)
                target = folder / path.relative_to(stage)
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        _sync(folder)
    except OSError as error:
        raise file_error(error, f"Could not write {what} {folder}") from error


def _write_all(file: int, piece: memoryview) -> None:
    while piece:
        piece = piece[os.write(file, piece) :]


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

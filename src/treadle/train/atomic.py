"""Files that appear whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from treadle.core.file_errors import file_error as file_error  # (keras uses it, too)


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
    own = f".{path.name}.{socket.gethostname()}-"
    part = path.with_name(f"{own}{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(path.parent, own)
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
    own = f".saving.{socket.gethostname()}-"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_left(folder, own)
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


def _remove_left(folder: Path, own: str) -> None:
    """Remove what processes of this machine that are no more left behind half written."""
    for left in folder.glob(f"{_escaped(own)}*.part"):
        number = left.name.removeprefix(own).removesuffix(".part").partition("-")[0]
        if number.isdecimal() and int(number) != os.getpid() and not _runs(int(number)):
            with contextlib.suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

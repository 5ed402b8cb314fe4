"""Files that appear whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable
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
        _sync_folder(path.parent)
    except OSError as error:
        raise file_error(error, f"Could not write {what} {path}") from error


def _write_all(file: int, piece: memoryview) -> None:
    while piece:
        piece = piece[os.write(file, piece) :]


def _remove_left(folder: Path, own: str) -> None:
    """Remove what processes of this machine that are no more left behind half written."""
    for left in folder.glob(f"{_escaped(own)}*.part"):
        number = left.name.removeprefix(own).removesuffix(".part")
        if number.isdecimal() and int(number) != os.getpid() and not _runs(int(number)):
            with contextlib.suppress(OSError):
                left.unlink()


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


def _sync_folder(folder: Path) -> None:
    """Have the new name itself on the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

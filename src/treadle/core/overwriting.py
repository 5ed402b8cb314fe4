"""Files that are written from their beginning: one that was there stays until the new one is."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
from pathlib import Path
from typing import Any

_numbers = itertools.count()  # of the files of this process


class NewFile:
    """A file that is written from its beginning, for bytes.

    Where the path has a file with contents, that one stays until the new one is published: what is
    written goes into a file beside it, which then takes its name. So nothing is lost where the disk
    gets full, or the program ends, before the new contents are whole. A path without contents (no
    file, an empty one, a device), and one in a folder that takes no other file, is written where
    it is.

    Args:
        path: the file.
        mode: "wb" or "w+b".

    Attributes:
        file: what is written to.

    Raises:
        OSError: the file cannot be made, or may not be written.
    """

    file: Any = None
    _aside: str | None = None

    def __init__(self, path: str, mode: str = "wb") -> None:
        self._process = os.getpid()
        self._place = os.path.realpath(path)  # a link stays a link
        if os.path.isfile(self._place) and os.path.getsize(self._place):
            with open(self._place, "r+b"):
                pass  # whether it may be written
            self._aside = _beside(self._place)
        self.file = open(self._aside or path, mode)  # noqa: SIM115  (closed by `close`)

    @property
    def closed(self) -> bool:
        return self.file is None or bool(self.file.closed)

    @property
    def replaces(self) -> bool:
        """Whether the path has another file as yet."""
        return self._aside is not None

    def publish(self) -> None:
        """Hand what was written to the system. From here on the path has it.

        Raises:
            OSError: the disk is full; what was there stays.
        """
        self.file.flush()
        if self._aside is not None:
            os.fsync(self.file.fileno())
            os.replace(self._aside, self._place)
            self._aside = None

    def close(self) -> None:
        """Publish, and end the file. Does nothing where it is closed.

        Raises:
            OSError: as for `publish`.
        """
        if self.closed:
            return
        try:
            self.publish()
        finally:
            self.discard()

    def discard(self) -> None:
        """End the file; what was not published goes, where something else has its name."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        if self._aside is not None:
            with contextlib.suppress(OSError):
                os.remove(self._aside)
            self._aside = None

    def __del__(self) -> None:
        if self.closed or self._process != os.getpid():
            return  # after a fork the file is the parent's
        with contextlib.suppress(OSError):
            self.close()


def _beside(place: str) -> str | None:
    """A new empty file beside another, with its permissions; None where the folder takes none."""
    folder, name = os.path.split(place)
    own = own_names(name)
    path = os.path.join(folder, f"{own}{os.getpid()}-{next(_numbers)}.part")
    remove_left(Path(folder), own)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except PermissionError:
        return None
    with contextlib.suppress(OSError):
        shutil.copymode(place, path)
    return path


# -- names of files that are being written ---------------------------------------------------------


def own_names(name: str) -> str:
    """How the names begin that this machine gives to files while they are written: the number of
    the process follows, and at the end ``.part``."""
    return f".{name}.{socket.gethostname()}-"


def remove_left(folder: Path, own: str) -> None:
    """Remove what processes of this machine that are no more left behind half written.

    Args:
        own: what `own_names` gave.
    """
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

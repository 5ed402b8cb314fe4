"""Compiled objects on disk, so that a second process compiles nothing.

One file an object: a magic line, a checksum, the object. The checksum covers the contents and what
the object is: its kind (machine code, program, conversion...), treadle's version, its name.
Files are written under a temporary name and renamed, so readers see whole files only. A file that
is damaged, holds another object than its name says, or could have been written by another user is
ignored and written again. The least recently used files go when the folder outgrows its bound.

Somebody who can write files of this user has no need of the folder to run code as this user.
Nevertheless reading a file runs nothing: all but machine code is plain data (`plain_data`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import warnings
from collections.abc import Iterator

from treadle.core import locks
from treadle.core.digests import Digest
from treadle.version import __version__

MAGIC = b"treadle-object-4\n"
MOST_BYTES = 512 << 20
_OURS = b"treadle-object-"  # how the files of every version begin
_DIGEST = 32  # bytes


class ObjectCache:
    """A folder of compiled objects. (Paths are texts: importing pathlib takes 4 ms.)

    Args:
        folder: where; None keeps nothing.
        most_bytes: the folder is trimmed to this size now and then.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, most_bytes: int = MOST_BYTES
    ) -> None:
        self.folder = None if folder is None else _absolute(os.fspath(folder))
        self.most_bytes = most_bytes
        self._usable: bool | None = None
        self._lock = locks.lock()
        self._written = 0

    def load(self, kind: str, key: str) -> bytes | None:
        """The object of a kind stored under `key`, or None where there is none or it is damaged."""
        if not self._ready():
            return None
        path = self._path(key)
        try:
            data = _read(path)
        except OSError:
            return None
        head, body = data[: len(MAGIC)], data[len(MAGIC) + _DIGEST :]
        digest = data[len(MAGIC) : len(MAGIC) + _DIGEST]
        if head != MAGIC or _digest(kind, key, body) != digest:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # recently used
        return body

    @property
    def is_usable(self) -> bool:
        """Whether objects are kept."""
        return self._ready()

    def has(self, key: str) -> bool:
        """Whether there is an object under `key`, perhaps a damaged one."""
        return self._ready() and os.path.exists(self._path(key))

    def store(self, kind: str, key: str, data: bytes) -> None:
        """Keep an object. A folder that cannot be written gives one warning, no error.

        Args:
            kind: one word; an object can be loaded as one of its own kind only.
            key: names it among all objects of all kinds.
        """
        if not self._ready():
            return
        try:
            self._write(self._path(key), MAGIC + _digest(kind, key, data) + data)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(data)
        if self._written > self.most_bytes // 16:
            self._written = 0
            self.trim()

    def trim(self) -> None:
        """Remove the least recently used objects until the folder is within its bound."""
        if self.folder is None:
            return
        files = []
        for path in self._own_files():
            with contextlib.suppress(OSError):
                status = os.stat(path)
                files.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in files) - self.most_bytes
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            excess -= size

    def clear(self) -> None:
        """Remove every object."""
        for path in self._own_files():
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _own_files(self) -> Iterator[str]:
        """The objects of any version; other programs may keep files of theirs in the folder."""
        names: list[str] = []
        if self.folder is not None:
            with contextlib.suppress(OSError):
                names = [name for name in os.listdir(self.folder) if name.endswith(".o")]
        for name in names:
            path = f"{self.folder}/{name}"
            with contextlib.suppress(OSError):
                if _read(path, len(_OURS)) == _OURS:
                    yield path

    def _path(self, key: str) -> str:
        return f"{self.folder}/{key}.o"

    @staticmethod
    def _write(path: str, data: bytes) -> None:
        name = os.path.join(os.path.dirname(path), f".new-{os.urandom(8).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(name, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _ready(self) -> bool:
        """Whether the folder exists, or could be made, and belongs to this user alone."""
        if self.folder is None:
            return False
        if self._usable is None:
            with self._lock:
                if self._usable is None:
                    self._usable = self._prepare(self.folder)
        return self._usable

    def _prepare(self, folder: str) -> bool:
        try:
            _make_folder(folder)
            status = os.stat(folder)
        except OSError as error:
            self._give_up(error)
            return False
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            warnings.warn(
                f"The compile cache {folder} is not private to you and is not used. Set "
                "TREADLE_CACHE_DIR to a folder of your own.",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
        return True

    def _give_up(self, error: OSError) -> None:
        """Stop using the folder, saying so once."""
        if self._usable is False:
            return
        self._usable = False
        warnings.warn(
            f"The compile cache cannot be used ({error}); code is compiled in every process. Set "
            "TREADLE_CACHE_DIR to a folder that can be written, or to an empty string for none.",
            RuntimeWarning,
            stacklevel=2,
        )


def _digest(kind: str, key: str, body: bytes) -> bytes:
    """The checksum of an object of this version under a name."""
    found = Digest(f"{kind}\n{__version__}\n{key}\n", digits=2 * _DIGEST)
    found.update(body)
    return found.value


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _make_folder(path: str) -> None:
    """Make a folder and those that it is in, for this user alone: `os.makedirs` would ignore the
    mode for the latter."""
    above = os.path.dirname(path)
    if not os.path.exists(above) and above != path:
        _make_folder(above)
    if not os.path.isdir(path):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def _read(path: str, most: int = -1) -> bytes:
    """The contents of a file of this user's.

    Raises:
        OSError: it is no plain file, or another user could have written it.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no file")
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise OSError(f"{path} may be another user's")
        return file.read(most)


@functools.cache
def default_cache() -> ObjectCache:
    """The process's cache."""
    return ObjectCache(default_folder())


def stores_programs() -> bool:
    """Whether whole programs and converted functions are kept too: ``TREADLE_STORE_PROGRAMS``, and
    there is a folder for them."""
    wanted = os.environ.get("TREADLE_STORE_PROGRAMS", "1") not in ("", "0")
    return wanted and default_cache().is_usable


def default_folder() -> str | None:
    """``TREADLE_CACHE_DIR`` (empty: none), else ``treadle`` in the user's cache folder, if any."""
    chosen = os.environ.get("TREADLE_CACHE_DIR")
    if chosen is not None:
        return chosen or None
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return os.path.join(base, "treadle")
    home = os.path.expanduser("~")
    if home == "~":  # a user without a home, as in some containers
        return None
    return os.path.join(home, ".cache", "treadle")

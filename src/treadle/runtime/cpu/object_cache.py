"""Compiled objects on disk: private, versioned, checksummed and bounded.

An entry is a file named by its key: a header line with the checksum, then the object. Writing
goes through a temporary file and a rename, so that readers never see half an entry; an entry
that does not match its checksum is ignored and rewritten.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from pathlib import Path

_VERSION = b"treadle-object-2"
_DEFAULT_LIMIT = 256 << 20  # bytes


def cache_directory() -> Path | None:
    """TREADLE_CACHE_DIR, else treadle under XDG_CACHE_HOME or ~/.cache; None when it is "off"."""
    given = os.environ.get("TREADLE_CACHE_DIR")
    if given is not None:
        return None if given in ("", "off", "0") else Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "treadle"
    except RuntimeError:  # no home directory
        return None


class ObjectCache:
    """Objects by key. Never raises for trouble with files: one warning, then it goes without."""

    def __init__(self, directory: Path | None, limit: int = _DEFAULT_LIMIT) -> None:
        self.directory = directory / "objects" if directory else None
        self.limit = limit
        self.written = 0
        self._warned = False

    def _path(self, key: str) -> Path | None:
        return self.directory / key[:2] / f"{key[2:]}.o" if self.directory else None

    def read(self, key: str) -> bytes | None:
        """The object stored under `key`, or None when there is none that can be trusted."""
        path = self._path(key)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                    return None  # written by somebody else: code that must not be run
                data = file.read()
        except OSError:
            return None
        header, _, body = data.partition(b"\n")
        if header != self._header(key, body):
            return None
        try:
            os.utime(path)  # the least recently used go first
        except OSError:
            pass
        return body

    def write(self, key: str, body: bytes) -> None:
        """Store an object; a directory that cannot be written to causes one warning."""
        path = self._path(key)
        if path is None or self.directory is None:
            return
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._header(key, body) + b"\n" + body)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            self._warn(error)
            return
        self.written += len(body)
        if self.written > self.limit // 8:
            self.written = 0
            self.trim()

    def trim(self) -> None:
        """Remove the least recently used entries until the cache is within its limit."""
        if self.directory is None:
            return
        entries = []
        for path in self.directory.glob("*/*.o"):
            try:
                status = path.stat()
            except OSError:
                continue
            entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= size

    def clear(self) -> None:
        """Remove every entry."""
        for path in self.directory.glob("*/*.o") if self.directory else ():
            path.unlink(missing_ok=True)

    @staticmethod
    def _header(key: str, body: bytes) -> bytes:
        digest = hashlib.sha256(key.encode() + body).hexdigest().encode()
        return b" ".join((_VERSION, str(len(body)).encode(), digest))

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"treadle cannot write its compile cache in {self.directory} ({error}); "
                "set TREADLE_CACHE_DIR to a writable directory, or to 'off'",
                RuntimeWarning,
                stacklevel=4,
            )

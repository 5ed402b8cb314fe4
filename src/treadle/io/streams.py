"""Files of bytes that may be compressed, opened for reading."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from treadle.core.errors import DataLossError, InvalidArgumentError
from treadle.core.file_errors import file_error
from treadle.core.origin import at, user_origin

# What zlib is told about the form of compressed data.
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
_PIECE = 1 << 16  # bytes that are read and decompressed at once


def compression(kind: str | None, what: str) -> str:
    """The name of a way to compress, checked.

    Raises:
        InvalidArgumentError: it is not "", None, "GZIP" or "ZLIB".
    """
    if kind and kind not in WINDOW_BITS:
        raise InvalidArgumentError(
            None, None,
            f"{what}: compression_type {kind!r} is not '', 'GZIP' or 'ZLIB'{at(user_origin())}",
        )  # fmt: skip
    return kind or ""


@contextmanager
def opened(name: str, kind: str = "") -> Iterator[BinaryIO]:
    """A file to read from; the errors of the system are TensorFlow's while it is open.

    Args:
        kind: "", "GZIP" or "ZLIB".

    Raises:
        NotFoundError: there is no such file.
        DataLossError: the file is not compressed in this way, or its end is missing.
    """
    try:
        with open(name, "rb") as file:
            yield io.BufferedReader(_Inflated(file, name, kind), _PIECE) if kind else file
    except OSError as error:
        raise file_error(error, name) from None


class _Inflated(io.RawIOBase):
    """The contents of a compressed file."""

    def __init__(self, file: BinaryIO, name: str, kind: str) -> None:
        self._file, self._name, self._kind = file, name, kind
        self._reader = zlib.decompressobj(WINDOW_BITS[kind])
        self._pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = b""
        while not found and (self._pending or self._more()):
            if self._reader.eof:  # another file compressed in this way follows
                self._reader = zlib.decompressobj(WINDOW_BITS[self._kind])
            try:
                found = self._reader.decompress(self._pending, len(buffer))
            except zlib.error as error:
                raise DataLossError(
                    None, None, f"{self._name}: not {self._kind} data: {error}"
                ) from None
            self._pending = self._reader.unconsumed_tail or self._reader.unused_data
        buffer[: len(found)] = found
        return len(found)

    def _more(self) -> bool:
        self._pending = self._file.read(_PIECE)
        if not self._pending and not self._reader.eof:
            raise DataLossError(
                None, None, f"{self._name}: the end of the {self._kind} data is missing"
            )
        return bool(self._pending)

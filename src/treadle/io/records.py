"""TFRecord files: records of bytes, each with its length and two checksums."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from treadle.core.errors import DataLossError, FailedPreconditionError
from treadle.core.file_errors import file_error
from treadle.core.origin import at, user_origin
from treadle.core.overwriting import NewFile
from treadle.io.checksums import BLOCK, FOOTER, HEADER, Scanner, crc32c, masked
from treadle.io.streams import WINDOW_BITS, opened

_MOST = 1 << 26  # bytes of a large record that are read at once
_NUMBERS = {0: "", 1: "ZLIB", 2: "GZIP"}  # of ways to compress, in TensorFlow 1

# -- reading ---------------------------------------------------------------------------------------


def records(name: str, kind: str = "") -> Iterator[bytes]:
    """The records of a file, in order.

    Args:
        kind: how the file is compressed: "", "GZIP" or "ZLIB".

    Raises:
        NotFoundError: there is no such file.
        DataLossError: a record is damaged, or the end of the file is missing. The text has the
            name of the file and where the record begins in it (when decompressed).
    """
    with opened(name, kind) as file:
        yield from _records(name, file)


def _records(name: str, file: BinaryIO) -> Iterator[bytes]:
    scanner = Scanner()
    view: memoryview = scanner.block.data
    offset = filled = 0  # where the block is in the file, how many bytes it has
    while True:
        read = file.readinto(view[filled:])  # type: ignore[attr-defined]
        filled += read
        bounds, place, fault = scanner.scan(filled)
        for start, stop in bounds:
            yield view[start:stop].tobytes()
        if fault:
            raise _corrupt(name, offset + place)
        rest = view[place:filled].tobytes()
        if not bounds and len(rest) >= HEADER and _size(rest) > BLOCK:
            large = _large(name, file, rest, offset)
            yield large
            offset, filled = offset + HEADER + len(large) + FOOTER, 0
            continue
        if not bounds and not read:
            if rest:
                raise _truncated(name, offset)
            return
        view[: len(rest)] = rest
        offset, filled = offset + place, len(rest)


def _size(rest: bytes) -> int:
    """The bytes of the record whose header begins here."""
    return HEADER + int.from_bytes(rest[:8], "little") + FOOTER


def _large(name: str, file: BinaryIO, rest: bytes, offset: int) -> bytes:
    """The data of a record that is larger than a block, whose header is checked."""
    size = _size(rest)
    pieces, missing = [rest], size - len(rest)
    while missing:  # the file may be far shorter than the length says
        pieces.append(file.read(min(missing, _MOST)))
        missing -= len(pieces[-1])
        if not pieces[-1]:
            raise _truncated(name, offset)
    whole = b"".join(pieces)
    data, check = whole[HEADER:-FOOTER], int.from_bytes(whole[-FOOTER:], "little")
    if masked(crc32c(data)) != check:
        raise _corrupt(name, offset)
    return data


def _corrupt(name: str, offset: int) -> DataLossError:
    hint = "" if offset else " (is this a TFRecord file, and compressed as was said?)"
    return DataLossError(None, None, f"{name}: corrupted record at {offset}{hint}")


def _truncated(name: str, offset: int) -> DataLossError:
    return DataLossError(None, None, f"{name}: truncated record at {offset}: the file ends in it")


# -- writing ---------------------------------------------------------------------------------------


class TFRecordOptions:
    """How the records of a file are compressed.

    Args:
        compression_type: "GZIP", "ZLIB", or "" and None for no compression; or TensorFlow 1's
            numbers of these.
        window_bits, compression_level, mem_level, compression_strategy: what zlib is told; None for
            its own choice.
        flush_mode, input_buffer_size, output_buffer_size, compression_method: accepted for
            TensorFlow programs.

    Raises:
        ValueError: another compression_type.
    """

    def __init__(
        self, compression_type: Any = None, flush_mode: int | None = None,
        input_buffer_size: int | None = None, output_buffer_size: int | None = None,
        window_bits: int | None = None, compression_level: int | None = None,
        compression_method: int | None = None, mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:  # fmt: skip
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """"GZIP", "ZLIB" or "" for options, or for the name of a way to compress or its number in
        TensorFlow 1.

        Raises:
            ValueError: another name.
        """
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        options = _NUMBERS.get(options, options)
        if options and options not in WINDOW_BITS:
            raise ValueError(f'Not a valid compression_type: "{options}"{at(user_origin())}')
        return options or ""

    def _compressor(self) -> Any:
        kind = self.get_compression_type_string(self)
        if not kind:
            return None
        bits = WINDOW_BITS[kind]
        if self.window_bits is not None:
            bits = self.window_bits + (16 if kind == "GZIP" else 0)
        chosen = (self.compression_level, self.mem_level, self.compression_strategy)
        level, memory, strategy = (
            default if value is None else value
            for value, default in zip(
                chosen, (-1, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY), strict=True
            )
        )
        return zlib.compressobj(level, zlib.DEFLATED, bits, memory, strategy)


def pieces(record: Any) -> tuple[bytes, Any, bytes]:
    """What a file has for the bytes of a record, in order: their number, they themselves, and a
    checksum of each behind it."""
    length = len(record).to_bytes(8, "little")
    head, foot = masked(crc32c(length)), masked(crc32c(record))
    return length + head.to_bytes(4, "little"), record, foot.to_bytes(4, "little")


class TFRecordWriter:
    """Writes records to a file.

    Usable as a context manager, which closes the file.

    A file with contents that is there stays as it is until the new one is closed or flushed without
    an error: the new one is written beside it, and takes its name then. So a disk that gets full,
    an error in the block of `with` and a program that is killed lose nothing of it.

    Args:
        path: the file, which is made anew.
        options: TFRecordOptions, or "GZIP", "ZLIB" or "".

    Raises:
        NotFoundError: the folder does not exist.
        PermissionDeniedError: the file may not be written.
        ValueError: another compression.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._compressor = chosen._compressor()
        self._path = os.fsdecode(path)
        try:
            self._new = NewFile(self._path)
            self._fault: Exception | None = None
        except OSError as error:
            raise file_error(error, self._path) from None

    def write(self, record: bytes | str) -> None:
        """Append a record.

        Raises:
            TypeError: it is neither bytes nor a str.
            FailedPreconditionError: the writer is closed.
            ResourceExhaustedError: the disk is full.
        """
        if isinstance(record, str):
            record = record.encode()
        if not isinstance(record, bytes | bytearray | memoryview):
            raise TypeError(
                f"a record is bytes or a str, not {type(record).__name__}{at(user_origin())}"
            )
        if self._new.closed:
            raise FailedPreconditionError(None, None, f"Writer is closed.{at(user_origin())}")
        self._put(*pieces(record))

    def _put(self, *pieces: Any) -> None:
        file, compressor = self._new.file, self._compressor
        try:
            for piece in pieces:
                file.write(compressor.compress(piece) if compressor else piece)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> Exception:
        """The error to raise: what was written is not whole, and ends here. `close` tells of it
        again."""
        self._new.discard()
        self._fault = file_error(error, self._path)
        return self._fault

    def flush(self) -> None:
        """Hand what was written to the system, where a file of this name was replace it.

        Raises:
            FailedPreconditionError: the writer is closed.
            ResourceExhaustedError: the disk is full.
        """
        if self._new.closed:
            raise FailedPreconditionError(None, None, f"Writer is closed.{at(user_origin())}")
        try:
            if self._compressor:
                self._new.file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
            self._new.publish()
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """End the file; does nothing where it is closed.

        Raises:
            ResourceExhaustedError: the disk is full, or was when something was written.
        """
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        if self._new.closed:
            return
        try:
            if self._compressor:
                self._new.file.write(self._compressor.flush())
            self._new.close()
        except OSError as error:
            self._new.discard()
            raise file_error(error, self._path) from None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        if kind is None:
            self.close()
        elif self._new.replaces:
            self._new.discard()
        elif self._fault is None:
            self.close()

"""Files of named arrays in the format of the safetensors library, written and read.

A file is the length of its header (8 bytes), the header in JSON (the dtype, shape and place of each
array, and a table of texts under ``__metadata__``), and the arrays one after the other. Reading one
runs no code of the file. The table of texts has a checksum of the header, and one of each array.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.file_errors import file_error
from treadle.train import atomic

SUFFIX = ".safetensors"

Array = np.ndarray[Any, Any]

_DTYPES = {
    "BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8,
    "U16": dtypes.uint16, "I16": dtypes.int16, "U32": dtypes.uint32, "I32": dtypes.int32,
    "U64": dtypes.uint64, "I64": dtypes.int64, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
    "F32": dtypes.float32, "F64": dtypes.float64,
}  # fmt: skip
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_MOST_HEADER = 100_000_000  # bytes, as the library has it
_OWN = "treadle.checksums"  # the entry of the table with the checksums of the arrays
_HEADER = "treadle.header"  # and that with the header's own, computed with zeros in its place
_ZEROS = "0" * 8


class Entry(NamedTuple):
    """An array of a file.

    Attributes:
        start, size: its place behind the header, in bytes.
        checksum: CRC-32 of its bytes; None where another library wrote the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    size: int
    checksum: int | None


def write(path: Path, arrays: Mapping[str, Array], texts: Mapping[str, str], what: str) -> None:
    """Write a file, whole or not at all; see `atomic.write` for the errors."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    table: dict[str, Any] = {"__metadata__": {}}
    pieces, checksums, place = list[Any](), {}, 0
    for name in names:
        array = arrays[name]
        piece: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        checksums[name] = f"{zlib.crc32(piece):08x}"
        table[name] = {
            "dtype": _CODES[dtypes.from_numpy(array.dtype)], "shape": list(array.shape),
            "data_offsets": [place, place + piece.size],
        }  # fmt: skip
        pieces.append(piece)
        place += piece.size
    table["__metadata__"] = {**texts, _OWN: json.dumps(checksums), _HEADER: _ZEROS}
    header = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _MOST_HEADER:
        raise errors.InvalidArgumentError(
            None, None, f"Could not write {what} {path}: its header would have {len(header)} bytes"
        )
    mark = _mark(_ZEROS)
    assert header.count(mark) == 1
    header = header.replace(mark, _mark(f"{zlib.crc32(header):08x}"))
    atomic.write(path, [len(header).to_bytes(8, "little"), header, *pieces], what)


def _mark(digits: str) -> bytes:
    return f'"{_HEADER}":"{digits}"'.encode()


class File:
    """A file that is read: its header now, its arrays when they are asked for.

    Raises:
        NotFoundError and the like: it cannot be opened.
        DataLossError: it is damaged.

    Attributes:
        entries: the arrays by their names.
        texts: the table of texts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                whole = file.seek(0, 2)
                file.seek(0)
                length = int.from_bytes(file.read(8), "little")
                if whole < 8 or length > min(whole - 8, _MOST_HEADER):
                    raise self.damage("it ends before its header does")
                header = file.read(length)
        except OSError as error:
            raise file_error(error, f"Could not read {path}") from error
        self._start = 8 + length
        self.texts, checksums = self._texts(header)
        self.entries = dict(self._entries(checksums))
        end = self._start + max((e.start + e.size for e in self.entries.values()), default=0)
        if end != whole:
            raise self.damage(f"it has {whole} bytes, and its header speaks of {end}")

    def damage(self, fault: str) -> errors.DataLossError:
        """The error that says that the file is damaged."""
        return errors.DataLossError(None, None, f"{self.path} is damaged: {fault}")

    def _texts(self, header: bytes) -> tuple[dict[str, str], dict[str, str]]:
        """The table of texts, and the checksums of the arrays."""
        try:
            table = json.loads(header)
            texts = table.pop("__metadata__", {})
            checksums = json.loads(texts.pop(_OWN, "{}"))
            stored = texts.pop(_HEADER, None)
        except (ValueError, AttributeError, TypeError) as error:
            raise self.damage(f"its header cannot be read ({error})") from None
        if stored is None and (b"treadle" in header):
            raise self.damage("the checksum of its header is missing")
        if stored is not None:
            blank = header.replace(_mark(str(stored)), _mark(_ZEROS))
            if f"{zlib.crc32(blank):08x}" != stored:
                raise self.damage("its header does not fit its checksum")
        self._table = table
        return texts, checksums

    def _entries(self, checksums: dict[str, str]) -> Iterator[tuple[str, Entry]]:
        at = 0
        try:
            listed = sorted(self._table.items(), key=lambda item: item[1]["data_offsets"])
            for name, entry in listed:
                kind, shape = _DTYPES.get(entry["dtype"]), tuple(map(int, entry["shape"]))
                start, end = map(int, entry["data_offsets"])
                if kind is None:
                    raise errors.UnimplementedError(
                        None, None,
                        f"{self.path}: {name!r} has dtype {entry['dtype']}, which is not provided",
                    )  # fmt: skip
                sound = start == at and min(shape, default=0) >= 0
                if not sound or end - start != math.prod(shape) * kind.size:
                    raise self.damage(f"the place of {name!r} does not fit its shape {shape}")
                given = checksums.get(name)
                checksum = None if given is None else int(given, 16)
                yield name, Entry(kind.np_dtype, shape, start, end - start, checksum)
                at = end
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, errors.OpError):
                raise
            raise self.damage(f"its header cannot be understood ({error!r})") from None

    def read(self, name: str) -> Array:
        """An array, compared with its checksum.

        Raises:
            DataLossError: it is damaged.
        """
        entry = self.entries[name]
        data: Any = np.empty(entry.size, np.uint8)
        try:
            with open(self.path, "rb") as file:
                file.seek(self._start + entry.start)
                count = file.readinto(memoryview(data)) if entry.size else 0
        except OSError as error:
            raise file_error(error, f"Could not read {self.path}") from error
        if count != entry.size or entry.checksum not in (None, zlib.crc32(data)):
            raise self.damage(f"the bytes of {name!r} do not fit their checksum")
        array: Array = data.view(entry.dtype).reshape(entry.shape)
        return array

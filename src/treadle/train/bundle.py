"""TensorFlow's checkpoints: an index of values, and files of data that have them.

``prefix.index`` is a table (`treadle.train.table`) of messages that say of each value its dtype,
shape, file, place and checksum. Checkpoints of objects have their graph among the values.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.file_errors import file_error
from treadle.core.wire import BYTES, FIXED32, fields, varint_at
from treadle.io.checksums import crc32c, masked
from treadle.train.nodes import VALUE, Node, Slot
from treadle.train.safetensors import Array
from treadle.train.table import read_table

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# TensorFlow's numbers of dtypes.
_DTYPES = {
    1: dtypes.float32, 2: dtypes.float64, 3: dtypes.int32, 4: dtypes.uint8, 5: dtypes.int16,
    6: dtypes.int8, 7: dtypes.string, 8: dtypes.complex64, 9: dtypes.int64, 10: dtypes.bool,
    14: dtypes.bfloat16, 17: dtypes.uint16, 18: dtypes.complex128, 19: dtypes.float16,
    22: dtypes.uint32, 23: dtypes.uint64,
}  # fmt: skip


class _Entry(NamedTuple):
    """What the index says of a value."""

    number: int  # of the dtype
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    is_sliced: bool


class BundleReader:
    """A checkpoint that TensorFlow wrote.

    Attributes:
        nodes: the graph of objects; None where the values are those of names.

    Raises:
        NotFoundError and the like: the index cannot be read.
        DataLossError: it is damaged.
    """

    texts: dict[str, str] = {}

    def __init__(self, prefix: str) -> None:
        self.name = prefix
        self._index = Path(f"{prefix}.index")
        self._shards = 1
        self._entries: dict[str, _Entry] = {}
        try:
            for key, value in read_table(self._index):
                if not key:
                    self._read_header(value)
                elif key[0]:  # others are of parts of values
                    self._entries[key.decode()] = _entry(value)
        except (ValueError, TypeError) as error:
            if isinstance(error, errors.OpError):
                raise
            raise self._damage(str(self._index), str(error)) from None
        self.nodes = self._graph() if GRAPH in self._entries else None

    def _damage(self, path: str, fault: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{path} is damaged: {fault}")

    def _read_header(self, message: bytes) -> None:
        found = _fields(message)
        self._shards = found.get(1, 1)
        if found.get(2, 0):
            raise errors.UnimplementedError(
                None, None, f"{self.name}: its numbers have their high bytes first"
            )

    def _graph(self) -> list[Node]:
        message = self.read(GRAPH).item()
        try:
            return [_node(value) for number, _, value in fields(message) if number == 1]
        except (ValueError, TypeError) as error:
            raise self._damage(self.name, f"its graph of objects ({error})") from None

    def entries(self) -> dict[str, tuple[tuple[int, ...], DType]]:
        """The shapes and dtypes of all values of dtypes that are provided."""
        return {
            name: (entry.shape, _DTYPES[entry.number])
            for name, entry in self._entries.items()
            if entry.number in _DTYPES
        }

    def read(self, name: str) -> Array:
        """A value.

        Raises:
            DataLossError: it is damaged.
            UnimplementedError: it is stored in parts, as variables of several servers are.
        """
        entry = self._entries[name]
        if entry.is_sliced:
            raise errors.UnimplementedError(
                None, None,
                f"{self.name}: {name!r} is stored in parts, which is not provided: save it from a "
                "variable without a partitioner",
            )  # fmt: skip
        dtype = _DTYPES[entry.number]
        path = Path(f"{self.name}.data-{entry.shard:05d}-of-{self._shards:05d}")
        data = self._bytes(path, entry)
        if dtype is dtypes.string:
            strings, checksum = _strings(data, math.prod(entry.shape), path, name)
        else:
            checksum = crc32c(data)
        if len(data) != entry.size or masked(checksum) != entry.checksum:
            raise self._damage(str(path), f"the bytes of {name!r} do not fit their checksum")
        if dtype is dtypes.string:
            return strings.reshape(entry.shape)
        if entry.size != math.prod(entry.shape) * dtype.size:
            raise self._damage(str(self._index), f"the size of {name!r} does not fit its shape")
        return data.view(dtype.np_dtype).reshape(entry.shape)

    @staticmethod
    def _bytes(path: Path, entry: _Entry) -> Array:
        try:
            with open(path, "rb") as file:
                end = file.seek(0, 2)
                file.seek(entry.offset)
                data: Any = np.empty(max(min(entry.size, end - entry.offset), 0), np.uint8)
                count = file.readinto(memoryview(data)) if data.size else 0
        except OSError as error:
            raise file_error(error, f"Could not read {path}") from error
        found: Array = data[:count]
        return found


def _entry(message: bytes) -> _Entry:
    found = _fields(message)
    numbers = [found.get(number, 0) for number in (1, 3, 4, 5, 6)]
    dtype, shard, offset, size, checksum = map(int, numbers)
    shape = _shape(found.get(2, b""))
    return _Entry(dtype, shape, shard, offset, size, checksum, 7 in found)


def _shape(message: Any) -> tuple[int, ...]:
    """The sizes of a TensorShapeProto."""
    dims = [value for number, kind, value in fields(message) if (number, kind) == (2, BYTES)]
    return tuple(int(_fields(dim).get(1, 0)) for dim in dims)


def _fields(message: Any) -> dict[int, Any]:
    """The last value of each field; of what has a length, its bytes."""
    return {
        number: int.from_bytes(value, "little") if kind == FIXED32 else value
        for number, kind, value in fields(message)
    }


def _strings(data: Array, count: int, path: Path, name: str) -> tuple[Array, int]:
    """The strings of a value, and the checksum of it: that of the lengths as whole numbers, of
    their own checksum, and of the strings."""
    fault = errors.DataLossError(None, None, f"{path} is damaged: the lengths of {name!r}")
    lengths, at, raw = [], 0, data.tobytes()
    try:
        for _ in range(count):
            length, at = varint_at(raw, at)
            lengths.append(length)
    except ValueError:
        raise fault from None
    whole = b"".join(n.to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths)
    checksum, stored = crc32c(whole), raw[at : at + 4]
    at += 4
    if masked(checksum) != int.from_bytes(stored, "little") or at + sum(lengths) != len(raw):
        raise fault
    checksum = crc32c(raw[at:], crc32c(stored, checksum))
    strings = np.empty(count, object)
    for i, length in enumerate(lengths):
        strings[i] = raw[at : at + length]
        at += length
    return strings, checksum


def _node(message: Any) -> Node:
    """A TrackableObject: children, attributes and slot variables."""
    node = Node()
    for number, _, value in fields(message):
        if number > 3:
            continue
        found = _fields(value)
        if number == 1:
            node.children[_text(found, 2)] = int(found.get(1, 0))
        elif number == 2:
            node.values[_text(found, 1)] = _text(found, 3)
            if _text(found, 1) == VALUE:
                node.name = _text(found, 2)
        else:
            slot = Slot(int(found.get(1, 0)), _text(found, 2), int(found.get(3, 0)))
            node.slots.append(slot)
    return node


def _text(found: dict[int, Any], number: int) -> str:
    return bytes(found.get(number, b"")).decode()

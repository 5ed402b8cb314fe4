"""Sorted tables of keys and values in one file, as TensorFlow takes them over from LevelDB.

The file ends with a footer that says where the index is. The index is a block whose values say
where the blocks of the table are. In a block a key says how much of the key before it begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treadle.core import errors
from treadle.core.file_errors import file_error
from treadle.core.wire import varint_at
from treadle.io.checksums import crc32c, masked
from treadle.io.snappy import uncompressed

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # behind each block: how it is compressed, and its checksum


def read_table(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table, in order.

    Raises:
        NotFoundError and the like: the file cannot be read.
        DataLossError: it is damaged, or no table.
        UnimplementedError: its blocks are compressed in another way than by Snappy.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise file_error(error, f"Could not read {path}") from error
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise _damage(path, "it does not end as an index of a checkpoint does")
    try:
        _, _, at = _place(data, len(data) - _FOOTER)  # that of an index of filters
        start, size, _ = _place(data, at)
        for _, place in _entries(_block(data, start, size, path)):
            start, size, _ = _place(place, 0)
            yield from _entries(_block(data, start, size, path))
    except ValueError as error:
        raise _damage(path, str(error)) from None


def _damage(path: Path, fault: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"{path} is damaged: {fault}")


def _place(data: bytes, at: int) -> tuple[int, int, int]:
    """Where a block is, its size, and where the numbers that say so end."""
    start, at = varint_at(data, at)
    size, at = varint_at(data, at)
    return start, size, at


def _block(data: bytes, start: int, size: int, path: Path) -> bytes:
    end = start + size
    if end + _TRAILER > len(data):
        raise ValueError("a block lies outside of the file")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], "little")
    if masked(crc32c(data[start : end + 1])) != stored:
        raise ValueError(f"the block at byte {start} does not fit its checksum")
    if data[end] > 1:
        raise errors.UnimplementedError(
            None, None, f"{path}: its blocks are compressed in a way that TensorFlow does not know"
        )
    block = data[start:end]
    return uncompressed(block) if data[end] else block


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block; behind them is a list of places where whole keys are."""
    if len(block) < 4:
        raise ValueError("a block is too short")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise ValueError("a block is too short")
    at, before = 0, b""
    while at < end:
        shared, at = varint_at(block, at)
        own, at = varint_at(block, at)
        size, at = varint_at(block, at)
        if shared > len(before) or at + own + size > end:
            raise ValueError("an entry does not fit its block")
        before = before[:shared] + block[at : at + own]
        at += own
        yield before, block[at : at + size]
        at += size

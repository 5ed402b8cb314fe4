"""CRC-32C, the checksum of TensorFlow's records and checkpoints, computed by compiled functions.

The functions take eight bytes at a time, each through a table of its own. The records of a whole
block of a file are found and checked in one call, which does not hold Python's lock. The functions
are traced for blocks of one size only, which are not full where there are fewer bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.tensor import NDArray
from treadle.jitted import jit
from treadle.ops.control.ordering import init_scope

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL = 0xFFFFFFFF
_SHORT = 32  # bytes up to which a loop of Python is faster than a call
BLOCK = 1 << 18  # bytes: what TensorFlow reads at once
_MOST = 1024  # records that one call finds
HEADER, FOOTER = 12, 4  # bytes of a record before and behind its data


def _tables() -> NDArray:
    rows = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        rows = np.where(rows & 1, (rows >> 1) ^ np.uint32(_POLYNOMIAL), rows >> 1)
    tables = [rows]
    for _ in range(7):
        tables.append(rows[tables[-1] & 255] ^ (tables[-1] >> 8))
    return np.stack(tables)


_TABLES = _tables()
_BYTES = _TABLES[0].tolist()


def _crc(data: Any, start: Any, stop: Any, crc: Any, t: Any) -> Any:
    """The state of the checksum after the bytes from `start` to `stop`."""
    low = np.uint32(255)
    place = start
    while place + 8 <= stop:
        crc = (
            t[7, (crc ^ data[place]) & low]
            ^ t[6, ((crc >> np.uint32(8)) ^ data[place + 1]) & low]
            ^ t[5, ((crc >> np.uint32(16)) ^ data[place + 2]) & low]
            ^ t[4, ((crc >> np.uint32(24)) ^ data[place + 3]) & low]
            ^ t[3, data[place + 4]]
            ^ t[2, data[place + 5]]
            ^ t[1, data[place + 6]]
            ^ t[0, data[place + 7]]
        )
        place = place + 8
    while place < stop:
        crc = t[0, (crc ^ data[place]) & low] ^ (crc >> np.uint32(8))
        place = place + 1
    return crc


def _masked_crc(data: Any, start: Any, stop: Any, t: Any) -> Any:
    crc = _crc(data, start, stop, np.uint32(0xFFFFFFFF), t) ^ np.uint32(0xFFFFFFFF)
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)


def _number(data: Any, place: Any) -> Any:
    """Four bytes as a number."""
    return (
        data[place]
        | (data[place + 1] << np.uint32(8))
        | (data[place + 2] << np.uint32(16))
        | (data[place + 3] << np.uint32(24))
    )


@jit
def _advance(block: Any, size: Any, state: Any, t: Any) -> None:
    """Advance the state of a checksum by the first bytes of a block."""
    state[0] = _crc(block, size[0] - size[0], size[0], state[0], t)


@jit
def _scan(block: Any, size: Any, bounds: Any, found: Any, t: Any) -> None:
    """See `Scanner`; `found` gets what its call returns beside the bounds."""
    end = size[0]
    count, place, fault = 0, 0, 0
    whole = True
    while whole and fault == 0 and place + 12 <= end and count < bounds.shape[0]:
        length = _number(block, place) | (_number(block, place + 4) << np.int64(32))
        data = place + 12
        if _masked_crc(block, place, place + 8, t) != _number(block, place + 8):
            fault = 1
        elif length < 0 or length > end - data - 4:
            whole = False
        elif _masked_crc(block, data, data + length, t) != _number(block, data + length):
            fault = 2
        else:
            bounds[count, 0] = data
            bounds[count, 1] = data + length
            count = count + 1
            place = data + length + 4
    found[0] = count
    found[1] = place
    found[2] = fault


def crc32c(data: Any, value: int = 0) -> int:
    """The checksum of bytes, as a number of 32 bits.

    Args:
        data: bytes, or anything contiguous with the buffer protocol.
        value: the checksum of what comes before `data`, to go on from.
    """
    view = memoryview(data).cast("B")
    register = value ^ _ALL
    if len(view) <= _SHORT:
        for byte in view:
            register = _BYTES[(register ^ byte) & 255] ^ register >> 8
        return register ^ _ALL
    array = np.frombuffer(view, np.uint8)
    block, size = np.empty(BLOCK, np.uint8), np.zeros(1, np.int64)
    state = np.full(1, register, np.uint32)
    with init_scope():  # a checkpoint may be read while a function is traced
        for start in range(0, len(array), BLOCK):
            part = array[start : start + BLOCK]
            size[0] = len(part)
            block[: len(part)] = part
            _advance(block, size, state, _TABLES)
    return int(state[0]) ^ _ALL


def masked(crc: int) -> int:
    """A checksum as it is stored beside the bytes that it is of, so that checksums of texts that
    contain checksums are good ones."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def unmasked(stored: int) -> int:
    """The checksum that `masked` made `stored` of."""
    rotated = (stored - _MASK_DELTA) & _ALL
    return (rotated >> 17 | rotated << 15) & _ALL


class Scanner:
    """Finds the records at the beginning of a block, and checks them.

    Attributes:
        block: BLOCK bytes, which the caller fills.
    """

    def __init__(self) -> None:
        self.block = np.empty(BLOCK, np.uint8)
        self._bounds = np.empty((_MOST, 2), np.int64)
        self._found, self._size = np.zeros(3, np.int64), np.zeros(1, np.int64)

    def scan(self, size: int) -> tuple[list[list[int]], int, bool]:
        """The whole records in the first `size` bytes of the block.

        Returns:
            where the data of each record begins and ends, where the next record begins, and whether
            its checksums are wrong.
        """
        self._size[0] = size
        _scan(self.block, self._size, self._bounds, self._found, _TABLES)
        count, place, fault = self._found.tolist()
        return self._bounds[:count].tolist(), place, bool(fault)

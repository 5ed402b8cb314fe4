"""CRC-32C, the checksum in files of records and in checkpoints of TensorFlow.

The checksum is linear over bits: that of a text is the exclusive or of what each byte of it adds,
which depends on the byte and on how many bytes follow. So blocks of bytes are looked up in one
table at once, and checksums of neighbours are then joined in pairs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78  # reflected
_ALL = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8
_BLOCK = 256  # bytes that are looked up at once: their table has _BLOCK * 1024 bytes
_CHUNK = 1 << 17  # bytes of which there are positions in the table at a time
_SHORT = 128  # bytes up to which a loop in Python is faster


def _byte_table() -> list[int]:
    """What each value of a byte makes of a register of zeros."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_BYTES = _byte_table()


def crc32c(data: Any, value: int = 0) -> int:
    """The checksum of bytes, as a number of 32 bits.

    Args:
        data: bytes, or anything contiguous with the buffer protocol.
        value: the checksum of what comes before `data`, to go on from.
    """
    view = memoryview(data).cast("B")
    register = value ^ _ALL
    if len(view) <= _SHORT:
        return _one_by_one(view, register) ^ _ALL
    array = np.frombuffer(view, np.uint8)
    for start in range(0, len(array), _CHUNK):
        register = _many(array[start : start + _CHUNK], register)
    return register ^ _ALL


def masked(crc: int) -> int:
    """A checksum as it is stored beside the bytes that it is of, so that checksums of texts that
    contain checksums are good ones."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def unmasked(stored: int) -> int:
    """The checksum that `masked` made `stored` of."""
    rotated = (stored - _MASK_DELTA) & _ALL
    return (rotated >> 17 | rotated << 15) & _ALL


def _one_by_one(view: Any, register: int) -> int:
    table = _BYTES
    for byte in view:
        register = table[(register ^ byte) & 255] ^ register >> 8
    return register


def _many(array: np.ndarray[Any, Any], register: int) -> int:
    """The register after the bytes of an array of more than four of them.

    What is in the register is added to the first four bytes; zeros in front of them then change
    nothing, so the first block is filled up with them.
    """
    blocks = -(-len(array) // _BLOCK)
    padded = np.zeros(blocks * _BLOCK, np.uint8)
    start = len(padded) - len(array)
    padded[start:] = array
    head = min(4, len(array))
    padded[start : start + head] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)[:head]
    table, offsets = _block_table()
    places = np.add(padded.reshape(blocks, _BLOCK), offsets, dtype=np.intp)
    sums = np.bitwise_xor.reduce(table.take(places, mode="clip"), axis=1)
    level = 0
    while len(sums) > 1:
        if len(sums) % 2:
            sums = np.concatenate([np.zeros(1, np.uint32), sums])
        sums = _after_zeros(level, sums[::2]) ^ sums[1::2]
        level += 1
    rest = register >> 8 * head  # of fewer than four bytes
    return int(sums[0]) ^ (rest if head < 4 else 0)


@functools.cache
def _block_table() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What each value of each byte of a block adds to its checksum, the last byte's last, and where
    each byte's values begin in that table."""
    last = np.array(_BYTES, np.uint32)
    rows = [last]
    for _ in range(_BLOCK - 1):
        before = rows[-1]
        rows.append(last[before & 255] ^ before >> 8)
    return np.concatenate(rows[::-1]), np.arange(_BLOCK, dtype=np.intp) * 256


def _after_zeros(level: int, registers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Registers after ``_BLOCK << level`` bytes of zeros."""
    tables, result = _zeros_tables(level), np.uint32(0)
    for number in range(4):
        result = result ^ tables[number][registers >> 8 * number & 255]
    return np.asarray(result, np.uint32)


@functools.cache
def _zeros_tables(level: int) -> np.ndarray[Any, Any]:
    """What each value of each of the four bytes of a register becomes by ``_BLOCK << level`` bytes
    of zeros."""
    values = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    if level:
        return _after_zeros(level - 1, _after_zeros(level - 1, values))
    last = np.array(_BYTES, np.uint32)
    for _ in range(_BLOCK):
        values = last[values & 255] ^ values >> 8
    return values

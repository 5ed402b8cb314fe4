"""Blocks that Snappy has compressed."""

from __future__ import annotations

from treadle.core.wire import varint_at


def uncompressed(data: bytes) -> bytes:
    """What was compressed: bytes that stand as they are, and copies of what came before.

    Raises:
        ValueError: it is no such block.
    """
    size, at = varint_at(data, 0)
    found = bytearray()
    while at < len(data):
        kind, number = data[at] & 3, data[at] >> 2
        at += 1
        if kind == 0:  # bytes as they are
            if number >= 60:  # so many bytes less 59 tell how many
                number, at = _number(data, at, number - 59)
            found += data[at : at + number + 1]
            at += number + 1
            continue
        if kind == 1:  # a short copy from near by
            length = (number & 7) + 4
            low, at = _number(data, at, 1)
            back = (number >> 3) << 8 | low
        else:
            length = number + 1
            back, at = _number(data, at, 2 if kind == 2 else 4)
        if not 0 < back <= len(found):
            raise ValueError("a compressed block copies what is not there")
        for _ in range(length):  # a copy may go on in what it writes
            found.append(found[-back])
    if len(found) != size:
        raise ValueError(f"a compressed block has {len(found)} bytes, and should have {size}")
    return bytes(found)


def _number(data: bytes, at: int, size: int) -> tuple[int, int]:
    """A number of some bytes, and where it ends."""
    if at + size > len(data):
        raise ValueError("a compressed block is too short")
    return int.from_bytes(data[at : at + size], "little"), at + size

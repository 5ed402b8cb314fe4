"""The wire format of protocol buffers, as far as checkpoints of TensorFlow need it."""

from __future__ import annotations

from collections.abc import Iterator


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that begins at a place, seven bits a byte, and where it ends.

    Raises:
        ValueError: the data ends before, or it has more than 64 bits.
    """
    result = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7
    raise ValueError("a number does not end")


def fields(data: bytes | memoryview) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers and values; bytes where they have a length.

    Raises:
        ValueError: it is no message.
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        piece = bytes(data[at : at + size])
        if len(piece) != size:
            raise ValueError("a field does not end")
        at += size
        yield tag >> 3, piece if kind == 2 else int.from_bytes(piece, "little")

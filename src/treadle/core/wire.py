"""The wire format of protocol buffers, in which TensorFlow writes examples and tensors.

A message is a sequence of fields. A field is a key (its number and one of four kinds) and a value:
a number of 7 bits a byte (a varint), 8 or 4 bytes, or a length and so many bytes, which are a
string, another message or the numbers of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_MASK = (1 << 64) - 1
_MANY = 32  # varints from which NumPy is faster than a loop


class WireError(ValueError):
    """Bytes that are no message."""


# -- reading ---------------------------------------------------------------------------------------


def fields(data: bytes | memoryview) -> Iterator[tuple[int, int, Any]]:
    """(number, kind, value) of every field: ints for varints, otherwise parts of `data`.

    Raises:
        WireError: the bytes are no message.
    """
    view = memoryview(data)
    place, size = 0, len(view)
    while place < size:
        key, place = varint_at(view, place)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("a field has the number 0")
        if kind == VARINT:
            value, place = varint_at(view, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, place = varint_at(view, place)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise WireError(f"a field has the unknown kind {kind}")
        if length > size - place:
            raise WireError(f"a field of {length} bytes is cut off after {size - place}")
        yield number, kind, view[place : place + length]
        place += length


def varint_at(view: bytes | memoryview, place: int) -> tuple[int, int]:
    """The number that begins at a place, from 0 to 2**64 - 1, and the place behind it.

    Raises:
        WireError: it is cut off or longer than 10 bytes.
    """
    try:
        byte = view[place]
        if byte < 128:
            return byte, place + 1
        value = shift = 0
        for end in range(place, place + 10):
            byte = view[end]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & _MASK, end + 1
            shift += 7
    except IndexError:
        raise WireError("a number is cut off") from None
    raise WireError("a number has more than 10 bytes")


def signed(value: int) -> int:
    """A varint as the int64 that it stands for."""
    return value - (1 << 64) if value >> 63 else value


def varints(view: memoryview) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The int64 numbers of a list.

    Raises:
        WireError: the last is cut off, or one has more than 10 bytes.
    """
    if len(view) < _MANY:
        found, place = [], 0
        while place < len(view):
            value, place = varint_at(view, place)
            found.append(signed(value))
        return np.array(found, np.int64)
    data = np.frombuffer(view, np.uint8)
    ends = np.flatnonzero(data < 128)
    if not len(ends) or ends[-1] != len(data) - 1:
        raise WireError("a number is cut off")
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    longest = int(sizes.max())
    if longest > 10:
        raise WireError("a number has more than 10 bytes")
    numbers = np.zeros(len(ends), np.uint64)
    for k in range(longest):
        here = np.flatnonzero(sizes > k) if k else slice(None)
        numbers[here] |= (data[starts[here] + k].astype(np.uint64) & 127) << np.uint64(7 * k)
    return numbers.view(np.int64)


# -- writing ---------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """A number as a varint; negative ones as their 64 bits."""
    value &= _MASK
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def packed_varints(values: Iterable[int]) -> bytes:
    """int64 numbers as the bytes of a list."""
    return b"".join(map(varint, values))


def number_field(number: int, value: int) -> bytes:
    """A field that holds a varint."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds a string, a message or a list."""
    return b"".join((varint(number << 3 | BYTES), varint(len(value)), value))

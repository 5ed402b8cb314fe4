"""Plain data as bytes: None, bools, ints, floats, strings, bytes, tuples, lists and dicts of these.

Reading builds these values and nothing else, also from damaged bytes: no code runs, no class is
looked up, and memory and time stay in proportion to the number of bytes.

A value is a byte that names its type, then its contents; strings, bytes and containers tell their
length first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

MOST_DEEP = 60  # containers in containers
_COUNT = struct.Struct("<I")
_INT = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_SIMPLE = {None: b"N", False: b"F", True: b"T"}


class DamagedError(ValueError):
    """The bytes differ from those that were written."""


def to_bytes(value: Any) -> bytes:
    """The bytes of plain data.

    Raises:
        TypeError: something in it is no plain data.
        ValueError: containers are nested too deeply.
    """
    out = bytearray()
    _write(out, value, MOST_DEEP)
    return bytes(out)


def from_bytes(data: bytes) -> Any:
    """The inverse of `to_bytes`.

    Raises:
        DamagedError: the bytes are no plain data.
    """
    try:
        value, end = _READERS[data[0]](data, 1, MOST_DEEP)
    except (LookupError, ValueError, TypeError, struct.error) as error:
        raise DamagedError(f"no plain data: {error}") from None
    if end != len(data):
        raise DamagedError(f"{len(data) - end} bytes follow the data")
    return value


# -- writing ---------------------------------------------------------------------------------------


def _write(out: bytearray, value: Any, deep: int) -> None:
    kind = type(value)
    if value is None or kind is bool:
        out += _SIMPLE[value]
    elif kind is int:
        _write_int(out, value)
    elif kind is float:
        out += b"f" + _FLOAT.pack(value)
    elif kind is str:
        _write_bytes(out, b"s", value.encode("utf-8", "surrogatepass"))
    elif kind is bytes:
        _write_bytes(out, b"b", value)
    elif kind is list and value and all(_is_word(v) for v in value):
        out += b"v" + _COUNT.pack(len(value)) + struct.pack(f"<{len(value)}q", *value)
    elif kind is list or kind is tuple:
        _write_items(out, b"[" if kind is list else b"(", len(value), value, deep)
    elif kind is dict:
        _write_items(out, b"{", len(value), _flat(value), deep)
    else:
        raise TypeError(f"{kind.__name__} is no plain data")


def _is_word(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _write_int(out: bytearray, value: int) -> None:
    if _is_word(value):
        out += b"i" + _INT.pack(value)
    else:
        size = value.bit_length() // 8 + 1
        _write_bytes(out, b"I", value.to_bytes(size, "little", signed=True))


def _write_bytes(out: bytearray, tag: bytes, data: bytes) -> None:
    out += tag + _COUNT.pack(len(data)) + data


def _write_items(out: bytearray, tag: bytes, count: int, items: Sequence[Any], deep: int) -> None:
    if not deep:
        raise ValueError("containers are nested too deeply")
    out += tag + _COUNT.pack(count)
    for item in items:
        _write(out, item, deep - 1)


def _flat(pairs: dict[Any, Any]) -> list[Any]:
    return [part for pair in pairs.items() for part in pair]


# -- reading: a function for each type gives the value and where the next one begins ---------------

_Read = tuple[Any, int]
_Reader = Callable[[bytes, int, int], _Read]


def _simple(value: bool | None) -> _Reader:
    return lambda data, at, deep: (value, at)


def _word(data: bytes, at: int, deep: int) -> _Read:
    return _INT.unpack_from(data, at)[0], at + 8


def _float(data: bytes, at: int, deep: int) -> _Read:
    return _FLOAT.unpack_from(data, at)[0], at + 8


def _bytes(data: bytes, at: int, deep: int) -> _Read:
    start = at + 4
    end = start + _COUNT.unpack_from(data, at)[0]
    if end > len(data):
        _cut()
    return data[start:end], end


def _large(data: bytes, at: int, deep: int) -> _Read:
    found, end = _bytes(data, at, deep)
    return int.from_bytes(found, "little", signed=True), end


def _text(data: bytes, at: int, deep: int) -> _Read:
    found, end = _bytes(data, at, deep)
    return found.decode("utf-8", "surrogatepass"), end


def _words(data: bytes, at: int, deep: int) -> _Read:
    (count,) = _COUNT.unpack_from(data, at)
    start, end = at + 4, at + 4 + 8 * count
    if end > len(data):
        _cut()
    return list(struct.unpack_from(f"<{count}q", data, start)), end


def _items(data: bytes, at: int, deep: int, each: int) -> tuple[list[Any], int]:
    """The items of a container that has `each` for every one that it counts."""
    (count,) = _COUNT.unpack_from(data, at)
    if not deep or count > len(data):
        _cut()
    at, found = at + 4, []
    for _ in range(each * count):
        item, at = _READERS[data[at]](data, at + 1, deep - 1)
        found.append(item)
    return found, at


def _list(data: bytes, at: int, deep: int) -> _Read:
    return _items(data, at, deep, 1)


def _tuple(data: bytes, at: int, deep: int) -> _Read:
    found, end = _items(data, at, deep, 1)
    return tuple(found), end


def _dict(data: bytes, at: int, deep: int) -> _Read:
    found, end = _items(data, at, deep, 2)
    parts: Iterator[Any] = iter(found)
    return dict(zip(parts, parts, strict=True)), end


def _cut() -> NoReturn:
    raise ValueError("lengths do not fit")


_READERS: dict[int, _Reader] = {
    ord("N"): _simple(None), ord("F"): _simple(False), ord("T"): _simple(True),
    ord("i"): _word, ord("I"): _large, ord("f"): _float, ord("s"): _text, ord("b"): _bytes,
    ord("v"): _words, ord("["): _list, ord("("): _tuple, ord("{"): _dict,
}  # fmt: skip

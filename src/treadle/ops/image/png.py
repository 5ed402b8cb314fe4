"""PNG files with 16 bits for each of several channels, which Pillow cannot represent.

A row is stored as differences from a guess, one of five: nothing, the pixel to the left, the one
above, their mean, or the one of left, above and above left that is nearest to left + above - above
left. Guesses need decoded pixels, so those of a diagonal are decoded together.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from treadle.core.tensor import NDArray

_START = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 4: 2, 6: 4}  # by the color type of the file
_NEAREST = 4
# Where the pixels of the seven parts of an interlaced file begin, and how far apart they are.
_PASSES = (
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
    (0, 1, 1, 2),
)  # fmt: skip


def is_deep(contents: bytes) -> bool:
    """Whether a PNG file has 16 bits for each of several channels."""
    return contents[24:25] == b"\x10" and contents[25] in _CHANNELS


def read_deep(contents: bytes) -> NDArray:
    """The pixels of such a file, uint16 [height, width, channels].

    Raises:
        ValueError: the contents are damaged.
    """
    try:
        width, height, _, color, *_, interlaced = struct.unpack(">IIBBBBB", contents[16:29])
        stored = zlib.decompress(b"".join(_data(contents)))
    except (zlib.error, struct.error) as error:
        raise ValueError(str(error)) from None
    size, start = 2 * _CHANNELS[color], 0
    pixels = np.empty((height, width, size), np.uint8)
    for x, y, across, down in _PASSES if interlaced else _PASSES[-1:]:
        part = pixels[y::down, x::across] if interlaced else pixels
        rows, columns = part.shape[:2] if part.size else (0, 0)
        stop = start + rows * (1 + columns * size)
        if stop > len(stored):
            raise ValueError("pixels are missing")
        lines = np.frombuffer(stored[start:stop], np.uint8).reshape(rows, -1)
        if rows:
            part[...] = _decoded(lines[:, 0], lines[:, 1:].reshape(rows, columns, size))
        start = stop
    return pixels.view(">u2").astype(np.uint16)


def write_deep(pixels: NDArray, compression: int) -> bytes:
    """The file of uint16 [height, width, 2 to 4 channels]."""
    height, width, channels = pixels.shape
    color = next(c for c, n in _CHANNELS.items() if n == channels)
    values = np.zeros((height + 1, width + 1, 2 * channels), np.int16)
    values[1:, 1:] = np.ascontiguousarray(pixels, ">u2").view(np.uint8)
    guess = _nearest(values[1:, :-1], values[:-1, 1:], values[:-1, :-1])
    rows = np.full((height, 1 + width * 2 * channels), _NEAREST, np.uint8)
    rows[:, 1:] = (values[1:, 1:] - guess).astype(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), compression)
    return _START + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _data(contents: bytes) -> list[bytes]:
    """The parts of the compressed rows."""
    found, position = [], len(_START)
    while position + 12 <= len(contents):
        (length,) = struct.unpack(">I", contents[position : position + 4])
        kind = contents[position + 4 : position + 8]
        body = contents[position + 8 : position + 8 + length]
        if _chunk(kind, body) != contents[position : position + 12 + length]:
            raise ValueError("a part of the file is damaged")
        if kind == b"IDAT":
            found.append(body)
        position += 12 + length
    return found


def _decoded(filters: NDArray, stored: NDArray) -> NDArray:
    """The bytes of the pixels [height, width, bytes], of rows with these filters.

    Raises:
        ValueError: there is no such filter.
    """
    if filters.max() > _NEAREST:
        raise ValueError("an unknown filter")
    height, width, size = stored.shape
    values = np.zeros((height + 1, width + 1, size), np.int16)
    for diagonal in range(height + width - 1):
        row = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        column = diagonal - row
        left, above, corner = values[row + 1, column], values[row, column + 1], values[row, column]
        guesses = [np.zeros_like(left), left, above, (left + above) >> 1]
        guesses.append(_nearest(left, above, corner))
        guess = np.choose(filters[row][:, None], guesses)
        values[row + 1, column + 1] = (stored[row, column] + guess) & 255
    return np.ascontiguousarray(values[1:, 1:], np.uint8)


def _nearest(left: NDArray, above: NDArray, corner: NDArray) -> NDArray:
    """The one of the three that is nearest to left + above - corner, the first of equally near."""
    guess = left + above - corner
    far = [np.abs(guess - x) for x in (left, above, corner)]
    found: NDArray = np.where(
        (far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], above, corner)
    )
    return found

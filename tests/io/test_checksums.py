"""CRC-32C against its definition and the examples of RFC 3720."""

import numpy as np
import pytest

import treadle as td
from treadle.io.checksums import BLOCK, crc32c, masked, unmasked


def by_bits(data, register=0xFFFFFFFF):
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_checksums(data, expected):
    assert crc32c(data) == expected


@pytest.mark.parametrize(
    "size", [1, 3, 7, 8, 9, 31, 32, 33, 34, 127, 128, 1001, 3000, BLOCK - 1, BLOCK, BLOCK + 9]
)
def test_is_that_of_the_definition(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8).tobytes()
    assert crc32c(data) == by_bits(data)


@pytest.mark.parametrize("size", [BLOCK + more for more in (-1, 0, 1, 2, 3, 4, 5, 300)])
def test_goes_on_from_a_checksum(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    whole = crc32c(data)
    for cut in (1, 100, 129, 5000, size - 1, size - 200):
        assert crc32c(memoryview(data)[cut:], crc32c(data[:cut])) == whole


def test_every_flipped_bit_of_a_text_is_found():
    data = bytearray(range(200))
    good = crc32c(data)
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert crc32c(data) != good
        data[bit // 8] ^= 1 << bit % 8


def test_is_computed_while_a_function_is_traced():
    data = bytes(range(256)) * 3

    @td.function
    def traced(x):
        return x + float(crc32c(data) == by_bits(data))

    with td.GradientTape():
        assert crc32c(data) == by_bits(data)
    assert traced(td.constant(1.0)).numpy() == 2.0


def test_masks():
    assert masked(crc32c(b"foo")) != crc32c(b"foo") != masked(masked(crc32c(b"foo")))
    for crc in (0, 1, 0xE3069283, 0xFFFFFFFF):
        assert unmasked(masked(crc)) == crc


def test_stored_as_tensorflow_stores_it():
    """A record of TFRecordWriter: length, its checksum, the text, its checksum."""
    record = bytes.fromhex("0500000000000000eab2043e68656c6c6fbb1f1c19")
    for part, stored in ((record[:8], record[8:12]), (record[12:17], record[17:])):
        assert masked(crc32c(part)) == int.from_bytes(stored, "little")

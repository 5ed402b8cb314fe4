"""Blocks that Snappy has compressed; the bytes are those that its format description gives."""

import pytest

from treadle.io.snappy import uncompressed


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x00", b""),
        (b"\x05\x10hello", b"hello"),
        (b"\x46\xf0\x45" + b"x" * 70, b"x" * 70),  # a length in a byte of its own
        (b"\x08\x04ab\x09\x02", b"ab" * 4),  # 6 bytes from 2 before, which go on in themselves
        (b"\x08\x04ab\x16\x02\x00", b"ab" * 4),  # the same with a distance of two bytes
        (b"\x08\x04ab\x17\x02\x00\x00\x00", b"ab" * 4),  # and of four
    ],
)
def test_texts_and_copies(data: bytes, expected: bytes) -> None:
    assert uncompressed(data) == expected


@pytest.mark.parametrize(
    "data", [b"\x05\x10hell", b"\x08\x04ab\x09\x03", b"\x08\x04ab\x16\x02", b"\x03\x04ab", b""]
)
def test_damaged_blocks(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"block|varint|number|ends"):
        uncompressed(data)

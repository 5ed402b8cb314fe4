"""TFRecord files: those that TensorFlow wrote, our own, and damaged ones."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.io.checksums import BLOCK, crc32c
from treadle.io.records import records

FIXTURES = Path(__file__).parent / "fixtures"
ERRORS = td.errors


def write(path: Path, items: list[bytes], kind: str = "") -> str:
    with td.io.TFRecordWriter(path, kind) as writer:
        for item in items:
            writer.write(item)
    return str(path)


# -- TensorFlow's files ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_files_of_tensorflow(kind: str) -> None:
    path = str(FIXTURES / f"examples{kind and '.' + kind.lower()}.tfrecord")
    found = [td.train.Example.FromString(r) for r in records(path, kind)]
    assert len(found) == 5
    for i, example in enumerate(found):
        features = example.features.feature
        assert features["name"].bytes_list.value == [b"number %d" % i]
        numbers = [i, -i, 1 << 40, -(1 << 62), *range(i * 20)]
        assert features["numbers"].int64_list.value == numbers
        shares = np.array([i / 3, -1e-30, 3e38], np.float32)
        assert np.array(features["shares"].float_list.value, np.float32).tolist() == shares.tolist()


def test_a_file_of_ours_has_the_bytes_of_tensorflow(tmp_path: Path) -> None:
    given = FIXTURES / "examples.tfrecord"
    path = write(tmp_path / "a", list(records(str(given))))
    assert Path(path).read_bytes() == given.read_bytes()


def test_a_sequence_of_tensorflow() -> None:
    (record,) = records(str(FIXTURES / "sequence.tfrecord"))
    context, lists = td.io.parse_single_sequence_example(
        record, {"length": td.io.FixedLenFeature([], td.int64)},
        {
            "words": td.io.FixedLenSequenceFeature([], td.string),
            "pairs": td.io.FixedLenSequenceFeature([2], td.int64),
        },
    )  # fmt: skip
    assert int(context["length"]) == 3
    assert lists["words"].numpy().tolist() == [b"a", b"bc", b""]
    assert lists["pairs"].numpy().tolist() == [[0, 0], [1, 1], [2, 4]]
    again = td.train.SequenceExample.FromString(record).SerializeToString()
    assert td.train.SequenceExample.FromString(again).SerializeToString() == again


def test_tensors_of_tensorflow() -> None:
    values: list[Any] = [
        td.constant([[1.5, -2.0]]), td.constant([1, -1], td.int16), td.constant(["x", "yz"]),
        td.constant(True), td.constant([0.5], td.bfloat16), td.constant([1 - 2j], td.complex128),
    ]  # fmt: skip
    found = list(records(str(FIXTURES / "tensors.tfrecord")))
    for record, value in zip(found, values, strict=True):
        assert td.io.serialize_tensor(value).numpy() == record
        parsed = td.io.parse_tensor(record, value.dtype)
        assert parsed.shape == value.shape and parsed.numpy().tolist() == value.numpy().tolist()


# -- our own ---------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([300_000, BLOCK - 16, BLOCK, 7]))),
    st.sampled_from(["", "GZIP", "ZLIB"]),
)
def test_what_is_written_is_read(tmp_path_factory: Any, items: list[Any], kind: str) -> None:
    data = [np.random.default_rng(0).bytes(i) if isinstance(i, int) else i for i in items]
    path = write(tmp_path_factory.mktemp("records") / "a", data, kind)
    assert list(records(path, kind)) == data


def test_many_records(tmp_path: Path) -> None:
    data = [b"%d" % i for i in range(5000)]
    assert list(records(write(tmp_path / "a", data))) == data


def test_options(tmp_path: Path) -> None:
    data = [b"x" * 1000] * 20
    sizes = []
    for level in (0, 9):
        path = tmp_path / str(level)
        options = td.io.TFRecordOptions("GZIP", compression_level=level)
        with td.io.TFRecordWriter(path, options) as writer:
            for item in data:
                writer.write(item)
                writer.flush()
        sizes.append(path.stat().st_size)
        assert list(records(str(path), "GZIP")) == data
    assert sizes[1] < sizes[0]
    assert td.io.TFRecordOptions.get_compression_type_string(None) == ""


# -- damaged ones ----------------------------------------------------------------------------------


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    data = Path(write(tmp_path / "a", [b"one", b"two"])).read_bytes()
    path = tmp_path / "b"
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        found = []
        offset = 0 if place < len(data) // 2 else len(data) // 2
        with pytest.raises(ERRORS.DataLossError, match=rf"{path}: corrupted record at {offset}"):
            for record in records(str(path)):
                found.append(record)
        assert found == ([b"one"] if offset else [])


def test_every_cut_is_found(tmp_path: Path) -> None:
    data = Path(write(tmp_path / "a", [b"one", b"two"])).read_bytes()
    path, half = tmp_path / "b", len(data) // 2
    for length in set(range(len(data))) - {0, half}:
        path.write_bytes(data[:length])
        start = length // half * half
        with pytest.raises(ERRORS.DataLossError, match=f"truncated record at {start}"):
            list(records(str(path)))
    path.write_bytes(b"")
    assert list(records(str(path))) == []


@pytest.mark.parametrize("flip", [False, True])
def test_large_records_are_checked(tmp_path: Path, flip: bool) -> None:
    path = Path(write(tmp_path / "a", [b"small", bytes(BLOCK * 2)]))
    data = bytearray(path.read_bytes())
    data[-BLOCK] ^= flip
    path.write_bytes(data if flip else data[:-100])
    with pytest.raises(ERRORS.DataLossError, match=r"(corrupted|truncated) record at 21"):
        list(records(str(path)))


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_damaged_compressed_files(tmp_path: Path, kind: str) -> None:
    path = Path(write(tmp_path / "a", [os.urandom(5000)], kind))
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(ERRORS.DataLossError, match=f"the end of the {kind} data is missing"):
        list(records(str(path), kind))
    path.write_bytes(data[:2000] + b"\xff" * 50 + data[2050:])
    with pytest.raises(ERRORS.DataLossError, match=str(path)):
        list(records(str(path), kind))
    with pytest.raises(ERRORS.DataLossError, match="is this a TFRecord file"):
        list(records(str(path)))


def test_a_length_that_is_absurd_is_not_read(tmp_path: Path) -> None:
    """Its checksum is right: a file made to exhaust the memory."""
    length = struct.pack("<Q", 1 << 62)
    check = (((crc32c(length) >> 15) | (crc32c(length) << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    (tmp_path / "a").write_bytes(length + struct.pack("<I", check) + b"x" * 100)
    with pytest.raises(ERRORS.DataLossError, match="truncated record at 0"):
        list(records(str(tmp_path / "a")))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_disk() -> None:
    writer = td.io.TFRecordWriter("/dev/full")
    with pytest.raises(ERRORS.ResourceExhaustedError, match="/dev/full; No space left"):
        writer.write(bytes(1 << 20))
        writer.close()
    with pytest.raises(ERRORS.ResourceExhaustedError):
        writer.close()


def test_what_is_no_record(tmp_path: Path) -> None:
    writer = td.io.TFRecordWriter(tmp_path / "a")
    with pytest.raises(TypeError, match="bytes or a str"):
        writer.write(3)  # type: ignore[arg-type]
    writer.write("é")
    writer.close()
    assert list(records(str(tmp_path / "a"))) == ["é".encode()]
    with pytest.raises(ERRORS.FailedPreconditionError, match="closed"):
        writer.flush()


def test_files_of_tensorflow_1(tmp_path):
    old = td.compat.v1.python_io
    path = str(tmp_path / "a.records")
    options = old.TFRecordOptions(old.TFRecordCompressionType.GZIP)
    assert [old.TFRecordOptions.get_compression_type_string(n) for n in range(3)] == [
        "", "ZLIB", "GZIP",
    ]  # fmt: skip
    with old.TFRecordWriter(path, options) as writer:
        writer.write(b"ab")
        writer.write(b"c")
    assert list(old.tf_record_iterator(path, options)) == [b"ab", b"c"]
    assert list(td.compat.v1.io.tf_record_iterator(path, 2)) == [b"ab", b"c"]
    with pytest.raises(td.errors.DataLossError):
        list(old.tf_record_iterator(path))
    with pytest.raises(td.errors.NotFoundError, match="none"):
        list(old.tf_record_iterator(str(tmp_path / "none")))
    with pytest.raises(ValueError, match="Not a valid compression_type"):
        old.TFRecordOptions(3)
    assert td.compat.v1.io.decode_raw is not None

"""Examples as objects: the idioms of programs of TensorFlow."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.core import wire

T = td.train


def example(**features: Any) -> Any:
    found = T.Example()
    for name, (kind, values) in features.items():
        getattr(found.features.feature[name], kind).value.extend(values)
    return found


LISTS = st.one_of(
    st.tuples(st.just("bytes_list"), st.lists(st.binary(max_size=200), max_size=5)),
    st.tuples(st.just("int64_list"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50)),
    st.tuples(st.just("float_list"), st.lists(st.floats(width=32, allow_nan=False), max_size=50)),
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8), LISTS, max_size=5))
def test_what_is_serialized_is_read_again(features: Any) -> None:
    message = example(**features)
    again = T.Example.FromString(message.SerializeToString())
    assert again == message and again.ByteSize() == len(message.SerializeToString())
    for name, (kind, values) in features.items():
        assert getattr(again.features.feature[name], kind).value == values
        wanted = td.io.FixedLenSequenceFeature(
            [], {"b": td.string, "i": td.int64, "f": td.float32}[kind[0]], allow_missing=True
        )
        parsed = td.io.parse_single_example(message.SerializeToString(), {name: wanted})[name]
        assert parsed.numpy().tolist() == values


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60))
def test_bytes_of_others_are_read_or_refused(data: bytes) -> None:
    wanted = {"a": td.io.FixedLenFeature([], td.int64, default_value=0)}
    try:
        T.Example.FromString(data)
    except ValueError as error:
        assert "Error parsing message" in str(error)
    try:
        td.io.parse_single_example(data, wanted)
    except td.errors.InvalidArgumentError:
        pass
    try:
        td.io.parse_tensor(data, td.float32)
    except td.errors.InvalidArgumentError:
        pass


def test_cut_off_examples_are_refused() -> None:
    data = example(a=("int64_list", [1, 2, 3]), b=("bytes_list", [b"xyz"])).SerializeToString()
    for length in range(1, len(data)):
        with pytest.raises(ValueError, match="Error parsing message"):
            T.Example.FromString(data[:length])
        with pytest.raises(td.errors.InvalidArgumentError, match="Could not parse"):
            td.io.parse_single_example(data[:length], {"a": td.io.FixedLenFeature([3], td.int64)})


def test_numbers_of_many_bytes() -> None:
    values = [0, 127, 128, -1, 2**63 - 1, -(2**63), *range(-50, 50)]
    data = memoryview(wire.packed_varints(values))
    assert wire.varints(data).tolist() == values
    with pytest.raises(wire.WireError, match="cut off"):
        wire.varints(memoryview(bytes(data) + b"\x80"))
    with pytest.raises(wire.WireError, match="more than 10 bytes"):
        wire.varints(memoryview(b"\xff" * 11 + b"\0" * 40))


def test_arrays_as_values() -> None:
    assert T.Int64List(value=np.arange(3)).value == [0, 1, 2]
    assert T.FloatList(value=np.array([0.1, 2.0])).value == [float(np.float32(0.1)), 2.0]
    with pytest.raises(TypeError, match="boolean"):
        T.Int64List(value=[True])
    with pytest.raises(TypeError, match="real number"):
        T.FloatList(value=["1"])


def test_messages_within_messages_are_copied() -> None:
    one = T.Feature(int64_list=T.Int64List(value=[1]))
    whole = T.Features(feature={"a": one})
    one.int64_list.value.append(2)
    assert whole.feature["a"].int64_list.value == [1]
    with pytest.raises(ValueError, match="CopyFrom"):
        whole.feature["a"] = one
    whole.feature["a"].CopyFrom(one)
    assert whole.feature["a"].int64_list.value == [1, 2]


def test_lists_of_features() -> None:
    message = T.SequenceExample()
    steps = message.feature_lists.feature_list["t"].feature
    steps.add().int64_list.value.append(1)
    steps.append(T.Feature(int64_list=T.Int64List(value=[2])))
    assert message.HasField("feature_lists") and not message.HasField("context")
    again = T.SequenceExample.FromString(message.SerializeToString())
    found = again.feature_lists.feature_list["t"].feature
    assert [f.int64_list.value[0] for f in found] == [1, 2]


def test_copies() -> None:
    message = example(a=("int64_list", [1]))
    for other in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert other == message and other is not message
    other = T.Example()
    other.MergeFrom(message)
    other.MergeFrom(example(b=("bytes_list", [b"x"])))
    assert sorted(other.features.feature) == ["a", "b"]
    other.Clear()
    assert other == T.Example() and other.SerializeToString() == b""
    with pytest.raises(TypeError, match="class Example"):
        other.MergeFrom(T.Features())


def test_fields_that_are_set() -> None:
    feature = T.Feature(int64_list=T.Int64List())
    assert feature.HasField("int64_list") and feature.WhichOneof("kind") == "int64_list"
    feature.ClearField("int64_list")
    assert feature.WhichOneof("kind") is None
    with pytest.raises(ValueError, match="no field"):
        feature.HasField("other")
    with pytest.raises(AttributeError, match="no field"):
        feature.other = 3


def test_functions_of_protobuf_take_messages() -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    text_format = pytest.importorskip("google.protobuf.text_format")
    text = """features {
      feature { key: "colors" value { bytes_list { value: ["red", "blue"] } } }
      feature { key: "lengths" value { int64_list { value: [] } } }
      feature { key: "sizes" value { float_list { value: 1.5 value: 2 } } } }"""
    message = text_format.Parse(text, T.Example())
    feature = message.features.feature
    assert feature["colors"].bytes_list.value == [b"red", b"blue"]
    assert feature["lengths"].WhichOneof("kind") == "int64_list"
    assert text_format.Merge(text_format.MessageToString(message), T.Example()) == message
    assert text_format.Parse(str(message), T.Example()) == message
    found = json_format.MessageToDict(message)
    assert found["features"]["feature"]["sizes"] == {"floatList": {"value": [1.5, 2.0]}}
    assert json_format.ParseDict(found, T.Example()) == message
    steps = T.SequenceExample()
    steps.feature_lists.feature_list["t"].feature.add().int64_list.value.append(3)
    again = text_format.Parse(text_format.MessageToString(steps), T.SequenceExample())
    assert again == steps
    assert T.Example.DESCRIPTOR.full_name == "tensorflow.Example"

"""Features with any number of values, in examples: sparse and ragged tensors."""

from typing import Any

import pytest

import treadle as td


def example(**features):
    kinds = {int: ("int64_list", td.train.Int64List), bytes: ("bytes_list", td.train.BytesList)}
    made = {}
    for name, values in features.items():
        field, kind = kinds[type(values[0])]
        made[name] = td.train.Feature(**{field: kind(value=values)})
    return td.train.Example(features=td.train.Features(feature=made)).SerializeToString()


EXAMPLES = [example(a=[1, 2], b=[b"x"]), example(b=[b"y", b"z"]), example(a=[5])]
FEATURES = {
    "a": td.io.VarLenFeature(td.int64),
    "b": td.io.RaggedFeature(td.string),
    "again": td.io.RaggedFeature(td.int64, value_key="a", row_splits_dtype=td.int64),
}


@pytest.mark.parametrize("wrap", [lambda f: f, td.function], ids=["eagerly", "in a function"])
def test_batches(wrap):
    found = wrap(lambda s: td.io.parse_example(s, FEATURES))(td.constant(EXAMPLES))
    assert found["a"].indices.numpy().tolist() == [[0, 0], [0, 1], [2, 0]]
    assert found["a"].values.numpy().tolist() == [1, 2, 5]
    assert found["a"].dense_shape.numpy().tolist() == [3, 2]
    assert found["b"].to_list() == [[b"x"], [b"y", b"z"], []]
    assert found["b"].row_splits.dtype is td.int32
    assert found["again"].to_list() == [[1, 2], [], [5]]
    assert found["again"].row_splits.dtype is td.int64


def test_single_examples_in_a_pipeline():
    def parsed(serialized):
        found = td.io.parse_single_example(serialized, {"a": FEATURES["a"], "b": FEATURES["b"]})
        return found["a"], td.size(found["b"])

    dataset = td.data.Dataset.from_tensor_slices(EXAMPLES).map(parsed)
    assert dataset.element_spec[0] == td.SparseTensorSpec([None], td.int64)
    ((sparse, sizes),) = dataset.batch(3)
    assert td.sparse.to_dense(sparse).numpy().tolist() == [[1, 2], [0, 0], [5, 0]]
    assert sizes.numpy().tolist() == [1, 2, 0]


def test_what_is_not_read():
    with pytest.raises(TypeError, match=r"'row_splits' is no partition: use RaggedFeature"):
        feature = td.io.RaggedFeature(td.int64, partitions=["row_splits"])
        td.io.parse_example(EXAMPLES, {"a": feature})
    with pytest.raises(td.errors.InvalidArgumentError, match="Data types don't match"):
        td.io.parse_example(EXAMPLES, {"b": td.io.VarLenFeature(td.int64)})


def test_strings_of_one_example_keep_their_zeros() -> None:
    pixels = b"ab\0\0"
    feature = td.train.Feature(bytes_list=td.train.BytesList(value=[pixels]))
    example = td.train.Example(features=td.train.Features(feature={"image": feature}))
    wanted = {
        "image": td.io.FixedLenFeature([], td.string),
        "none": td.io.FixedLenFeature([], td.string, b"x\0"),
    }

    def parse(record: Any) -> Any:
        return td.io.parse_single_example(record, wanted)

    record = example.SerializeToString()
    for found in (parse(record), td.function(parse)(td.constant(record))):
        assert found["image"].numpy() == pixels and found["none"].numpy() == b"x\0"
        assert td.io.decode_raw(found["image"], td.uint8).shape == [4]

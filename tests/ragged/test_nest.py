"""``td.nest`` leaves whole what is one value to users, as TensorFlow 2.21 does."""

import pytest

import treadle as td


class Pair(td.experimental.ExtensionType):
    a: td.Tensor
    b: td.Tensor


def values():
    """Each with the number of tensors that it consists of."""
    rows = td.ragged.constant([[1], [2, 3]])
    sparse = td.sparse.from_dense([[1.0, 0.0]])
    slices = td.IndexedSlices(td.ones((1, 2)), td.constant([0]))
    pair = Pair(td.constant(1), td.constant(2))
    return {
        "ragged": (rows, 2), "sparse": (sparse, 3), "slices": (slices, 2), "pair": (pair, 2),
        "dataset": (td.data.Dataset.range(2), 1), "iterator": (iter(td.data.Dataset.range(2)), 1),
        "array": (td.TensorArray(td.float32, 2), 1), "ragged type": (rows._type_spec, 2),
        "sparse type": (sparse._type_spec, 3), "pair type": (pair._type_spec, 2),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(values()))
def test_composites_are_leaves_unless_they_are_taken_apart(name):
    value, count = values()[name]
    assert not td.nest.is_nested(value)
    whole = td.nest.flatten([value, 1])
    assert len(whole) == 2 and whole[0] is value
    assert len(td.nest.flatten([value, 1], expand_composites=True)) == count + 1


def test_functions_of_leaves_and_of_parts():
    pair = Pair(td.constant(1), td.constant(2))
    assert td.nest.map_structure(lambda x: type(x).__name__, [pair]) == ["Pair"]
    raised = td.nest.map_structure(lambda x: x + 1, pair, expand_composites=True)
    assert isinstance(raised, Pair) and (int(raised.a), int(raised.b)) == (2, 3)
    assert td.nest.pack_sequence_as([pair, 0], [1, 2]) == [1, 2]
    again = td.nest.pack_sequence_as([pair], [td.constant(5), td.constant(6)], True)
    assert int(again[0].b) == 6


def test_structures_that_differ_within_composites_only():
    rows = td.ragged.constant([[1], [2, 3]])
    td.nest.assert_same_structure([rows], [1])
    with pytest.raises(ValueError, match="differ"):
        td.nest.assert_same_structure([rows], [1], expand_composites=True)

import collections
import dataclasses

import pytest

from treadle.core import nest

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    first: object
    second: object


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        (1, [1]),
        ([1, (2, 3)], [1, 2, 3]),
        ({"b": 1, "a": [2]}, [2, 1]),
        (Point(1, {"k": 2}), [1, 2]),
        (Pair(1, [2, 3]), [1, 2, 3]),
        (collections.OrderedDict(b=1, a=2), [2, 1]),
        (collections.defaultdict(list, a=1), [1]),
        ({2: "x", "a": "y"}, ["x", "y"]),
        ([], []),
        (None, [None]),
        ("text", ["text"]),
    ],
)
def test_flatten_and_pack(structure, leaves):
    assert nest.flatten(structure) == leaves
    packed = nest.pack(structure, leaves)
    assert packed == structure and type(packed) is type(structure)


def test_pack_keeps_the_order_of_a_mapping():
    assert list(nest.pack({"b": 1, "a": 2}, [20, 10])) == ["b", "a"]


def test_map_structure():
    assert nest.map_structure(lambda a, b: a + b, [1, {"k": 2}], [10, {"k": 20}]) == [11, {"k": 22}]


@pytest.mark.parametrize("flat", [[], [1], [1, 2, 3]])
def test_wrong_number_of_leaves(flat):
    with pytest.raises(ValueError, match="leaves"):
        nest.pack([0, 0], flat)


@pytest.mark.parametrize(
    ("a", "b", "error", "text"),
    [
        ([1], [1, 2], ValueError, "keys"),
        ([1], 1, ValueError, "a list against a leaf"),
        ([1], (1,), TypeError, "a list against a tuple"),
        ({"a": [1]}, {"a": 2}, ValueError, r"at \['a'\]"),
        ({"a": 1}, {"b": 1}, ValueError, "keys"),
    ],
)
def test_differences_are_named(a, b, error, text):
    with pytest.raises(error, match=text):
        nest.assert_same_structure(a, b)


def test_paths_read_like_python():
    structure = ([1, {"w": Pair(2, 3)}],)
    assert [p for p, _ in nest.flatten_with_paths(structure)] == [
        "[0][0]", "[0][1]['w'].first", "[0][1]['w'].second",
    ]  # fmt: skip

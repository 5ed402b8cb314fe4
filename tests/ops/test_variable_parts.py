"""Parts of variables that are assigned, rows that are scattered: eagerly and compiled alike."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.core import errors
from treadle.ops.indexing import variable_parts

SCATTERS = ("add", "sub", "mul", "div", "min", "max", "update")


def by_hand(name, array, rows, indices):
    """One row after the other."""
    found = array.copy()
    for row, i in zip(rows, indices, strict=True):
        old = found[i]
        found[i] = {
            "add": lambda: old + row, "sub": lambda: old - row, "mul": lambda: old * row,
            "div": lambda: old / row if array.dtype.kind == "f" else np.trunc(old / row),
            "min": lambda: np.minimum(old, row), "max": lambda: np.maximum(old, row),
            "update": lambda: row,
        }[name]()  # fmt: skip
    return found


@st.composite
def scatters(draw):
    count, width = draw(st.sampled_from([1, 5, 40])), draw(st.sampled_from([1, 4, 19]))
    dtype = draw(st.sampled_from(["float32", "float64", "int32"]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    array = random.integers(1, 9, (7, width)).astype(dtype)
    rows = random.integers(1, 4, (count, width)).astype(dtype)
    indices = random.integers(0, 7, count).astype(draw(st.sampled_from(["int32", "int64"])))
    return draw(st.sampled_from(SCATTERS)), array, rows, indices


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scatters())
def test_scatters_are_those_of_one_row_after_the_other(case):
    name, array, rows, indices = case
    found = []
    for staged in (False, True):
        v = td.Variable(array)

        def change(rows, indices, v=v):
            getattr(v, f"scatter_{name}")(td.IndexedSlices(rows, indices))

        (td.function(change) if staged else change)(td.constant(rows), td.constant(indices))
        found.append(v.numpy())
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_array_equal(found[0], by_hand(name, array, rows, indices))


KEYS = {
    "row": lambda i: i, "rows": lambda i: slice(i, i + 2), "column": lambda i: (slice(None), i),
    "element": lambda i: (i, 1), "block": lambda i: (slice(1, 3), slice(i, None)),
    "every other": lambda i: slice(None, None, 2), "backwards": lambda i: slice(None, None, -1),
    "ellipsis": lambda i: (Ellipsis, i),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_parts_are_assigned_as_in_numpy(key, symbolic):
    start = np.arange(12, dtype=np.float32).reshape(4, 3)
    v = td.Variable(start)
    place = KEYS[key]

    def change(i):
        part = v[place(i)]
        part.assign(part * 2.0 + 1.0)
        v[place(i)].assign_add(part)
        v[place(i)].assign_sub(10.0)

    wanted = start.copy()
    where = place(1)
    old = wanted[where].copy()
    wanted[where] = old * 2.0 + 1.0
    wanted[where] += old
    wanted[where] -= 10.0
    change(1)
    np.testing.assert_array_equal(v, wanted)
    v.assign(start)
    td.function(change)(td.constant(1) if symbolic else 1)
    np.testing.assert_array_equal(v, wanted)


def test_what_parts_belong_to_is_forgotten_with_them():
    v = td.Variable([1.0, 2.0])
    gc.collect()
    before = len(variable_parts._parts)
    part = v[0]
    assert len(variable_parts._parts) == before + 1
    del part
    assert len(variable_parts._parts) == before
    assert not hasattr(td.constant([1.0])[0], "assign")
    assert not hasattr(v[0] + 1.0, "assign"), "a new tensor is no part"


def test_open_dims():
    v = td.Variable(np.zeros((3, 2), np.float32), shape=[None, 2])
    v[1:].assign([[1.0, 2.0], [3.0, 4.0]])
    v.scatter_add(td.IndexedSlices([[1.0, 1.0]], [0]))
    np.testing.assert_array_equal(v, [[1.0, 1.0], [1.0, 2.0], [3.0, 4.0]])


def test_a_refused_scatter_changes_nothing():
    v = td.Variable([[1.0], [2.0]])

    @td.function
    def change(indices):
        v.scatter_update(td.IndexedSlices([[5.0], [6.0]], indices))

    with pytest.raises(errors.InvalidArgumentError):
        change(td.constant([0, 2]))
    np.testing.assert_array_equal(v, [[1.0], [2.0]])


def test_errors_say_what_to_use():
    v = td.Variable([[1.0], [2.0]], name="table")
    with pytest.raises(TypeError, match=r"'table:0': rows are given as td\.IndexedSlices"):
        v.scatter_add(td.constant([[1.0]]))
    with pytest.raises(AttributeError, match=r"only variables and their parts"):
        td.constant([1.0]).assign([2.0])
    with pytest.raises(ValueError, match=r"use one of VariableSynchronization\.AUTO"):
        td.Variable(1.0, synchronization="auto")
    with pytest.raises(NotImplementedError, match=r"use value\(\)"):
        v.initialized_value()


def test_copies_keep_what_variables_say_of_themselves():
    import copy

    with td.name_scope("leafy"):
        v = td.Variable(1.0, name="v", aggregation=td.VariableAggregation.SUM)
    with td.name_scope("other"):
        twin = copy.deepcopy(v)
    assert (twin.name, twin.aggregation) == ("leafy/v:0", td.VariableAggregation.SUM)


def test_scopes_end_where_their_block_ends():
    with pytest.raises(KeyError), td.name_scope("inner"):
        raise KeyError
    assert td.Variable(1.0, name="v").name == "v:0"

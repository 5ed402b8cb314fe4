"""IndexedSlices: sums in a fixed order, exact dims, and gradients of what reads rows."""

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from treadle.core import errors
from treadle.ops.indexing.gather import dense

TABLE = np.random.default_rng(0).standard_normal((6, 3))


def rows(values, indices, shape=(6, 3)):
    return td.IndexedSlices(td.constant(values), td.constant(indices), td.constant(shape))


def test_equal_rows_are_added_in_their_order():
    """Eagerly and compiled: the sum of the first two, then the third."""
    parts = np.array([[1e8], [1.0], [-1e8], [3.0]], np.float32)
    wanted = np.float32(np.float32(np.float32(1e8) + np.float32(1.0)) + np.float32(-1e8))
    slices = rows(parts, [2, 2, 2, 0], [4, 1])
    for convert in (td.convert_to_tensor, td.function(td.convert_to_tensor)):
        np.testing.assert_array_equal(convert(slices), [[3.0], [0.0], [wanted], [0.0]])


def test_dims_of_gradients_stay_exact_with_open_sizes():
    """The whole tensor has as many rows as the source, whatever that is in a call."""

    @td.function(input_signature=[td.TensorSpec([None, 3]), td.TensorSpec([None], td.int32)])
    def f(x, i):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.gather(x, i) ** 2)
        slices = tape.gradient(y, x)
        assert isinstance(slices, td.IndexedSlices)
        return slices, slices + td.zeros_like(x)

    for count in (6, 4):
        table = TABLE[:count].astype(np.float32)
        slices, whole = f(table, np.array([3, 1, 3], np.int32))
        assert slices.shape == [count, 3] and slices.dense_shape.numpy().tolist() == [count, 3]
        wanted = np.zeros_like(table)
        np.add.at(wanted, [3, 1, 3], 2 * table[[3, 1, 3]])
        np.testing.assert_array_equal(whole, wanted)
        np.testing.assert_array_equal(td.convert_to_tensor(slices), wanted)


def test_one_trace_for_equal_forms():
    traces = []

    @td.function
    def f(slices):
        traces.append(slices)
        return td.scalar_mul(2.0, slices)

    one = f(rows(np.ones((2, 3), np.float32), [0, 1]))
    f(rows(np.ones((2, 3), np.float32), [5, 5]))
    assert len(traces) == 1 and isinstance(one, td.IndexedSlices)
    f(td.IndexedSlices(td.ones([2, 3]), td.constant([5, 5])))
    assert len(traces) == 2, "without a shape it is another form"


def test_slices_are_carried_by_loops_and_branches():
    @td.function
    def f(slices, n):
        for _ in td.range(n):
            slices = -slices
        if n > 2:
            slices = td.scalar_mul(10.0, slices)
        return slices

    start = rows(np.float32([[1.0, 2.0, 3.0]]), [4])
    for n, factor in ((0, 1.0), (1, -1.0), (3, -10.0)):
        found = f(start, td.constant(n))
        np.testing.assert_array_equal(found.values, factor * np.float32([[1.0, 2.0, 3.0]]))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: td.gather(x, [4, 0, 4]) ** 2,
        lambda x: td.sin(td.gather(x, [[1, 1], [5, 0]])),
        lambda x: td.gather_nd(x, [[2], [2], [0]]) ** 3,
        lambda x: td.nn.embedding_lookup(x, [3, 3, 1], max_norm=1.0),
        lambda x: td.gather(x, [1, 2]) * td.gather(x, [2, 2]),
        lambda x: td.reduce_sum(td.gather(x, [1, 2])) * x,
        lambda x: td.gather(td.identity(x), [0, 5]) ** 2 + td.gather(x * x, [5, 5]),
        lambda x: td.cast(td.gather(x, [0, 5]), td.float64) ** 2,
    ],
)
def test_gradients(fn):
    """First and second order, eagerly and traced."""
    check_gradients(fn, TABLE)


def test_gradients_of_what_is_written_with_gather_are_tensors():
    x = td.constant([3.0, 1.0, 2.0])
    for fn in (
        lambda x: x[[0, 2, 2]], lambda x: td.repeat(x, [1, 2, 3]), lambda x: td.sort(x),
        lambda x: td.boolean_mask(x, x > 1.0), lambda x: np.take(x, [1, 1]),
    ):  # fmt: skip
        with td.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        assert isinstance(tape.gradient(y, x), td.Tensor)


def test_custom_gradients_give_and_take_slices():
    @td.custom_gradient
    def lookup(table):
        def back(dy):
            return td.IndexedSlices(dy * 2.0, td.constant([1, 1]), td.shape(table))

        return td.gather(table, [1, 1]), back

    @td.custom_gradient
    def tripled(table):
        return td.identity(table), lambda dy: dy * 3.0

    v = td.Variable(td.ones([3, 2]))
    with td.GradientTape() as tape:
        y = lookup(v + 0.0)
    np.testing.assert_array_equal(tape.gradient(y, v), [[0.0, 0.0], [4.0, 4.0], [0.0, 0.0]])
    with td.GradientTape() as tape:
        y = td.gather(tripled(v + 0.0), [2])
    np.testing.assert_array_equal(tape.gradient(y, v), [[0.0, 0.0], [0.0, 0.0], [3.0, 3.0]])


def rows_by_hand(indices, upstream, count=6):
    """The sum of the rows of `upstream` by their indices."""
    whole = np.zeros((count, *upstream.shape[1:]), upstream.dtype)
    np.add.at(whole, indices, upstream)
    return whole


def test_compiled_calls_give_rows():
    """Under an eager tape the backward program gives rows; for every number of them, of arguments
    with open sizes and of captured variables, beside gradients that are tensors."""
    v = td.Variable(TABLE)

    @td.function(
        input_signature=[
            td.TensorSpec([None, 3], td.float64), td.TensorSpec([None], td.int32),
            td.TensorSpec([3], td.float64),
        ]
    )  # fmt: skip
    def f(x, i, w):
        return td.gather(v, i) * td.gather(x, i) * w

    w = np.array([1.0, -2.0, 3.0])
    for count, indices in ((6, [1, 5, 1]), (4, [3])):
        x = td.constant(2 * TABLE[:count])
        with td.GradientTape() as tape:
            tape.watch([x, weights := td.constant(w)])
            y = f(x, td.constant(indices), weights)
        by_v, by_x, by_w = tape.gradient(y, [v, x, weights])
        assert isinstance(by_v, td.IndexedSlices) and isinstance(by_x, td.IndexedSlices)
        assert by_x.shape == [count, 3] and by_v.dense_shape.numpy().tolist() == [6, 3]
        np.testing.assert_array_equal(by_v.indices, indices)
        rows = TABLE[indices]
        np.testing.assert_allclose(td.convert_to_tensor(by_v), rows_by_hand(indices, 2 * rows * w))
        np.testing.assert_allclose(
            td.convert_to_tensor(by_x), rows_by_hand(indices, rows * w, count)
        )
        np.testing.assert_allclose(by_w, np.sum(2 * rows * rows, 0))


def test_second_derivatives_through_compiled_calls_that_give_rows():
    v = td.Variable(TABLE)
    cubes = td.function(lambda i: td.reduce_sum(td.gather(v, i) ** 3))
    with td.GradientTape() as outer:
        with td.GradientTape() as inner:
            y = cubes(td.constant([2, 2, 0]))
        first = inner.gradient(y, v)
        total = td.reduce_sum(td.convert_to_tensor(first))
    assert isinstance(first, td.IndexedSlices)
    wanted = rows_by_hand([2, 2, 0], 6 * TABLE[[2, 2, 0]])
    np.testing.assert_allclose(td.convert_to_tensor(outer.gradient(total, v)), wanted)


@pytest.mark.parametrize("staged", [False, True])
def test_gradients_of_what_changes_every_element_keep_rows(staged):
    """Rows of the negative of a table in another dtype."""
    v = td.Variable(TABLE.astype(np.float32))

    def gradient():
        with td.GradientTape() as tape:
            y = td.reduce_sum(td.gather(-td.cast(v, td.float64), [4, 4, 1]) ** 2)
        found = tape.gradient(y, v)
        assert isinstance(found, td.IndexedSlices) and found.dtype is td.float32
        return found

    found = (td.function(gradient) if staged else gradient)()
    rows = v.numpy()[[4, 4, 1]]
    np.testing.assert_array_equal(td.convert_to_tensor(found), rows_by_hand([4, 4, 1], 2 * rows))


@pytest.mark.parametrize("staged", [False, True])
def test_rows_of_each_example_become_tensors(staged):
    """`vectorized_map` gives a tensor of all examples where the function gives rows."""
    v = td.Variable(TABLE)

    def of_one(indices):
        with td.GradientTape() as tape:
            y = td.reduce_sum(td.nn.embedding_lookup(v, indices) ** 2)
        return {"rows": tape.gradient(y, v), "y": y}

    def run():
        return td.vectorized_map(of_one, td.constant([[0, 1], [2, 2]]))

    found = (td.function(run) if staged else run)()
    wanted = [rows_by_hand(i, 2 * TABLE[i]) for i in ([0, 1], [2, 2])]
    np.testing.assert_allclose(found["rows"], wanted)
    np.testing.assert_allclose(found["y"], [np.sum(TABLE[[0, 1]] ** 2), 2 * np.sum(TABLE[2] ** 2)])


def test_python_functions_give_tensors():
    x = td.ones([3, 2])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.py_function(lambda t: td.gather(t, [0, 0]), [x], td.TensorSpec([2, 2]))
    np.testing.assert_array_equal(tape.gradient(y, x), [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0]])


def test_errors():
    with pytest.raises(ValueError, match="without dense_shape"):
        dense(td.IndexedSlices([[1.0]], [0]))
    with pytest.raises(ValueError, match=r"float32 are not converted to float64: use td\.cast"):
        td.convert_to_tensor(rows([[1.0]], [0], [2, 1]), td.float64)
    with pytest.raises(errors.InvalidArgumentError, match="segment id"):
        td.convert_to_tensor(rows([[1.0]], [7], [2, 1]))
    with pytest.raises(ValueError, match="rank 0"):
        td.scalar_mul([1.0, 2.0], rows([[1.0]], [0], [2, 1]))


def test_printing():
    text = str(rows([[1.0, 2.0, 3.0]], [4]))
    assert text == "IndexedSlices(indices=[4], values=[[1. 2. 3.]], dense_shape=[6 3])"


def test_types_of_rows_compare_as_their_parts():
    open_rows = td.IndexedSlicesSpec([None, 3], td.float64, td.int32, td.int32)
    slices = td.IndexedSlices(
        td.constant(TABLE[:2]), td.constant([0, 4], td.int32), td.constant([6, 3], td.int32)
    )
    own = td.type_spec_from_value(slices)
    assert own.is_subtype_of(open_rows) and not open_rows.is_subtype_of(own)
    assert open_rows.is_compatible_with(slices) and own != open_rows
    assert own.most_specific_common_supertype([open_rows]) == open_rows
    assert hash(open_rows) == hash(td.IndexedSlicesSpec([6, 3], td.float64, td.int32, td.int32))
    without = td.IndexedSlicesSpec([None, 3], td.float64, td.int32)
    assert not without.is_compatible_with(slices)
    assert own.most_specific_common_supertype([without]) is None


def test_signatures_refuse_other_rows():
    @td.function(input_signature=[td.IndexedSlicesSpec([None, 3], td.float32, td.int32, td.int32)])
    def f(slices):
        return slices.values

    with pytest.raises(TypeError, match="another structure"):
        f(td.constant([1.0]))
    with pytest.raises(TypeError, match="another structure"):
        f(td.IndexedSlices(td.ones([2, 3]), td.constant([0, 1])))
    with pytest.raises(TypeError, match="does not fit"):
        f(rows(np.ones((2, 4), np.float32), [0, 1]))

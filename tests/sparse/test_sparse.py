"""Sparse tensors as values of programs: arguments, results, loops, gradients, elements of datasets.
What single functions give is compared with TensorFlow in tests/facts_tf/calls/sparse.txt.
"""

import numpy as np
import pytest

import treadle as td


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch):
    """A graph that cannot be compiled is an error here, not a warning."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def random_matrix(rows, columns, seed):
    rng = np.random.default_rng(seed)
    return ((rng.random((rows, columns)) < 0.3) * rng.random((rows, columns))).astype("float32")


def test_a_trace_serves_all_sizes():
    @td.function(input_signature=[td.SparseTensorSpec([None, None]), td.TensorSpec([None, None])])
    def f(x, y):
        return (
            td.sparse.sparse_dense_matmul(x, y),
            td.sparse.reduce_sum(x, 1),
            td.sparse.to_dense(x),
        )

    for rows, columns, width in ((3, 4, 2), (1, 1, 1), (7, 5, 3)):
        dense = random_matrix(rows, columns, rows)
        y = random_matrix(columns, width, 9)
        product, sums, whole = f(td.sparse.from_dense(dense), y)
        np.testing.assert_allclose(product, dense @ y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sums, dense.sum(1), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(whole, dense)
    assert f.experimental_get_tracing_count() == 1


def test_gradients_of_products():
    dense, y = random_matrix(4, 5, 1), random_matrix(5, 3, 2)
    weights = random_matrix(4, 3, 3)

    def gradients(sparse, y):
        with td.GradientTape() as tape:
            tape.watch([sparse, y])
            total = td.reduce_sum(td.sparse.sparse_dense_matmul(sparse, y) * weights)
        return tape.gradient(total, [sparse, y])

    sparse = td.sparse.from_dense(dense)
    for function in (gradients, td.function(gradients)):
        for_x, for_y = function(sparse, td.constant(y))
        inside = (weights @ y.T) * (dense != 0)
        np.testing.assert_allclose(td.sparse.to_dense(for_x), inside, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(for_y, dense.T @ weights, rtol=1e-5, atol=1e-6)


def test_loops_carry_sparse_tensors():
    @td.function
    def power(x, n):
        y = x
        for _ in td.range(n):
            y = td.sparse.add(y, x)
        return y

    x = td.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(td.sparse.to_dense(power(x, 3)), [[0, 4], [8, 0]])


def test_arithmetic_equals_that_of_arrays():
    a, b = random_matrix(5, 6, 4), random_matrix(5, 6, 5)
    x, y = td.sparse.from_dense(a), td.sparse.from_dense(b)
    pairs = [
        (td.sparse.add(x, y), a + b),
        (td.sparse.maximum(x, -y), np.maximum(a, -b)),
        (td.sparse.minimum(x, y), np.minimum(a, b)),
        (td.sparse.transpose(x), a.T),
        (td.sparse.reshape(x, [3, -1]), a.reshape(3, 10)),
        (td.sparse.slice(x, [1, 2], [3, 3]), a[1:4, 2:5]),
        (td.sparse.concat(1, [x, y]), np.concatenate([a, b], 1)),
        (td.sparse.concat(0, [x, y]), np.concatenate([a, b], 0)),
        (td.sparse.expand_dims(x, 1), a[:, None]),
        (x * 3.0, a * 3),
        (x * b, a * b),
        (x / td.constant([[2.0]]), a / 2),
    ]
    for found, expected in pairs:
        assert found.shape.as_list() == list(expected.shape)
        np.testing.assert_allclose(td.sparse.to_dense(found), expected, rtol=1e-6)
    parts = td.sparse.split(x, 4, axis=1)
    whole = np.concatenate([td.sparse.to_dense(p) for p in parts], 1)
    np.testing.assert_array_equal(whole, a)
    assert [p.shape[1] for p in parts] == [2, 2, 1, 1]


def test_datasets_of_sparse_tensors():
    dense = random_matrix(5, 4, 6)
    dataset = td.data.Dataset.from_tensor_slices(td.sparse.from_dense(dense))
    assert dataset.element_spec == td.SparseTensorSpec([4])
    batches = list(dataset.batch(2))
    assert [b.dense_shape.numpy().tolist() for b in batches] == [[2, 4], [2, 4], [1, 4]]
    assert batches[0].shape.as_list() == [2, 4]
    whole = np.concatenate([td.sparse.to_dense(b) for b in batches])
    np.testing.assert_array_equal(whole, dense)
    rows = [td.sparse.to_dense(r).numpy() for r in dataset.batch(3).unbatch()]
    np.testing.assert_array_equal(rows, dense)
    sums = [float(s) for s in dataset.map(lambda r: td.sparse.reduce_sum(r))]
    np.testing.assert_allclose(sums, dense.sum(1), rtol=1e-6)


def test_specs():
    x = td.sparse.from_dense([[0, 1], [2, 0]])
    assert td.type_spec_from_value(x) == td.SparseTensorSpec([2, 2], td.int32)
    assert td.SparseTensorSpec([None, 2], td.int32).is_compatible_with(x)
    assert not td.SparseTensorSpec([None, 3], td.int32).is_compatible_with(x)
    assert not td.SparseTensorSpec([None, 2], td.float32).is_compatible_with(x)


def test_order_is_checked_when_the_program_runs():
    f = td.function(td.sparse.to_dense)
    wrong = td.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2])
    for call in (td.sparse.to_dense, f):
        with pytest.raises(td.errors.InvalidArgumentError, match="out of order"):
            call(wrong)
        np.testing.assert_array_equal(call(td.sparse.reorder(wrong)), [[2, 0], [1, 0]])


def test_functions_without_a_form_say_what_to_do():
    x = td.sparse.from_dense([[0.0, 1.0]])
    with pytest.raises(TypeError, match=r"use td\.sparse\.to_dense"):
        td.matmul(x, x)
    with pytest.raises(TypeError, match="two sparse tensors"):
        td.multiply(x, x)


def test_ragged_tensors_and_back():
    x = td.ragged.constant([[1, 2], [], [3]])
    sparse = x.to_sparse()
    np.testing.assert_array_equal(td.sparse.to_dense(sparse), x.to_tensor())
    assert td.RaggedTensor.from_sparse(sparse).to_list() == x.to_list()


def test_sets_in_functions():
    f = td.function(lambda a, b: td.sets.union(a, b))
    found = f(td.constant([[1, 2], [3, 3]]), td.constant([[2, 5], [3, 4]]))
    assert found.values.numpy().tolist() == [1, 2, 5, 3, 4]
    assert found.dense_shape.numpy().tolist() == [2, 3]


READ = {
    "sparse_dense_matmul": lambda x: td.sparse.sparse_dense_matmul(
        td.sparse.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2]), x
    ),
    "segment_sum": lambda x: td.sparse.segment_sum(x, [0, 1], [0, 0]),
    "segment_mean": lambda x: td.sparse.segment_mean(x, [0, 1], [0, 2]),
    "segment_sqrt_n": lambda x: td.sparse.segment_sqrt_n(x, [1, 1], [0, 1]),
}


@pytest.mark.parametrize("name", READ)
def test_gradients_of_rows_that_are_added_up_are_tensors(name, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")
    read, x = READ[name], td.constant([[1.0, 2.0], [3.0, 4.0]])
    found = []
    for function in (read, td.function(read)):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = function(x) ** 2
        found.append(tape.gradient(y, x))
    assert all(type(g) is td.Tensor for g in found)
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_gradient_of_rows_alone_where_it_is_asked_for():
    x = td.constant([[1.0, 2.0], [3.0, 4.0]])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.sparse.segment_mean(x, [1], [0], sparse_gradient=True)
    assert isinstance(tape.gradient(y, x), td.IndexedSlices)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function], ids=["eager", "function"])
@pytest.mark.parametrize("name", ["segment_sum", "segment_mean", "segment_sqrt_n"])
def test_segments_refuse_dtypes_before_they_take_rows(wrap, name):
    """Eagerly as in functions, where it is not known that there is no row 1."""
    wrong = [td.constant([""]), td.constant([True])]
    if name != "segment_sum":
        wrong.append(td.constant([1]))
    for data in wrong:
        with pytest.raises(td.errors.InvalidArgumentError, match=f"sparse.{name} takes") as caught:
            wrap(lambda x: getattr(td.sparse, name)(x, td.constant([1]), [0]))(data)
        assert isinstance(caught.value, TypeError)


def test_parts_and_shapes_that_are_none():
    x = td.SparseTensor([[0, 0], [3, 4]], [1, 2], [5, 6])
    empty = td.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.int32), [1, 0])
    for call in (
        lambda: td.sparse.slice(x, [1, 1], [-1, 2]), lambda: td.sparse.split(x, 7, 1),
        lambda: td.sparse.split(x, 0, 1), lambda: td.sparse.reshape(empty, [-1, 0]),
    ):  # fmt: skip
        with pytest.raises(td.errors.InvalidArgumentError):
            call()
    arrays = td.compat.v1.SparseTensorValue(
        x.indices.numpy(), x.values.numpy(), x.dense_shape.numpy()
    )
    for a, b in ((arrays, arrays), (x, arrays), (arrays, x)):
        assert td.sparse.add(a, b).values.numpy().tolist() == [2, 4]
    assert td.sparse.add(arrays, td.ones([5, 6], td.int32)).numpy()[3, 4] == 3

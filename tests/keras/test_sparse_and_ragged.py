"""Sparse and ragged tensors in models and layers: what Keras 3.15 gives on TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras

layers = keras.layers
CLASSES = np.array([[0, 1, 1], [4, 2, 0]])


def plain(x: Any) -> Any:
    """A value as lists: (indices, values, shape) of a sparse tensor."""
    if isinstance(x, td.SparseTensor):
        return tuple(part.numpy().tolist() for part in (x.indices, x.values, x.dense_shape))
    return x.to_list() if isinstance(x, td.RaggedTensor) else np.asarray(x).tolist()


def matrix() -> td.SparseTensor:
    return td.sparse.SparseTensor([(0, 0), (1, 1), (1, 3)], [1.0, 1.0, 1.0], (3, 4))


PRODUCT = [[0, 1, 2, 3], [16, 18, 20, 22], [0, 0, 0, 0]]


def product_model() -> Any:
    """Of a sparse input, times the numbers from 0 to 15."""
    x = keras.Input((4,), sparse=True)
    dense = layers.Dense(4)
    model = keras.Model(x, dense(x))
    dense.set_weights([np.arange(16.0).reshape(4, 4), np.zeros(4)])
    return model


def test_a_sparse_input_is_multiplied_as_it_is() -> None:
    model = product_model()
    assert model.input.sparse and not model.output.sparse
    assert model(matrix()).numpy().tolist() == PRODUCT
    assert model.predict(matrix(), verbose=0).tolist() == PRODUCT
    assert model(td.sparse.to_dense(matrix())).numpy().tolist() == PRODUCT


def test_a_sparse_input_of_rank_three_keeps_its_axes() -> None:
    x = td.sparse.from_dense(np.arange(24.0, dtype="f").reshape(2, 3, 4) % 5)
    dense = layers.Dense(2)
    assert dense(td.sparse.to_dense(x)).numpy().tolist() == dense(x).numpy().tolist()


def test_a_sparse_value_becomes_dense_for_a_dense_input() -> None:
    x = keras.Input((4,))
    assert keras.Model(x, x * 2.0)(matrix()).numpy().tolist()[1] == [0, 2, 0, 2]


def test_models_train_on_sparse_tensors_as_on_dense_ones() -> None:
    found = []
    for given in (matrix(), td.sparse.to_dense(matrix()).numpy()):
        x = keras.Input((4,), sparse=isinstance(given, td.SparseTensor))
        model = keras.Model(x, layers.Dense(1, kernel_initializer="ones")(x))
        model.compile("sgd", "mse")
        history = model.fit(
            given, np.array([1.0, 2.0, 3.0]), batch_size=2, epochs=3, shuffle=False, verbose=0
        )
        found.append(history.history["loss"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    model = product_model()
    model.compile("sgd", "mse")
    data = td.data.Dataset.from_tensor_slices((matrix(), np.ones((3, 4), "f"))).batch(3)
    assert len(model.fit(data, epochs=2, verbose=0).history["loss"]) == 2


def test_a_sparse_input_comes_back_from_its_config() -> None:
    again = keras.Model.from_config(product_model().get_config())
    assert again.input.sparse
    assert again(matrix()).shape == (3, 4)


@pytest.mark.parametrize(
    "mode, of_rows, of_one",
    [
        (
            "multi_hot",
            ([[0, 0], [0, 1], [1, 0], [1, 2], [1, 4]], [1, 1, 1, 1, 1], [2, 5]),
            ([[1], [3]], [1, 1], [5]),
        ),
        (
            "one_hot",
            (
                [[0, 0, 0], [0, 1, 1], [0, 2, 1], [1, 0, 4], [1, 1, 2], [1, 2, 0]],
                [1] * 6,
                [2, 3, 5],
            ),
            ([[0, 3], [1, 1]], [1, 1], [2, 5]),
        ),
        (
            "count",
            ([[0, 0], [0, 1], [1, 0], [1, 2], [1, 4]], [1, 2, 1, 1, 1], [2, 5]),
            ([[1], [3]], [1, 1], [5]),
        ),
    ],
)
def test_sparse_encodings(mode: str, of_rows: Any, of_one: Any) -> None:
    layer = layers.CategoryEncoding(5, mode, sparse=True)
    assert plain(layer(CLASSES)) == of_rows
    assert plain(layer(np.array([3, 1]))) == of_one
    assert layer(keras.Input((3,), dtype="int64")).sparse


def test_sparse_counts_have_weights() -> None:
    found = layers.CategoryEncoding(5, "count", sparse=True)(
        CLASSES, count_weights=np.array([[1.0, 2, 3], [4, 5, 6]])
    )
    assert plain(found)[1] == [1, 5, 6, 5, 4]


def test_sparse_lookups() -> None:
    tokens = np.array([["a", "b", "z"], ["a", "a", "q"]])
    for layer, given in (
        (layers.StringLookup(vocabulary=["a", "b"], output_mode="count", sparse=True), tokens),
        (
            layers.TextVectorization(vocabulary=["a", "b"], output_mode="count", sparse=True),
            np.array(["a b z", "a a q"]),
        ),
    ):
        assert plain(layer(given)) == (
            [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]],
            [1, 1, 1, 1, 2],
            [2, 3],
        )
    boundaries = layers.Discretization([0.0, 1.0], output_mode="multi_hot", sparse=True)
    assert plain(boundaries(CLASSES))[0] == [[0, 1], [0, 2], [1, 1], [1, 2]]
    hashing = layers.Hashing(4, output_mode="multi_hot", sparse=True)
    assert plain(hashing(CLASSES))[0] == [[0, 1], [0, 3], [1, 3]]
    crossing = layers.HashedCrossing(5, output_mode="one_hot", sparse=True)
    assert plain(crossing((np.array([1, 2]), np.array([3, 4]))))[0] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.StringLookup(vocabulary=["a"], output_mode="int", sparse=True),
        lambda: layers.Discretization([0.0], output_mode="int", sparse=True),
        lambda: layers.Hashing(3, sparse=True),
    ],
)
def test_numbers_are_never_sparse(make: Any) -> None:
    with pytest.raises(ValueError, match="sparse=True"):
        make()


def test_texts_become_ragged_rows() -> None:
    texts = np.array(["a b z", "a"])
    layer = layers.TextVectorization(vocabulary=["a", "b"], ragged=True)
    assert plain(layer(texts)) == [[2, 3, 1], [2]]
    cut = layers.TextVectorization(vocabulary=["a", "b"], ragged=True, output_sequence_length=2)
    assert plain(cut(texts)) == [[2, 3], [2]]
    with pytest.raises(ValueError, match="`ragged` must not be true"):
        layers.TextVectorization(ragged=True, output_mode="multi_hot")


def test_lookups_of_ragged_tensors() -> None:
    rows = td.ragged.constant([["a", "b"], ["z"]])
    assert plain(layers.StringLookup(vocabulary=["a", "b"])(rows)) == [[1, 2], [0]]
    for mode in ("multi_hot", "count"):
        layer = layers.StringLookup(vocabulary=["a", "b"], output_mode=mode)
        assert plain(layer(rows)) == [[0, 1, 1], [1, 0, 0]]
    numbers = td.ragged.constant([[1], [2, 5]])
    assert plain(layers.IntegerLookup(vocabulary=[1, 2])(numbers)) == [[1], [2, 0]]
    assert plain(layers.Hashing(4)(rows)) == [[3, 2], [1]]


def test_a_ragged_input_goes_through_a_model() -> None:
    x = keras.Input((None,), ragged=True, dtype="int64")
    rows = layers.Embedding(10, 4)(x)
    assert rows.ragged and rows.shape.as_list() == [None, None, 4]
    total = layers.Lambda(lambda v: td.reduce_sum(v, 1))(rows)
    assert not total.ragged
    model = keras.Model(x, total)
    given = td.ragged.constant([[1, 2], [3]], dtype=td.int64)
    table = model.layers[1].get_weights()[0]
    wanted = [table[1] + table[2], table[3]]
    np.testing.assert_allclose(model(given), wanted, rtol=1e-6)
    np.testing.assert_allclose(model.predict(given, batch_size=1, verbose=0), wanted, rtol=1e-6)
    assert plain(keras.Model(x, rows).predict(given, batch_size=1, verbose=0))[1] == [
        table[3].tolist()
    ]


def test_sparse_and_ragged_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="at the same time"):
        keras.Input((3,), sparse=True, ragged=True)


def test_concatenations() -> None:
    x = td.sparse.from_dense(np.array([[1.0, 0], [0, 2]], "f"))
    join = layers.Concatenate()
    assert plain(join([x, x])) == ([[0, 0], [0, 2], [1, 1], [1, 3]], [1, 1, 2, 2], [2, 4])
    assert plain(join([x, td.ones((2, 1))])) == [[1, 0, 1], [0, 2, 1]]
    rows = td.ragged.constant([[1], [2, 3]])
    assert plain(layers.Concatenate(axis=1)([rows, rows])) == [[1, 1], [2, 3, 2, 3]]


def test_operations_give_sparse_results() -> None:
    assert plain(keras.ops.one_hot(np.array([1, 2]), 4, sparse=True))[0] == [[0, 1], [1, 2]]
    assert plain(keras.ops.multi_hot(np.array([[1, 2]]), 4, sparse=True))[2] == [1, 4]
    counts = keras.ops.bincount(np.array([[1, 2, 1], [0, 0, 5]]), sparse=True)
    assert plain(counts) == ([[0, 1], [0, 2], [1, 0], [1, 5]], [2, 1, 2, 1], [2, 6])
    dense = keras.ops.convert_to_tensor(matrix(), sparse=False)
    assert dense.numpy()[1].tolist() == [0, 1, 0, 1]


def test_places_that_sparse_numbers_leave_out_have_the_first_vector() -> None:
    embedding = layers.Embedding(3, 2, weights=[np.array([[7.0, 8.0], [2.0, 2.0], [3.0, 3.0]])])
    x = td.SparseTensor([[0, 0], [1, 2]], [2, 1], (2, 3))
    known = [[[3, 3], [7, 8], [7, 8]], [[7, 8], [7, 8], [2, 2]]]
    for call in (embedding, td.function(embedding)):
        np.testing.assert_array_equal(call(x), known)


def test_functions_and_layers_keep_sparse_tensors_as_keras_does():
    ops, layers = td.keras.ops, td.keras.layers
    one, two = np.array([[1.0, 0, 2], [0, 3, 0]]), np.array([[0.0, 4, 5], [0, 6, 0]])
    one, two = one.astype(np.float32), two.astype(np.float32)
    a, b = td.sparse.from_dense(one), td.sparse.from_dense(two)
    sparse = {
        "add": one + two, "subtract": one - two, "multiply": one * two,
        "maximum": np.maximum(one, two), "minimum": np.minimum(one, two),
    }  # fmt: skip
    cases = [(getattr(ops, name)(a, b), value, True) for name, value in sparse.items()]
    cases += [(getattr(ops, name)(two, a), getattr(np, name)(two, one), name == "multiply")
              for name in sparse]  # fmt: skip
    cases += [
        (layers.Add()([a, b]), one + two, True), (layers.Subtract()([a, two]), one - two, False),
        (layers.Average()([a, b]), (one + two) / 2, True),
        (ops.divide(a, two + 1), one / (two + 1), True),
        (layers.Dot(1)([a, b]), (one * two).sum(1, keepdims=True), True),
        (layers.Permute((1,))(a), one, True), (layers.Reshape((3, 1))(a), one[..., None], True),
        (layers.Flatten()(ops.expand_dims(a, 1)), one, True), (ops.transpose(a), one.T, True),
        (ops.concatenate([a, b], 1), np.concatenate([one, two], 1), True),
        (ops.matmul(a, two.T), one @ two.T, False), (ops.matmul(two.T, a), two.T @ one, False),
        (ops.sqrt(a), np.sqrt(one), True), (ops.cos(a), np.cos(one), False),
    ]  # fmt: skip
    for found, value, stays in cases:
        assert isinstance(found, td.SparseTensor) == stays
        np.testing.assert_allclose(ops.convert_to_numpy(found), value, rtol=1e-6)
    with pytest.raises(TypeError, match="sparse"):
        ops.power(a, 2.0)
    inputs = keras.Input((3,), sparse=True)
    assert layers.Add()([inputs, inputs]).sparse


def test_a_sparse_size_that_is_left_is_known_in_functions():
    a = td.sparse.from_dense(np.arange(12.0).reshape(2, 6))
    three = td.function(lambda x: td.sparse.reshape(x, [-1, 3]))
    found = three(a)
    np.testing.assert_array_equal(td.sparse.to_dense(found), np.arange(12.0).reshape(4, 3))
    open_rows = td.function(
        lambda x: td.sparse.reshape(x, [-1, 3]), input_signature=[td.SparseTensorSpec([None, 6])]
    )
    assert open_rows(td.cast(a, td.float32)).shape == (4, 3)
    flat = keras.Sequential([keras.Input((2, 3), sparse=True), layers.Flatten()])
    found = flat(td.sparse.reshape(td.cast(a, td.float32), [2, 2, 3]))
    np.testing.assert_array_equal(td.sparse.to_dense(found), np.arange(12.0).reshape(2, 6))

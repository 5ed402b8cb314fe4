"""Gather of ragged tensors, and by them: as that of tensors of equal rows, and row by row."""

import numpy as np
import pytest

import treadle as td

RNG = np.random.default_rng(5)
# shapes of params and of indices, axis, batch_dims
CASES = [
    ((3, 4), (), 0, 0), ((3, 4), (2, 5), 0, 0), ((3, 4), (), 1, 0), ((3, 4), (2, 1), 1, 0),
    ((3, 2, 5), (2,), 2, 0), ((3, 2, 4, 2), (2, 1, 2), 2, 0), ((4, 3), (4,), 1, 1),
    ((4, 3, 2), (4, 2, 3), 1, 1), ((3, 2, 5), (3, 2), 2, 2), ((3, 2, 5), (3, 2, 4), 2, 2),
    ((2, 3, 6), (2,), 2, 1), ((3, 2, 3, 4), (3, 4), 3, 1), ((2, 3, 3, 4), (2, 3), 3, 2),
]  # fmt: skip


def forms(x):
    """A tensor, and ragged ones of its rows."""
    return [
        td.constant(x),
        *(td.RaggedTensor.from_tensor(x, ragged_rank=k) for k in range(1, x.ndim)),
    ]


def dense(x):
    return x.to_tensor().numpy() if isinstance(x, td.RaggedTensor) else x.numpy()


@pytest.mark.parametrize(("shape", "places", "axis", "batch"), CASES)
def test_equal_rows(shape, places, axis, batch):
    params = RNG.integers(100, size=shape)
    indices = RNG.integers(shape[axis], size=places)
    expected = td.gather(params, indices, axis=axis, batch_dims=batch).numpy()
    for p in forms(params):
        for i in forms(np.asarray(indices)):
            found = td.gather(p, i, axis=axis, batch_dims=batch)
            np.testing.assert_array_equal(dense(found), expected)


PARAMS = [[[1.0], [2.0, 3.0]], [], [[4.0, 5.0, 6.0], [7.0, 8.0]]]


def calls(x, i):
    """`x` of three axes; `i` numbers for each of its rows."""
    return [
        td.gather(x, i), td.gather(x, 2), td.gather(x, [[2, 0], [1, 1]]),
        td.gather(x, i, batch_dims=1), td.gather(x, [0], axis=2),
        td.gather(x.values, i, axis=0), td.gather(x.values, [[0]], axis=1),
        td.gather(td.constant([[1.0, 2.0], [3.0, 4.0]]), i, axis=1),
    ]  # fmt: skip


def test_rows_of_other_lengths():
    x, i = td.ragged.constant(PARAMS), td.ragged.constant([[1, 0], [], [1]])
    rows = [[PARAMS[1], PARAMS[0]], [], [PARAMS[1]]]
    inner = [row for part in PARAMS for row in part]
    expected = [
        rows, PARAMS[2], [[PARAMS[2], PARAMS[0]], [PARAMS[1], PARAMS[1]]],
        [[PARAMS[0][1], PARAMS[0][0]], [], [PARAMS[2][1]]],
        [[[row[0]] for row in part] for part in PARAMS],
        [[inner[1], inner[0]], [], [inner[1]]], [[[row[0]]] for row in inner],
        [[[a[1], a[0]], [], [a[1]]] for a in ([1.0, 2.0], [3.0, 4.0])],
    ]  # fmt: skip
    told = (td.RaggedTensorSpec([None, None, None]), td.RaggedTensorSpec([None, None], td.int32))
    for way in (calls, td.function(calls, input_signature=told)):
        for found, wanted in zip(way(x, i), expected, strict=True):
            ragged = isinstance(found, td.RaggedTensor)
            assert (found.to_list() if ragged else found.numpy().tolist()) == wanted


def test_gradients():
    x, i = td.ragged.constant(PARAMS), td.ragged.constant([[1, 0], [], [1]])
    flat = x.flat_values

    def total(flat):
        picked = td.gather(x.with_flat_values(flat), i, batch_dims=1)
        return td.reduce_sum(picked.flat_values * td.constant([1.0, 2.0, 3.0, 4.0, 5.0]))

    with td.GradientTape() as tape:
        tape.watch(flat)
        y = td.function(total)(flat)
    found = td.convert_to_tensor(tape.gradient(y, flat))  # of rows, as in TensorFlow
    assert found.numpy().tolist() == [3, 1, 2, 0, 0, 0, 4, 5]


def test_numbers_out_of_range():
    x = td.ragged.constant([[1], [2, 3], [4, 5, 6]])
    for call in (
        lambda: td.gather(x, [[1], [0], [0]], batch_dims=1),  # the next row is no part of this one
        lambda: td.gather(x, [[0], [-1], [0]], batch_dims=1), lambda: td.gather(x, [1], axis=1),
        lambda: td.gather(x, 3), lambda: td.gather(x, [[0]], batch_dims=1),
    ):  # fmt: skip
        for way in (call, td.function(call)):
            with pytest.raises(td.errors.InvalidArgumentError):
                way()
    for axis, batch in ((0, 1), (2, 0), (1, 3)):
        with pytest.raises(ValueError, match="axis"):
            td.gather(x, [[0], [0], [0]], axis=axis, batch_dims=batch)

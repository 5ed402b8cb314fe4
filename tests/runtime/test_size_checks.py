"""Compiled programs refuse sizes that shape rules could not judge: no read outside an array."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

VECTOR = td.TensorSpec([None], td.float32)
MATRIX = td.TensorSpec([None, None], td.float32)

def powers(x):
    y = x
    for _ in td.range(3):
        y = td.matmul(y, x)
    return y


def places_in(x):
    """Positions that are kept inside of a vector, if it has elements."""
    last = td.size(x, td.int64) - 1
    return td.maximum(td.minimum(td.range(4, dtype=td.int64) * last, last), 0)


# name: (function, spec, shapes that fit, shapes that do not)
CASES = {
    "reshape": (lambda x: td.reshape(x, [2, 2]), VECTOR, [(4,)], [(5,), (3,), (0,)]),
    "reshape_open": (lambda x: td.reshape(x, [-1, 2]), VECTOR, [(4,), (0,)], [(5,)]),
    "ensure_shape": (lambda x: td.ensure_shape(x, [3]), VECTOR, [(3,)], [(2,), (4,)]),
    "ensure_shape_2d": (lambda x: td.ensure_shape(x, [2, None]), MATRIX, [(2, 3)], [(3, 2)]),
    "squeeze": (lambda x: td.squeeze(x, 0), VECTOR, [(1,)], [(2,), (0,)]),
    "element": (lambda x: x[2], VECTOR, [(3,), (9,)], [(2,), (0,)]),
    "last": (lambda x: x[-1], VECTOR, [(3,), (1,)], [(0,)]),
    "last_but_one": (lambda x: x[-2], VECTOR, [(2,)], [(1,)]),
    "python_slice": (lambda x: x[1:4], VECTOR, [(9,), (3,), (1,), (0,)], []),
    "reversed": (lambda x: x[::-1], VECTOR, [(3,), (0,)], []),
    "slice": (lambda x: td.slice(x, [1], [3]), VECTOR, [(4,)], [(3,), (0,)]),
    "slice_rest": (lambda x: td.slice(x, [1], [-1]), VECTOR, [(4,), (1,)], [(0,)]),
    "split": (lambda x: td.split(x, 2), VECTOR, [(4,), (0,)], [(3,)]),
    "split_sizes": (lambda x: td.split(x, [1, 2]), VECTOR, [(3,)], [(4,), (2,)]),
    "split_rest": (lambda x: td.split(x, [1, -1]), VECTOR, [(3,), (1,)], [(0,)]),
    "unstack": (lambda x: td.unstack(x, 3), VECTOR, [(3,)], [(4,), (2,)]),
    "stack": (lambda x: td.stack([x, td.ones([2])]), VECTOR, [(2,)], [(3,), (1,)]),
    "concat": (lambda x: td.concat([[x], td.ones([1, 2])], 0), VECTOR, [(2,)], [(3,)]),
    "concat_along": (lambda x: td.concat([x, td.ones([2])], 0), VECTOR, [(2,), (3,)], []),
    "matmul": (lambda x: td.matmul(x, td.ones([3, 2])), MATRIX, [(2, 3), (0, 3)], [(2, 2), (2, 4)]),
    "matmul_turned": (
        lambda x: td.matmul(x, td.ones([3, 2]), transpose_a=True),
        MATRIX, [(3, 2)], [(2, 3), (4, 3)],
    ),
    "matmul_squared": (lambda x: td.matmul(x, x), MATRIX, [(2, 2), (0, 0)], [(2, 3), (3, 2)]),
    "matmul_of_a_part": (lambda x: td.matmul(x[:, 1:], x[:2]), MATRIX, [(2, 3), (5, 3)], [(3, 2)]),
    "matmul_in_a_loop": (powers, MATRIX, [(2, 2), (0, 0)], [(2, 3), (3, 2)]),
    "clamped": (lambda x: td.gather(x, places_in(x)), VECTOR, [(3,), (1,)], [(0,)]),
    "clamped_after_arithmetic": (
        lambda x: td.gather(x * 2 + 1, places_in(x)) * 3, VECTOR, [(3,), (1,)], [(0,)],
    ),
    "clamped_in_a_view": (
        lambda x: td.gather(td.broadcast_to(3.0, td.shape(x)), places_in(x)),
        VECTOR, [(3,), (1,)], [(0,)],
    ),
    "clamped_in_a_part": (
        lambda x: td.gather(x[1:], places_in(x[1:])), VECTOR, [(3,), (2,)], [(1,)],
    ),
    "in_a_branch": (
        lambda x: td.cond(td.size(x) > 4, lambda: x[4], lambda: td.constant(0.0)),
        VECTOR, [(5,), (4,), (0,)], [],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("name", CASES)
def test_sizes(name):
    function, spec, good, bad = CASES[name]
    compiled = td.function(function, input_signature=[spec])
    for shape in good:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for actual, expected in zip(
            td.nest.flatten(compiled(x)), td.nest.flatten(function(td.constant(x))), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)
    for shape in bad:
        x = td.constant(np.ones(shape, np.float32))
        with pytest.raises(ValueError):
            compiled(x)
        with pytest.raises(td.errors.InvalidArgumentError):
            function(x)


def constant(*shape, dtype="float32"):
    return td.ones(shape, dtype)


# What has a row of `x` each, of which there are 11.
ROWS = {
    "sparse_labels": lambda x: td.nn.sparse_softmax_cross_entropy_with_logits(
        constant(11, dtype="int32"), x
    ),
    "labels": lambda x: td.nn.softmax_cross_entropy_with_logits(constant(11, 4), x),
    "logits": lambda x: td.nn.softmax_cross_entropy_with_logits(x, constant(11, 4)),
    "segments": lambda x: td.math.unsorted_segment_sum(x, constant(11, dtype="int32"), 3),
    "scatter": lambda x: td.scatter_nd(constant(11, 1, dtype="int32"), x, [12, 4]),
    "scatter_add": lambda x: td.tensor_scatter_nd_add(
        constant(12, 4), constant(11, 1, dtype="int32"), x
    ),
    "scatter_update": lambda x: td.tensor_scatter_nd_update(
        constant(12, 4), constant(11, 1, dtype="int32"), x
    ),
    "gather": lambda x: td.gather(x, constant(11, 2, dtype="int32"), axis=1, batch_dims=1),
}


def gradient(function):
    def run(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(function(x))
        return tape.gradient(y, x)

    return run


CASES_OF_ROWS = [
    *(pytest.param(f, id=name) for name, f in ROWS.items()),
    *(pytest.param(gradient(ROWS[n]), id=f"{n}_gradient") for n in ("sparse_labels", "labels")),
]


@pytest.mark.parametrize("function", CASES_OF_ROWS)
def test_rows_that_belong_together(function):
    compiled = td.function(function, input_signature=[td.TensorSpec([None, 4], td.float32)])
    x = np.random.default_rng(0).standard_normal((11, 4)).astype(np.float32)
    np.testing.assert_allclose(compiled(x), function(td.constant(x)), rtol=1e-5, atol=1e-6)
    for count in (5, 40):
        with pytest.raises(ValueError):
            compiled(np.ones((count, 4), np.float32))


def test_variables_keep_their_size():
    variable = td.Variable(np.zeros(11, np.float32))
    assign = td.function(lambda x: variable.assign(x), input_signature=[VECTOR])
    assign(np.ones(11, np.float32))
    for count in (1, 5, 40):
        with pytest.raises(ValueError):
            assign(np.full(count, 2.0, np.float32))
    np.testing.assert_array_equal(variable, np.ones(11))


def test_segments_of_another_size_are_refused_while_tracing():
    with pytest.raises(ValueError, match="segment ids"):
        td.function(lambda x: td.math.unsorted_segment_sum(x, [0, 1, 0], 2))(np.ones((5, 2)))

"""Shapes as values: symbolic dims survive arithmetic and come back as static attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.traced import run_traced
from treadle.core.context import recording
from treadle.core.shapes import SymbolicDim
from treadle.graph.builder import GraphBuilder
from treadle.ops.dims import partial_dims

B = SymbolicDim.symbol("B")
CASES = {
    "element": (lambda x: td.shape(x)[0], B),
    "last": (lambda x: td.shape(x)[-1], 6),
    "product": (lambda x: td.shape(x)[0] * td.shape(x)[1], B * 6),
    "sum": (lambda x: td.shape(x)[0] + 2 * td.shape(x)[1] - 1, B + 11),
    "quotient": (lambda x: td.shape(x)[0] * 4 // 2, B * 2),
    "remainder": (lambda x: td.shape(x)[0] * 4 % 2, 0),
    "unstack": (lambda x: td.unstack(td.shape(x))[0], B),
    "cast": (lambda x: td.cast(td.shape(x), td.int64)[0] * 3, B * 3),
    "size": (lambda x: td.size(x), B * 6),
    "reduce_prod": (lambda x: td.reduce_prod(td.shape(x)), B * 6),
    "concat": (lambda x: td.concat([td.shape(x), [3]], 0)[0], B),
    "slice": (lambda x: td.shape(x)[:1][0], B),
    "gathered": (lambda x: td.stack([td.shape(x)[1], td.shape(x)[0]])[1], B),
    "number": (lambda x: 5, 5),
    "numpy": (lambda x: np.int64(5), 5),
    "data": (lambda x: td.cast(td.reduce_sum(x), td.int32), None),
}


@pytest.mark.parametrize(("fn", "expected"), CASES.values(), ids=CASES)
def test_dims_of_a_scalar(fn: Any, expected: Any) -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([B, 6], td.float32))
    with recording(builder):
        value = fn(x)
        dims = partial_dims([value, -1])
        assert dims == (expected, -1)


def test_shape_arguments_become_static() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([B, 4, 5], td.float32))
    with recording(builder):
        assert td.reshape(x, [td.shape(x)[0], -1]).dims == (B, 20)
        assert td.reshape(x, td.concat([[-1], td.shape(x)[2:]], 0)).dims == (B * 4, 5)
        assert td.zeros(td.shape(x)[:2]).dims == (B, 4)
        assert td.zeros_like(x).dims == (B, 4, 5)
        assert td.range(td.shape(x)[0]).dims == (B,)
        assert td.broadcast_to(td.constant(1.0), [td.shape(x)[0], 2]).dims == (B, 2)
        assert td.tile(x, [2, 1, td.shape(x)[0]]).dims == (B * 2, 4, B * 5)
        assert x[: td.shape(x)[0] // 2, None].shape == (None, 1, 4, 5)
    names = {node.op.name for node in builder.graph.nodes}
    assert not names & {"open_dim", "range_dynamic", "dynamic_slice"}


def test_dims_are_known_inside_branches() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([B, 4], td.float32))
    with recording(builder):
        n = td.shape(x)[0]
        y = td.cond(
            td.reduce_sum(x) > 0, lambda: td.reshape(x, [n * 2, 2]), lambda: td.zeros([n * 2, 2])
        )
        assert y.dims == (B * 2, 2)


def test_shape_of_known_dims_is_a_constant() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([3, 4], td.float32))
    with recording(builder):
        td.shape(x, out_type=td.int64)
    assert [node.op.name for node in builder.graph.nodes] == ["const"]


def length_of(x: Any) -> Any:
    """An integer that only a run can tell."""
    return td.cast(td.reduce_max(x), td.int32)


RUNS = {
    "reshape": lambda x: td.reshape(x, [length_of(x), -1]),
    "reshape_tensor": lambda x: td.reshape(x, td.stack([length_of(x), 2])),
    "zeros": lambda x: td.zeros([length_of(x), 2]),
    "fill": lambda x: td.fill([2, length_of(x)], 7),
    "range": lambda x: td.range(length_of(x)),
    "range_float": lambda x: td.range(0.0, td.reduce_max(x), 0.5),
    "range_steps": lambda x: td.range(10, length_of(x), -3),
    "slice": lambda x: x[: length_of(x) - 2],
    "slice_step": lambda x: x[-1 : length_of(x) - 3 : -1],
    "broadcast": lambda x: td.broadcast_to(x[0], [length_of(x), 3]),
}


@pytest.mark.parametrize("fn", RUNS.values(), ids=RUNS)
def test_shapes_that_only_a_run_can_tell(fn: Any) -> None:
    x = np.array([[0, 1, 2], [3, 2, 1]], np.float32)
    expected = fn(td.constant(x)).numpy()
    (result,) = run_traced(fn, [x])
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype


def test_gradients_through_dynamic_shapes() -> None:
    def gradient(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            n = length_of(x)
            y = td.reduce_sum(td.reshape(x, [n, -1]) ** 2) + td.reduce_sum(x[: n - 2])
        return tape.gradient(y, x)

    x = np.array([[0, 1, 2], [3, 2, 1]], np.float32)
    expected = 2 * x + [[1], [0]]
    np.testing.assert_allclose(gradient(td.constant(x)).numpy(), expected)
    np.testing.assert_allclose(run_traced(gradient, [x])[0], expected)


@pytest.mark.parametrize("shape", [[2, "a"], [2, None], [1.5], None], ids=str)
def test_shapes_are_integers(shape: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        td.zeros(shape)
    with pytest.raises(TypeError, match="integers, not float32"):
        td.reshape([1.0], td.constant([1.0]))


def test_eager_queries() -> None:
    x = td.zeros([2, 3])
    assert td.shape(x).numpy().tolist() == [2, 3]
    assert td.shape(x).dtype is td.int32
    assert (int(td.size(x)), int(td.rank(x))) == (6, 2)
    assert [s.numpy().tolist() for s in td.shape_n([x, x[0]])] == [[2, 3], [3]]


def test_floats_in_lists_of_sizes_are_cut():
    """TensorFlow casts the tensors of a list to the dtype of sizes when it packs them."""

    def made(t):
        x = td.reshape(td.ones([4]), [t, 2])
        return td.zeros((t, 3)), td.ones([t]), td.fill([t], 1), td.eye(t), x, td.tile([1], [t])

    wanted = [(2, 3), (2,), (2,), (2, 2), (2, 2), (2,)]
    for function in (made, td.function(made)):
        assert [tuple(x.shape) for x in function(td.constant(2.7))] == wanted
    with pytest.raises(TypeError):
        td.zeros(td.constant([2.0, 3.0]))


def test_tables_of_sizes_are_known():
    """Paddings that a function computes from known sizes give a known shape."""

    @td.function(input_signature=[td.TensorSpec([2], td.int32)])
    def padded(seed):
        paddings = td.stack([[0, 0], [1, 2 - td.size(seed)]])
        x = td.pad(td.reshape(seed, [1, -1]), paddings)
        assert x.shape == (1, 3)
        return td.squeeze(x)

    assert padded([4, 5]).numpy().tolist() == [0, 4, 5]

    @td.function(input_signature=[td.TensorSpec([None, 2], td.int32)])
    def sums(x):
        table = td.stack([td.shape(x), [5, 6]])
        return td.zeros(td.reduce_sum(table, 0)), td.zeros(td.reduce_prod(table, 1))

    assert [tuple(found.shape) for found in sums(np.ones((3, 2), "i"))] == [(8, 8), (6, 30)]


def test_sizes_that_operations_compute_from_constants_are_known():
    @td.function(input_signature=[td.TensorSpec([None, 2])])
    def inserted(x):
        count = td.rank(x) - 1
        sizes = td.concat([[3], td.ones([count], td.int32), td.fill([1], 5)], 0)
        y = td.zeros(sizes)
        assert y.shape == (3, 1, 5)
        return y + 1.0

    assert inserted(np.ones((4, 2))).shape == (3, 1, 5)


def test_ranges_without_numbers_have_integers():
    assert td.convert_to_tensor(range(0)).dtype is td.int32
    assert td.concat([range(0), range(2, 4), range(2)], 0).numpy().tolist() == [2, 3, 0, 1]
    assert td.concat([range(0), [1.5]], 0).dtype is td.float32
    order = td.concat([range(1, 2), range(0), [0]], 0)
    assert td.transpose(td.zeros([2, 3]), order).shape == (3, 2)

"""What the tables cannot say about indexing: errors, and which nodes a key becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.traced import run_traced, trace
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec

X = np.arange(12, dtype=np.float32).reshape(3, 4)
OUT_OF_RANGE = {
    "int": lambda x: x[3], "negative": lambda x: x[-4], "second": lambda x: x[0, 4],
    "tensor": lambda x: x[td.constant(3)], "tensor_negative": lambda x: x[:, td.constant(-5)],
}  # fmt: skip


@pytest.mark.parametrize("fn", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_index_out_of_range(fn: Any) -> None:
    """The error names the index, the shape and the line: eager, while tracing, and at run time."""
    with pytest.raises(td.errors.InvalidArgumentError, match=r"-?\d is out of range") as caught:
        fn(td.constant(X))
    assert "test_indexing.py" in str(caught.value)
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        run_traced(fn, [X])


def test_index_out_of_range_at_run_time() -> None:
    i = np.array(3, np.int32)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"index.*3 is out of range.*3") as e:
        run_traced(lambda x, i: x[i], [X, i])
    assert "test_indexing.py" in str(e.value)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"gather.*5 is out of range"):
        td.gather(td.constant(X), [0, 5])
    with pytest.raises(td.errors.InvalidArgumentError, match=r"gather_nd.*9 is out of range"):
        td.gather_nd(td.constant(X), [[0, 9]])


@pytest.mark.parametrize("key", [1.0, "a", True, [0.5, 1.0], (0, "a"), 1j], ids=str)
def test_keys_of_other_types(key: Any) -> None:
    with pytest.raises(TypeError, match="is not an index|is no index"):
        td.constant(X)[key]


def test_more_errors() -> None:
    t = td.constant(X)
    with pytest.raises(td.errors.InvalidArgumentError, match="too many indices: 3"):
        t[0, 0, 0]
    with pytest.raises(ValueError, match="one Ellipsis"):
        t[..., td.constant(0), ...]
    with pytest.raises(TypeError, match=r"float32 of shape \(\).*td.gather"):
        t[td.constant(1.0)]
    with pytest.raises(ValueError, match=r"mask of shape \(2,\).*\(3, 4\)"):
        t[np.array([True, False])]
    with pytest.raises(
        td.errors.InvalidArgumentError, match=r"slice: size\[0\] must be in \[0, 2\], not 3"
    ):
        td.slice(t, [1, 0], [3, 4])


def test_masks_select() -> None:
    t = td.constant(X)
    np.testing.assert_array_equal(t[np.array([True, False, True])].numpy(), X[[0, 2]])
    np.testing.assert_array_equal(t[t > 5].numpy(), X[X > 5])
    np.testing.assert_array_equal(run_traced(lambda x: x[x > 5], [X])[0], X[X > 5])


def test_tensors_as_bounds() -> None:
    t, two = td.constant(X), td.constant(2)
    np.testing.assert_array_equal(t[two].numpy(), X[2])
    np.testing.assert_array_equal(t[:two, two].numpy(), X[:2, 2])
    np.testing.assert_array_equal(t[two - 1 :, None].numpy(), X[1:, None])
    v = td.Variable(1)
    np.testing.assert_array_equal(td.Variable(X)[v, v:].numpy(), X[1, 1:])


def test_one_slice_per_key() -> None:
    graph = trace(lambda x: x[1:, ::2], [X])
    assert [n.op.name for n in graph.nodes] == ["strided_slice"]
    assert not trace(lambda x: x[:, ...], [X]).nodes


def test_slices_of_open_dims() -> None:
    b = SymbolicDim.symbol("B")
    from treadle.core.context import recording
    from treadle.graph.builder import GraphBuilder

    builder = GraphBuilder("f")
    x = builder.parameter(TensorSpec([b, 4]))
    with recording(builder):
        assert x[1:].dims == x[:-1].dims
        assert (x[1:] - x[:-1]).shape == (None, 4)
        assert x[:0].dims == (0, 4)
        assert x[:, 1:3].dims == (b, 2)
        assert x[::-1].dims == (b, 4)
        assert x[0].dims == (4,)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    "key",
    [slice(1, None), slice(None, -1), slice(-2, None), slice(None, None, -1), slice(None, 3),
     slice(1, -1), slice(5, 2), slice(None, None, 3), slice(-1, 0, -2), slice(2, None, -1)],
    ids=str,
)  # fmt: skip
def test_slices_of_any_size(size: int, key: slice) -> None:
    """One trace with an unknown dim equals NumPy for every size, empty ones included."""
    x = np.arange(size * 2, dtype=np.int32).reshape(size, 2)
    (result,) = run_traced(lambda t: t[key] + 0, [x], symbolic=True)
    np.testing.assert_array_equal(result, x[key])


@pytest.mark.parametrize("shape", [(7, 2, 0), (0, 2, 3), (7, 2, 0, 3)])
def test_gather_in_batches_of_arrays_without_elements(shape):
    def first(x):
        return td.gather(x, td.zeros([x.shape[0]], td.int32), axis=1, batch_dims=1)

    x = td.zeros(shape)
    for f in (first, td.function(first)):
        assert f(x).shape == (shape[0], *shape[2:])

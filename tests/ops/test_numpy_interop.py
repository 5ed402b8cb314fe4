"""Tensors and NumPy share elements, and neither changes the other's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.context import recording
from treadle.experimental.dlpack import from_dlpack, to_dlpack
from treadle.graph.builder import GraphBuilder


def test_asarray_shares_and_is_read_only() -> None:
    t = td.constant([1.0, 2.0])
    view = np.asarray(t)
    assert np.shares_memory(view, np.asarray(t))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    assert t.numpy().tolist() == [1.0, 2.0]


def test_copies() -> None:
    t = td.constant([1.0, 2.0])
    for copy in (t.numpy(), np.array(t), np.asarray(t, np.float64), np.asarray(t, copy=True)):
        copy[0] = 5
    assert t.numpy().tolist() == [1.0, 2.0]
    assert np.asarray(t, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, np.float64, copy=False)
    assert np.shares_memory(np.asarray(t, copy=False), np.asarray(t))


def test_scalars() -> None:
    assert isinstance(td.constant(1.5).numpy(), np.float32)
    assert np.asarray(td.constant(1.5)).shape == ()


def test_numpy_functions_give_arrays() -> None:
    t = td.constant([1.0, 4.0])
    for result in (np.multiply(t, t), np.add(t, 1), np.sqrt(t), np.sum(t, keepdims=True)):
        assert type(result) is np.ndarray
    np.testing.assert_array_equal(np.multiply(t, t), [1, 16])
    np.testing.assert_array_equal(np.concatenate([t, t]), [1, 4, 1, 4])


def test_operators_give_tensors() -> None:
    t = td.constant([1.0, 4.0])
    for result in (np.ones(2, np.float32) + t, np.float32(2) * t, t - np.ones(2, np.float32)):
        assert type(result) is td.Tensor
        assert result.dtype is td.float32


def test_arrays_given_are_copied() -> None:
    a = np.ones(3, np.float32)
    t, s = td.constant(a), td.convert_to_tensor(a)
    a[0] = 7
    assert t.numpy().tolist() == s.numpy().tolist() == [1, 1, 1]


def test_variables_give_snapshots() -> None:
    v = td.Variable([1.0, 2.0])
    before = np.asarray(v)
    number = v.numpy()
    v.assign_add([1.0, 1.0])
    assert before.tolist() == number.tolist() == [1.0, 2.0]
    number[0] = 9
    assert v.numpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("use", [np.asarray, np.array, np.float64])
def test_symbolic_tensors_explain_themselves(use: Any) -> None:
    builder = GraphBuilder("step")
    x = builder.parameter(td.TensorSpec([2]), "x")
    v = td.Variable([1.0])
    with recording(builder):
        with pytest.raises(NotImplementedError, match="symbolic.*'step'.*treadle"):
            use(x)
        with pytest.raises(NotImplementedError, match="'Variable:0'"):
            np.asarray(v)


def test_dlpack_both_ways() -> None:
    t = td.constant([[1.0, 2.0]])
    out = np.from_dlpack(t)
    assert np.shares_memory(out, np.asarray(t))
    array = np.arange(4.0)
    back = from_dlpack(array)
    assert back.dtype is td.float64
    assert np.shares_memory(np.asarray(back), array)


def test_dlpack_capsules() -> None:
    array = np.arange(4.0)
    back = from_dlpack(array.__dlpack__())
    assert np.shares_memory(np.asarray(back), array)
    capsule = to_dlpack(back * 2)
    np.testing.assert_array_equal(from_dlpack(capsule), array * 2)
    for taken in (capsule, 3):
        with pytest.raises(ValueError, match="takes an array with __dlpack__"):
            from_dlpack(taken)


def test_views_are_contiguous_tensors() -> None:
    t = td.constant(np.arange(6.0).reshape(2, 3))
    for part in (t[:, 1], td.transpose(t), t[::-1], td.reverse(t, [1])):
        assert np.asarray(part).flags.c_contiguous

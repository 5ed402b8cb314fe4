"""clip_by_norm and clip_by_global_norm; the values are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

X = td.constant([[3.0, 4.0], [0.3, 0.4]])


def both(function: Any, *args: Any) -> Any:
    """The result of a traced call, after checking that the eager one is the same."""
    eager, traced = function(*args), td.function(function)(*args)
    for a, b in zip(td.nest.flatten(eager), td.nest.flatten(traced), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return traced


def test_clip_by_norm() -> None:
    np.testing.assert_allclose(both(lambda x: td.clip_by_norm(x[0], 2.0), X), [1.2, 1.6])
    rows = both(lambda x: td.clip_by_norm(x, 1.0, axes=[1]), X)
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_the_gradient_at_zero_is_finite() -> None:
    x = td.zeros([2])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(td.clip_by_norm(x, 1.0))
    assert tape.gradient(y, x).numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("limit", "factor"), [(1.0, 0.2), (5.0, 1.0), (7.0, 1.0)])
def test_clip_by_global_norm(limit: float, factor: float) -> None:
    values = [td.constant([3.0]), None, td.constant([[4.0]])]
    clipped, norm = td.clip_by_global_norm(values, limit)
    assert float(norm) == 5.0 and clipped[1] is None
    np.testing.assert_allclose(clipped[0], [3.0 * factor], rtol=1e-6)
    np.testing.assert_allclose(clipped[2], [[4.0 * factor]], rtol=1e-6)
    both(lambda a, b: td.clip_by_global_norm([a, b], limit), values[0], values[2])


def test_a_norm_that_is_known_or_not_finite() -> None:
    clipped, norm = td.clip_by_global_norm([td.constant([3.0, 4.0])], 1.0, use_norm=10.0)
    assert float(norm) == 10.0
    np.testing.assert_allclose(clipped[0], [0.3, 0.4], rtol=1e-6)
    (clipped,), _ = td.clip_by_global_norm([td.constant([np.inf, 1.0])], 1.0)
    assert np.isnan(clipped).all()


def test_wrong_lists() -> None:
    with pytest.raises(TypeError, match=r"global_norm: give a list[^$]*test_clipping"):
        td.clip_by_global_norm(td.constant([1.0]), 1.0)


def test_no_tensors() -> None:
    for tensors in ([], [None], (None, None)):
        assert td.linalg.global_norm(tensors).numpy() == 0
        assert td.clip_by_global_norm(tensors, 1.0)[0] == list(tensors)


def test_is_tensor() -> None:
    seen = []
    td.function(lambda x: seen.append(td.is_tensor(x)))(1.0)
    td.function(lambda x: seen.append(td.is_tensor(x)))(X)
    assert seen == [False, True]
    assert td.is_tensor(X) and td.is_tensor(td.Variable(1.0))
    assert not td.is_tensor([X]) and not td.is_tensor(np.ones(2))

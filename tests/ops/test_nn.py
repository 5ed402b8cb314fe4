"""Compositions of td.nn: normalization, dropout, lookups, bias."""

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4, 5))


def test_bias_add():
    b = RNG.normal(size=5)
    np.testing.assert_allclose(td.nn.bias_add(X, b), X + b)
    first = td.nn.bias_add(X, RNG.normal(size=4) * 0 + np.arange(4), "NCHW")
    np.testing.assert_allclose(first, X + np.arange(4.0)[:, None])
    with pytest.raises(td.errors.InvalidArgumentError, match=r"\(4,\) does not fit axis 2"):
        td.nn.bias_add(X, np.zeros(4))
    check_gradients(td.nn.bias_add, X[0], b, second=False)


@pytest.mark.parametrize("axes", [[0], [1, 2], [0, 1, 2], -1])
def test_moments(axes):
    mean, variance = td.nn.moments(X, axes)
    where = tuple(axes) if isinstance(axes, list) else axes
    np.testing.assert_allclose(mean, X.mean(where), rtol=1e-12)
    np.testing.assert_allclose(variance, X.var(where), rtol=1e-12)
    kept, _ = td.nn.moments(X, axes, keepdims=True)
    assert kept.shape == X.mean(where, keepdims=True).shape


def test_moments_gradient_and_half_precision():
    check_gradients(lambda x: td.stack(td.nn.moments(x, [0])), X[0], second=False)
    mean, _ = td.nn.moments(np.full((4096, 2), 1.0, np.float16), [0])
    assert mean.dtype == "float16" and mean.numpy()[0] == 1.0


def test_batch_normalization():
    mean, variance, offset, scale = (RNG.random(5) + 0.5 for _ in range(4))
    y = td.nn.batch_normalization(X, mean, variance, offset, scale, 1e-3)
    np.testing.assert_allclose(y, (X - mean) / np.sqrt(variance + 1e-3) * scale + offset)
    plain = td.nn.batch_normalization(X, mean, variance, None, None, 0.0)
    np.testing.assert_allclose(plain, (X - mean) / np.sqrt(variance))
    check_gradients(
        lambda *a: td.nn.batch_normalization(*a, 0.1), X[0, :2], mean, variance, offset, scale,
        second=False,
    )  # fmt: skip


def test_dropout():
    td.random.set_seed(3)
    y = td.nn.dropout(td.ones([10000]), 0.3).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.7)}
    assert abs((y == 0).mean() - 0.3) < 0.02
    x = td.ones([3, 2])
    assert td.nn.dropout(x, 0) is x
    rows = td.nn.dropout(td.ones([100, 7]), 0.5, noise_shape=[None, 1]).numpy()
    assert np.array_equal(rows.min(1), rows.max(1)) and 0 < rows.mean() < 2
    masked = td.nn.dropout(td.constant([np.inf, np.nan] * 50), 0.5).numpy()
    assert 20 < (masked == 0).sum() < 80, "dropped elements are 0, whatever they were"
    for rate in (1.0, -0.1):
        with pytest.raises(ValueError, match="rate must be in"):
            td.nn.dropout(x, rate)
    with pytest.raises(ValueError, match="floating"):
        td.nn.dropout([1, 2], 0.5)


def test_dropout_mask_is_the_gradient_mask():
    x = td.constant(RNG.normal(size=(50,)).astype("f"))
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.nn.dropout(x, 0.5)
    kept = y.numpy() != 0
    np.testing.assert_array_equal(tape.gradient(y, x), np.where(kept, 2.0, 0.0))


def test_embedding_lookup():
    table = RNG.normal(size=(6, 3))
    ids = np.array([[0, 5], [2, 2]])
    np.testing.assert_array_equal(td.nn.embedding_lookup(table, ids), table[ids])
    clipped = td.nn.embedding_lookup(table * 10, ids, max_norm=1.0).numpy()
    np.testing.assert_allclose(np.linalg.norm(clipped, axis=-1), 1.0)
    check_gradients(lambda t: td.nn.embedding_lookup(t, ids), table, second=False)


def test_l2_normalize():
    np.testing.assert_allclose(
        td.nn.l2_normalize(X, -1), X / np.linalg.norm(X, axis=-1, keepdims=True)
    )
    np.testing.assert_array_equal(td.nn.l2_normalize(np.zeros(3)), np.zeros(3))
    check_gradients(lambda x: td.nn.l2_normalize(x, 1), X[0, :, :3], second=False)


def test_in_top_k():
    scores = np.array([[0.1, 0.2, 0.3], [0.4, 0.4, 0.1], [np.nan, 1.0, 2.0]], "f")
    targets = [1, 0, 0]
    np.testing.assert_array_equal(td.nn.in_top_k(targets, scores, 1), [False, True, False])
    np.testing.assert_array_equal(td.nn.in_top_k(targets, scores, 2), [True, True, False])


def test_weighted_cross_entropy_and_zero_fraction():
    labels, logits = np.array([1.0, 0.0, 0.3]), np.array([-2.0, 1.5, 0.4])
    p = 1 / (1 + np.exp(-logits))
    expected = -3.0 * labels * np.log(p) - (1 - labels) * np.log(1 - p)
    np.testing.assert_allclose(
        td.nn.weighted_cross_entropy_with_logits(labels, logits, 3.0), expected
    )
    assert float(td.nn.zero_fraction([0, 1, 0, 2])) == 0.5

"""Cross-entropies of logits."""

import numpy as np
import pytest
from scipy import special

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.lowered import check_lowering

RNG = np.random.default_rng(2)
LOGITS = RNG.normal(size=(4, 5)) * 2
LABELS = np.array([0, 4, 2, 2])
DENSE = special.softmax(RNG.normal(size=(4, 5)), -1)
SLOPES = RNG.normal(size=4)


def f32(*arrays):
    return [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_sparse_values(dtype):
    loss = td.nn.sparse_softmax_cross_entropy_with_logits(LABELS.astype(dtype), LOGITS)
    expected = -special.log_softmax(LOGITS, -1)[np.arange(4), LABELS]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_sparse_rows_of_more_axes_and_scalars():
    loss = td.nn.sparse_softmax_cross_entropy_with_logits(
        LABELS.reshape(2, 2), LOGITS.reshape(2, 2, 5)
    )
    assert loss.shape == (2, 2)
    single = td.nn.sparse_softmax_cross_entropy_with_logits(3, LOGITS[0])
    np.testing.assert_allclose(single, -special.log_softmax(LOGITS[0])[3], rtol=1e-12)


def test_dense_values_along_any_axis():
    expected = -(DENSE * special.log_softmax(LOGITS, -1)).sum(-1)
    loss = td.nn.softmax_cross_entropy_with_logits(DENSE, LOGITS)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    moved = td.nn.softmax_cross_entropy_with_logits(DENSE.T, LOGITS.T, axis=0)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)
    row = td.nn.softmax_cross_entropy_with_logits(DENSE[:1], LOGITS)
    np.testing.assert_allclose(row, -(DENSE[0] * special.log_softmax(LOGITS, -1)).sum(-1))


def test_sigmoid_values():
    expected = -DENSE * special.log_expit(LOGITS) - (1 - DENSE) * special.log_expit(-LOGITS)
    np.testing.assert_allclose(
        td.nn.sigmoid_cross_entropy_with_logits(DENSE, LOGITS), expected, rtol=1e-12
    )
    far = td.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [-500.0, -500.0])
    np.testing.assert_array_equal(far, [500, 0])


def test_lowering():
    logits, labels, dense, slopes = f32(LOGITS, LABELS, DENSE, SLOPES)
    check_lowering("sparse_softmax_cross_entropy", logits, labels, axis=1)
    check_lowering("sparse_softmax_cross_entropy_grad", logits, labels.astype(np.int32), slopes)
    check_lowering("softmax_cross_entropy", logits, dense)
    check_lowering("softmax_cross_entropy_grad", logits, dense, slopes)
    check_lowering("sigmoid_cross_entropy", logits, dense)
    half = logits.astype(np.float16)
    check_lowering("sparse_softmax_cross_entropy", half, labels, axis=1, tolerance=4e-3)


def test_gradients():
    check_gradients(
        lambda x: td.nn.sparse_softmax_cross_entropy_with_logits(LABELS[:2], x), LOGITS[:2]
    )
    check_gradients(td.nn.sigmoid_cross_entropy_with_logits, DENSE[:2], LOGITS[:2])
    check_gradients(td.nn.l2_loss, LOGITS[:2])
    check_gradients(lambda x: td.nn.softmax_cross_entropy_with_logits(DENSE[:2], x), LOGITS[:2])
    # The slope by the labels is exact; the one by the logits assumes that labels add up to 1.
    check_gradients(
        lambda y: td.nn.softmax_cross_entropy_with_logits(y, LOGITS[:2]), DENSE[:2], second=False
    )


def test_sigmoid_slope_at_zero():
    x = td.constant([0.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        loss = td.nn.sigmoid_cross_entropy_with_logits([1.0], x)
    np.testing.assert_array_equal(tape.gradient(loss, x), [-0.5])


@pytest.mark.parametrize("label", [-1, 5])
def test_labels_out_of_range(label):
    with pytest.raises(td.errors.InvalidArgumentError, match=rf"label {label} .*\[0, 5\)"):
        td.nn.sparse_softmax_cross_entropy_with_logits([label], LOGITS[:1])
    f = td.function(td.nn.sparse_softmax_cross_entropy_with_logits, autograph=False)
    assert np.isfinite(f(td.constant([0]), LOGITS[:1])).all()
    with pytest.raises(td.errors.InvalidArgumentError, match=rf"label {label} .*\[0, 5\)"):
        f(td.constant([label]), LOGITS[:1])


def test_wrong_shapes():
    with pytest.raises(ValueError, match=r"labels \(3,\), logits \(4, 5\)"):
        td.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 2], LOGITS)
    with pytest.raises(td.errors.InvalidArgumentError, match="one shape"):
        td.nn.softmax_cross_entropy_with_logits(DENSE[:, :4], LOGITS)
    with pytest.raises(TypeError, match="float32"):
        td.nn.sparse_softmax_cross_entropy_with_logits(td.constant([0.5]), LOGITS[:1].astype("f"))

"""td.signal beyond TensorFlow's facts (tests/facts_tf/programs/signals.py): compiled programs,
gradients of cut transforms, round trips, refusals."""

import numpy as np
import pytest

import treadle as td

X = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32)


def test_short_time_transforms_are_undone():
    step, length = 5, 10
    found = td.signal.stft(X, length, step)
    window = td.signal.inverse_stft_window_fn(step)
    back = td.signal.inverse_stft(found, length, step, window_fn=window)
    np.testing.assert_allclose(back[:, length:-length], X[:, length:-length], atol=1e-5)


def test_windows_without_overlap_are_zero_where_the_forward_window_is():
    forward = td.signal.hann_window(16).numpy()
    inverse = td.signal.inverse_stft_window_fn(16)(16, td.float32).numpy()
    assert inverse[0] == 0 and forward[0] == 0
    np.testing.assert_allclose(forward[1:] * inverse[1:], 1, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="only the last one"):
        td.signal.dct(X, axis=0)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms_are_undone(kind, norm):
    if kind == 1 and norm:
        with pytest.raises(ValueError, match="type 1 has no norm"):
            td.signal.dct(X, kind, norm=norm)
        return
    back = td.signal.idct(td.signal.dct(X, kind, norm=norm), kind, norm=norm)
    factor = 1 if norm else 2 * (50 - (kind == 1))
    np.testing.assert_allclose(back, factor * X, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: td.abs(td.signal.stft(x, 8, 3)),
        lambda x: td.signal.dct(x, norm="ortho"),
        lambda x: td.signal.overlap_and_add(td.signal.frame(x, 8, 3), 3),
        lambda x: td.abs(td.signal.rfft(x, [30])),
    ],
)
def test_functions_and_gradients(fn):
    def loss(x):
        return td.reduce_sum(fn(x) ** 2)

    def gradient(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return y, tape.gradient(y, x)

    x = td.constant(X, td.float64)
    y, eager = gradient(x)
    traced_y, traced = td.function(gradient)(x)
    np.testing.assert_allclose(traced_y, y, rtol=1e-12)
    np.testing.assert_allclose(traced, eager, rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.sign(X)
    slope = (loss(x + step) - loss(x - step)) / 2e-6
    np.testing.assert_allclose(slope, np.sum(eager.numpy() * np.sign(X)), rtol=1e-6)


def test_frames_of_open_length():
    f = td.function(lambda x: td.signal.frame(x, 4, 3), input_signature=[td.TensorSpec([None])])
    for size in (0, 3, 4, 11):
        assert f(np.arange(size, dtype=np.float32)).shape == (max(0, 1 + (size - 4) // 3), 4)


def test_any_axes():
    z = X[:, :6].reshape(3, 2, 3).astype(np.complex64)
    np.testing.assert_allclose(td.signal.fftnd(z, axes=[0, 2]), np.fft.fftn(z, axes=(0, 2)), 1e-4)
    np.testing.assert_allclose(td.signal.ifftnd(z), np.fft.ifftn(z), 1e-4, 1e-5)
    r = z.real
    half = td.signal.rfftnd(r, fft_length=[4, 4])
    np.testing.assert_allclose(half, np.fft.rfftn(r, (4, 4)), 1e-4, 1e-5)
    whole = td.signal.irfftnd(half, fft_length=[4, 4])
    np.testing.assert_allclose(whole[:, :2, :3], r, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: td.signal.fft(X), "complex64 or complex128, not float32"),
        (lambda: td.signal.rfft(X, [0]), "positive ints"),
        (lambda: td.signal.frame(X, 0, 1), "frame_length must be positive"),
        (lambda: td.signal.rfft2d(X[0]), "2 axes are needed"),
        (lambda: td.signal.dct(X, 5), "the types are 1 to 4"),
        (lambda: td.signal.mfcc, "Near it|not supported"),
    ],
)
def test_refusals(call, text):
    with pytest.raises((ValueError, AttributeError), match=text):
        call()

"""td.signal: transforms, frames, windows, spectra, with gradients."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import program, raised

RNG = np.random.default_rng(3)
REAL = RNG.normal(size=(2, 6)).astype(np.float64)
CUBE = RNG.normal(size=(2, 4, 3, 5)).astype(np.float64)
COMPLEX = (RNG.normal(size=(2, 4, 3, 5)) + 1j * RNG.normal(size=(2, 4, 3, 5))).astype(np.complex128)
SIGNALS = np.float32(RNG.normal(size=(2, 20)))


def slope(tf, fn, x):
    """The value, and the gradient of the sum of its squares."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = fn(x)
        loss = tf.reduce_sum(tf.abs(value) ** 2)
    return value, tape.gradient(loss, x)


@program
def complex_transforms(tf):
    names = ("fft", "ifft", "fft2d", "ifft2d", "fft3d", "ifft3d")
    return [slope(tf, getattr(tf.signal, name), COMPLEX) for name in names]


@program
def real_transforms(tf):
    s, z = tf.signal, tf.constant(COMPLEX)
    return [
        slope(tf, s.rfft, REAL), slope(tf, s.rfft2d, CUBE), s.rfft3d(tf.constant(CUBE)),
        slope(tf, lambda x: s.rfft(x, [8]), REAL), s.rfft(tf.constant(REAL), [5]),
        s.rfft2d(tf.constant(CUBE), [4, 4]),
        s.irfft(z), s.irfft(z, [7]), s.irfft2d(z), s.irfft3d(z, [4, 3, 6]),
        s.rfft(tf.constant(REAL, tf.float32)),
    ]  # fmt: skip


@program
def refusals(tf):
    s = tf.signal
    return [
        raised(s.fft2d, COMPLEX[0, 0, 0]),
        raised(s.frame, REAL, 2, 0),
        raised(s.dct, REAL, 5), raised(s.dct, REAL, 1, None, -1, "ortho"),
        raised(s.linear_to_mel_weight_matrix, 0),
        raised(s.linear_to_mel_weight_matrix, 20, 129, 8000, 125.0, 5000.0),
    ]  # fmt: skip


@program
def shifts(tf):
    return [
        tf.signal.fftshift(REAL), tf.signal.fftshift(REAL, [1]), tf.signal.ifftshift(CUBE, [1, 3]),
    ]  # fmt: skip


@program
def frames(tf):
    return [
        slope(tf, lambda x: tf.signal.frame(x, 3, 2), REAL),
        tf.signal.frame(REAL, 4, 3, pad_end=True, pad_value=9.0), tf.signal.frame(REAL, 7, 1),
        tf.signal.frame(CUBE, 2, 1, axis=1)[0, 0],
        tf.function(lambda x: tf.signal.frame(x, 3, 2, True),
                    input_signature=[tf.TensorSpec([None, None], tf.float64)])(REAL),
        slope(tf, lambda x: tf.signal.overlap_and_add(x, 2), CUBE),
    ]  # fmt: skip


@program
def windows(tf):
    s = tf.signal
    names = ("hann_window", "hamming_window")
    return [
        *(getattr(s, n)(k, periodic=p) for n in names for k in (1, 2, 5, 8) for p in (True, False)),
        s.kaiser_window(1), s.kaiser_window(5), s.kaiser_window(8, 4.0, tf.float64),
        s.kaiser_bessel_derived_window(8), s.vorbis_window(6), s.hann_window(4, dtype=tf.float64),
        raised(s.hann_window, 4, True, tf.int32),
    ]  # fmt: skip


@program
def short_time_transforms(tf):
    s, x = tf.signal, SIGNALS
    found = s.stft(x, 8, 4)
    inverse = s.inverse_stft_window_fn(4)
    return [
        found, s.stft(x, 6, 5, fft_length=9, window_fn=None, pad_end=True),
        s.inverse_stft(found, 8, 4), s.inverse_stft(found, 8, 4, window_fn=inverse),
        inverse(8, tf.float32), s.inverse_stft_window_fn(3, s.hamming_window)(8, tf.float64),
    ]  # fmt: skip


@program
def cosine_transforms(tf):
    s = tf.signal
    return [
        *(slope(tf, lambda x, t=t, n=n: s.dct(x, t, norm=n), REAL)
          for t, n in ((1, None), (2, None), (2, "ortho"), (3, None), (3, "ortho"), (4, None),
                       (4, "ortho"))),
        *(s.idct(REAL, t, norm=n)
          for t, n in ((1, None), (2, None), (2, "ortho"), (3, None), (3, "ortho"), (4, "ortho"))),
        s.dct(REAL, n=4), s.dct(REAL, n=8), s.dct(REAL[0], type=3),
    ]  # fmt: skip


@program
def cosine_transforms_of_open_sizes(tf):
    def transformed(x):
        s = tf.signal
        return [
            s.dct(x, 1), s.dct(x), s.dct(x, norm="ortho"), s.dct(x, 3), s.dct(x, 3, norm="ortho"),
            s.dct(x, 4), s.dct(x, n=3), s.dct(x, n=9), s.idct(x),
        ]  # fmt: skip

    return tf.function(transformed, input_signature=[tf.TensorSpec([None, None])])(
        tf.constant(REAL, tf.float32)
    )


@program
def mel(tf):
    return [
        tf.signal.linear_to_mel_weight_matrix(4, 9),
        tf.signal.linear_to_mel_weight_matrix(3, 9, 16000, 20.0, 8000.0, tf.float64),
        tf.signal.mfccs_from_log_mel_spectrograms(tf.constant(REAL, tf.float32)),
    ]  # fmt: skip

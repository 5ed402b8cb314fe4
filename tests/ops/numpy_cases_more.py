"""More NumPy functions that are staged: statistics, counting, linear algebra, Fourier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.numpy_cases_positions import POSITIONS

RNG = np.random.default_rng(11)
F = RNG.uniform(-2, 2, (3, 4)).astype(np.float32)
D = RNG.uniform(-2, 2, (3, 4))
I = RNG.integers(0, 5, (3, 4)).astype(np.int32)
V = RNG.uniform(-2, 2, 7)
B = F > 0
NANS = np.where(np.abs(D) > 1, np.nan, D)
SQUARE = RNG.uniform(-2, 2, (3, 3))
SINGLE = SQUARE.astype(np.float32)
BATCH = RNG.uniform(-2, 2, (2, 3, 3))
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)
TALL = RNG.uniform(-2, 2, (4, 3))
C = D + 1j * D[::-1]
ZEROS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf])
RISING = np.array([-1.0, 0.0, 0.5, 2.0])

Case = tuple[Callable[..., Any], tuple[Any, ...]]

STATISTICS: dict[str, Case] = {
    "median even": (np.median, (D,)),
    "median axis": (lambda x: np.median(x, axis=0), (F,)),
    "median keepdims": (lambda x: np.median(x, axis=1, keepdims=True), (I,)),
    "median NaN": (lambda x: np.median(x, axis=1), (NANS,)),
    "quantile": (lambda x: np.quantile(x, 0.3), (D,)),
    "quantile several": (lambda x: np.quantile(x, [0.0, 0.25, 1.0], axis=1), (D,)),
    "quantile matrix": (lambda x: np.quantile(x, [[0.1, 0.2], [0.3, 0.9]], axis=0), (D,)),
    "quantile keepdims": (lambda x: np.quantile(x, [0.5, 0.9], axis=0, keepdims=True), (D,)),
    "percentile": (lambda x: np.percentile(x, [5, 50, 95]), (D,)),
    "percentile of floats": (lambda x: np.percentile(x, 40, axis=1), (F,)),
    "percentile of ints": (lambda x: np.percentile(x, 40, axis=1), (I,)),
    **{
        f"quantile {m}": (lambda x, m=m: np.quantile(x, [0.1, 0.5, 0.8], axis=0, method=m), (D,))
        for m in ("lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased",
                  "normal_unbiased")
    },
    "nanprod": (np.nanprod, (NANS,)),
    "nanvar": (np.nanvar, (NANS,)),
    "nanvar axis": (lambda x: np.nanvar(x, axis=0, ddof=0), (NANS,)),
    "nanstd": (lambda x: np.nanstd(x, axis=1, keepdims=True), (NANS,)),
    "nanstd of ints": (np.nanstd, (I,)),
    "cov": (np.cov, (D,)),
    "cov columns": (lambda x: np.cov(x, rowvar=False, ddof=0), (D,)),
    "cov two": (lambda x, y: np.cov(x, y), (V, V**2)),
    "cov of one": (np.cov, (V,)),
    "corrcoef": (np.corrcoef, (D,)),
}  # fmt: skip

COUNTING: dict[str, Case] = {
    "unique": (np.unique, (I,)),
    "unique all": (
        lambda x: list(np.unique(x, return_index=True, return_inverse=True, return_counts=True)),
        (I,),
    ),
    "unique counts": (lambda x: list(np.unique(x, return_counts=True)), (F,)),
    "unique axis": (lambda x: np.unique(np.concatenate([x, x]), axis=0), (I,)),
    "isin": (lambda x: np.isin(x, [1, 3]), (I,)),
    "isin invert": (lambda x: np.isin(x, [1, 3], invert=True), (I,)),
    "digitize": (lambda x: np.digitize(x, [-1.0, 0.0, 1.0]), (D,)),
    "digitize right": (lambda x: np.digitize(x, [0, 2, 3], right=True), (I,)),
    "digitize falling": (lambda x: np.digitize(x, [1.0, 0.0, -1.0]), (D,)),
    "digitize falling at edges": (lambda x: np.digitize(x, [3, 2, 0]), (I,)),
    "digitize falling right": (lambda x: np.digitize(x, [3, 2, 0], right=True), (I,)),
    "digitize to NaN": (lambda x: np.digitize(x, [-1.0, 0.0, np.nan]), (D,)),
    "digitize equal bins": (lambda x: np.digitize(x, [2, 2, 2]), (I,)),
    "bincount": (lambda x: np.bincount(np.ravel(x)), (I,)),
    "bincount weights": (lambda x, w: np.bincount(x.ravel(), w.ravel(), minlength=9), (I, F)),
    "histogram": (lambda x: list(np.histogram(x)), (D,)),
    "histogram bins": (lambda x: list(np.histogram(x, bins=4, range=(-1, 1))), (D,)),
    "histogram edges": (lambda x: list(np.histogram(x, bins=[-2.0, 0.0, 1.0, 5.0])), (D,)),
    "histogram density": (lambda x: list(np.histogram(x, bins=3, density=True)), (D,)),
    "histogram weights": (lambda x: list(np.histogram(x, bins=3, weights=x * x)), (D,)),
    "searchsorted sorter": (
        lambda x: np.searchsorted(x, [0.0, 1.0], sorter=np.argsort(x)),
        (V,),
    ),
}

LINEAR: dict[str, Case] = {
    "inv": (np.linalg.inv, (SQUARE,)),
    "inv single": (np.linalg.inv, (SINGLE,)),
    "inv batch": (np.linalg.inv, (BATCH,)),
    "inv of ints": (lambda x: np.linalg.inv(x), (np.array([[2, 1], [1, 1]]),)),
    "det": (np.linalg.det, (SQUARE,)),
    "det batch": (np.linalg.det, (BATCH,)),
    "slogdet": (lambda x: list(np.linalg.slogdet(x)), (BATCH,)),
    "slogdet fields": (lambda x: np.linalg.slogdet(x).logabsdet, (SQUARE,)),
    "solve": (np.linalg.solve, (SQUARE, TALL[:3])),
    "solve vector": (np.linalg.solve, (SQUARE, V[:3])),
    "solve batch": (np.linalg.solve, (BATCH, BATCH)),
    "cholesky": (np.linalg.cholesky, (POSITIVE,)),
    "qr": (lambda x: list(np.linalg.qr(x)), (TALL,)),
    "qr wide": (lambda x: np.linalg.qr(x).R, (TALL.T,)),
    "svd": (lambda x: [np.abs(y) for y in np.linalg.svd(x)], (TALL,)),
    "svd reduced": (lambda x: [np.abs(y) for y in np.linalg.svd(x, full_matrices=False)], (TALL,)),
    "svd values": (lambda x: np.linalg.svd(x, compute_uv=False), (BATCH,)),
    "svdvals": (np.linalg.svdvals, (TALL,)),
    "eigh": (lambda x: [np.abs(y) for y in np.linalg.eigh(x)], (POSITIVE,)),
    "eigh upper": (lambda x: np.linalg.eigh(np.triu(x), UPLO="U")[0], (POSITIVE,)),
    "eigvalsh": (np.linalg.eigvalsh, (POSITIVE,)),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 5), (SQUARE,)),
    "matrix_power -2": (lambda x: np.linalg.matrix_power(x, -2), (SQUARE,)),
    "matrix_power 0": (lambda x: np.linalg.matrix_power(x, 0), (SQUARE,)),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, x, y]), (SQUARE, TALL[:3, 0])),
    "pinv": (np.linalg.pinv, (TALL,)),
    "matrix_rank": (np.linalg.matrix_rank, (np.ones((3, 4)),)),
    "linalg.trace": (np.linalg.trace, (BATCH,)),
    "linalg.outer": (np.linalg.outer, (V, V)),
    "linalg.norm vector": (np.linalg.norm, (V,)),
    **{
        f"linalg.norm of a matrix {o}": (lambda x, o=o: np.linalg.norm(x, o), (TALL,))
        for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
    "linalg.norm of matrices": (
        lambda x: np.linalg.norm(x, 2, axis=(0, 2), keepdims=True),
        (BATCH,),
    ),
    "linalg.norm 3": (lambda x: np.linalg.norm(x, 3, axis=1), (TALL,)),
    "kron": (np.kron, (SQUARE, TALL)),
    "kron mixed": (np.kron, (V, SQUARE)),
    "cross": (np.cross, (TALL, TALL[::-1].copy())),
    "cross axis": (lambda x, y: np.cross(x, y, axis=0), (SQUARE, SQUARE.T.copy())),
}

FOURIER: dict[str, Case] = {
    "fft": (np.fft.fft, (D,)),
    "fft single": (np.fft.fft, (F,)),
    "fft complex": (lambda x: np.fft.fft(x, axis=0, norm="ortho"), (C,)),
    "fft n": (lambda x: np.fft.fft(x, 6), (D,)),
    "fft shorter": (lambda x: np.fft.fft(x, 3, norm="forward"), (D,)),
    "ifft": (np.fft.ifft, (C,)),
    "ifft ortho": (lambda x: np.fft.ifft(x, norm="ortho"), (C,)),
    "rfft": (np.fft.rfft, (D,)),
    "rfft odd": (np.fft.rfft, (V,)),
    "irfft": (np.fft.irfft, (C,)),
    "irfft odd": (lambda x: np.fft.irfft(x, 7), (C,)),
    "irfft ortho": (lambda x: np.fft.irfft(x, norm="ortho"), (C,)),
    "fft2": (np.fft.fft2, (D,)),
    "ifft2": (np.fft.ifft2, (C,)),
    "fftn": (np.fft.fftn, (BATCH,)),
    "fftn s": (lambda x: np.fft.fftn(x, s=(2, 4), axes=(0, 2)), (BATCH,)),
    "ifftn": (np.fft.ifftn, (BATCH,)),
    "fftshift": (np.fft.fftshift, (D,)),
    "ifftshift": (lambda x: np.fft.ifftshift(x, axes=0), (D,)),
}

OTHERS: dict[str, Case] = {
    "interp": (lambda x: np.interp(x, RISING, RISING**2), (D,)),
    "interp ends": (lambda x: np.interp(x, RISING, RISING**2, left=-7, right=9), (D,)),
    "interp staged points": (lambda x: np.interp([0.1, 0.7, 9.0], x, x * x), (RISING,)),
    "interp single": (lambda x: np.interp(x, RISING, RISING**2), (F,)),
    "trapezoid": (np.trapezoid, (D,)),
    "trapezoid x": (lambda y: np.trapezoid(y, x=[0.0, 1.0, 3.0, 4.0]), (D,)),
    "trapezoid axis": (lambda y: np.trapezoid(y, dx=0.5, axis=0), (D,)),
    "trapezoid x axis": (lambda y: np.trapezoid(y, x=[0.0, 1.0, 3.0], axis=0), (D,)),
    "gradient": (np.gradient, (V,)),
    "gradient step": (lambda x: list(np.gradient(x, 2.0, 0.5)), (D,)),
    "gradient axis": (lambda x: np.gradient(x, axis=0), (D,)),
    "signbit": (np.signbit, (ZEROS,)),
    "signbit single": (np.signbit, (ZEROS.astype(np.float32),)),
    "copysign": (np.copysign, (np.arange(6.0), ZEROS)),
    "copysign mixed": (lambda x: np.copysign(x, -1), (I,)),
    "logaddexp2": (np.logaddexp2, (D, F)),
    "sinc": (lambda x: np.sinc(x), (ZEROS[:4],)),
    "ediff1d": (lambda x: np.ediff1d(x, to_end=[9.0], to_begin=0.0), (D,)),
    "real_if_close": (np.real_if_close, (D,)),
    "piecewise": (lambda x: np.piecewise(x, [x < -1, x > 1], [-1, lambda v: v * v]), (D,)),
    "piecewise default": (lambda x: np.piecewise(x, [x < 0], [0, lambda v: v + 1]), (F,)),
    "extract": (lambda x: np.extract(x > 0, x), (D,)),
    "compress": (lambda x: np.compress([True, False, True], x, axis=0), (D,)),
    "compress flat": (lambda x: np.compress([True, False, True], x), (D,)),
    "flatnonzero": (np.flatnonzero, (I,)),
    "partition": (lambda x: np.sort(np.partition(x, 2)), (V,)),
    "delete": (lambda x: np.delete(x, [0, 2], axis=1), (D,)),
    "delete flat": (lambda x: np.delete(x, 3), (D,)),
    **{f"rot90 {k}": (lambda x, k=k: np.rot90(x, k), (D,)) for k in range(-1, 4)},
    "rot90 axes": (lambda x: np.rot90(x, axes=(1, 2)), (BATCH,)),
    "pad edge": (lambda x: np.pad(x, ((1, 2), (0, 3)), "edge"), (D,)),
    "pad wrap": (lambda x: np.pad(x, ((1, 2), (5, 3)), "wrap"), (D,)),
    "pad symmetric": (lambda x: np.pad(x, 2, "symmetric"), (D,)),
    "pad two values": (lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4))), (D,)),
    "einsum of three": (lambda x, y: np.einsum("ij,jk,kl->il", x, y, x), (SQUARE, SQUARE)),
    "einsum implicit": (lambda x: np.einsum("ii", x), (SQUARE,)),
    "tensordot 1": (lambda x, y: np.tensordot(x, y, 1), (SQUARE, TALL[:3])),
}
SIGNALS: dict[str, Case] = {
    **{f"convolve {m}": (lambda x, m=m: np.convolve(x, [1.0, -2.0, 0.5], m), (V,))
       for m in ("full", "same", "valid")},
    "convolve shorter": (lambda x: np.convolve([1.0, 2.0], x, "same"), (V,)),
    **{f"correlate {m}": (lambda x, m=m: np.correlate(x, [1.0, -2.0, 0.5], m), (V,))
       for m in ("full", "same", "valid")},
    "correlate shorter": (lambda x: np.correlate([1.0, 2.0], x, "same"), (V,)),
    "correlate shorter odd": (lambda x: np.correlate([1.0, 2.0, 4.0], x, "same"), (V,)),
    "vander": (np.vander, (V[:3],)),
    "vander increasing": (lambda x: np.vander(x, 4, increasing=True), (V,)),
    "polyder": (lambda p: np.polyder(p, 2), (V,)),
    "polymul": (lambda p: np.polymul(p, [1.0, 2.0]), (V,)),
    "union1d": (lambda x: np.union1d(x, [1, 9]), (I,)),
    "intersect1d": (lambda x: np.intersect1d(x, [1, 9, 3]), (I,)),
    "setdiff1d": (lambda x: np.setdiff1d(x, [1, 9, 3]), (I,)),
    "diag_indices_from": (lambda x: list(np.diag_indices_from(x)), (SQUARE,)),
    "angle": (np.angle, (C,)),
    "angle deg": (lambda x: np.angle(x, deg=True), (D,)),
    "kinds": (lambda x: x * np.isrealobj(x) + np.iscomplexobj(x), (D,)),
    "isreal": (np.isreal, (C,)),
    "iscomplex": (np.iscomplex, (D,)),
    "isposinf": (np.isposinf, (ZEROS,)),
    "isneginf": (np.isneginf, (ZEROS,)),
    "astype": (lambda x: np.astype(x, np.int32), (D,)),
    "array_equiv": (lambda x: np.array_equiv(x, x[:1]), (np.ones((2, 3)),)),
    "logspace": (lambda x: np.logspace(0.0, x, 4), (np.float64(2.0),)),
    "empty_like": (lambda x: np.empty_like(x) * 0, (D,)),
    "diagflat": (lambda x: np.diagflat(x, 1), (SQUARE,)),
    "dsplit": (lambda x: np.dsplit(x, 3), (BATCH,)),
    "unstack": (lambda x: list(np.unstack(x, axis=1)), (D,)),
    "block": (lambda x: np.block([[x, x * 2], [np.zeros((1, 3)), np.ones((1, 3))]]), (SQUARE,)),
    "vecdot": (lambda x, y: np.linalg.vecdot(x, y, axis=0), (D, D)),
    "matrix_transpose": (np.matrix_transpose, (BATCH,)),
    "linalg.matrix_transpose": (np.linalg.matrix_transpose, (BATCH,)),
    "rollaxis": (lambda x: np.rollaxis(x, 2, 1), (BATCH,)),
    "rollaxis start": (lambda x: np.rollaxis(x, 0, 3), (BATCH,)),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=0), (D,)),
    "cumulative_prod": (np.cumulative_prod, (V,)),
    "nanmedian": (np.nanmedian, (NANS,)),
    "nanmedian axis": (lambda x: np.nanmedian(x, axis=1, keepdims=True), (NANS,)),
    "nanquantile": (lambda x: np.nanquantile(x, [0.2, 0.9], axis=1), (NANS,)),
    "nanpercentile": (lambda x: np.nanpercentile(x, 30), (NANS,)),
    "nancumsum": (lambda x: np.nancumsum(x, axis=0), (NANS,)),
    "nancumprod": (np.nancumprod, (NANS,)),
    "vector_norm": (np.linalg.vector_norm, (D,)),
    "vector_norm axes": (lambda x: np.linalg.vector_norm(x, axis=(0, 2), ord=1), (BATCH,)),
    "matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord=1), (BATCH,)),
    "cond": (np.linalg.cond, (BATCH,)),
    "cond 1": (lambda x: np.linalg.cond(x, 1), (SQUARE,)),
    "linalg.diagonal": (lambda x: np.linalg.diagonal(x, offset=1), (BATCH,)),
    "linalg.cross": (np.linalg.cross, (SQUARE, SQUARE.T.copy())),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), (SQUARE, SQUARE)),
    "lstsq": (lambda x, y: list(np.linalg.lstsq(x, y, rcond=None)), (TALL, TALL[:, 0] ** 2)),
    "lstsq columns": (lambda x, y: np.linalg.lstsq(x, y)[0], (TALL, TALL[:, :2] ** 2)),
    "rfft2": (np.fft.rfft2, (D,)),
    "rfftn": (np.fft.rfftn, (BATCH,)),
    "rfftn s": (lambda x: np.fft.rfftn(x, s=(2, 4), axes=(0, 2)), (BATCH,)),
}  # fmt: skip
MORE = SIGNALS | STATISTICS | COUNTING | LINEAR | FOURIER | OTHERS | POSITIONS

# Differentiable functions of a 3 x 3 matrix x.
GRADIENTS: dict[str, Callable[..., Any]] = {
    "inv": lambda x: np.linalg.inv(x),
    "det": lambda x: np.linalg.det(x),
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
    "solve": lambda x: np.linalg.solve(x, np.transpose(x) * 2.0 + 1.0),
    "solve vector": lambda x: np.linalg.solve(x, x[0] + 1.0),
    "cholesky": lambda x: np.linalg.cholesky(np.matmul(x, np.transpose(x)) + np.eye(3)),
    "qr": lambda x: np.sum(np.linalg.qr(x)[0] * x) + np.linalg.qr(x)[1],
    "svd": lambda x: np.linalg.svd(x, compute_uv=False),
    "svd vectors": lambda x: (
        np.abs(np.linalg.svd(x, full_matrices=False)[0])
        + np.abs(np.linalg.svd(x, full_matrices=False)[2]) * 2.0
    ),
    "eigh": lambda x: (
        np.abs(np.linalg.eigh(x + np.transpose(x))[1]) * np.linalg.eigvalsh(x + np.transpose(x))
    ),
    "pinv": lambda x: np.linalg.pinv(x[:, :2]),
    "nuclear norm": lambda x: np.linalg.norm(x, "nuc"),
    "matrix_power": lambda x: np.linalg.matrix_power(x, 3),
    "kron": lambda x: np.kron(x, x[:1] * 2.0),
    "cross": lambda x: np.cross(x, x[::-1]),
    "quantile": lambda x: np.quantile(x, [0.2, 0.7], axis=0),
    "nanvar": lambda x: np.nanvar(x, axis=0),
    "cov": lambda x: np.cov(x),
    "unique": lambda x: np.unique(x),
    "bincount": lambda x: np.bincount([0, 2, 1], x[0] * 2.0),
    "interp": lambda x: np.interp(x, [-3.0, 0.1, 3.0], [0.0, 1.0, -1.0]),
    "interp points": lambda x: np.interp([0.3], [0.0, 1.0], x[0, :2]),
    "fft": lambda x: np.real(np.fft.fft(x)) + np.imag(np.fft.fft(x, axis=0)),
    "rfft": lambda x: np.abs(np.fft.rfft(x)),
    "irfft": lambda x: np.fft.irfft(np.fft.rfft(x) * (1 + 2j), 3),
    "trapezoid": lambda x: np.trapezoid(x, axis=0),
    "gradient": lambda x: np.gradient(x, axis=1),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [lambda v: v * v, lambda v: -3.0 * v]),
    "copysign": lambda x: np.copysign(x * x, -1.0),
    "pad edge": lambda x: np.pad(x * x, 1, "edge"),
    "rot90": lambda x: np.rot90(x) * x,
    "convolve": lambda x: np.convolve(x[0], x[1] * x[2]),
    "lstsq": lambda x: np.linalg.lstsq(x[:, :2], x[:, 2])[0],
    "cond": lambda x: np.linalg.cond(x),
}

"""More NumPy functions that are staged: positions, sliding windows, polynomials, sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(12)
D = RNG.uniform(-2, 2, (3, 4))
V, W = RNG.uniform(-2, 2, 7), RNG.uniform(-2, 2, 7)
I = RNG.integers(0, 5, 12).astype(np.int32)
NANS = np.where(np.abs(D) > 1, np.nan, D)

POSITIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "argpartition": (lambda x: np.take(x, np.argpartition(x, 3))[:1] * 0, (V,)),
    "lexsort": (lambda x, y: np.lexsort((x, y)), (I, I[::-1])),
    "choose": (lambda i, x: np.choose(i[:4] % 3, [x[0], x[1], x[2]]), (I, D)),
    "choose clip": (lambda i: np.choose(i, [i, -i], mode="clip"), (I,)),
    "choose wrap": (lambda i: np.choose(i, [i, -i], mode="wrap"), (I,)),
    "ix_": (lambda i: np.ix_(i[:2], i[2:5])[1], (I,)),
    "insert": (lambda x: np.insert(x, 2, 9.0), (V,)),
    "insert row": (lambda x: np.insert(x, 1, 5.0, axis=0), (D,)),
    "insert flat": (lambda x: np.insert(x, -1, [1.0, 2.0]), (D,)),
    "resize": (lambda x: np.resize(x, (5, 3)), (V,)),
    "ravel_multi_index": (lambda i: np.ravel_multi_index((i % 3, i), (3, 5)), (I,)),
    "ravel_multi_index clip": (lambda i: np.ravel_multi_index((i, i), (3, 4), mode="clip"), (I,)),
    "unravel_index": (lambda i: np.unravel_index(i, (3, 4, 2))[1], (I,)),
    "reshape F": (lambda x: np.reshape(x, (2, -1), order="F"), (D,)),
    "ravel F": (lambda x: np.ravel(x, "F"), (D,)),
    "setxor1d": (lambda i: np.setxor1d(i, np.array([1, 2, 77])), (I,)),
    "unique_values": (lambda i: np.sort(np.unique_values(i)), (I,)),
    "unique with counts": (lambda i: np.unique(i, return_counts=True), (I,)),
    "unique inverse": (lambda i: np.unique(i, return_inverse=True), (I,)),
    "unique index": (lambda x: np.unique(x, return_index=True), (NANS,)),
    "unique NaNs": (lambda x: np.unique(x, equal_nan=False), (NANS,)),
    "histogram_bin_edges": (lambda x: np.histogram_bin_edges(x, 4), (V,)),
    "histogram2d": (lambda x, y: np.histogram2d(x, y, bins=[3, 2], weights=x)[0], (V, W)),
    "polyadd": (lambda x, y: np.polyadd(x, y[:3]), (V, W)),
    "polysub": (lambda x, y: np.polysub(x[:2], y), (V, W)),
    "polyint": (lambda x: np.polyint(x, 2), (V,)),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), (V, W)),
    "unwrap": (lambda x: np.unwrap(x * 4.0), (V,)),
    "unwrap axis": (lambda x: np.unwrap(x * 4.0, axis=0), (D,)),
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), (V,)),
    "windows axis": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0), (D,)),
    "convolve longer": (lambda x, y: np.convolve(x[:3], y, "same"), (V, W)),
    "nanargmax": (lambda x: np.nanargmax(x[:, :2] * 1.0, axis=1) * 0, (D,)),
    "nanargmin": (lambda x: np.nanargmin(x), (NANS,)),
    "geomspace": (lambda x: np.geomspace(1.0, x[0] ** 2 + 2.0, 5), (V,)),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(x), (D,)),
    "minimum.accumulate": (lambda x: np.minimum.accumulate(x, -1), (D,)),
    "maximum.accumulate of bools": (lambda x: np.maximum.accumulate(x > 0.1), (D,)),
    "minimum.accumulate of bools": (lambda x: np.minimum.accumulate(x > -1), (D,)),
    "logical_or.accumulate": (lambda x: np.logical_or.accumulate(x > 1), (D,)),
    "logical_and.accumulate": (lambda x: np.logical_and.accumulate(x, 0), (D,)),
    "logaddexp.accumulate": (lambda x: np.logaddexp.accumulate(x), (D,)),
    "bitwise_xor.reduce": (lambda i: np.bitwise_xor.reduce(i), (I,)),
    "gcd": (lambda i: np.gcd(i, 6), (I,)),
    "lcm": (lambda i: np.lcm(i, 4), (I,)),
    "modf": (lambda x: np.modf(x), (D,)),
    "ufunc vecdot": (lambda x: np.vecdot(x, x[::-1]), (D,)),
    "matvec": (lambda x: np.matvec(x, x[0]), (D,)),
    "vecmat": (lambda x: np.vecmat(x[:, 0], x), (D,)),
}

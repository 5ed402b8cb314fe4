"""The table of NumPy functions that are staged: each is called inside a function and outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(7)
F = RNG.uniform(-2, 2, (2, 3)).astype(np.float32)
D = RNG.uniform(-2, 2, (2, 3))
POSITIVE = np.abs(F) + 0.5
UNIT = np.clip(F / 3, -0.9, 0.9)
I = RNG.integers(-5, 6, (2, 3)).astype(np.int32)
SMALL = RNG.integers(-5, 6, (2, 3)).astype(np.int8)
U = RNG.integers(1, 6, (2, 3)).astype(np.uint8)
B = np.array([[True, False, True], [False, False, True]])
NANS = np.array([[1, np.nan, -2], [np.inf, -np.inf, 0]], np.float32)
V = np.array([3, 1, 2], np.float32)
SQUARE = RNG.uniform(-2, 2, (3, 3)).astype(np.float32)
CUBE = RNG.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
C = (F + 1j * F[::-1]).astype(np.complex64)

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _named(name: str, *arguments: tuple[Any, ...]) -> dict[str, Case]:
    function = getattr(np, name)
    return {
        f"{name} {'-'.join(str(np.asarray(a).dtype) for a in given)} {i}": (function, given)
        for i, given in enumerate(arguments)
    }


UFUNCS: dict[str, Case] = {}
for _name in ("add", "multiply", "maximum", "minimum", "fmax", "fmin"):
    UFUNCS |= _named(_name, (F, F), (F, D), (F, I), (I, SMALL), (U, SMALL), (B, B), (B, I), (F, V))
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    UFUNCS |= _named(_name, (F, F), (F, D), (F, I), (I, U), (B, B), (B, I))
for _name in ("logical_and", "logical_or", "logical_xor"):
    UFUNCS |= _named(_name, (B, B), (F, B), (I, I))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    UFUNCS |= _named(_name, (I, I), (B, B), (U, SMALL))
for _name in ("sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "arcsinh", "exp", "expm1"):
    UFUNCS |= _named(_name, (F,), (I,), (D,))
for _name in ("log", "log2", "log10", "log1p", "sqrt", "cbrt", "reciprocal"):
    UFUNCS |= _named(_name, (POSITIVE,), (U + 1,) if _name != "reciprocal" else (D,))
for _name in ("arcsin", "arccos", "arctanh"):
    UFUNCS |= _named(_name, (UNIT,))
for _name in ("floor", "ceil", "trunc", "rint", "absolute", "sign", "square", "positive"):
    UFUNCS |= _named(_name, (F,), (I,), (D,))
for _name in ("negative", "exp2", "degrees", "radians", "deg2rad", "rad2deg"):
    UFUNCS |= _named(_name, (F,), (D,))
for _name in ("isnan", "isinf", "isfinite"):
    UFUNCS |= _named(_name, (NANS,), (I,))
for _name in ("hypot", "arctan2", "logaddexp", "fmod", "remainder", "divide", "floor_divide"):
    UFUNCS |= _named(_name, (F, POSITIVE), (D, POSITIVE), (I, U.astype(np.int32)))
UFUNCS |= (
    _named("subtract", (F, F), (F, D), (I, U))
    | _named("power", (POSITIVE, F), (POSITIVE, 2), (I, 2), (U, U))
    | _named("float_power", (POSITIVE, 2))
    | _named("heaviside", (F, 0.5), (np.zeros(3, np.float32), V), (NANS, 0.5))
    | _named("divmod", (F, POSITIVE), (I, U.astype(np.int32)))
    | _named("arccosh", (POSITIVE + 1,))
    | _named("fabs", (F,), (I,))
    | _named("conjugate", (C,), (F,))
    | _named("logical_not", (B,), (F,), (I,))
    | _named("invert", (I,), (B,), (U,))
    | _named("left_shift", (I, 2), (U, U))
    | _named("right_shift", (I, 2))
    | _named("maximum", (NANS, F), (F, 0), (I, 0.5), (I, 1))
    | _named("fmax", (NANS, F))
    | _named("fmin", (F, NANS))
    | _named("matmul", (SQUARE, SQUARE), (SQUARE, V), (V, SQUARE), (V, V), (CUBE, CUBE[0].T))
    | _named("matmul", (SQUARE, SQUARE.astype(np.float64)), (I, I.T))
    | _named("add", (F, 1.5), (F, 2), (I, 2), (I, 1.5), (F, 1j), (1.5, F), (B, 1))
)

METHODS: dict[str, Case] = {
    "add.reduce": (np.add.reduce, (F,)),
    "add.reduce all": (lambda x: np.add.reduce(x, axis=None, keepdims=True), (I,)),
    "multiply.reduce": (lambda x: np.multiply.reduce(x, 1), (I,)),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=(0, 1)), (F,)),
    "minimum.reduce": (np.minimum.reduce, (F,)),
    "logical_and.reduce": (np.logical_and.reduce, (B,)),
    "logical_or.reduce": (np.logical_or.reduce, (B,)),
    "add.accumulate": (np.add.accumulate, (F,)),
    "multiply.accumulate": (np.multiply.accumulate, (F,)),
    "subtract.outer": (np.subtract.outer, (V, F)),
    "add dtype": (lambda x: np.add(x, 1, dtype=np.float64), (F,)),
}

REDUCTIONS: dict[str, Case] = {}
for _name in ("sum", "prod", "mean", "max", "min", "any", "all", "std", "var", "ptp"):
    _function = getattr(np, _name)
    for _x in (F, D, I, B) if _name != "ptp" else (F, I):
        _kind = f"{_name} {_x.dtype}"
        REDUCTIONS[_kind] = (_function, (_x,))
        REDUCTIONS[f"{_kind} axis"] = (lambda x, f=_function: f(x, axis=-1), (_x,))
        REDUCTIONS[f"{_kind} keepdims"] = (
            lambda x, f=_function: f(x, axis=(0, 1), keepdims=True), (_x,),
        )  # fmt: skip
for _name in ("argmax", "argmin", "cumsum", "cumprod", "count_nonzero", "median"):
    _function = getattr(np, _name)
    for _x in (F, I, CUBE):
        _kind = f"{_name} {_x.dtype} {_x.ndim}"
        REDUCTIONS[_kind] = (_function, (_x,))
        REDUCTIONS[f"{_kind} axis"] = (lambda x, f=_function: f(x, axis=1), (_x,))
REDUCTIONS |= {
    "sum uint8": (np.sum, (U,)),
    "sum int8": (np.sum, (SMALL,)),
    "sum dtype": (lambda x: np.sum(x, 0, np.float64), (I,)),
    "mean dtype": (lambda x: np.mean(x, dtype=np.float32), (I,)),
    "sum where=True": (lambda x: np.sum(x, where=True, out=None), (F,)),
    "std ddof": (lambda x: np.std(x, axis=1, ddof=1), (F,)),
    "var complex": (np.var, (C,)),
    "argmax keepdims": (lambda x: np.argmax(x, axis=1, keepdims=True), (F,)),
    "argmax bool": (np.argmax, (B,)),
    "amax": (np.amax, (F,)),
    "amin": (np.amin, (F,)),
    "cumsum uint8": (np.cumsum, (U,)),
    "nansum": (lambda x: np.nansum(x[0], axis=0), (NANS,)),
    "nanmean": (lambda x: np.nanmean(x, axis=0), (NANS,)),
    "nanmax": (lambda x: np.nanmax(x, axis=1), (NANS,)),
    "nanmin": (lambda x: np.nanmin(x, axis=1), (NANS,)),
    "average": (lambda x, w: np.average(x, axis=1, weights=w), (F, V)),
    "average of all": (lambda x: np.average(x, weights=x * x), (F,)),
    "norm": (np.linalg.norm, (F,)),
    "norm axis": (lambda x: np.linalg.norm(x, axis=1, keepdims=True), (F,)),
    "norm fro": (lambda x: np.linalg.norm(x, "fro"), (SQUARE,)),
    "norm 1": (lambda x: np.linalg.norm(x, 1), (V,)),
    "norm 3": (lambda x: np.linalg.norm(x, 3, axis=0), (F,)),
    "norm 0": (lambda x: np.linalg.norm(x, 0), (V,)),
    "norm inf": (lambda x: np.linalg.norm(x, np.inf), (V,)),
    "norm -inf": (lambda x: np.linalg.norm(x, -np.inf), (V,)),
    "norm int": (np.linalg.norm, (I,)),
}

SHAPES: dict[str, Case] = {
    "transpose": (np.transpose, (CUBE,)),
    "transpose axes": (lambda x: np.transpose(x, (1, 2, 0)), (CUBE,)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), (CUBE,)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    "moveaxis several": (lambda x: np.moveaxis(x, [0, 1], [-1, 0]), (CUBE,)),
    "reshape": (lambda x: np.reshape(x, (3, -1)), (CUBE,)),
    "ravel": (np.ravel, (CUBE,)),
    "expand_dims": (lambda x: np.expand_dims(x, (0, -1)), (F,)),
    "squeeze": (lambda x: np.squeeze(x[None]), (F,)),
    "squeeze axis": (lambda x: np.squeeze(x[None, :, None], axis=2), (F,)),
    "atleast_1d": (np.atleast_1d, (np.float32(3),)),
    "atleast_2d": (np.atleast_2d, (V,)),
    "atleast_3d": (np.atleast_3d, (F,)),
    "atleast_3d of a vector": (np.atleast_3d, (V,)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3)), (V,)),
    "broadcast_arrays": (lambda x, y: list(np.broadcast_arrays(x, y)), (V, F)),
    "flip": (np.flip, (F,)),
    "flip axis": (lambda x: np.flip(x, 1), (F,)),
    "flipud": (np.flipud, (F,)),
    "fliplr": (np.fliplr, (F,)),
    "roll": (lambda x: np.roll(x, 2), (F,)),
    "roll axis": (lambda x: np.roll(x, (1, -1), (0, 1)), (F,)),
    "tile": (lambda x: np.tile(x, 2), (F,)),
    "tile up": (lambda x: np.tile(x, (2, 1, 2)), (F,)),
    "repeat": (lambda x: np.repeat(x, 2), (F,)),
    "repeat axis": (lambda x: np.repeat(x, [1, 0, 2], axis=1), (F,)),
    "pad": (lambda x: np.pad(x, 1), (F,)),
    "pad pairs": (lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=7), (F,)),
    "pad reflect": (lambda x: np.pad(x, ((1, 0), (0, 2)), "reflect"), (F,)),
    "shape": (lambda x: np.add(np.zeros(np.shape(x)), x), (F,)),
    "size and ndim": (lambda x: x * np.size(x) + np.ndim(x) + np.size(x, 1), (F,)),
    "concatenate": (lambda x, y: np.concatenate([x, y, [[1, 2, 3]]]), (F, I)),
    "concatenate axis": (lambda x, y: np.concatenate((x, y), axis=1), (F, D)),
    "concatenate flat": (lambda x: np.concatenate([x, [1.5]], axis=None), (F,)),
    "concatenate dtype": (lambda x: np.concatenate([x, x], dtype=np.float64), (F,)),
    "stack": (lambda x, y: np.stack([x, y], axis=-1), (F, I)),
    "vstack": (lambda x, y: np.vstack([x, y]), (F, V)),
    "hstack": (lambda x: np.hstack([x, x]), (F,)),
    "hstack vectors": (lambda x: np.hstack([x, x]), (V,)),
    "dstack": (lambda x: np.dstack([x, x]), (F,)),
    "column_stack": (lambda x, y: np.column_stack([x, y]), (V, SQUARE)),
    "append": (lambda x: np.append(x, [1.0]), (F,)),
    "split": (lambda x: np.split(x, 2, axis=2), (CUBE,)),
    "split at": (lambda x: np.split(x, [1, 3], axis=-1), (CUBE,)),
    "array_split": (lambda x: np.array_split(x, 2), (V,)),
    "vsplit": (lambda x: np.vsplit(x, 2), (F,)),
    "hsplit": (lambda x: np.hsplit(x, [1]), (F,)),
    "meshgrid": (lambda x, y: list(np.meshgrid(x, y)), (V, F[0, :2])),
}

VALUES: dict[str, Case] = {
    "zeros_like": (np.zeros_like, (F,)),
    "ones_like": (lambda x: np.ones_like(x, dtype=np.int32), (F,)),
    "full_like": (lambda x: np.full_like(x, 2.7), (I,)),
    "copy": (np.copy, (F,)),
    "linspace": (lambda x: np.linspace(0, x, 5), (np.float32(2),)),
    "linspace vectors": (lambda x: np.linspace(x, 2 * x, 4, axis=1), (V,)),
    "linspace open": (lambda x: np.linspace(x, 10, 4, endpoint=False), (np.float64(2),)),
    "linspace dtype": (lambda x: np.linspace(x, 10, 4, dtype=np.float32), (np.int32(2),)),
    "where": (lambda c, x, y: np.where(c, x, y), (B, F, D)),
    "where numbers": (lambda x: np.where(x > 0, x, 0.0), (F,)),
    "where truth": (lambda c: np.where(c, 1, 2), (I,)),
    "where positions": (lambda x: list(np.where(x)), (B,)),
    "nonzero": (lambda x: list(np.nonzero(x)), (I,)),
    "argwhere": (np.argwhere, (B,)),
    "select": (lambda x: np.select([x < -1, x > 1], [x, x * x], 7), (F,)),
    "clip": (lambda x: np.clip(x, -1, 1), (F,)),
    "clip one side": (lambda x: np.clip(x, None, 0.5), (D,)),
    "clip ints": (lambda x: np.clip(x, -1, 2), (I,)),
    "take": (lambda x: np.take(x, [0, -1]), (F,)),
    "take axis": (lambda x: np.take(x, [[0, -1]], axis=1), (F,)),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), (F,)),
    "sort": (np.sort, (F,)),
    "sort axis": (lambda x: np.sort(x, axis=0), (I,)),
    "sort flat": (lambda x: np.sort(x, axis=None), (F,)),
    "argsort": (np.argsort, (F,)),
    "argsort flat": (lambda x: np.argsort(x, axis=None, kind="stable"), (I,)),
    "searchsorted": (lambda x: np.searchsorted([1.0, 2.0, 3.0], x, side="right"), (F,)),
    "diag": (np.diag, (V,)),
    "diag k": (lambda x: np.diag(x, -1), (V,)),
    "diag of a matrix": (lambda x: np.diag(x, 1), (SQUARE,)),
    "diagonal": (lambda x: np.diagonal(x, axis1=0, axis2=2), (CUBE,)),
    "trace": (np.trace, (SQUARE,)),
    "trace offset": (lambda x: np.trace(x, -1), (I,)),
    "tril": (np.tril, (SQUARE,)),
    "triu": (lambda x: np.triu(x, 1), (CUBE,)),
    "dot": (np.dot, (SQUARE, SQUARE)),
    "dot vectors": (np.dot, (V, V)),
    "dot mixed": (np.dot, (I, SQUARE)),
    "dot of ranks": (np.dot, (SQUARE, CUBE)),
    "dot number": (lambda x: np.dot(x, 2.0), (F,)),
    "linalg.matmul": (np.linalg.matmul, (SQUARE, SQUARE)),
    "inner": (np.inner, (F, F)),
    "vdot": (np.vdot, (C, C)),
    "outer": (np.outer, (F, V)),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1], [1])), (F, D)),
    "einsum": (lambda x, y: np.einsum("ij,kj->ik", x, y), (F, D)),
    "round": (np.round, (F,)),
    "round 2": (lambda x: np.round(x, 2), (D,)),
    "round ints": (np.round, (I,)),
    "around -1": (lambda x: np.around(x, -1), (D * 100,)),
    "fix": (np.fix, (F,)),
    "real": (np.real, (C,)),
    "imag": (np.imag, (C,)),
    "diff": (np.diff, (F,)),
    "diff n": (lambda x: np.diff(x, n=2, axis=0), (SQUARE,)),
    "diff bools": (np.diff, (B,)),
    "nan_to_num": (np.nan_to_num, (NANS,)),
    "nan_to_num values": (lambda x: np.nan_to_num(x, nan=5, posinf=1, neginf=2), (NANS,)),
    "isclose": (lambda x, y: np.isclose(x, y, equal_nan=True), (NANS, NANS)),
    "allclose": (lambda x: np.allclose(x, x + 1e-9), (D,)),
    "array_equal": (lambda x: np.array_equal(x, x), (F,)),
    "polyval": (lambda x: np.polyval([1.0, -2.0, 3.0], x), (F,)),
}
ALL = UFUNCS | METHODS | REDUCTIONS | SHAPES | VALUES

"""The table of op tests: what each public function computes, stated with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import treadle as td
from treadle.ops.statistics import running_extremes as extremes

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int32", "int64", "int8", "uint8")
COMPLEX = ("complex64",)
NUMBERS = (*FLOATS, *INTS, *COMPLEX)
REALS = (*FLOATS, *INTS)
BOOL = ("bool",)

ONE = ((),), ((0,),), ((7,),), ((3, 5),)
TWO = ((), ()), ((7,), (7,)), ((3, 5), (5,)), ((3, 1), (1, 4)), ((0, 3), (1, 3)), ((2, 3), ())
MATRICES = (((2, 3),), ((4, 1, 3),), ((3, 0),))
TOLERANCE = {
    "float64": 1e-12, "float32": 3e-6, "float16": 4e-3, "bfloat16": 3e-2,
    "complex64": 2e-5, "complex128": 1e-12,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One function: `ref` computes with NumPy in float64 what `fn` must give; None where its values
    are tested in another file."""

    name: str
    fn: Callable[..., Any]
    ref: Callable[..., Any] | None
    shapes: Sequence[Sequence[tuple[int, ...]]] = ONE
    dtypes: Sequence[str] = FLOATS
    low: float = -3.0
    high: float = 3.0
    differentiable: bool = True
    twice: bool = True  # where it is differentiable; else the second derivative is refused
    symbolic: bool = True  # works when no dim of the arguments is known
    batched: bool = True  # works for all examples of a batch at once
    kernels: bool = field(default=True)  # at least one node is lowered

    def __str__(self) -> str:
        return self.name

    def arrays(self, shapes: Sequence[tuple[int, ...]], dtype: str) -> list[Any]:
        """Reproducible arguments."""
        rng = np.random.default_rng(len(self.name) + sum(map(len, shapes)))
        return [self._array(rng, shape, dtype) for shape in shapes]

    def _array(self, rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
        if dtype == "bool":
            return rng.random(shape) < 0.5
        values = rng.uniform(self.low, self.high, shape)
        if dtype.startswith("complex"):
            return (values + 1j * rng.uniform(self.low, self.high, shape)).astype(dtype)
        if "int" in dtype:
            low = max(self.low, 0) if dtype.startswith("u") else self.low
            return rng.integers(math.ceil(low), math.floor(self.high) + 1, shape).astype(dtype)
        return np.asarray(values).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _axes(fn: Any, ref: Any) -> list[tuple[str, Any, Any]]:
    """Variants of a reduction over different axes."""
    return [
        ("all", lambda x: fn(x), lambda x: ref(x, axis=None, keepdims=False)),
        ("last", lambda x: fn(x, -1), lambda x: ref(x, axis=-1, keepdims=False)),
        ("keep", lambda x: fn(x, [0], True), lambda x: ref(x, axis=0, keepdims=True)),
        (
            "two", lambda x: fn(x, axis=[0, 1], keepdims=True),
            lambda x: ref(x, axis=(0, 1), keepdims=True),
        ),
    ]  # fmt: skip


UNARY = [
    Case("negative", td.negative, np.negative, dtypes=NUMBERS),
    Case("abs", td.abs, np.abs, dtypes=NUMBERS),
    Case("sign", td.sign, np.sign, dtypes=NUMBERS, differentiable=False),
    Case("square", td.square, np.square, dtypes=NUMBERS),
    Case("sqrt", td.sqrt, np.sqrt, dtypes=(*FLOATS, *COMPLEX), low=0.1),
    Case("rsqrt", td.math.rsqrt, lambda x: 1 / np.sqrt(x), dtypes=(*FLOATS, *COMPLEX), low=0.1),
    Case("reciprocal", td.math.reciprocal, lambda x: 1 / x, low=0.2,
         dtypes=(*FLOATS, *COMPLEX)),
    Case("exp", td.exp, np.exp, dtypes=(*FLOATS, *COMPLEX)),
    Case("expm1", td.math.expm1, np.expm1, dtypes=(*FLOATS, *COMPLEX)),
    Case("log", td.math.log, np.log, low=0.1, dtypes=(*FLOATS, *COMPLEX)),
    Case("log1p", td.math.log1p, np.log1p, low=-0.8, dtypes=(*FLOATS, *COMPLEX)),
    Case("sin", td.sin, np.sin, dtypes=(*FLOATS, *COMPLEX)),
    Case("cos", td.cos, np.cos, dtypes=(*FLOATS, *COMPLEX)),
    Case("tan", td.tan, np.tan, dtypes=(*FLOATS, *COMPLEX), low=-1.2, high=1.2),
    Case("asin", td.asin, np.arcsin, dtypes=(*FLOATS, *COMPLEX), low=-0.9, high=0.9),
    Case("acos", td.acos, np.arccos, dtypes=(*FLOATS, *COMPLEX), low=-0.9, high=0.9),
    Case("atan", td.atan, np.arctan, dtypes=(*FLOATS, *COMPLEX)),
    Case("sinh", td.sinh, np.sinh, dtypes=(*FLOATS, *COMPLEX)),
    Case("cosh", td.cosh, np.cosh, dtypes=(*FLOATS, *COMPLEX)),
    Case("tanh", td.tanh, np.tanh, dtypes=(*FLOATS, *COMPLEX)),
    Case("asinh", td.asinh, np.arcsinh, dtypes=(*FLOATS, *COMPLEX)),
    Case("acosh", td.acosh, np.arccosh, dtypes=(*FLOATS, *COMPLEX), low=1.1),
    Case("atanh", td.atanh, np.arctanh, dtypes=(*FLOATS, *COMPLEX), low=-0.9, high=0.9),
    Case("sigmoid", td.sigmoid, lambda x: 1 / (1 + np.exp(-x)), dtypes=(*FLOATS, *COMPLEX)),
    Case("log_sigmoid", td.math.log_sigmoid, lambda x: -np.log1p(np.exp(-x))),
    Case("erf", td.math.erf, np.vectorize(math.erf, otypes=[float])),
    Case("erfc", td.math.erfc, np.vectorize(math.erfc, otypes=[float])),
    Case("floor", td.floor, np.floor, differentiable=False),
    Case("ceil", td.math.ceil, np.ceil, differentiable=False),
    Case("round", td.round, np.round, dtypes=REALS, differentiable=False),
    Case("is_nan", td.math.is_nan, np.isnan, differentiable=False),
    Case("is_inf", td.math.is_inf, np.isinf, differentiable=False),
    Case("is_finite", td.math.is_finite, np.isfinite, differentiable=False),
    Case("identity", td.identity, lambda x: x, dtypes=(*NUMBERS, *BOOL)),
    Case("logical_not", td.logical_not, np.logical_not, dtypes=BOOL, differentiable=False),
    Case("invert", td.bitwise.invert, np.invert, dtypes=INTS, differentiable=False),
    Case(
        "clip",
        lambda x: td.clip_by_value(x, -1, 2),
        lambda x: np.clip(x, -1, 2),
        dtypes=(*FLOATS, "int32"),
    ),
    Case(
        "zeros_like", td.zeros_like, np.zeros_like, dtypes=(*NUMBERS, *BOOL), differentiable=False
    ),
    Case("ones_like", td.ones_like, np.ones_like, dtypes=(*NUMBERS, *BOOL), differentiable=False),
    Case("real", td.math.real, np.real, dtypes=COMPLEX, differentiable=False, kernels=False),
    Case("imag", td.math.imag, np.imag, dtypes=COMPLEX, differentiable=False, kernels=False),
    Case("conj", td.math.conj, np.conj, dtypes=COMPLEX, differentiable=False, kernels=False),
    Case("angle", td.math.angle, np.angle, dtypes=COMPLEX, differentiable=False, kernels=False),
]
BINARY = [
    Case("add", td.add, np.add, TWO, NUMBERS),
    Case("subtract", td.subtract, np.subtract, TWO, (*FLOATS, "int32", "int64", *COMPLEX)),
    Case("multiply", td.multiply, np.multiply, TWO, NUMBERS),
    Case("divide", td.divide, np.divide, TWO, (*FLOATS, *COMPLEX), low=0.5),
    Case("divide_no_nan", td.math.divide_no_nan, np.divide, TWO, (*FLOATS, *COMPLEX), low=0.5),
    Case("floordiv", td.floordiv, np.floor_divide, TWO, REALS, low=1, high=9, differentiable=False),
    Case(
        "floordiv_signs", lambda x, y: td.floordiv(x - 5, y), lambda x, y: (x - 5) // y,
        TWO, ("int32", "int64", "float64"), low=1, high=9, differentiable=False,
    ),
    Case("mod", td.math.mod, np.mod, TWO, ("float32", "float64", *INTS), low=1, high=9,
         differentiable=False),
    Case(
        "mod_signs", lambda x, y: td.math.mod(x - 5, -y), lambda x, y: np.mod(x - 5, -y),
        TWO, ("int32", "int64", "float64"), low=1, high=9, differentiable=False,
    ),
    Case("truncatediv", lambda x, y: td.truncatediv(x - 5, y), lambda x, y: np.trunc((x - 5) / y),
         TWO, ("int32", "int64"), low=1, high=9, differentiable=False),
    Case("truncatemod", lambda x, y: td.truncatemod(x - 5, y), lambda x, y: np.fmod(x - 5, y),
         TWO, ("int32", "int64", "float64"), low=1, high=9, differentiable=False),
    Case("pow", td.pow, np.power, TWO, ("float32", "float64", "int32", "int64", *COMPLEX),
         low=1),
    Case("pow_numpy_number", lambda x: td.pow(x, np.float64(2.0)), np.square,
         dtypes=("float32", "float64")),
    Case("maximum", td.maximum, np.maximum, TWO, REALS),
    Case("minimum", td.minimum, np.minimum, TWO, REALS),
    Case("atan2", td.math.atan2, np.arctan2, TWO, low=0.3),
    Case("squared_difference", td.math.squared_difference,
         lambda x, y: (x - y) * np.conj(x - y), TWO, (*FLOATS, "int32", *COMPLEX)),
    Case("add_n", lambda x, y: td.add_n([x, y, x]), lambda x, y: x + y + x,
         (((3,), (3,)), ((), ()), ((2, 0), (2, 0))), NUMBERS),
    *[
        Case(name, getattr(td, name), ref, TWO, (*REALS, *BOOL), differentiable=False)
        for name, ref in [
            ("equal", np.equal), ("not_equal", np.not_equal), ("less", np.less),
            ("less_equal", np.less_equal), ("greater", np.greater),
            ("greater_equal", np.greater_equal),
        ]
    ],
    *[
        Case(name, getattr(td.math, name), getattr(np, name), TWO, BOOL, differentiable=False)
        for name in ("logical_and", "logical_or", "logical_xor")
    ],
    *[
        Case(name, getattr(td.bitwise, name), getattr(np, name), TWO, INTS, differentiable=False)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ],
    Case("left_shift", td.bitwise.left_shift, np.left_shift, TWO, INTS, low=0,
         differentiable=False),
    Case("right_shift", td.bitwise.right_shift, np.right_shift, TWO, INTS, low=0,
         differentiable=False),
    Case("where", lambda x, y: td.where(x > y, x, y * 2), lambda x, y: np.where(x > y, x, y * 2),
         TWO, ("float32", "float64", "int32")),
]  # fmt: skip
REDUCTIONS = [
    Case(f"{name}_{kind}", fn, ref, MATRICES, dtypes, low, 2.0, differentiable)
    for name, public, numpy, dtypes, low, differentiable in [
        ("sum", td.reduce_sum, np.sum, NUMBERS, -2.0, True),
        ("mean", td.reduce_mean, np.mean, FLOATS, -2.0, True),
        ("prod", td.reduce_prod, np.prod, ("float32", "float64", "int32"), -2.0, True),
        ("any", td.reduce_any, np.any, BOOL, 0, False),
        ("all", td.reduce_all, np.all, BOOL, 0, False),
        ("max", td.reduce_max, lambda x, **k: np.max(x, initial=-np.inf, **k),
         ("float32", "float64", "bfloat16"), -2.0, True),
        ("min", td.reduce_min, lambda x, **k: np.min(x, initial=np.inf, **k),
         ("float32", "float64", "bfloat16"), -2.0, True),
        ("logsumexp", td.reduce_logsumexp, lambda x, **k: np.log(np.sum(np.exp(x), **k)),
         ("float32", "float64"), -2.0, True),
        ("variance", td.math.reduce_variance, np.var, ("float32", "float64"), -2.0, True),
        ("count_nonzero", td.math.count_nonzero,
         lambda x, axis, keepdims: np.sum(x != 0, axis=axis, keepdims=keepdims),
         ("int32", "float32", "bool"), -2.0, False),
    ]
    for kind, fn, ref in _axes(public, numpy)
]  # fmt: skip
POSITIONS = [
    Case(f"{name}_{axis}", lambda x, f=fn, a=axis: f(x, axis=a),
         lambda x, f=ref, a=axis: f(x, axis=a), (((3, 4),), ((2, 3, 1),)),
         ("float32", "float64", "int32", "bool"), differentiable=False)
    for name, fn, ref in [("argmax", td.argmax, np.argmax), ("argmin", td.argmin, np.argmin)]
    for axis in (0, -1)
]  # fmt: skip


def _running(ref: Any, start: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    x = np.flip(x, axis) if reverse else x
    total = ref(x, axis=axis)
    if exclusive:
        first = np.full_like(np.take(total, [0], axis), start)
        total = np.concatenate([first, np.take(total, range(x.shape[axis] - 1), axis)], axis)
    return np.flip(total, axis) if reverse else total


SCANS = [
    Case(
        f"{name}_{exclusive}_{reverse}",
        lambda x, f=fn, e=exclusive, r=reverse: f(x, -1, exclusive=e, reverse=r),
        lambda x, f=ref, s=start, e=exclusive, r=reverse: _running(f, s, x, -1, e, r),
        (((3, 4),), ((1,),)), ("float32", "float64", "int32", "bfloat16"), 0.5, 2.0, kernels=False,
    )
    for name, fn, ref, start in [
        ("cumsum", td.cumsum, np.cumsum, 0), ("cumprod", td.math.cumprod, np.cumprod, 1),
    ]
    for exclusive in (False, True)
    for reverse in (False, True)
]  # fmt: skip
SCANS += [
    Case(
        f"{name}_{exclusive}_{reverse}_{axis}",
        lambda x, f=fn, e=exclusive, r=reverse, a=axis: td.clip_by_value(
            f(x, a, exclusive=e, reverse=r), -9, 9  # exclusive ones begin with infinity
        ),
        lambda x, f=ref, s=start, e=exclusive, r=reverse, a=axis: np.clip(
            _running(f, s, x, a, e, r), -9, 9
        ),
        (((3, 4, 5),), ((1, 1, 1),)), dtypes,
    )
    for name, fn, ref, dtypes, start in [
        ("cummax", extremes.cummax, np.maximum.accumulate, ("float32", "bfloat16"), -np.inf),
        ("cummin", extremes.cummin, np.minimum.accumulate, ("float64", "float16"), np.inf),
        ("cummax_of_integers", extremes.cummax, np.maximum.accumulate, ("int32",), -(2**31)),
        ("cummin_of_integers", extremes.cummin, np.minimum.accumulate, ("int32",), 2**31 - 1),
        ("cumulative_logsumexp", td.math.cumulative_logsumexp, np.logaddexp.accumulate, FLOATS,
         -np.inf),
    ]
    for axis in (0, 1, -1)
    for exclusive in (False, True)
    for reverse in (False, True)
]  # fmt: skip

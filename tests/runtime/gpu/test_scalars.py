"""Scalar functions of kernels for a GPU: errors in units of the last place, and special values.

The functions of C's library are glibc's here and CUDA's on a GPU: what is measured of these tells
nothing of CUDA's, whose guide states their largest errors (Mathematical Functions). What treadle's
own text makes of them (`prelude.cuh`) is tested as it is: functions of two or three others, those
of integers, and the precision that each is computed in.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.runtime.gpu.on_processor import Kernels
from treadle.core import dtypes
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, load, store

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
FLOATS = [F16, BF16, F32, F64]
# The result is the only number that it can be, or infinity, or NaN.
EXACT = [
    "add", "sub", "mul", "div", "floordiv", "mod", "truncdiv", "truncmod", "min", "max", "neg",
    "abs", "sign", "copysign", "floor", "ceil", "round", "trunc", "sqrt", "isnan", "isinf",
    "isfinite", "eq", "ne", "lt", "le", "gt", "ge",
]  # fmt: skip
OTHERS = ["select", "cast", "complex"]  # that move numbers: `test_kernels.py`
NEAR = [n for n, f in FUNCTIONS.items() if "f" in f.kinds and n not in [*EXACT, *OTHERS]]
MOST = 2.0  # units in the last place
BITS = {F16: "u2", BF16: "u2", F32: "u4", F64: "u8"}


def some(dtype: Any, count: int) -> Any:
    """Numbers of all magnitudes with those that are special: NaN, infinities, zeros, the least."""
    bits = np.dtype(BITS[dtype])
    whole = 1 << 8 * bits.itemsize
    step = max(1, whole // count)
    spread = np.array([*range(0, whole, step), 1, 2, whole // 2 + 1], bits)
    near = [0.0, -0.0, np.inf, -np.inf, np.nan, *np.arange(-8, 8.5, 0.5)]
    near += [*np.linspace(-30, 30, count // 2)]
    with np.errstate(all="ignore"):
        x = np.concatenate([spread.view(dtype.np_dtype), np.array(near).astype(dtype.np_dtype)])
        x[np.isnan(x)] = np.nan  # none that signal
    return x


def arguments(fn: str, dtype: Any) -> list[Any]:
    """The operands."""
    if FUNCTIONS[fn].arity == 1:
        return [some(dtype, {F16: 1 << 16, BF16: 1 << 16, F32: 20_000, F64: 500}[dtype])]
    x = some(dtype, 30 if dtype is F64 else 120)
    return [np.repeat(x, len(x)), np.tile(x, len(x))]


Case = tuple[Kernel, dict[Buffer, Any]]


def case(fn: str, dtype: Any) -> Case:
    given = arguments(fn, dtype)
    i = Axis("i", len(given[0]))
    buffers = [Buffer(f"x{n}", dtype, x.shape) for n, x in enumerate(given)]
    value = apply(fn, *(load(b, i) for b in buffers))
    out = Buffer("out", value.dtype, given[0].shape)
    kernel = Kernel((i,), (*buffers, out), (store(out, i, value=value),))
    return kernel, dict(zip(buffers, given, strict=True))


@cache
def cases() -> dict[tuple[str, Any], Case]:
    return {(fn, dtype): case(fn, dtype) for fn in [*EXACT, *NEAR] for dtype in FLOATS}


@cache
def library() -> Kernels:
    return Kernels([kernel for kernel, _ in cases().values()])


def found(fn: str, dtype: Any) -> tuple[Any, list[Any]]:
    """What the kernel gives, and its operands."""
    kernel, given = cases()[fn, dtype]
    (result,) = library().run(kernel, given).values()
    return result, list(given.values())


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("fn", EXACT)
def test_exact_functions(fn: str, dtype: Any) -> None:
    result, given = found(fn, dtype)
    wide = np.float32 if dtype.size == 2 else dtype.np_dtype
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[fn].reference(*(x.astype(wide) for x in given)).astype(result.dtype)
        numbers = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(*numbers)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _logaddexp(x: Any, y: Any) -> Any:
    return mpmath.log(mpmath.exp(x) + mpmath.exp(y)) if abs(x - y) < 999 else max(x, y)


PRECISE: dict[str, Callable[..., Any]] = {
    name: getattr(mpmath, name)
    for name in (
        "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos",
        "atan", "asinh", "acosh", "atanh", "erf", "erfc", "atan2",
    )
} | {
    "exp2": lambda x: mpmath.power(2, x), "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "sigmoid": _sigmoid, "pow": mpmath.power,
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)), "logaddexp": _logaddexp,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("fn", NEAR)
def test_functions_are_near(fn: str, dtype: Any) -> None:
    """Errors are at most two units in the last place; NaN, infinities and the signs of zeros are
    those of NumPy."""
    result, given = found(fn, dtype)
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in given]
        expected = FUNCTIONS[fn].reference(*wide)
        rounded = expected.astype(dtype.np_dtype)
    result, rounded = result.astype(np.float64), rounded.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(rounded))
    same = (result == rounded) | np.isnan(rounded)
    zeros = (result == 0) & (expected == 0)
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))
    most = np.finfo(np.float32 if dtype is BF16 else dtype.np_dtype).max
    for n in np.flatnonzero(~same):
        operands = [x[n] for x in wide]
        assert np.isfinite(operands).all(), (operands, result[n], rounded[n])
        exact = expected[n]
        if dtype is F64 and np.isfinite(exact):
            with mpmath.workprec(200):
                exact = PRECISE[fn](*map(mpmath.mpf, map(float, operands)))
        # A sum of two numbers is as exact as the larger of them.
        scale = max(abs(exact), abs(operands[0])) if fn == "logaddexp" else abs(exact)
        apart = abs(min(max(result[n], -most), most) - min(max(exact, -most), most))
        assert apart <= MOST * unit(float(min(scale, most)), dtype), (operands, result[n], exact)


def unit(x: float, dtype: Any) -> float:
    """The distance of numbers around x."""
    digits, least = {F16: (11, -24), BF16: (8, -133), F32: (24, -149), F64: (53, -1074)}[dtype]
    return 2.0 ** max(np.frexp(x)[1] - digits, least)

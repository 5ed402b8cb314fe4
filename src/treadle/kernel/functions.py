"""The scalar functions of the loop-nest IR: one table for every target.

A function's NumPy reference is its meaning. Integer division by zero gives 0 (the program
reports the error), the smallest integer divided by -1 wraps, shift amounts are clamped to the
width, and minimum and maximum propagate NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.arrays import broadcast_arrays
from treadle.core.dtypes import DType
from treadle.core.records import record

Array = Any
Rule = Callable[[tuple[DType, ...]], DType]


@record(frozen=True)
class Function:
    """One scalar function.

    kinds: the dtype kinds its operands may have; result: the result dtype for operand dtypes;
    reference: NumPy meaning; costly: worth keeping in a row buffer instead of evaluating twice.
    """

    name: str
    arity: int
    kinds: str
    result: Rule
    reference: Callable[..., Array]
    costly: bool = False


FUNCTIONS: dict[str, Function] = {}


def _same(args: tuple[DType, ...]) -> DType:
    return args[0]


def _boolean(args: tuple[DType, ...]) -> DType:
    return dtypes.bool


def _second(args: tuple[DType, ...]) -> DType:
    return args[1]


def _real(args: tuple[DType, ...]) -> DType:
    return args[0].real_dtype


def _complex(args: tuple[DType, ...]) -> DType:
    return args[0].complex_dtype


def _define(
    name: str, arity: int, kinds: str, reference: Callable[..., Array],
    result: Rule = _same, costly: bool = False,
) -> None:  # fmt: skip
    FUNCTIONS[name] = Function(name, arity, kinds, result, reference, costly)


def _floordiv(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        return np.where(y == 0, x.dtype.type(0), np.floor_divide(x, np.where(y == 0, 1, y)))
    return np.floor(_quotient(x, y))


def _quotient(x: Array, y: Array) -> Array:
    """In float32 for floats of 16 bits, as programs compute them."""
    return x.astype(np.float32) / y.astype(np.float32) if x.dtype.itemsize == 2 else x / y


def _mod(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        return np.where(y == 0, x.dtype.type(0), np.mod(x, np.where(y == 0, 1, y)))
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((remainder < 0) != (y < 0)), remainder + y, remainder)


def _truncdiv(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.trunc(_quotient(x, y))
    quotient, remainder = _floordiv(x, y), _mod(x, y)
    return quotient + ((remainder != 0) & ((x < 0) != (y < 0)) & (y != 0)).astype(x.dtype)


def _truncmod(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x.dtype.type(0), np.fmod(x, np.where(y == 0, 1, y)))


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.power(x, y)
    result = np.power(x, np.where(y < 0, 0, y))
    inverse = np.where(np.abs(x) == 1, np.where((y & 1) == 0, x * x, x), 0)
    return np.where(y < 0, inverse, result).astype(x.dtype)


def _shift(direction: Callable[..., Array]) -> Callable[..., Array]:
    def apply(x: Array, amount: Array) -> Array:
        return direction(x, np.clip(amount, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype))

    return apply


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1).astype(x.dtype) / (1 + small)


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _vectorized(function: Callable[[float], float]) -> Callable[..., Array]:
    elementwise = np.vectorize(function, otypes=[np.float64])
    return lambda x: elementwise(x).astype(x.dtype)


def _sign(x: Array) -> Array:
    return np.where(np.isnan(x), x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _select(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _join(x: Array, y: Array) -> Array:
    return join_parts(*broadcast_arrays(x, y))


def join_parts(x: Array, y: Array) -> Array:
    """The complex array of two float arrays; ``x + 1j * y`` is not it where y is infinite."""
    joined = np.empty(x.shape, np.result_type(x.dtype, np.complex64))
    joined.real, joined.imag = x, y
    return joined


# Arithmetic on numbers.
_define("add", 2, "fiu", np.add)
_define("sub", 2, "fiu", np.subtract)
_define("mul", 2, "fiu", np.multiply)
_define("div", 2, "f", np.divide, costly=True)
_define("floordiv", 2, "fiu", _floordiv, costly=True)
_define("mod", 2, "fiu", _mod, costly=True)
_define("truncdiv", 2, "fiu", _truncdiv, costly=True)
_define("truncmod", 2, "fiu", _truncmod, costly=True)
_define("pow", 2, "fiu", _power, costly=True)
_define("min", 2, "fiub", np.minimum)
_define("max", 2, "fiub", np.maximum)
_define("neg", 1, "fiu", np.negative)
_define("abs", 1, "fiu", np.abs)
_define("sign", 1, "fiu", _sign)
_define("atan2", 2, "f", np.arctan2, costly=True)
_define("copysign", 2, "f", np.copysign)
_define("logaddexp", 2, "f", np.logaddexp, costly=True)

# Comparisons, logic, bits. and/or/xor/not on bool are the logical operations.
for _name, _ufunc in {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}.items():  # fmt: skip
    _define(_name, 2, "fiub", _ufunc, _boolean)
_define("and", 2, "iub", np.bitwise_and)
_define("or", 2, "iub", np.bitwise_or)
_define("xor", 2, "iub", np.bitwise_xor)
_define("not", 1, "iub", np.invert)
_define("shl", 2, "iu", _shift(np.left_shift))
_define("shr", 2, "iu", _shift(np.right_shift))
_define("select", 3, "fiubc", _select, _second)

# Complex numbers are loaded, stored and taken apart; arithmetic is on the parts.
_define("real", 1, "c", np.real, _real)
_define("imag", 1, "c", np.imag, _real)
_define("complex", 2, "f", _join, _complex)

# Rounding and classification.
_define("floor", 1, "f", np.floor)
_define("ceil", 1, "f", np.ceil)
_define("round", 1, "f", np.rint)  # half to even
_define("trunc", 1, "f", np.trunc)
_define("isnan", 1, "f", np.isnan, _boolean)
_define("isinf", 1, "f", np.isinf, _boolean)
_define("isfinite", 1, "f", np.isfinite, _boolean)

# Elementary functions.
_define("sqrt", 1, "f", np.sqrt, costly=True)
_define("rsqrt", 1, "f", lambda x: 1 / np.sqrt(x), costly=True)
_define("sigmoid", 1, "f", _sigmoid, costly=True)
_define("softplus", 1, "f", _softplus, costly=True)
_define("erf", 1, "f", _vectorized(math.erf), costly=True)
_define("erfc", 1, "f", _vectorized(math.erfc), costly=True)
for _name, _reference in {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}.items():  # fmt: skip
    _define(_name, 1, "f", _reference, costly=True)

# The result dtype of a cast is the node's own.
_define("cast", 1, "fiub", lambda x: x)


def result_dtype(fn: str, args: tuple[DType, ...]) -> DType:
    """The dtype of ``fn(*args)``; TypeError when the operands do not fit the function."""
    function = FUNCTIONS[fn]
    if len(args) != function.arity:
        raise TypeError(f"{fn} takes {function.arity} operands, got {len(args)}")
    values = args
    if fn == "select":
        values = args[1:]
        if args[0] is not dtypes.bool:
            raise TypeError(f"select needs a bool condition, got {args[0].name}")
    if any(a.kind not in function.kinds for a in values):
        raise TypeError(f"{fn} is not defined on ({', '.join(a.name for a in args)})")
    if any(a is not values[0] for a in values):
        raise TypeError(f"{fn} needs equal dtypes, got ({', '.join(a.name for a in args)})")
    return function.result(args)

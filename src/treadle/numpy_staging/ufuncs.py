"""NumPy's universal functions on tensors.

NumPy itself says which dtypes a ufunc computes in (`resolve_dtypes`); the table has what to run on
operands of those dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, is_weak, numpy_dtype, to
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.control_flow import while_loop
from treadle.ops.elementwise import arithmetic, comparison, complex_numbers, logic, powers, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.python_floats import floor_quotient, hypot, log_of_base
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg import matrices
from treadle.ops.reductions.reduction import reduce_any, reduce_sum
from treadle.ops.shaping.reshaping import reshape_to

Rule = Callable[..., Any]
_LOG_2 = math.log(2)


def _bools(for_bools: Rule | None, otherwise: Rule) -> Rule:
    """Another function for bools (None: unchanged)."""

    def rule(x: Tensor, *rest: Tensor) -> Any:
        if not x.dtype.is_bool:
            return otherwise(x, *rest)
        return x if for_bools is None else for_bools(x, *rest)

    return rule


def _floats(rule: Rule, of_others: Rule = lambda x: x) -> Rule:
    """`rule` for floats only; integers stay as they are."""
    return lambda x: rule(x) if x.dtype.is_floating else of_others(x)


def _as_float(rule: Rule) -> Rule:
    return lambda x: rule(x if x.dtype.is_floating else cast(x, dtypes.float64))


def _on_truth(rule: Rule) -> Rule:
    return lambda *xs: rule(*(truth(x) for x in xs))


def _ordered(rule: Rule) -> Rule:
    """Comparison of bools as 0 and 1."""
    return _bools(lambda x, y: rule(cast(x, dtypes.int32), cast(y, dtypes.int32)), rule)


def _number(value: float, x: Tensor) -> Tensor:
    return to(value, x.dtype)


def truth(x: Tensor) -> Tensor:
    """What is not zero."""
    return x if x.dtype.is_bool else comparison.not_equal(x, _number(0, x))


def _trunc(x: Tensor) -> Tensor:
    return where(x < _number(0, x), unary.ceil(x), unary.floor(x))


def _ignoring_nan(rule: Rule) -> Rule:
    def chosen(x: Tensor, y: Tensor) -> Tensor:
        if not x.dtype.is_floating:
            return rule(x, y)  # type: ignore[no-any-return]
        either = where(unary.is_nan(y), x, rule(x, y))
        return where(unary.is_nan(x), y, either)

    return chosen


def _floor_divide(x: Tensor, y: Tensor) -> Tensor:
    return floor_quotient(x, y) if x.dtype.is_floating else arithmetic.floordiv(x, y)


def _log_of_base(base: float) -> Rule:
    def rule(x: Tensor) -> Tensor:
        if x.dtype.is_complex:
            return unary.log(x) / _number(math.log(base), x)
        return log_of_base(x, base)

    return rule


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    large = arithmetic.maximum(x, y)
    distance = where(x == y, _number(0, x), unary.abs(x - y))
    return large + unary.log1p(unary.exp(-distance))


def _heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    zero, one = _number(0, x), _number(1, x)
    step = where(x < zero, zero, where(x == zero, at_zero, one))
    return where(unary.is_nan(x), x, step)


def _sign_bit(x: Tensor) -> Tensor:
    """Whether the sign is minus, that of zeros too."""
    zero, one = _number(0, x), _number(1, x)
    found: Tensor = (x < zero) | ((x == zero) & (one / x < zero))
    return found


def _copysign(x: Tensor, y: Tensor) -> Tensor:
    size = unary.abs(x)
    return where(_sign_bit(y), -size, size)


def _cbrt(x: Tensor) -> Tensor:
    return unary.sign(x) * powers.pow(unary.abs(x), _number(1 / 3, x))


def _scaled(factor: float) -> Rule:
    return lambda x: x * _number(factor, x)


def _gcd(x: Tensor, y: Tensor) -> Tensor:
    """Euclid's algorithm, for all elements until the last one is done."""
    dims = broadcast(x.dims, y.dims)
    start = tuple(broadcast_dims(unary.abs(v), dims) for v in (x, y))
    zero = _number(0, x)

    def step(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        done = b == zero
        rest = arithmetic.mod(a, where(done, _number(1, x), b))
        return where(done, a, b), where(done, zero, rest)

    found: Tensor = while_loop(lambda a, b: reduce_any(b != zero), step, start)[0]
    return found


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    divisor = _gcd(x, y)
    none = divisor == _number(0, x)
    part = arithmetic.floordiv(unary.abs(x), where(none, _number(1, x), divisor))
    return part * unary.abs(y)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
    whole = _trunc(x)
    rest = where(unary.is_inf(x), _number(0, x), x - whole)
    return _copysign(rest, x), whole


_RULES: dict[str, Rule] = {
    "add": _bools(logic.logical_or, arithmetic.add),
    "subtract": arithmetic.subtract,
    "multiply": _bools(logic.logical_and, arithmetic.multiply),
    "divide": arithmetic.divide,
    "floor_divide": _floor_divide,
    "remainder": arithmetic.mod,
    "fmod": arithmetic.truncatemod,
    "divmod": lambda x, y: (_floor_divide(x, y), arithmetic.mod(x, y)),
    "power": powers.pow,
    "float_power": powers.pow,
    "arctan2": arithmetic.atan2,
    "hypot": hypot,
    "logaddexp": _logaddexp,
    "heaviside": _heaviside,
    "maximum": _bools(logic.logical_or, arithmetic.maximum),
    "minimum": _bools(logic.logical_and, arithmetic.minimum),
    "fmax": _bools(logic.logical_or, _ignoring_nan(arithmetic.maximum)),
    "fmin": _bools(logic.logical_and, _ignoring_nan(arithmetic.minimum)),
    "negative": unary.negative,
    "positive": lambda x: x,
    "absolute": _bools(None, unary.abs),
    "fabs": unary.abs,
    "sign": unary.sign,
    "square": unary.square,
    "sqrt": unary.sqrt,
    "cbrt": _cbrt,
    "signbit": _sign_bit,
    "copysign": _copysign,
    "logaddexp2": lambda x, y: _logaddexp(x * _number(_LOG_2, x), y * _number(_LOG_2, y))
    * _number(1 / _LOG_2, x),
    "reciprocal": _floats(
        unary.reciprocal, lambda x: arithmetic.truncatediv(_number(1, x), x)
    ),
    "exp": unary.exp,
    "exp2": lambda x: powers.pow(_number(2, x), x),
    "expm1": unary.expm1,
    "log": unary.log,
    "log2": _log_of_base(2.0),
    "log10": _log_of_base(10.0),
    "log1p": unary.log1p,
    "sin": unary.sin,
    "cos": unary.cos,
    "tan": unary.tan,
    "arcsin": unary.asin,
    "arccos": unary.acos,
    "arctan": unary.atan,
    "sinh": unary.sinh,
    "cosh": unary.cosh,
    "tanh": unary.tanh,
    "arcsinh": unary.asinh,
    "arccosh": unary.acosh,
    "arctanh": unary.atanh,
    "degrees": _scaled(180 / math.pi),
    "rad2deg": _scaled(180 / math.pi),
    "radians": _scaled(math.pi / 180),
    "deg2rad": _scaled(math.pi / 180),
    "floor": _floats(unary.floor),
    "ceil": _floats(unary.ceil),
    "trunc": _floats(_trunc),
    "rint": unary.round,
    "conjugate": _bools(None, complex_numbers.conj),
    "isnan": _as_float(unary.is_nan),
    "isinf": _as_float(unary.is_inf),
    "isfinite": _as_float(unary.is_finite),
    "equal": comparison.equal,
    "not_equal": comparison.not_equal,
    "less": _ordered(comparison.less),
    "less_equal": _ordered(comparison.less_equal),
    "greater": _ordered(comparison.greater),
    "greater_equal": _ordered(comparison.greater_equal),
    "logical_and": _on_truth(logic.logical_and),
    "logical_or": _on_truth(logic.logical_or),
    "logical_xor": _on_truth(logic.logical_xor),
    "logical_not": _on_truth(logic.logical_not),
    "bitwise_and": _bools(logic.logical_and, logic.bitwise_and),
    "bitwise_or": _bools(logic.logical_or, logic.bitwise_or),
    "bitwise_xor": _bools(logic.logical_xor, logic.bitwise_xor),
    "invert": _bools(logic.logical_not, logic.invert),
    "left_shift": logic.left_shift,
    "right_shift": logic.right_shift,
    "matmul": matrices.array_product,
    "vecdot": lambda x, y: reduce_sum(complex_numbers.conj(x) * y, -1),
    "matvec": lambda x, y: reduce_sum(x * y[..., None, :], -1),
    "vecmat": lambda x, y: reduce_sum(complex_numbers.conj(x)[..., None] * y, -2),
    "gcd": _gcd,
    "lcm": _lcm,
    "modf": _modf,
    "ldexp": lambda x, n: x * powers.pow(_number(2, x), cast(n, x.dtype)),
}  # fmt: skip
UFUNCS: dict[Any, Rule] = {getattr(np, name): rule for name, rule in _RULES.items()}


def call(ufunc: Any, inputs: tuple[Any, ...], dtype: Any = None) -> Any:
    """``ufunc(*inputs)`` with NumPy's dtypes."""
    rule, arguments = UFUNCS[ufunc], [v if is_weak(v) else as_array(v) for v in inputs]
    kinds = (*(numpy_dtype(v) for v in arguments), *(None,) * ufunc.nout)
    options = {}
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype).np_dtype
        options["signature"] = (None,) * ufunc.nin + (wanted,) * ufunc.nout
    try:
        found = ufunc.resolve_dtypes(kinds, **options)
    except TypeError as error:
        raise TypeError(f"np.{ufunc.__name__}: {error}{at(user_origin())}") from None
    operands = [to(v, d) for v, d in zip(arguments, found, strict=False)]
    result = rule(*operands)
    if ufunc.nout > 1:
        return tuple(cast(r, d) for r, d in zip(result, found[ufunc.nin :], strict=True))
    return cast(result, dtypes.as_dtype(found[-1]))


def outer(ufunc: Any, x: Any, y: Any, dtype: Any = None) -> Any:
    """``ufunc.outer``: every element of x with every element of y."""
    first, second = as_array(x), as_array(y)
    return call(ufunc, (reshape_to(first, first.dims + (1,) * second.ndim), second), dtype)

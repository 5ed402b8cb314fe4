"""Elementwise functions of one tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Expr, apply, const
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import error_function
from treadle.ops.elementwise.arithmetic import divide_no_nan, maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal, not_equal
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.complex_numbers import real as real_part
from treadle.ops.elementwise.logic import logical_and
from treadle.ops.elementwise.selection import where
from treadle.ops.indexed_slices import on_values
from treadle.ops.lowering import Compute, elementwise_rule
from treadle.ops.op_makers import ANY_KIND, Public, boolean, real, unary, unary_op
from treadle.ops.registry import Op, run


def _kept(fn: Any) -> Any:
    """A NumPy expression of several steps, rounded to the operand's dtype only at the end."""

    def run(x: NDArray) -> NDArray:
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
        return np.asarray(fn(wide)).astype(x.dtype, copy=False)

    return run


def _table(name: str) -> Any:
    return _kept(FUNCTIONS[name].reference)


def _lower(build: Any) -> Compute:
    return elementwise_rule(lambda call, x: build(x))


def _one(x: Expr) -> Expr:
    return const(1, x.dtype)


def _sigmoid(x: NDArray) -> NDArray:
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    return FUNCTIONS["sigmoid"].reference(x)  # type: ignore[no-any-return]


def _two_over_root_pi(x: Tensor) -> Any:
    return 2 / math.sqrt(math.pi) * exp(-square(x))


NUMBERS, SIGNED, FLOATS = "fciu", "fci", "fc"


# name: (NumPy function, dtype kinds, kernel function or rule, gradient of (x, y, dy), summary)
def _scaled(dy: Tensor, slope: Tensor) -> Tensor:
    """``dy * slope``, and 0 where `dy` is 0 and the slope is not finite: what td.where did not
    choose stays out of the gradient. The derivative by `dy` is the slope, also where `dy` is 0."""
    not_finite = not_equal(slope * 0, 0)
    return dy * where(logical_and(not_finite, equal(dy, 0)), 0, slope)


_TABLE: dict[str, tuple[Any, str, Any, Any, str]] = {
    "negative": (np.negative, NUMBERS, "neg", lambda x, y, dy: -dy, "-x."),
    "sign": (
        _table("sign"), NUMBERS, "sign", lambda x, y, dy: _grad_sign(x, y, dy),
        "-1, 0 or 1 by the sign of x; NaN for NaN; x / abs(x) for complex numbers, 0 for 0.",
    ),
    "square": (
        np.square, NUMBERS, _lower(lambda x: apply("mul", x, x)),
        lambda x, y, dy: dy * conj(x * 2), "x * x.",
    ),
    "sqrt": (
        np.sqrt, FLOATS, "sqrt", lambda x, y, dy: _scaled(dy, 0.5 / conj(y)),
        "The square root.",
    ),
    "rsqrt": (
        _kept(lambda x: 1 / np.sqrt(x)), FLOATS, "rsqrt",
        lambda x, y, dy: _scaled(dy, conj(y * y * y * -0.5)), "1 / sqrt(x).",
    ),
    "reciprocal": (
        _kept(lambda x: 1 / x), FLOATS, _lower(lambda x: apply("div", _one(x), x)),
        lambda x, y, dy: _scaled(dy, conj(-y * y)), "1 / x.",
    ),
    "exp": (np.exp, FLOATS, "exp", lambda x, y, dy: dy * conj(y), "e ** x."),
    "expm1": (
        np.expm1, FLOATS, "expm1", lambda x, y, dy: dy * conj(exp(x)),
        "exp(x) - 1, accurate near 0.",
    ),
    "log": (np.log, FLOATS, "log", lambda x, y, dy: dy / conj(x), "The natural logarithm."),
    "log1p": (
        np.log1p, FLOATS, "log1p", lambda x, y, dy: dy / conj(x + 1),
        "log(1 + x), accurate near 0.",
    ),
    "sin": (np.sin, FLOATS, "sin", lambda x, y, dy: dy * conj(cos(x)), "The sine."),
    "cos": (np.cos, FLOATS, "cos", lambda x, y, dy: -dy * conj(sin(x)), "The cosine."),
    "tan": (np.tan, FLOATS, "tan", lambda x, y, dy: dy * conj(y * y + 1), "The tangent."),
    "asin": (
        np.arcsin, FLOATS, "asin", lambda x, y, dy: dy * conj(rsqrt(1 - x * x)),
        "The inverse of sin, in [-pi/2, pi/2].",
    ),
    "acos": (
        np.arccos, FLOATS, "acos", lambda x, y, dy: -dy * conj(rsqrt(1 - x * x)),
        "The inverse of cos, in [0, pi].",
    ),
    "atan": (
        np.arctan, FLOATS, "atan", lambda x, y, dy: dy / conj(x * x + 1),
        "The inverse of tan, in (-pi/2, pi/2).",
    ),
    "sinh": (
        np.sinh, FLOATS, "sinh", lambda x, y, dy: dy * conj(cosh(x)), "The hyperbolic sine."
    ),
    "cosh": (
        np.cosh, FLOATS, "cosh", lambda x, y, dy: dy * conj(sinh(x)), "The hyperbolic cosine."
    ),
    "tanh": (
        np.tanh, FLOATS, "tanh", lambda x, y, dy: dy * conj(1 - y * y), "The hyperbolic tangent."
    ),
    "asinh": (
        np.arcsinh, FLOATS, "asinh", lambda x, y, dy: dy * conj(rsqrt(x * x + 1)),
        "The inverse of sinh.",
    ),
    "acosh": (
        np.arccosh, FLOATS, "acosh", lambda x, y, dy: dy / conj(sinh(y)),
        "The inverse of cosh, for x >= 1.",
    ),
    "atanh": (
        np.arctanh, FLOATS, "atanh", lambda x, y, dy: dy / conj(1 - x * x),
        "The inverse of tanh, for -1 < x < 1.",
    ),
    "sigmoid": (
        _kept(_sigmoid), FLOATS, "sigmoid", lambda x, y, dy: dy * conj(y * (1 - y)),
        "1 / (1 + exp(-x)).",
    ),
    "erf": (
        error_function.erf, "f", "erf", lambda x, y, dy: dy * _two_over_root_pi(x),
        "The Gauss error function.",
    ),
    "erfc": (
        error_function.erfc, "f", "erfc", lambda x, y, dy: -dy * _two_over_root_pi(x),
        "1 - erf(x), accurate for large x.",
    ),
}  # fmt: skip
_CHEAP = frozenset({"cheap"})
_TAGS = {"negative": _CHEAP | {"involution", "takes_rows"}, "square": _CHEAP, "sign": _CHEAP}
_OPS = {
    name: (
        unary_op(name, eager, kinds, lower, gradient, tags=_TAGS.get(name, frozenset())),
        doc,
    )
    for name, (eager, kinds, lower, gradient, doc) in _TABLE.items()
}

SQRT, SQUARE, RECIPROCAL = (_OPS[name][0] for name in ("sqrt", "square", "reciprocal"))

negative: Public = unary(*_OPS["negative"])
sign: Public = unary(*_OPS["sign"])
square: Public = unary(*_OPS["square"])
sqrt: Public = unary(*_OPS["sqrt"])
rsqrt: Public = unary(*_OPS["rsqrt"])
reciprocal: Public = unary(*_OPS["reciprocal"])
exp: Public = unary(*_OPS["exp"])
expm1: Public = unary(*_OPS["expm1"])
log: Public = unary(*_OPS["log"])
log1p: Public = unary(*_OPS["log1p"])
sin: Public = unary(*_OPS["sin"])
cos: Public = unary(*_OPS["cos"])
tan: Public = unary(*_OPS["tan"])
asin: Public = unary(*_OPS["asin"])
acos: Public = unary(*_OPS["acos"])
atan: Public = unary(*_OPS["atan"])
sinh: Public = unary(*_OPS["sinh"])
cosh: Public = unary(*_OPS["cosh"])
tanh: Public = unary(*_OPS["tanh"])
asinh: Public = unary(*_OPS["asinh"])
acosh: Public = unary(*_OPS["acosh"])
atanh: Public = unary(*_OPS["atanh"])
sigmoid: Public = unary(*_OPS["sigmoid"])
erf: Public = unary(*_OPS["erf"])
erfc: Public = unary(*_OPS["erfc"])


def _grad_sign(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    """Real signs have no slope; complex ones change with the angle, across `y`."""
    if not x.dtype.is_complex:
        return dy * 0
    along = cast(real_part(dy * conj(y)), x.dtype)
    return divide_no_nan(dy - y * along, cast(abs(x), x.dtype))


def _grad_abs(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    if not x.dtype.is_complex:
        return dy * sign(x)
    return cast(dy, x.dtype) * sign(x)


ABS = unary_op("abs", np.abs, NUMBERS, "abs", _grad_abs, real, tags=_CHEAP)
abs = unary(ABS, "The absolute value; the magnitude of complex numbers.")


def _rounding(name: str, fn: Any, kernel: str, kinds: str) -> Op:
    """Rounding ops have zero slope; integers, where allowed, stay as they are."""

    def eager(x: NDArray) -> NDArray:
        return x if x.dtype.kind in "iu" else fn(x)

    rule = _lower(lambda x: x if x.dtype.is_integer else apply(kernel, x))
    return unary_op(name, eager, kinds, rule, lambda x, y, dy: None)


floor = unary(_rounding("floor", np.floor, "floor", "f"), "The largest integer <= x, as a float.")
ceil = unary(_rounding("ceil", np.ceil, "ceil", "f"), "The smallest integer >= x, as a float.")
round = unary(
    _rounding("round", np.rint, "round", "fiu"), "The nearest integer in x's dtype, halves to even."
)


def _classify(name: str, fn: Any, kernel: str) -> Op:
    return unary_op(name, fn, "f", kernel, None, boolean)


is_nan = unary(_classify("is_nan", np.isnan, "isnan"), "True where x is NaN.")
IS_INF = _classify("is_inf", np.isinf, "isinf")
is_inf = unary(IS_INF, "True where x is infinite.")
is_finite = unary(
    _classify("is_finite", np.isfinite, "isfinite"), "True where x is neither infinite nor NaN."
)


def _copy(x: NDArray) -> NDArray:
    return x


_PASS = _lower(lambda x: x)
_AS_IT_IS = frozenset({"alias", "any_elements", "as_is", "cheap"})
_TEXTS_TOO = ANY_KIND + "s"
IDENTITY = unary_op(
    "identity", _copy, _TEXTS_TOO, _PASS, lambda x, y, dy: dy, tags=_AS_IT_IS | {"passes_on"}
)
# As identity, but that its gradient is a tensor where that of its result is IndexedSlices.
WHOLE = unary_op("whole", _copy, _TEXTS_TOO, _PASS, lambda x, y, dy: dy, tags=_AS_IT_IS)
STOP_GRADIENT = unary_op(
    "stop_gradient", _copy, _TEXTS_TOO, _PASS, tags=_AS_IT_IS, no_gradient="it is there to stop it"
)


def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor, or `IndexedSlices`, with the same value."""
    return on_values(lambda x: run(IDENTITY, convert_to_tensor(x)), input)  # type: ignore[no-any-return]


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """Each of several tensors as `identity` gives it."""
    return [identity(x) for x in input]


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value, through which no gradient flows."""
    return run(STOP_GRADIENT, convert_to_tensor(input))  # type: ignore[no-any-return]


def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """`t` with values below the minimum or above the maximum replaced by those.

    Of `IndexedSlices` the rows are clipped, each for itself.
    """
    return on_values(  # type: ignore[no-any-return]
        lambda x: maximum(minimum(x, clip_value_max), clip_value_min), t
    )

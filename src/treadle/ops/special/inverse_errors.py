"""Inverses of the error function and of the normal distribution, by algorithm AS 241 of
M. J. Wichura (Applied Statistics 37, 1988), whose relative error is about 1e-16."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.elementwise.unary import exp, square
from treadle.ops.op_makers import Public, unary
from treadle.ops.registry import OpCall
from treadle.ops.special.formulas import Arithmetic, formula_op, horner

# Numerators and denominators, highest power first: for probabilities in [0.075, 0.925], and in the
# tails for r = sqrt(-log(p)) up to 5 and beyond.
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Any) -> Any:
    above, below = coefficients
    return horner(above, x) / horner(below, x)


def _quantile(m: Arithmetic, q: Any, tail: Any) -> Any:
    """The quantile of the normal distribution for the probability ``q + 1/2``.

    Args:
        tail: the smaller one of the probability and what it lacks to 1, without cancellation.
    """
    middle = q * _ratio(_MIDDLE, 0.180625 - q * q)
    r = m.sqrt(-m.log(tail))
    size = m.where(r <= 5.0, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5.0))
    size = m.where(tail == 0.0, math.inf, size)
    return m.where(m.abs(q) <= 0.425, middle, m.where(q < 0.0, -size, size))


def _ndtri(m: Arithmetic, p: Any) -> Any:
    return _quantile(m, p - 0.5, m.where(p < 0.5, p, 1.0 - p))


def _erfinv(m: Arithmetic, x: Any) -> Any:
    return math.sqrt(0.5) * _quantile(m, 0.5 * x, 0.5 * (1.0 - m.abs(x)))


def _erfcinv(m: Arithmetic, x: Any) -> Any:
    return -math.sqrt(0.5) * _ndtri(m, 0.5 * x)


def _grad_ndtri(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * (math.sqrt(2 * math.pi) * exp(square(call.outputs[0]) * 0.5))]


def _grad_erfinv(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * (math.sqrt(math.pi) / 2 * exp(square(call.outputs[0])))]


def _grad_erfcinv(call: OpCall, dy: Tensor) -> list[Any]:
    return [dy * (-math.sqrt(math.pi) / 2 * exp(square(call.outputs[0])))]


ndtri: Public = unary(
    formula_op("ndtri", _ndtri, _grad_ndtri),
    "The quantile of the standard normal distribution for probabilities x; NaN outside [0, 1].",
)
erfinv: Public = unary(
    formula_op("erfinv", _erfinv, _grad_erfinv), "The inverse of erf; NaN outside [-1, 1]."
)
erfcinv: Public = unary(
    formula_op("erfcinv", _erfcinv, _grad_erfcinv), "The inverse of erfc; NaN outside [0, 2]."
)

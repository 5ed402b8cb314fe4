"""Activation functions: one record each, so that eager code runs one op and graphs read well."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import broadcast
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Expr, apply, const
from treadle.kernel.ir import cast as cast_element
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.elementwise import error_function
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import exp, sigmoid, square, tanh
from treadle.ops.lowering import LowerCall, elementwise_rule
from treadle.ops.nn.softmax import wide
from treadle.ops.op_makers import require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.special.coefficients import SCALED_ERFC_FLOAT32

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_GELU_CUBIC = 0.044715
_TAIL_ENDS = 10.5  # from here on erfc is 0 in float32
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)

Slope = Callable[[Tensor, Tensor, Tensor, Mapping[str, Any]], Tensor]


def _activation(
    name: str,
    eager: Callable[..., Any],
    build: Callable[..., Expr],
    slope: Slope,
    kinds: str = "f",
    tags: frozenset[str] = frozenset(),
) -> Op:
    """Register ``y = eager(x, **attrs)``.

    build: ``build(x, constant, **attrs)`` is the scalar expression, `constant` makes a constant of
    x's dtype. slope: ``slope(x, y, dy, attrs)`` is dx.
    """

    def infer(x: TensorSpec, **attrs: Any) -> TensorSpec:
        require_kinds(kinds, x)
        return x

    def in_dtype(x: NDArray, **attrs: Any) -> NDArray:
        values = x if "i" in kinds and x.dtype.kind in "iu" else wide(x)
        return np.asarray(eager(values, **attrs)).astype(x.dtype, copy=False)

    def gradient(call: OpCall, dy: Tensor) -> list[Tensor]:
        return [slope(call.inputs[0], call.outputs[0], dy, call.attrs)]

    def lower(call: LowerCall, x: Expr) -> Expr:
        return build(x, lambda value: const(value, x.dtype), **call.attrs)

    return register(Op(name, infer, in_dtype, gradient, elementwise_rule(lower), tags=tags))


def _infer_relu_grad(dy: TensorSpec, y: TensorSpec) -> TensorSpec:
    require_kinds("fiu", dy, y)
    return TensorSpec(broadcast(dy.dims, y.dims), dy.dtype)


def _eager_relu_grad(dy: NDArray, y: NDArray) -> NDArray:
    return np.where(y > 0, dy, dy.dtype.type(0))


def _lower_relu_grad(call: LowerCall, dy: Expr, y: Expr) -> Expr:
    return apply("select", apply("gt", y, const(0, y.dtype)), dy, const(0, dy.dtype))


def _grad_relu_grad(call: OpCall, g: Tensor) -> list[Any]:
    return [run(call.op, g, call.inputs[1]), None]


RELU_GRAD = register(
    Op(
        "relu_grad", _infer_relu_grad, _eager_relu_grad, _grad_relu_grad,
        elementwise_rule(_lower_relu_grad),
    )
)  # fmt: skip


def _clip6(x: Expr, c: Any) -> Expr:
    return apply("min", apply("max", x, c(0)), c(6))


def _negative_part(x: Expr, c: Any, negative: Expr) -> Expr:
    """x where it is positive, else `negative`; NaN takes the second branch and stays NaN."""
    return apply("select", apply("gt", x, c(0)), x, negative)


def _lower_leaky(x: Expr, c: Any, *, alpha: float) -> Expr:
    return _negative_part(x, c, apply("mul", x, c(alpha)))


def _lower_elu(x: Expr, c: Any, *, alpha: float) -> Expr:
    return _negative_part(x, c, apply("mul", c(alpha), apply("expm1", x)))


def _lower_selu(x: Expr, c: Any) -> Expr:
    return apply("mul", c(_SELU_SCALE), _lower_elu(x, c, alpha=_SELU_ALPHA))


def _lower_silu(x: Expr, c: Any, *, beta: float) -> Expr:
    scaled = x if beta == 1.0 else apply("mul", x, c(beta))
    return apply("mul", x, apply("sigmoid", scaled))


def _lower_gelu(x: Expr, c: Any, *, approximate: bool) -> Expr:
    if not approximate:
        return apply("mul", x, _lower_normal_cdf(x, c))
    cubic = apply("mul", apply("mul", apply("mul", x, x), x), c(_GELU_CUBIC))
    inner = apply("tanh", apply("mul", c(_ROOT_2_OVER_PI), apply("add", x, cubic)))
    return apply("mul", apply("mul", c(0.5), x), apply("add", c(1), inner))


def _lower_normal_cdf(x: Expr, c: Any) -> Expr:
    if x.dtype is dtypes.float64:
        return apply("mul", c(0.5), apply("erfc", apply("mul", x, c(-math.sqrt(0.5)))))
    return cast_element(_normal_cdf_float32(cast_element(x, dtypes.float32)), x.dtype)


def _normal_cdf_float32(x: Expr) -> Expr:
    """What the tail is, exp(-a * a) times a polynomial for ``a = abs(x) / sqrt(2)``, with float32
    arithmetic: a relative error of a few roundings where it is not very small, which is several
    times as fast as erfc, whose results are rounded correctly."""

    def number(value: float) -> Expr:
        return const(value, dtypes.float32)

    a = apply("mul", apply("abs", x), number(math.sqrt(0.5)))
    near = apply("min", a, number(_TAIL_ENDS))
    t = apply("div", apply("sub", near, number(2)), apply("add", near, number(2)))
    total = number(SCALED_ERFC_FLOAT32[0])
    for coefficient in SCALED_ERFC_FLOAT32[1:]:
        total = apply("add", apply("mul", total, t), number(coefficient))
    decay = apply("exp", apply("neg", apply("mul", a, a)))
    tail = apply("mul", number(0.5), apply("mul", decay, total))
    return apply("select", apply("gt", x, number(0)), apply("sub", number(1), tail), tail)


def _lower_softsign(x: Expr, c: Any) -> Expr:
    return apply("div", x, apply("add", c(1), apply("abs", x)))


def _eager_elu(x: NDArray, *, alpha: float) -> Any:
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def _eager_selu(x: NDArray) -> Any:
    return x.dtype.type(_SELU_SCALE) * _eager_elu(x, alpha=_SELU_ALPHA)


def _eager_silu(x: NDArray, *, beta: float) -> Any:
    return x * FUNCTIONS["sigmoid"].reference(x * x.dtype.type(beta))


def _eager_gelu(x: NDArray, *, approximate: bool) -> Any:
    number = x.dtype.type
    if not approximate:
        return x * _eager_normal_cdf(x)
    inner = np.tanh(number(_ROOT_2_OVER_PI) * (x + x * x * x * number(_GELU_CUBIC)))
    return number(0.5) * x * (1 + inner)


def _eager_normal_cdf(x: NDArray) -> Any:
    half, scale = x.dtype.type(0.5), x.dtype.type(-math.sqrt(0.5))
    return half * error_function.erfc(x * scale)


def _normal_density(x: Tensor) -> Tensor:
    found: Tensor = exp(square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
    return found


def _slope_elu(x: Tensor, y: Tensor, dy: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    return where(x > 0, dy, dy * (y + attrs["alpha"]))


def _slope_selu(x: Tensor, y: Tensor, dy: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    return where(x > 0, dy * _SELU_SCALE, dy * (y + _SELU_SCALE * _SELU_ALPHA))


def _slope_silu(x: Tensor, y: Tensor, dy: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    scaled = x * attrs["beta"]
    s = sigmoid(scaled)
    slope: Tensor = s * (1 + scaled * (1 - s))
    return dy * slope


def _slope_gelu(x: Tensor, y: Tensor, dy: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    if not attrs["approximate"]:
        slope: Tensor = run(NORMAL_CDF, x) + x * _normal_density(x)
        return dy * slope
    t = tanh(_ROOT_2_OVER_PI * (x + x * x * x * _GELU_CUBIC))
    inner = _ROOT_2_OVER_PI * (1 + 3 * _GELU_CUBIC * square(x))
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - square(t)) * inner)


RELU = _activation(
    "relu", lambda x: np.maximum(x, 0), lambda x, c: apply("max", x, c(0)),
    lambda x, y, dy, a: run(RELU_GRAD, dy, y), "fiu", frozenset({"cheap"}),
)  # fmt: skip
RELU6 = _activation(
    "relu6", lambda x: np.clip(x, 0, 6), _clip6,
    lambda x, y, dy, a: where((y > 0) & (y < 6), dy, convert_to_tensor(0, dy.dtype)), "fiu",
)  # fmt: skip
LEAKY_RELU = _activation(
    "leaky_relu", lambda x, *, alpha: np.where(x > 0, x, x * x.dtype.type(alpha)), _lower_leaky,
    lambda x, y, dy, a: where(x > 0, dy, dy * a["alpha"]),
)  # fmt: skip
ELU = _activation("elu", _eager_elu, _lower_elu, _slope_elu)
SELU = _activation("selu", _eager_selu, _lower_selu, _slope_selu)
SILU = _activation("silu", _eager_silu, _lower_silu, _slope_silu)
GELU = _activation("gelu", _eager_gelu, _lower_gelu, _slope_gelu)
NORMAL_CDF = _activation(
    "normal_cdf", _eager_normal_cdf, _lower_normal_cdf,
    lambda x, y, dy, a: dy * _normal_density(x),
)  # fmt: skip
SOFTPLUS = _activation(
    "softplus", FUNCTIONS["softplus"].reference, lambda x, c: apply("softplus", x),
    lambda x, y, dy, a: dy * sigmoid(x),
)  # fmt: skip
SOFTSIGN = _activation(
    "softsign", lambda x: x / (1 + np.abs(x)), _lower_softsign,
    lambda x, y, dy, a: dy / square(1 + abs(x)),
)  # fmt: skip


def relu(features: Any, name: str | None = None) -> Tensor:
    """``max(features, 0)``; the gradient at 0 is 0."""
    return run(RELU, convert_to_tensor(features))  # type: ignore[no-any-return]


def relu6(features: Any, name: str | None = None) -> Tensor:
    """``min(max(features, 0), 6)``."""
    return run(RELU6, convert_to_tensor(features))  # type: ignore[no-any-return]


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`features` where positive, ``alpha * features`` elsewhere. Integers become float32."""
    x = convert_to_tensor(features)
    if x.dtype.is_integer:
        x = cast(x, "float32")
    return run(LEAKY_RELU, x, alpha=float(alpha))  # type: ignore[no-any-return]


def elu(features: Any, name: str | None = None, *, alpha: float = 1.0) -> Tensor:
    """`features` where positive, ``alpha * (exp(features) - 1)`` elsewhere."""
    return run(ELU, convert_to_tensor(features), alpha=float(alpha))  # type: ignore[no-any-return]


def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit of self-normalising networks."""
    return run(SELU, convert_to_tensor(features))  # type: ignore[no-any-return]


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """``features * sigmoid(beta * features)``, also known as swish.

    Args:
        beta: a number, or a tensor that broadcasts with the features and gets a gradient.
    """
    x = convert_to_tensor(features)
    if has_dtype(beta) or x.dtype.is_complex:
        return x * sigmoid(x * cast(convert_to_tensor(beta), x.dtype))
    return run(SILU, x, beta=float(beta))  # type: ignore[no-any-return]


swish = silu


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """The Gaussian error linear unit: exact with erfc, or the tanh approximation."""
    x = convert_to_tensor(features)
    return run(GELU, x, approximate=bool(approximate))  # type: ignore[no-any-return]


def softplus(features: Any, name: str | None = None) -> Tensor:
    """``log(1 + exp(features))`` without overflow."""
    return run(SOFTPLUS, convert_to_tensor(features))  # type: ignore[no-any-return]


def softsign(features: Any, name: str | None = None) -> Tensor:
    """``features / (1 + abs(features))``."""
    return run(SOFTSIGN, convert_to_tensor(features))  # type: ignore[no-any-return]


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return -softplus(-convert_to_tensor(x))

"""Forms of functions of elements, one op for each or a few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle.core import dtypes
from treadle.ops.onnx.call import Form, OnnxCall, form

# Ops that ONNX has under another name, with the same meaning for real numbers.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin",
    "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "ceil": "Ceil", "cos": "Cos",
    "cosh": "Cosh", "divide": "Div", "equal": "Equal", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    "invert": "BitwiseNot", "is_inf": "IsInf", "is_nan": "IsNaN", "less": "Less",
    "less_equal": "LessOrEqual", "log": "Log", "logical_and": "And", "logical_not": "Not",
    "logical_or": "Or", "logical_xor": "Xor", "maximum": "Max", "minimum": "Min",
    "multiply": "Mul", "negative": "Neg", "pow": "Pow", "reciprocal": "Reciprocal", "relu": "Relu",
    "round": "Round", "selu": "Selu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "softplus": "Softplus", "softsign": "Softsign", "sqrt": "Sqrt",
    "subtract": "Sub", "tan": "Tan", "tanh": "Tanh", "where": "Where",
}  # fmt: skip


def _same(kind: str) -> Form:
    return lambda call: call.add(kind, *call.inputs)


for _name, _kind in _SAME.items():
    form(_name)(_same(_kind))


@form("identity", "stop_gradient", "whole", "require_sizes", "ensure_shape", "read_variable")
def _itself(call: OnnxCall) -> str:
    """A variable is a constant of the model."""
    return call.inputs[0]


@form("assert")
def _checked(call: OnnxCall) -> list[str]:
    """ONNX stops no program: models do without."""
    return []


@form("cast")
def _cast(call: OnnxCall) -> str:
    return call.cast(call.inputs[0], call.attrs["dtype"])


@form("not_equal")
def _not_equal(call: OnnxCall) -> str:
    return call.add("Not", call.add("Equal", *call.inputs))


@form("is_finite")
def _is_finite(call: OnnxCall) -> str:
    (x,) = call.inputs
    return call.add("Not", call.add("Or", call.add("IsNaN", x), call.add("IsInf", x)))


@form("square")
def _square(call: OnnxCall) -> str:
    return call.add("Mul", call.inputs[0], call.inputs[0])


@form("rsqrt")
def _rsqrt(call: OnnxCall) -> str:
    return call.add("Reciprocal", call.add("Sqrt", *call.inputs))


@form("squared_difference")
def _squared_difference(call: OnnxCall) -> str:
    difference = call.add("Sub", *call.inputs)
    return call.add("Mul", difference, difference)


@form("add_n")
def _add_n(call: OnnxCall) -> str:
    total, *rest = call.inputs
    for x in rest:
        total = call.add("Add", total, x)
    return total


@form("expm1")
def _expm1(call: OnnxCall) -> str:
    """2t / (1 - t) for t = tanh(x / 2) near 0, where exp(x) - 1 has few digits."""
    (x,), one = call.inputs, call.constant(1)
    t = call.add("Tanh", call.add("Mul", x, call.constant(0.5)))
    near = call.add("Div", call.add("Add", t, t), call.add("Sub", one, t))
    is_near = call.add("Less", call.add("Abs", x), one)
    return call.add("Where", is_near, near, call.add("Sub", call.add("Exp", x), one))


@form("log1p")
def _log1p(call: OnnxCall) -> str:
    return log1p(call, call.inputs[0])


def log1p(call: OnnxCall, x: str) -> str:
    """log(u) x / (u - 1) for u = 1 + x as it is rounded, which has all digits near 0."""
    one = call.constant(1)
    u = call.add("Add", one, x)
    lost = call.add("Sub", u, one)
    slope = call.add("Div", call.add("Log", u), lost)
    plain = call.add("Or", call.add("Equal", lost, call.constant(0)), call.add("IsInf", u))
    return call.add(
        "Where", call.add("Equal", u, one), x,
        call.add("Where", plain, call.add("Log", u), call.add("Mul", slope, x)),
    )  # fmt: skip


# -- division --------------------------------------------------------------------------------------


def _is_float(call: OnnxCall) -> bool:
    return call.specs[0].dtype.is_floating


@form("mod")
def _mod(call: OnnxCall) -> str:
    """The remainder with the divisor's sign."""
    x, y = call.inputs
    if not _is_float(call):
        return call.add("Mod", x, y)
    rest, zero = call.add("Mod", x, y, fmod=1), call.constant(0)
    negative = call.add("Xor", call.add("Less", rest, zero), call.add("Less", y, zero))
    other = call.add("And", negative, call.add("Not", call.add("Equal", rest, zero)))
    return call.add("Where", other, call.add("Add", rest, y), rest)


@form("floordiv")
def _floordiv(call: OnnxCall) -> str:
    x, y = call.inputs
    if _is_float(call):
        return call.add("Floor", call.add("Div", x, y))
    return call.add("Div", call.add("Sub", x, call.add("Mod", x, y)), y)


@form("truncatediv")
def _truncatediv(call: OnnxCall) -> str:
    quotient = call.add("Div", *call.inputs)
    if not _is_float(call):
        return quotient
    negative = call.add("Less", quotient, call.constant(0))
    return call.add("Where", negative, call.add("Ceil", quotient), call.add("Floor", quotient))


@form("truncatemod")
def _truncatemod(call: OnnxCall) -> str:
    return call.add("Mod", *call.inputs, fmod=1)


@form("divide_no_nan")
def _divide_no_nan(call: OnnxCall) -> str:
    x, y = call.inputs
    return unless_zero(call, y, lambda: call.add("Div", x, _nonzero(call, y)))


def unless_zero(call: OnnxCall, x: str, value: Callable[[], str]) -> str:
    """A value where `x` is not 0, and 0 where it is."""
    zero = call.constant(0)
    return call.add("Where", call.add("Equal", x, zero), zero, value())


def _nonzero(call: OnnxCall, y: str) -> str:
    return call.add("Where", call.add("Equal", y, call.constant(0)), call.constant(1), y)


@form("multiply_no_nan")
def _multiply_no_nan(call: OnnxCall) -> str:
    return unless_zero(call, call.inputs[1], lambda: call.add("Mul", *call.inputs))


@form("xlogy")
def _xlogy(call: OnnxCall) -> str:
    x, y = call.inputs
    return unless_zero(call, x, lambda: call.add("Mul", x, call.add("Log", y)))


@form("xlog1py")
def _xlog1py(call: OnnxCall) -> str:
    x, y = call.inputs
    return unless_zero(call, x, lambda: call.add("Mul", x, log1p(call, y)))


@form("xdivy")
def _xdivy(call: OnnxCall) -> str:
    x, y = call.inputs
    return unless_zero(call, x, lambda: call.add("Div", x, y))


@form("atan2")
def _atan2(call: OnnxCall) -> str:
    """The angle of y / x, half a turn on where x is negative; of two zeros it is 0."""
    y, x = call.inputs
    zero, pi = call.constant(0), call.constant(np.pi)
    both = call.add("And", call.add("Equal", x, zero), call.add("Equal", y, zero))
    angle = call.add("Where", both, zero, call.add("Atan", call.add("Div", y, x)))
    turn = call.add("Where", call.add("Less", y, zero), call.add("Neg", pi), pi)
    behind = call.add("Less", x, zero)
    return call.add("Add", angle, call.add("Where", behind, turn, zero))


_UNSIGNED = {
    dtypes.int8: dtypes.uint8, dtypes.int16: dtypes.uint16, dtypes.int32: dtypes.uint32,
    dtypes.int64: dtypes.uint64,
}  # fmt: skip


@form("left_shift", "right_shift")
def _shift(call: OnnxCall) -> str:
    """ONNX shifts unsigned integers. Shifting a negative number to the right is shifting its
    complement."""
    x, count = call.inputs
    direction = "LEFT" if call.op.name == "left_shift" else "RIGHT"
    if call.dtype.is_unsigned:
        return call.add("BitShift", x, count, direction=direction)
    negative = call.add("Less", x, call.constant(0))
    if direction == "RIGHT":
        x = call.add("Where", negative, call.add("BitwiseNot", x), x)
    bits = (call.cast(v, _UNSIGNED[call.dtype]) for v in (x, count))
    found = call.cast(call.add("BitShift", *bits, direction=direction), call.dtype)
    if direction == "LEFT":
        return found
    return call.add("Where", negative, call.add("BitwiseNot", found), found)


# -- activations -----------------------------------------------------------------------------------


@form("elu")
def _elu(call: OnnxCall) -> str:
    return call.add("Elu", *call.inputs, alpha=float(call.attrs["alpha"]))


@form("leaky_relu")
def _leaky_relu(call: OnnxCall) -> str:
    return call.add("LeakyRelu", *call.inputs, alpha=float(call.attrs["alpha"]))


@form("gelu")
def _gelu(call: OnnxCall) -> str:
    how = "tanh" if call.attrs["approximate"] else "none"
    return call.add("Gelu", *call.inputs, approximate=how)


@form("silu")
def _silu(call: OnnxCall) -> str:
    (x,), beta = call.inputs, call.attrs["beta"]
    scaled = x if beta == 1 else call.add("Mul", x, call.constant(beta))
    return call.add("Mul", x, call.add("Sigmoid", scaled))


@form("relu6")
def _relu6(call: OnnxCall) -> str:
    return call.add("Clip", *call.inputs, call.constant(0), call.constant(6))


@form("relu_grad")
def _relu_grad(call: OnnxCall) -> str:
    dy, y = call.inputs
    zero = call.constant(0)
    return call.add("Where", call.add("Greater", y, zero), dy, zero)


# -- probabilities ---------------------------------------------------------------------------------


@form("softmax")
def _softmax(call: OnnxCall) -> str:
    return call.add("Softmax", *call.inputs, axis=call.attrs["axis"])


@form("log_softmax")
def _log_softmax(call: OnnxCall) -> str:
    return call.add("LogSoftmax", *call.inputs, axis=call.attrs["axis"])


@form("sigmoid_cross_entropy")
def _sigmoid_cross_entropy(call: OnnxCall) -> str:
    return call.add("Sub", call.add("Softplus", call.inputs[0]), call.add("Mul", *call.inputs))


@form("softmax_cross_entropy")
def _softmax_cross_entropy(call: OnnxCall) -> str:
    logits, labels = call.inputs
    terms = call.add("Mul", labels, call.add("LogSoftmax", logits, axis=-1))
    return call.add("Neg", call.add("ReduceSum", terms, call.integers(-1), keepdims=0))


@form("softmax_cross_entropy_grad")
def _softmax_cross_entropy_grad(call: OnnxCall) -> str:
    logits, labels, dloss = call.inputs
    slope = call.add("Sub", call.add("Softmax", logits, axis=-1), labels)
    return call.add("Mul", slope, call.unsqueeze(dloss, -1))


@form("sparse_softmax_cross_entropy")
def _sparse_softmax_cross_entropy(call: OnnxCall) -> str:
    logs = call.add("LogSoftmax", call.inputs[0], axis=-1)
    places = call.unsqueeze(call.positions(1), -1)
    found = call.add("GatherElements", logs, places, axis=-1)
    return call.add("Neg", call.add("Squeeze", found, call.integers(-1)))


@form("sparse_softmax_cross_entropy_grad")
def _sparse_softmax_cross_entropy_grad(call: OnnxCall) -> str:
    logits, _, dloss = call.inputs
    classes = call.add("Range", call.scalar(0), call.scalar(call.specs[0].dims[-1]), call.scalar(1))
    chosen = call.add("Equal", call.unsqueeze(call.positions(1), -1), classes)
    slope = call.add("Sub", call.add("Softmax", logits, axis=-1), call.cast(chosen, call.dtype))
    return call.add("Mul", slope, call.unsqueeze(dloss, -1))

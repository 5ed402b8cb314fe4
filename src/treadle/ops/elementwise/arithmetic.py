"""Arithmetic of two tensors: add, divide, pow, maximum and their like. Operands broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast, compound
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Expr, apply, const
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor, has_dtype
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj, real
from treadle.ops.elementwise.selection import where
from treadle.ops.indexed_slices import IndexedSlices, on_values
from treadle.ops.lowering import LowerCall, elementwise_rule
from treadle.ops.op_makers import binary, binary_op, guard, needs, require_kinds
from treadle.ops.properties import Refusal
from treadle.ops.registry import Op, OpCall, register, run


def _checked_division(name: str) -> Any:
    """The kernel function's NumPy meaning, with division of integers by zero refused."""
    reference = FUNCTIONS[name].reference

    def divide(x: NDArray, y: NDArray) -> NDArray:
        if y.dtype.kind in "iu" and not y.all():
            raise errors.InvalidArgumentError(None, None, "integer division by zero")
        return np.asarray(reference(x, y)).astype(x.dtype, copy=False)

    return divide


def _squared_difference(x: NDArray, y: NDArray) -> NDArray:
    difference = np.subtract(x, y)
    return np.multiply(np.conjugate(difference), difference)


def _divide_no_nan(x: NDArray, y: NDArray) -> NDArray:
    zero = np.equal(y, 0)
    return np.where(zero, x.dtype.type(0), np.divide(x, np.where(zero, y.dtype.type(1), y)))


def _lower_divide_no_nan(call: LowerCall, x: Expr, y: Expr) -> Expr:
    zero, one = const(0, x.dtype), const(1, x.dtype)
    is_zero = apply("eq", y, zero)
    return apply("select", is_zero, zero, apply("div", x, apply("select", is_zero, one, y)))


def _lower_squared_difference(call: LowerCall, x: Expr, y: Expr) -> Expr:
    difference = apply("sub", x, y)
    return apply("mul", difference, difference)


def equal_zero(x: Tensor) -> Tensor:
    return x == 0  # type: ignore[no-any-return]


def zeros_for(x: Tensor) -> Tensor:
    """A scalar zero of x's dtype."""
    return convert_to_tensor(0, x.dtype)


def ones_for(x: Tensor) -> Tensor:
    """A scalar one of x's dtype."""
    return convert_to_tensor(1, x.dtype)


def _split_by(chosen: Any) -> Any:
    """Gradient of maximum and minimum: all of it to the chosen operand, x on a tie."""

    def rule(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
        mask = chosen(x, y)
        zero = zeros_for(dz)
        return lambda: where(mask, dz, zero), lambda: where(mask, zero, dz)

    return rule


def _grad_floormod(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return lambda: dz, lambda: -dz * floordiv(x, y)


def _grad_truncmod(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return lambda: dz, lambda: -dz * truncatediv(x, y)


def _grad_divide(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return lambda: dz / conj(y), lambda: -dz * conj(z / y)


def _grad_divide_no_nan(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return lambda: divide_no_nan(dz, conj(y)), lambda: -dz * conj(divide_no_nan(z, y))


def _grad_atan2(y: Tensor, x: Tensor, z: Tensor, dz: Tensor) -> Any:
    scaled = dz / (x * x + y * y)
    return lambda: scaled * x, lambda: scaled * -y


def _grad_squared_difference(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    if z.dtype.is_complex:  # its numbers are real
        dz = cast(real(dz), dz.dtype)
    scaled = dz * (x - y) * 2
    return lambda: scaled, lambda: -scaled


NUMBERS, REALS, INTEGERS = "fciu", "fiu", "iu"

_RING = frozenset({"cheap", "ring"})
ADD = binary_op(
    "add", np.add, NUMBERS + "s", "add", lambda x, y, z, dz: (lambda: dz, lambda: dz),
    tags=_RING | {"adds", "strings"}, neutral=(-0.0, -0.0), on_dims=lambda a, b: a + b,
)  # fmt: skip
SUBTRACT = binary_op(
    "subtract", np.subtract, NUMBERS, "sub", lambda x, y, z, dz: (lambda: dz, lambda: -dz),
    tags=_RING, neutral=(None, 0.0), on_dims=lambda a, b: a - b,
)  # fmt: skip
MULTIPLY = binary_op(
    "multiply", np.multiply, NUMBERS, "mul",
    lambda x, y, z, dz: (lambda: dz * conj(y), lambda: dz * conj(x)),
    tags=_RING, neutral=(1.0, 1.0), on_dims=lambda a, b: a * b,
)  # fmt: skip
DIVIDE = binary_op("divide", np.divide, "fc", "div", _grad_divide, neutral=(None, 1.0))
FLOORDIV = binary_op(
    "floordiv", _checked_division("floordiv"), REALS, "floordiv", lambda *_: (None, None),
    refuses=Refusal.DIVISOR,
)  # fmt: skip
MOD = binary_op(
    "mod", _checked_division("mod"), REALS, "mod", _grad_floormod, refuses=Refusal.DIVISOR
)
TRUNCATEDIV = binary_op(
    "truncatediv", _checked_division("truncdiv"), REALS, "truncdiv", lambda *_: (None, None),
    refuses=Refusal.DIVISOR,
)  # fmt: skip
TRUNCATEMOD = binary_op(
    "truncatemod", _checked_division("truncmod"), REALS, "truncmod", _grad_truncmod,
    refuses=Refusal.DIVISOR,
)  # fmt: skip
_EXTREMUM = frozenset({"cheap", "idempotent"})
MAXIMUM = binary_op(
    "maximum", np.maximum, REALS, "max", lambda *a: _split_by(lambda x, y: x >= y)(*a),
    tags=_EXTREMUM, on_dims=lambda a, b: compound("max", a, b),
)  # fmt: skip
MINIMUM = binary_op(
    "minimum", np.minimum, REALS, "min", lambda *a: _split_by(lambda x, y: x <= y)(*a),
    tags=_EXTREMUM, on_dims=lambda a, b: compound("min", a, b),
)  # fmt: skip
ATAN2 = binary_op("atan2", np.arctan2, "f", "atan2", _grad_atan2)
SQUARED_DIFFERENCE = binary_op(
    "squared_difference", _squared_difference, NUMBERS,
    elementwise_rule(_lower_squared_difference), _grad_squared_difference,
)  # fmt: skip
DIVIDE_NO_NAN = binary_op(
    "divide_no_nan", _divide_no_nan, "fc",
    elementwise_rule(_lower_divide_no_nan), _grad_divide_no_nan,
)  # fmt: skip

add = binary(ADD, "x + y, element by element; strings are joined.")
subtract = binary(SUBTRACT, "x - y, element by element.")
multiply = binary(MULTIPLY, "x * y, element by element.")
maximum = binary(MAXIMUM, "The larger of x and y; NaN where either is NaN.")
minimum = binary(MINIMUM, "The smaller of x and y; NaN where either is NaN.")
floordiv = binary(FLOORDIV, "x / y rounded towards minus infinity, in the operands' dtype.")
mod = binary(MOD, "The remainder of `floordiv`; it has the sign of y.")
truncatediv = binary(TRUNCATEDIV, "x / y rounded towards zero, in the operands' dtype.")
truncatemod = binary(TRUNCATEMOD, "The remainder of `truncatediv`; it has the sign of x.")
squared_difference = binary(SQUARED_DIFFERENCE, "conj(x - y) * (x - y), element by element.")


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y), in (-pi, pi]."""
    a, b = common_dtype("atan2", y, x)
    return run(ATAN2, a, b)  # type: ignore[no-any-return]


# Integers divide as floats, as TensorFlow's: the narrow ones as float32.
_QUOTIENTS = {
    "int8": dtypes.float32, "uint8": dtypes.float32,
    "int16": dtypes.float32, "uint16": dtypes.float32,
    "int32": dtypes.float64, "uint32": dtypes.float64,
    "int64": dtypes.float64, "uint64": dtypes.float64,
}  # fmt: skip


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y. Integers give float64 (float32 for 8 and 16 bits), as Python's ``/``."""
    return run(DIVIDE, *_as_divided("divide", x, y))  # type: ignore[no-any-return]


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0. Integers are divided as floats, as by `divide`."""
    return run(DIVIDE_NO_NAN, *_as_divided("divide_no_nan", x, y))  # type: ignore[no-any-return]


def _as_divided(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    a, b = common_dtype(name, x, y)
    quotient = _QUOTIENTS.get(a.dtype.name)
    return (a, b) if quotient is None else (cast(a, quotient), cast(b, quotient))


truediv = divide


def _infer_add_n(*specs: TensorSpec) -> TensorSpec:
    require_kinds(NUMBERS, *specs)
    for spec in specs:
        if not spec.shape.is_compatible_with(specs[0].shape):
            raise errors.InvalidArgumentError(
                None, None, f"shapes {specs[0].shape} and {spec.shape} differ"
            )
    return TensorSpec(broadcast(*(s.dims for s in specs)), specs[0].dtype)


def _eager_add_n(*arrays: NDArray) -> NDArray:
    if any(a.shape != arrays[0].shape or a.dtype != arrays[0].dtype for a in arrays):
        raise errors.InvalidArgumentError(None, None, "shapes or dtypes differ")
    total = arrays[0]
    for array in arrays[1:]:
        total = np.add(total, array)
    return total


def _lower_add_n(call: LowerCall, *elements: Expr) -> Expr:
    total = elements[0]
    for element in elements[1:]:
        total = apply("add", total, element)
    return total


def _grad_add_n(call: OpCall, dy: Tensor) -> list[Any]:
    return [unbroadcast(dy, x) if needs(call, i) else None for i, x in enumerate(call.inputs)]


ADD_N = register(
    Op(
        "add_n", _infer_add_n, guard(NUMBERS, _eager_add_n), _grad_add_n,
        elementwise_rule(_lower_add_n), tags=frozenset({"adds", "cheap"}),
    )
)  # fmt: skip


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """`x`, a tensor or `IndexedSlices`, times a tensor of rank 0.

    Raises:
        ValueError: the first operand is not of rank 0.
    """
    kind = x.dtype if isinstance(x, IndexedSlices) else convert_to_tensor(x).dtype
    factor = convert_to_tensor(scalar, kind)
    if factor.ndim:
        raise ValueError(
            f"scalar_mul: the first operand must be of rank 0, not of shape {factor.shape}"
            f"{at(user_origin())}"
        )
    return on_values(lambda values: multiply(factor, values), x)  # type: ignore[no-any-return]


def add_n(inputs: Iterable[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype.

    Args:
        inputs: a list or another iterable of tensors; a tensor is given back.

    Raises:
        ValueError: there is none.
    """
    if has_dtype(inputs) or not isinstance(inputs, Iterable):
        return convert_to_tensor(inputs)
    tensors = [convert_to_tensor(x) for x in inputs]
    if not tensors:
        raise ValueError("add_n needs at least one tensor")
    return tensors[0] if len(tensors) == 1 else run(ADD_N, *tensors)


def accumulate_n(
    inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """`add_n` under another name.

    Args:
        shape, tensor_dtype: what each of the inputs must have, where given.

    Raises:
        ValueError: there is no tensor, or one of another shape.
        TypeError: one has another dtype than `tensor_dtype`.
    """
    tensors = [convert_to_tensor(x) for x in inputs]
    for x in tensors:
        if shape is not None and not x.shape.is_compatible_with(shape):
            raise ValueError(
                f"accumulate_n: a tensor of shape {x.shape} among inputs of shape {shape}"
                f"{at(user_origin())}"
            )
        if tensor_dtype is not None and x.dtype is not dtypes.as_dtype(tensor_dtype):
            raise TypeError(
                f"accumulate_n: a tensor of dtype {x.dtype.name} among inputs of dtype "
                f"{dtypes.as_dtype(tensor_dtype).name}{at(user_origin())}"
            )
    return add_n(tensors)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest power first, by Horner's rule.

    Args:
        coeffs: a list of tensors that broadcast with `x`; without any the value is 0.

    Raises:
        ValueError: `coeffs` is not a list.
    """
    if not isinstance(coeffs, list):
        kind = type(coeffs).__name__
        raise ValueError(f"polyval: a list is expected, not a {kind}{at(user_origin())}")
    value = convert_to_tensor(x)
    if not coeffs:
        return value * 0
    total = convert_to_tensor(coeffs[0])
    for coefficient in coeffs[1:]:
        total = convert_to_tensor(coefficient, dtype_hint=value.dtype) + total * value
    return total

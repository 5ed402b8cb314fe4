"""Products and quotients that are 0 where one factor is, whatever the other one is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.arithmetic import DIVIDE_NO_NAN
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal, not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import log, log1p, square
from treadle.ops.op_makers import Public, binary, needs
from treadle.ops.registry import Gradient, Op, OpCall, run
from treadle.ops.special.formulas import Arithmetic, formula_op


def _xlogy(m: Arithmetic, x: Any, y: Any) -> Any:
    return m.where(x == 0.0, 0.0, x * m.log(y))


def _xlog1py(m: Arithmetic, x: Any, y: Any) -> Any:
    return m.where(x == 0.0, 0.0, x * m.log1p(y))


def _xdivy(m: Arithmetic, x: Any, y: Any) -> Any:
    return m.where(x == 0.0, 0.0, x / y)


def _multiply_no_nan(m: Arithmetic, x: Any, y: Any) -> Any:
    return m.where(y == 0.0, 0.0, x * y)


def _gradient(by_x: Any, by_y: Any) -> Gradient:
    """The rule from the two slopes as functions of x and y."""

    def rule(call: OpCall, dz: Tensor) -> list[Any]:
        x, y = call.inputs
        return [
            unbroadcast(dz * slope(x, y), operand) if needs(call, i) else None
            for i, (slope, operand) in enumerate(((by_x, x), (by_y, y)))
        ]

    return rule


def _present(x: Tensor) -> Tensor:
    """1 where x is not 0."""
    return cast(not_equal(x, 0), x.dtype)


def _grad_multiply_no_nan(call: OpCall, dz: Tensor) -> list[Any]:
    x, y = call.inputs
    return [unbroadcast(multiply_no_nan(dz, y), x), unbroadcast(multiply_no_nan(x, dz), y)]


_XLOGY: Op = formula_op(
    "xlogy", _xlogy, _gradient(lambda x, y: xlogy(_present(x), y), lambda x, y: xdivy(x, y))
)
_XLOG1PY: Op = formula_op(
    "xlog1py", _xlog1py,
    _gradient(lambda x, y: xlog1py(_present(x), y), lambda x, y: xdivy(x, y + 1)),
)  # fmt: skip
_XDIVY: Op = formula_op(
    "xdivy", _xdivy,
    _gradient(lambda x, y: xdivy(_present(x), y), lambda x, y: xdivy(-x, square(y))),
)  # fmt: skip
_MULTIPLY_NO_NAN: Op = formula_op("multiply_no_nan", _multiply_no_nan, _grad_multiply_no_nan)

def _guarded(
    real: Op, guard: int, of_complex: Callable[[Tensor, Tensor], Tensor], doc: str
) -> Public:
    """The public function: the op for real numbers; complex ones are composed, with 1 in place of
    the other operand where operand number `guard` is 0."""
    of_real = binary(real, doc)

    @functools.wraps(of_real)
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        operands = common_dtype(real.name, x, y)
        if not operands[0].dtype.is_complex:
            return of_real(*operands)
        zero = equal(operands[guard], 0)
        safe = [z if i == guard else where(zero, 1, z) for i, z in enumerate(operands)]
        return where(zero, 0, of_complex(*safe))

    return function


xlogy: Public = _guarded(_XLOGY, 0, lambda x, y: x * log(y), "x * log(y), and 0 where x is 0.")
xlog1py: Public = _guarded(
    _XLOG1PY, 0, lambda x, y: x * log1p(y), "x * log(1 + y), and 0 where x is 0."
)
xdivy: Public = _guarded(_XDIVY, 0, lambda x, y: x / y, "x / y, and 0 where x is 0.")
multiply_no_nan: Public = _guarded(
    _MULTIPLY_NO_NAN, 1, lambda x, y: x * y,
    "x * y, and 0 where y is 0, even if x is infinite or NaN.",
)  # fmt: skip


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0. Integers are refused."""
    value = convert_to_tensor(x)
    one = convert_to_tensor(1, value.dtype)
    return run(DIVIDE_NO_NAN, one, value)  # type: ignore[no-any-return]

"""Formulas that compute with arrays and, written once, with expressions of kernels.

A formula takes the arithmetic and its operands, all float64, and uses their operators:

    def xlogy(m: Arithmetic, x: Any, y: Any) -> Any:
        return m.where(x == 0, 0.0, x * m.log(y))

`formula_op` makes an op of it: eager execution calls it with arrays, a compiled program with the
elements that its kernel has loaded. Narrower floats are widened first and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from treadle.core import dtypes
from treadle.core.arrays import broadcast_arrays
from treadle.core.shapes import Dim, broadcast_and_told, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.kernel.ir import Expr, apply, cast, const
from treadle.ops.lowering import RowCall, Rows, elementwise_rule
from treadle.ops.op_makers import require_kinds
from treadle.ops.registry import Gradient, Op, register


class Arithmetic(Protocol):
    """The functions that formulas use beside operators and comparisons."""

    def where(self, condition: Any, x: Any, y: Any) -> Any: ...
    def exp(self, x: Any) -> Any: ...
    def log(self, x: Any) -> Any: ...
    def log1p(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def sin(self, x: Any) -> Any: ...
    def cos(self, x: Any) -> Any: ...
    def floor(self, x: Any) -> Any: ...
    def abs(self, x: Any) -> Any: ...


Formula: TypeAlias = Callable[..., Any]


class _Arrays:
    """NumPy's functions."""

    where = staticmethod(np.where)
    exp, log, log1p = np.exp, np.log, np.log1p
    sqrt, sin, cos = np.sqrt, np.sin, np.cos
    floor, abs = np.floor, np.abs


class _Term:
    """An element of a kernel, with Python's operators."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __add__(self, other: Any) -> _Term:
        return _call("add", self, other)

    def __radd__(self, other: Any) -> _Term:
        return _call("add", other, self)

    def __sub__(self, other: Any) -> _Term:
        return _call("sub", self, other)

    def __rsub__(self, other: Any) -> _Term:
        return _call("sub", other, self)

    def __mul__(self, other: Any) -> _Term:
        return _call("mul", self, other)

    def __rmul__(self, other: Any) -> _Term:
        return _call("mul", other, self)

    def __truediv__(self, other: Any) -> _Term:
        return _call("div", self, other)

    def __rtruediv__(self, other: Any) -> _Term:
        return _call("div", other, self)

    def __neg__(self) -> _Term:
        return _call("neg", self)

    def __lt__(self, other: Any) -> _Term:
        return _call("lt", self, other)

    def __le__(self, other: Any) -> _Term:
        return _call("le", self, other)

    def __gt__(self, other: Any) -> _Term:
        return _call("gt", self, other)

    def __ge__(self, other: Any) -> _Term:
        return _call("ge", self, other)

    def __eq__(self, other: Any) -> _Term:  # type: ignore[override]
        return _call("eq", self, other)

    def __ne__(self, other: Any) -> _Term:  # type: ignore[override]
        return _call("ne", self, other)

    def __and__(self, other: _Term) -> _Term:
        return _call("and", self, other)

    def __or__(self, other: _Term) -> _Term:
        return _call("or", self, other)

    __hash__ = None  # type: ignore[assignment]


def _call(function: str, *operands: Any) -> _Term:
    """A function of the kernel table; Python numbers are float64 constants."""
    return _Term(apply(function, *map(_expr, operands)))


def _expr(operand: Any) -> Expr:
    return operand.expr if isinstance(operand, _Term) else const(operand, dtypes.float64)


class _Elements:
    """The functions of the kernel table."""

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return _Term(apply("select", condition.expr, _expr(x), _expr(y)))

    def exp(self, x: Any) -> Any:
        return _call("exp", x)

    def log(self, x: Any) -> Any:
        return _call("log", x)

    def log1p(self, x: Any) -> Any:
        return _call("log1p", x)

    def sqrt(self, x: Any) -> Any:
        return _call("sqrt", x)

    def sin(self, x: Any) -> Any:
        return _call("sin", x)

    def cos(self, x: Any) -> Any:
        return _call("cos", x)

    def floor(self, x: Any) -> Any:
        return _call("floor", x)

    def abs(self, x: Any) -> Any:
        return _call("abs", x)


ARRAYS: Arithmetic = _Arrays()
ELEMENTS: Arithmetic = _Elements()


def formula_op(name: str, formula: Formula, gradient: Gradient | None = None) -> Op:
    """Register an elementwise op on floats, whose operands broadcast, from its formula."""

    def eager(*arrays: NDArray) -> NDArray:
        _require_floats(arrays)
        wide = (a.astype(np.float64, copy=False) for a in arrays)
        return np.asarray(formula(ARRAYS, *wide)).astype(arrays[0].dtype, copy=False)

    def lower(call: Any, *elements: Expr) -> Expr:
        wide = (_Term(cast(e, dtypes.float64)) for e in elements)
        return cast(_expr(formula(ELEMENTS, *wide)), call.out.dtype)

    tags = frozenset({"formula"})
    return register(Op(name, infer_floats, eager, gradient, elementwise_rule(lower), tags=tags))


def series_op(name: str, function: Callable[..., NDArray], gradient: Gradient | None = None) -> Op:
    """Register an elementwise op on floats whose elements need loops of different lengths, until a
    series of theirs has converged. `runtime/routines/series.py` has a routine of its name.

    Args:
        function: computes with float64 arrays of one shape and one axis.
    """

    def eager(*arrays: NDArray) -> NDArray:
        _require_floats(arrays)
        wide = broadcast_arrays(*(a.astype(np.float64, copy=False) for a in arrays))
        result = function(*(a.reshape(-1) for a in wide)).reshape(wide[0].shape)
        return result.astype(arrays[0].dtype, copy=False)

    why = "routines take float32 and float64, arrays of one shape and single numbers"
    lower = Rows(f"series.{name}", _series_call, eagerly=True)
    return register(Op(name, infer_floats, eager, gradient, lower, callback=why))


_SERIES_WORK = 512  # element operations until a series has converged


def _series_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    found = outputs[0]
    if found.dtype.size < 4 or any(x.dtype is not found.dtype for x in inputs):
        return None
    numbers: dict[str, Dim] = {}
    for k, x in enumerate(inputs):
        single = all(d == 1 for d in x.dims)
        if not single and x.dims != found.dims:
            return None
        numbers[f"step{k}"] = int(not single)
    count = product(found.dims)
    return RowCall(count, _SERIES_WORK * count, numbers, {"T": found.dtype})


def infer_floats(*specs: TensorSpec) -> TensorSpec:
    """The shape rule of elementwise ops on floats."""
    require_kinds("f", *specs)
    dims = specs[0].dims
    for spec in specs[1:]:
        dims = broadcast_and_told(dims, spec.dims)
    return TensorSpec(dims, specs[0].dtype)


def _require_floats(arrays: Sequence[NDArray]) -> None:
    for array in arrays:
        if array.dtype.kind not in "fV":  # NumPy's kind of bfloat16 is V
            raise TypeError(f"dtype {array.dtype} is not supported; it must be floating")


def horner(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial with these coefficients, the highest power first."""
    total: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def chebyshev(coefficients: Sequence[float], x: Any) -> Any:
    """The sum of Chebyshev polynomials T0, T1, ... of x in [-1, 1] times these coefficients, by
    Clenshaw's recurrence."""
    double = x + x
    before: Any = 0.0
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        before, total = total, double * total - before + coefficient
    return x * total - before + coefficients[0]

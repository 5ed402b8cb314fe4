"""Constants that are made of dims: ``x / x.shape[0]`` holds 4.0 in one trace and 5.0 in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import Dim, substitute
from treadle.graph.families.expressions import Different, Expressions
from treadle.graph.ir import Node, Region, Value
from treadle.ops.conversion import CONST
from treadle.ops.dims import DIM
from treadle.ops.elementwise.arithmetic import DIVIDE
from treadle.ops.elementwise.casting import CAST
from treadle.ops.registry import Op, infer_outputs
from treadle.ops.shaping.joining import STACK

MOST_ELEMENTS = 16
NDArray = np.ndarray[Any, Any]


@record(frozen=True)
class DimConstant:
    """A constant of a pattern: dims, or a number divided by a dim.

    Attributes:
        dims: one expression for each element.
        shape: () or (len(dims),).
        numerator: None, or the number that the dim divides (in double precision).
    """

    dims: tuple[Dim, ...]
    shape: tuple[int, ...]
    dtype: dtypes.DType
    numerator: float | None = None

    def evaluate(self, scope: Mapping[str, Dim]) -> NDArray | None:
        """The array for the given values of symbols; None where one has none."""
        values = [substitute(d, scope) for d in self.dims]
        if not all(isinstance(v, int) for v in values):
            return None
        if self.numerator is not None:
            with np.errstate(all="ignore"):
                values = list(np.float64(self.numerator) / np.array(values, np.float64))
        return np.array(values, self.dtype.np_dtype).reshape(self.shape)


def common_constant(arrays: Sequence[NDArray], expressions: Expressions) -> DimConstant:
    """One description of dims that fits the constants of all sample graphs.

    Raises:
        Different: they are not made of dims, as far as can be seen.
    """
    first = arrays[0]
    alike = all(a.shape == first.shape and a.dtype == first.dtype for a in arrays)
    if not alike or first.ndim > 1 or first.size > MOST_ELEMENTS or first.dtype.kind not in "iuf":
        raise Different("constants")
    dtype = dtypes.from_numpy(first.dtype)
    columns = list(zip(*(a.reshape(-1).tolist() for a in arrays), strict=True))
    whole = [_whole(c) for c in columns]
    if all(c is not None for c in whole):
        dims = [expressions.find(c) for c in whole if c is not None]
        if all(d is not None for d in dims):
            return DimConstant(tuple(d for d in dims if d is not None), first.shape, dtype)
    if first.ndim == 0 and first.dtype.kind == "f":
        return _quotient(arrays, expressions, dtype)
    raise Different(f"the constants {' and '.join(map(str, columns))}")


def _whole(values: Sequence[float]) -> tuple[int, ...] | None:
    """Numbers as ints, if they are."""
    if all(float(v).is_integer() and abs(v) < 2**53 for v in values):
        return tuple(map(int, values))
    return None


def _quotient(
    arrays: Sequence[NDArray], expressions: Expressions, dtype: dtypes.DType
) -> DimConstant:
    """``c / dim`` in double precision, for a number c of few digits."""
    for dim in expressions.symbols():
        sizes = expressions.values(dim)
        if all(isinstance(s, int) and s for s in sizes):
            numerator = float(f"{float(arrays[0]) * sizes[0]:.4g}")  # type: ignore[operator]
            found = DimConstant((dim,), (), dtype, numerator)
            values = [found.evaluate(scope) for scope in expressions.scopes]
            if all(np.array_equal(v, a) for v, a in zip(values, arrays, strict=True)):  # type: ignore[arg-type]
                return found
    raise Different(f"the constants {' and '.join(map(str, arrays))}")


def emit(region: Region, constant: DimConstant, like: Node) -> list[Node]:
    """Append nodes that compute the constant; the last one gives it."""
    made: list[Node] = []

    def add(op: Op, inputs: Sequence[Value], **attrs: Any) -> Value:
        specs = infer_outputs(op, [v.spec for v in inputs], attrs)
        node = region.append(Node(op, inputs, attrs, specs, (), like.origin))
        made.append(node)
        return node.outputs[0]

    def one(dim: Dim, dtype: dtypes.DType) -> Value:
        if isinstance(dim, int):
            return add(CONST, (), value=np.array(dim, dtype.np_dtype))
        return add(DIM, (), dim=dim, out_type=dtype)

    if constant.numerator is not None:
        numerator = add(CONST, (), value=np.array(constant.numerator))
        quotient = add(DIVIDE, [numerator, one(constant.dims[0], dtypes.float64)])
        add(CAST, [quotient], dtype=constant.dtype)
    elif constant.shape:
        add(STACK, [one(d, constant.dtype) for d in constant.dims], axis=0)
    else:
        one(constant.dims[0], constant.dtype)
    return made

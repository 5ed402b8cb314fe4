"""Algebraic simplification by rules that never change a result bit.

For floats x + 0 is not x (-0.0 + 0.0 is 0.0) and x * 0 is not 0 (NaN, infinities). So the rules are
those that IEEE 754 allows: x + -0.0, x - 0.0, x * 1, x / 1, and x / 2**k as a multiplication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from treadle.core.dtypes import DType
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.broadcasts import sink_broadcasts
from treadle.graph.passes.constants import MOST_ELEMENTS
from treadle.graph.passes.movement import MOVEMENT_RULES, no_axes
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.elementwise.arithmetic import DIVIDE, MULTIPLY
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.registry import Op

Rule: TypeAlias = "Callable[[Rewriter, Node], Value | None]"


def simplify_algebra(graph: Graph) -> bool:
    """Apply the rules of this file and of `movement` wherever they fit."""
    return _Simplifier(graph).run()


class _Simplifier(Rewriter):
    def visit(self, node: Node) -> Replacement:
        for rule in _rules(node.op):
            found = rule(self, node)
            if found is not None:
                return [found]
        found = sink_broadcasts(self, node)
        return None if found is None else [found]


def _all_equal(value: Value, number: float) -> bool:
    """True for a constant whose every element is `number`, the sign of zero included."""
    array = constant_of(value)
    if array is None or array.size == 0 or array.dtype.kind in "bc":
        return False
    same_sign = number != 0 or bool((np.signbit(array) == np.signbit(number)).all())
    return bool((array == number).all()) and same_sign


def _neutral(rewriter: Rewriter, node: Node) -> Value | None:
    """One operand, where the other changes nothing and no shape grows."""
    assert node.op.neutral is not None
    for position, number in enumerate(node.op.neutral):
        given, other = node.inputs[position], node.inputs[1 - position]
        if number is None or other.spec is not node.outputs[0].spec:
            continue
        if _all_equal(given, number if _is_float(given.spec.dtype) else int(number)):
            return other
    return None


def _is_float(dtype: DType) -> bool:
    return dtype.is_floating


def _input(rewriter: Rewriter, node: Node) -> Value | None:
    return node.inputs[0]


def _twice(rewriter: Rewriter, node: Node) -> Value | None:
    """f(f(x)) is x."""
    inner = node.inputs[0].node
    return inner.inputs[0] if inner is not None and inner.op is node.op else None


def _same_operands(rewriter: Rewriter, node: Node) -> Value | None:
    """maximum(x, x) is x."""
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _divide_by_power_of_two(rewriter: Rewriter, node: Node) -> Value | None:
    """x / c is x * (1 / c) when 1 / c is exact."""
    x, y = node.inputs
    array = constant_of(y)
    if array is None or not _is_float(y.spec.dtype) or not 0 < array.size <= MOST_ELEMENTS:
        return None
    with np.errstate(all="ignore"):
        mantissa, _ = np.frexp(array.astype(np.float64))
        inverse = np.asarray(1 / array.astype(np.float64)).astype(array.dtype)
        exact = (np.abs(mantissa) == 0.5) & np.isfinite(inverse) & (inverse != 0)
    if not exact.all():
        return None
    return rewriter.emit(MULTIPLY, [x, rewriter.constant(inverse)], {})


def _select_constant(rewriter: Rewriter, node: Node) -> Value | None:
    """where(all true, x, y) is x; where(c, x, x) is x."""
    condition, x, y = node.inputs
    if x is y and x.spec is node.outputs[0].spec:
        return x
    array = constant_of(condition)
    if array is None or array.size == 0 or not (array.all() or not array.any()):
        return None
    chosen = x if array.all() else y
    return chosen if chosen.spec is node.outputs[0].spec else None


def _exact_cast(rewriter: Rewriter, node: Node) -> Value | None:
    """cast to the same dtype is nothing; cast(cast(x, wider), dtype) is cast(x, dtype)."""
    x, dtype = node.inputs[0], node.attrs["dtype"]
    if x.spec.dtype is dtype:
        return x
    inner = x.node
    if inner is None or inner.op is not node.op:
        return None
    source = inner.inputs[0]
    if not _holds_all(x.spec.dtype, source.spec.dtype):
        return None
    if source.spec.dtype is dtype:
        return source
    return rewriter.emit(node.op, [source], node.attrs)


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is exact in `wide` and converts on as it does itself."""
    if narrow.kind != wide.kind or wide.is_bool:
        return False
    if narrow.is_floating or narrow.is_integer:
        return bool(narrow.size < wide.size)
    return False


def _rules(op: Op) -> Iterator[Rule]:
    """The rules for an op: those that follow from its record, and those for it alone."""
    if op.neutral is not None:
        yield _neutral
    for tag, rule in _BY_TAG.items():
        if tag in op.tags:
            yield rule
    yield from _PATTERNS.get(op, ())


_BY_TAG: dict[str, Rule] = {
    "as_is": _input,
    "involution": _twice,
    "idempotent": _same_operands,
    "reduces": no_axes,
}
_PATTERNS: dict[Op, tuple[Rule, ...]] = {
    DIVIDE: (_divide_by_power_of_two,),
    WHERE: (_select_constant,),
    CAST: (_exact_cast,),
    **MOVEMENT_RULES,
}

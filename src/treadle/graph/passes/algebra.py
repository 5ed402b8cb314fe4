"""Algebraic simplification by rules that never change a result bit.

For floats x + 0 is not x (-0.0 + 0.0 is 0.0) and x * 0 is not 0 (NaN, infinities), so only what
IEEE 754 allows is done: x + -0.0, x - 0.0, x * 1, x / 1, and x / 2**k as a multiplication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from treadle.core.dtypes import DType
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.broadcasts import sink_broadcasts
from treadle.graph.passes.movement import MOVEMENT_RULES
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.registry import OPS

Rule: TypeAlias = "Callable[[Rewriter, Node], Value | None]"


def simplify_algebra(graph: Graph) -> bool:
    """Apply the rules below and those of `movement` wherever they fit."""
    return _Simplifier(graph).run()


class _Simplifier(Rewriter):
    def visit(self, node: Node) -> Replacement:
        for rule in RULES.get(node.op.name, ()):
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


def _neutral(position: int, is_neutral: Callable[[Value], bool]) -> Rule:
    """The other operand, where the one at `position` changes nothing and no shape grows."""

    def rule(rewriter: Rewriter, node: Node) -> Value | None:
        other = node.inputs[1 - position]
        if other.spec is node.outputs[0].spec and is_neutral(node.inputs[position]):
            return other
        return None

    return rule


def _is_one(value: Value) -> bool:
    return _all_equal(value, 1)


def _is_zero_to_add(value: Value) -> bool:
    """-0.0 for floats; 0 for integers."""
    return _all_equal(value, -0.0 if _is_float(value.spec.dtype) else 0)


def _is_zero_to_subtract(value: Value) -> bool:
    return _all_equal(value, 0.0)


def _is_float(dtype: DType) -> bool:
    return dtype.is_floating


def _input(rewriter: Rewriter, node: Node) -> Value | None:
    return node.inputs[0]


def _twice(name: str) -> Rule:
    """f(f(x)) is x."""

    def rule(rewriter: Rewriter, node: Node) -> Value | None:
        inner = node.inputs[0].node
        return inner.inputs[0] if inner is not None and inner.op.name == name else None

    return rule


def _same_operands(rewriter: Rewriter, node: Node) -> Value | None:
    """maximum(x, x) is x."""
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _divide_by_power_of_two(rewriter: Rewriter, node: Node) -> Value | None:
    """x / c is x * (1 / c) when 1 / c is exact."""
    x, y = node.inputs
    array = constant_of(y)
    if array is None or not _is_float(y.spec.dtype) or array.size == 0 or array.size > 1024:
        return None
    with np.errstate(all="ignore"):
        mantissa, _ = np.frexp(array.astype(np.float64))
        inverse = np.asarray(1 / array.astype(np.float64)).astype(array.dtype)
        exact = (np.abs(mantissa) == 0.5) & np.isfinite(inverse) & (inverse != 0)
    if not exact.all():
        return None
    return rewriter.emit(OPS["multiply"], [x, rewriter.constant(inverse)], {})


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


RULES: dict[str, tuple[Rule, ...]] = {
    "identity": (_input,),
    "stop_gradient": (_input,),
    "add": (_neutral(0, _is_zero_to_add), _neutral(1, _is_zero_to_add)),
    "subtract": (_neutral(1, _is_zero_to_subtract),),
    "multiply": (_neutral(0, _is_one), _neutral(1, _is_one)),
    "divide": (_neutral(1, _is_one), _divide_by_power_of_two),
    "pow": (_neutral(1, _is_one),),
    "negative": (_twice("negative"),),
    "logical_not": (_twice("logical_not"),),
    "conj": (_twice("conj"),),
    "maximum": (_same_operands,),
    "minimum": (_same_operands,),
    "logical_and": (_same_operands,),
    "logical_or": (_same_operands,),
    "where": (_select_constant,),
    "cast": (_exact_cast,),
    **MOVEMENT_RULES,
}

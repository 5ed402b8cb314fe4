"""What libraries of a GPU do to products and convolutions before they store them: a bias is added,
an activation applied. `finishing` tells whether a kernel that follows does just that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.kernel.ir import Affine, Apply, Buffer, Const, Expr, Index, Load, apply, const

RELU, GELU = "relu", "gelu"  # activations that libraries have
_GELU = 0.044715, math.sqrt(2 / math.pi)


@record(frozen=True)
class Finish:
    """What is done to each element of a result.

    Attributes:
        bias: whether an element of a vector that lies along the last axis is added.
        activation: what follows: RELU, GELU (its form by the hyperbolic tangent), or "".
        keeps: whether the operand of the activation is stored, too.
    """

    bias: bool = False
    activation: str = ""
    keeps: bool = False

    def __str__(self) -> str:
        parts = ["bias"] * self.bias + [self.activation] * bool(self.activation)
        return ", ".join(parts) + ", which keeps its operand" * self.keeps


@record(frozen=True)
class Ends:
    """A `Finish` with its operands: addresses.

    Attributes:
        out: of the results.
        bias: of the vector, or 0.
        kept: of the stored operands of the activation, or 0.
    """

    finish: Finish
    out: int
    bias: int = 0
    kept: int = 0


class Finishing(NamedTuple):
    """How a kernel finishes a result.

    Attributes:
        bias: the buffer of the vector, if there is one.
        out: the number of the stored value that is the end.
        kept: the number of the one that is the activation's operand, if it is stored.
    """

    finish: Finish
    bias: Buffer | None
    out: int
    kept: int | None


class _Part(NamedTuple):
    """A stored value: the activation, and the vector that is added before."""

    activation: str
    bias: Buffer | None


def finishing(
    values: Sequence[Expr], is_result: Callable[[Load], bool], own: Sequence[Index]
) -> Finishing | None:
    """How the stored values of a kernel finish a result; None where they do something else.

    Args:
        values: one or two.
        is_result: whether a load is of the result's element at this point.
        own: the index of this element.
    """
    parts = [_part(value, is_result, own) for value in values]
    found = [p for p in parts if p is not None]
    if len(found) < len(parts) or len({p.bias for p in found}) != 1:
        return None
    bias = found[0].bias
    activations = [p.activation for p in found]
    if activations == [GELU, ""]:
        return Finishing(Finish(bias is not None, GELU, True), bias, 0, 1)
    if activations == ["", GELU]:
        return Finishing(Finish(bias is not None, GELU, True), bias, 1, 0)
    if len(activations) > 1 or not (activations[0] or bias is not None):
        return None
    return Finishing(Finish(bias is not None, activations[0]), bias, 0, None)


def _part(value: Expr, is_result: Callable[[Load], bool], own: Sequence[Index]) -> _Part | None:
    dtype = value.dtype
    activation, value = _activation(_plain(value, dtype))
    value = _plain(value, dtype)
    terms = value.args if isinstance(value, Apply) and value.fn == "add" else (value,)
    loads = [t for t in (_plain(t, dtype) for t in terms) if isinstance(t, Load)]
    results = [t for t in loads if t.buffer.dtype is dtype and is_result(t)]
    others = [t for t in loads if t not in results]
    if len(results) != 1 or len(loads) < len(terms) or len(others) > 1:
        return None
    for load in others:
        *before, last = load.index or [None]
        whole = load.buffer.shape[-1:] == results[0].buffer.shape[-1:]
        lies = last is own[-1] and all(i is Affine(()) for i in before) and load.valid is None
        if not whole or not lies or load.buffer.dtype is not dtype:
            return None
    return _Part(activation, others[0].buffer if others else None)


def _plain(value: Expr, dtype: DType) -> Expr:
    """A value without conversions between a dtype and wider floats."""
    while isinstance(value, Apply) and value.fn == "cast":
        inner, kinds = value.args[0], (value.dtype, value.args[0].dtype)
        if not all(k is dtype or (k.is_floating and k.size > dtype.size) for k in kinds):
            break
        value = inner
    return value


def _activation(value: Expr) -> tuple[str, Expr]:
    """The activation that a value is computed by, and its operand."""
    if not isinstance(value, Apply):
        return "", value
    if value.fn == "max":
        zeros = [a for a in value.args if isinstance(a, Const) and a.value == 0]
        rest = [a for a in value.args if a not in zeros]
        if len(rest) == 1:
            return RELU, rest[0]
    if value.fn == "mul" and isinstance(value.args[0], Apply) and len(value.args[0].args) == 2:
        operand = value.args[0].args[1]
        if _gelu(operand) is value:  # equal expressions are one object
            return GELU, operand
    return "", value


def _gelu(x: Expr) -> Expr:
    def number(value: float) -> Const:
        return const(value, x.dtype)

    cubic = apply("mul", apply("mul", apply("mul", x, x), x), number(_GELU[0]))
    inner = apply("tanh", apply("mul", number(_GELU[1]), apply("add", x, cubic)))
    return apply("mul", apply("mul", number(0.5), x), apply("add", number(1), inner))

"""Operators and subscripts of ragged tensors. Importing this module completes the class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.ops.elementwise import arithmetic, comparison, logic, powers, unary
from treadle.ragged.elementwise import binary
from treadle.ragged.rows import getitem
from treadle.ragged.tensor import RaggedTensor

_TWO: dict[str, Callable[..., Any]] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floordiv,
    "mod": arithmetic.mod,
    "pow": powers.pow,
    "and": logic.and_,
    "or": logic.or_,
    "xor": logic.xor_,
}
_ORDER: dict[str, Callable[..., Any]] = {
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}
_ONE: dict[str, Callable[..., Any]] = {
    "neg": unary.negative,
    "abs": unary.abs,
    "invert": logic.not_,
}


def _forward(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(function, self, other)


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(function, other, self)


def _of_one(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: self.with_flat_values(function(self.flat_values))


def _compared(function: Callable[..., Any], otherwise: bool) -> Callable[[Any, Any], Any]:
    """Equality of elements; what has other rows, or is of another type, is unequal as a whole."""

    def compare(self: Any, other: Any) -> Any:
        if other is None:
            return otherwise
        try:
            return binary(function, self, other)
        except (TypeError, ValueError) as error:
            if self.is_symbolic and isinstance(error, TypeError):
                raise
            return otherwise

    return compare


def _iter(self: RaggedTensor) -> Iterator[Any]:
    if self.is_symbolic:
        raise TypeError(
            "A ragged tensor of a function that is being traced cannot be iterated over: use "
            f"`for i in td.range(x.nrows())` and x[i]{at(user_origin())}"
        )
    return (getitem(self, i) for i in range(int(self.nrows())))


def install() -> None:
    methods: dict[str, Any] = {"__getitem__": getitem, "__iter__": _iter}
    for name, function in _TWO.items():
        methods[f"__{name}__"] = _forward(function)
        methods[f"__r{name}__"] = _reflected(function)
    for name, function in _ORDER.items():
        methods[f"__{name}__"] = _forward(function)
    for name, function in _ONE.items():
        methods[f"__{name}__"] = _of_one(function)
    methods["__eq__"] = _compared(comparison.equal, False)
    methods["__ne__"] = _compared(comparison.not_equal, True)
    for name, method in methods.items():
        method.__name__ = method.__qualname__ = name
        setattr(RaggedTensor, name, method)


install()

"""The operators of what `keras.Input` gives, and of Keras's variables: functions of `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.ops import activations, arrays, elementwise, products, reductions

_BINARY: dict[str, Callable[..., Any]] = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply,
    "truediv": elementwise.divide, "floordiv": elementwise.floor_divide, "mod": elementwise.mod,
    "pow": elementwise.power, "matmul": products.matmul, "and": elementwise.logical_and,
    "or": elementwise.logical_or, "xor": elementwise.logical_xor,
}  # fmt: skip
_ONE_WAY: dict[str, Callable[..., Any]] = {
    "lt": elementwise.less, "le": elementwise.less_equal, "gt": elementwise.greater,
    "ge": elementwise.greater_equal, "getitem": arrays.get_item, "round": elementwise.round,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": elementwise.equal, "ne": elementwise.not_equal,
    **{name: _ONE_WAY[name] for name in ("lt", "le", "gt", "ge")},
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": elementwise.negative, "abs": elementwise.absolute, "invert": elementwise.logical_not,
}  # fmt: skip


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others, **settings: function(self, *others, **settings)


def _step(x: KerasTensor, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function of `keras.activations` as a step of a model."""
    name = function.__name__
    if name == "linear":
        return x
    plain = name == "relu" and not args and not kwargs
    step = None if plain else activations.STEPS.get(name)
    if step is None:
        step = {"exponential": elementwise.exp, "tanh": elementwise.tanh}.get(name)
    if name == "gelu":
        kwargs = {"approximate": args[0] if args else False} | kwargs
        args = ()
    return (step or getattr(activations, name))(x, *args, **kwargs)


def add_operators() -> None:
    """Give `KerasTensor` and variables of Keras their operators. ``==`` of KerasTensors stays that
    of objects, by which they are found in lists and dicts."""
    methods = {f"__{name}__": function for name, function in (_BINARY | _ONE_WAY | _UNARY).items()}
    methods |= {"reshape": arrays.reshape, "squeeze": arrays.squeeze}
    # What masks of layers are made of.
    methods |= {"_not_equal": elementwise.not_equal, "_any": reductions.any}
    for name, function in methods.items():
        setattr(KerasTensor, name, _method(function))
    for name, function in _BINARY.items():
        setattr(KerasTensor, f"__r{name}__", _swapped(function))
    KerasTensor._step = _step  # type: ignore[attr-defined]
    td.Variable._promoted.update(
        {f"__{name}__": function for name, function in (_BINARY | _COMPARISONS).items()}
        | {f"__r{name}__": _swapped(function) for name, function in _BINARY.items()}
    )

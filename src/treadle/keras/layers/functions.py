"""Functions as layers: Lambda, and the operators on what `keras.Input` gave."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.symbolic import KerasTensor


class Lambda(Layer):
    """A function of tensors as a layer.

    Args:
        function: takes the inputs, and may take `mask` and `training`.
        output_shape: accepted for Keras programs; the shape is found by tracing.
        mask: the mask of the results, or a function of (inputs, mask) that gives it.
        arguments: further keyword arguments of the function.
    """

    has_shape_rule: ClassVar[bool] = False

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None,
        arguments: Mapping[str, Any] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.function, self.arguments = function, dict(arguments or {})
        self.mask = mask
        self._taken = inspect.signature(function).parameters
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the layer was given as `mask`."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        known = {"mask": mask, "training": training}
        given = {name: value for name, value in known.items() if name in self._taken}
        function = self.function
        if not td.executing_eagerly():
            function = td.autograph.tf_convert(function)
        return function(inputs, **given, **self.arguments)


class Operation(Layer):
    """An operator on what `keras.Input` gave, such as the sum of two layers' results.

    Args:
        name: the operator's in Python, or that of an operation of Keras.
        settings: arguments of the function beside tensors.
    """

    has_shape_rule: ClassVar[bool] = False
    _passes_masks = True

    def __init__(
        self, name: str, function: Callable[..., Any], settings: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.operator, self.function, self.settings = name, function, dict(settings or {})
        self.built = True

    def call(self, *args: Any) -> Any:
        return self.function(*args, **self.settings)


def _add_operators() -> None:
    """Give `KerasTensor` its operators."""

    def binary(name: str) -> Callable[[Any, Any], Any]:
        function = getattr(operator, name)
        return lambda self, other: Operation(name, function)(self, other)

    def swapped(name: str) -> Callable[[Any, Any], Any]:
        function = getattr(operator, name)
        return lambda self, other: Operation(name, function)(other, self)

    def unary(name: str) -> Callable[[Any], Any]:
        function = getattr(operator, name)
        return lambda self: Operation(name, function)(self)

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        setattr(KerasTensor, f"__{name}__", binary(name))
        setattr(KerasTensor, f"__r{name}__", swapped(name))
    for name in ("lt", "le", "gt", "ge", "getitem"):
        setattr(KerasTensor, f"__{name}__", binary(name))
    for name in ("neg", "abs"):
        setattr(KerasTensor, f"__{name}__", unary(name))


_add_operators()

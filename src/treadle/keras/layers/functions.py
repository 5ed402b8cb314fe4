"""Functions as layers: Lambda, and the base of the operations of functional models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer


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
        self._build_at_init()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the layer was given as `mask`."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        known = {"mask": mask, "training": training}
        given = {name: value for name, value in known.items() if name in self._taken}
        function = self.function
        if td.inside_function():
            function = td.autograph.tf_convert(function)
        return function(inputs, **given, **self.arguments)


class Operation(Layer):
    """A step of a functional model that has no weights: a function of tensors, such as the sum of
    two layers' results. Its arguments are passed on as they are, in their own dtypes.

    Args:
        name: of the operation; numbered by class when omitted.
    """

    has_shape_rule: ClassVar[bool] = False
    _passes_masks = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        self._build_at_init()

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        """A call on KerasTensors: what it gives, as KerasTensors."""
        return self(*args, **kwargs)

    def _convert(self, inputs: Any) -> Any:
        return inputs

    def _convert_further(self, value: Any) -> Any:
        return value

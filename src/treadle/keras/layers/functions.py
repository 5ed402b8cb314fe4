"""Functions as layers: Lambda, and the base of the operations of functional models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ClassVar

import treadle as td
from treadle.keras import lambdas, serialization
from treadle.keras.layers.base import Layer
from treadle.modes import generation


class Lambda(Layer):
    """A function of tensors as a layer.

    Args:
        function: takes the inputs, and may take `mask` and `training`.
        output_shape: the shape of a result without the axis of examples, or a function of the
            input's shape that gives the whole; else it is found by tracing.
        mask: the mask of the results, or a function of (inputs, mask) that gives it.
        arguments: further keyword arguments of the function.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("arguments",)
    _takes_any_config = True  # `from_config` reads that of Keras 2, too

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None,
        arguments: Mapping[str, Any] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.function, self.arguments = function, dict(arguments or {})
        self.mask, self._shape_of_results = mask, output_shape
        self.supports_masking = mask is not None
        self._taken = inspect.signature(function).parameters
        self._build_at_init()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the layer was given as `mask`."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """What `output_shape` says; else that of what the function gives."""
        given = self._shape_of_results
        if given is None:
            return super().compute_output_shape(input_shape)
        if callable(given):
            return given(input_shape)
        first = input_shape
        while isinstance(first, dict | list | tuple) and first:
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        return _with_examples(given, first)

    def get_config(self) -> dict[str, Any]:
        given: dict[str, Any] = {"function": self.function}
        if self._shape_of_results is not None:
            given["output_shape"] = self._shape_of_results
        if self.mask is not None:
            given["mask"] = self.mask
        if generation.is_2:
            given.setdefault("output_shape", None)
            return super().get_config() | _as_keras_2(given)
        return super().get_config() | {name: _described(value) for name, value in given.items()}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None, safe_mode: bool | None = None
    ) -> Lambda:
        """A layer from what `get_config` gave.

        Args:
            custom_objects: functions by name.
            safe_mode: False: the code of a lambda is run; else it is refused, unless what calls
                this allows it.

        Raises:
            ValueError: a lambda, whose code is not to be run.
        """
        with serialization.custom_object_scope(custom_objects), lambdas.running(safe_mode is False):
            if "function_type" in config:
                config = _from_keras_2(config)
            given = {k: serialization.deserialize_keras_object(v) for k, v in config.items()}
            shape = given.get("output_shape")
            if isinstance(shape, list) and all(d is None or isinstance(d, int) for d in shape):
                given["output_shape"] = tuple(shape)
            found: Any = super().from_config(given)
            return found  # type: ignore[no-any-return]

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        known = {"mask": mask, "training": training}
        given = {name: value for name, value in known.items() if name in self._taken}
        function = self.function
        if td.inside_function():
            function = td.autograph.tf_convert(function)
        return function(inputs, **given, **self.arguments)


def _described(value: Any) -> Any:
    """An argument of a Lambda layer as data."""
    if not lambdas.is_lambda(value):
        return serialization.serialize_keras_object(value)
    return lambdas.described(value, serialization.serialize_keras_object, of_layer=True)


def _as_keras_2(given: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a Lambda layer as Keras 2 has them: functions of Python as their code, other
    callables by their names. A type and a module go with each."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        module = getattr(value, "__module__", None) if callable(value) else None
        if isinstance(value, FunctionType):
            described: Any = lambdas.described(value, serialization.serialize_keras_object, True)
            inner = described["config"]
            kind = "lambda"
            described = inner if "kept" in inner else [
                inner[part] for part in ("code", "defaults", "closure")
            ]
        elif callable(value):
            kind, described = "function", value.__name__
        else:
            kind, described = "raw", value
        prefix = "" if name == "function" else f"{name}_"
        found |= {name: described, f"{name}_type": kind, f"{prefix}module": module}
    return found


def _from_keras_2(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a Lambda layer of Keras 2, in which each function has a type and a module, as
    Keras 3 has it."""
    found = dict(config)
    for name in ("function", "output_shape", "mask"):
        kind = found.pop(f"{name}_type", None)
        module = found.pop("module" if name == "function" else f"{name}_module", None)
        value: Any = found.get(name)
        if kind == "lambda":
            inner = value if isinstance(value, Mapping) else {"value": list(value)}
            found[name] = {"class_name": "__lambda__", "config": {**inner, "module": module}}
        elif kind is not None and value is None:
            del found[name]
    return found


def _with_examples(shape: Any, count: Any) -> Any:
    """A shape, or a structure of shapes, with the axis of examples in front."""
    if isinstance(shape, dict):
        return {name: _with_examples(inner, count) for name, inner in shape.items()}
    if any(isinstance(inner, dict | list | tuple) for inner in shape):
        return type(shape)(_with_examples(inner, count) for inner in shape)
    return (count, *shape)


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

    def _taken_inputs(self, inputs: Any) -> Any:
        return inputs

    def _taken_further(self, value: Any) -> Any:
        return value

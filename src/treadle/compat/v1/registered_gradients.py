"""Gradients of the user for operations of graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1.values import (
    Operation,
    Ranks,
    is_value,
    leaves_of,
    map_leaves,
    reading,
    thread,
)
from treadle.core.context import recording, taping
from treadle.core.interrupts import during

_registered_gradients: dict[str, Any] = {}


class RegisterGradient:
    """Decorator: the function is the gradient of operations of a type, or of those that
    `Graph.gradient_override_map` gives this name.

    It is called as ``f(op, *grads)`` with the inputs and outputs of the operation, and gives the
    gradient of each input, or None.

    Raises:
        TypeError: the name is no string.
        KeyError: a gradient of that name was registered already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _registered_gradients:
            raise KeyError(
                f"Registering two gradient with name '{self._op_type}'! (Previous registration was "
                f"in {getattr(_registered_gradients[self._op_type], '__name__', 'f')})"
            )
        _registered_gradients[self._op_type] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Say that an operation type has no gradient."""
    RegisterGradient(op_type)(lambda op, *grads: None)


NoGradient = NotDifferentiable


class _Called:
    """An operation as a gradient of the user sees it.

    Attributes:
        inputs, outputs: tensors.
    """

    def __init__(self, op: Operation, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.name, self.type, self.device = op.name, op.type, op.device
        self.get_attr = op.get_attr


def outside_of_bodies() -> during:
    """In the block calls are those of a function that is traced, also within a branch or body."""
    return during(thread, "region", None)


def override_gradient(op: Operation, name: str) -> None:
    """Give an operation the gradient of the user that has a name."""
    gradient = _registered_gradients.get(name)
    if gradient is None:
        raise LookupError(f"gradient registry has no entry for: {name}")
    inner, tensors = op.function, list(op.inputs)
    assert inner is not None

    def call(*args: Any, **kwargs: Any) -> Any:
        """The operation, with the gradient registered for it."""
        given = [v for v in leaves_of((args, kwargs)) if isinstance(v, td.Tensor)]

        @td.custom_gradient
        def with_gradient(*inputs: Any) -> Any:
            following = iter(inputs)
            again = map_leaves(
                (args, kwargs), lambda v: next(following) if isinstance(v, td.Tensor) else v
            )
            result = inner(*again[0], **again[1])
            outputs = [v for v in leaves_of(result) if isinstance(v, td.Tensor)]

            def back(*grads: Any) -> Any:
                with outside_of_bodies():
                    found = gradient(_Called(op, inputs, outputs), *grads)
                return found if isinstance(found, list | tuple) else [found]

            return result, back

        return with_gradient(*given)

    op.function = call
    # The outline has the operation with its own gradient: it is written there once more.
    if tensors:
        with recording(op.graph.region.builder), taping(()):
            for ranks in list(op.outputs[0].readings):
                found = op.call(functools.partial(_read_for, ranks))
                for tensor, value in zip(
                    op.outputs, filter(is_value, leaves_of(found)), strict=True
                ):
                    tensor.readings[ranks] = value


def _read_for(ranks: Ranks, value: Any) -> Any:
    return reading(value, ranks)

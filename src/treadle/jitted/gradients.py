"""Gradients of functions of NumPy arrays, compiled with the functions themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.tape import GradientTape
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, unwrapped, wrapped
from treadle.jitted.conversion import call
from treadle.jitted.function import Jitted
from treadle.ops.indexing.gather import dense
from treadle.ops.numbers.python_numbers import SymbolicNumber, symbolic_number


def value_and_grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Jitted:
    """A jitted function that gives ``func(*args)`` and its gradient.

    Args:
        func: a function for `jit`, or a jitted one, that returns a float scalar and changes none
            of the arguments `argnums` in place.
        argnums: the positions of the arguments, float arrays or numbers, to differentiate by.

    Returns:
        The function; its result is ``(value, gradient)``, where the gradient has the shape and
        dtype of the argument, or is a tuple where `argnums` is a sequence. It is zero for an
        argument that the value does not depend on.

    Raises:
        TypeError: when called: the value is not a float scalar, an argument is not of floats, or
            the function changes it in place.
    """
    original = func.python_function if isinstance(func, Jitted) else func
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(original)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        values = list(args)
        watched = [_differentiable(original, i, values[i]) for i in numbers]
        with GradientTape() as tape:
            for i, tensor in zip(numbers, watched, strict=True):
                tape.watch(tensor)
                values[i] = _like(args[i], tensor)
            result = call(original)(*values, **kwargs)
            value = _scalar(original, result)
        _check_unchanged(original, numbers, values, watched)
        found = map(dense, tape.gradient(value, watched, unconnected_gradients="zero"))
        made = tuple(_like(args[i], g) for i, g in zip(numbers, found, strict=True))
        return result, made[0] if isinstance(argnums, int) else made

    return Jitted(value_and_gradient)


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Jitted:
    """A jitted function that gives the gradient of ``func(*args)``; see `value_and_grad`."""
    both = value_and_grad(func, argnums).python_function

    @functools.wraps(both)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return Jitted(gradient)


def _differentiable(func: Any, number: int, value: Any) -> Tensor:
    tensor = value.tensor() if type(value) is SymbolicNumber else unwrapped(value)
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_floating:
        raise TypeError(
            f"the gradient of {_name(func)}() by its argument {number}, {value!r}: only floats and "
            f"arrays of floats have gradients{at(user_origin())}"
        )
    return tensor


def _like(value: Any, tensor: Tensor) -> Any:
    """A tensor as the argument was given: a number, a scalar or an array."""
    return symbolic_number(tensor) if type(value) is SymbolicNumber else wrapped(tensor)


def _scalar(func: Any, result: Any) -> Tensor:
    tensor = result.tensor() if type(result) is SymbolicNumber else unwrapped(result)
    if (
        not isinstance(tensor, Tensor)
        or not tensor.dtype.is_floating
        or product(tensor.dims) != 1
    ):
        raise TypeError(
            f"the gradient of {_name(func)}(), which gives {result!r}: it must give one float"
            f"{at(user_origin())}"
        )
    return tensor


def _check_unchanged(func: Any, numbers: Any, values: Any, watched: Any) -> None:
    for i, tensor in zip(numbers, watched, strict=True):
        if isinstance(values[i], Array) and values[i].tensor is not tensor:
            raise TypeError(
                f"the gradient of {_name(func)}(): it changes its argument {i} in place; have it "
                f"work on a copy{at(user_origin())}"
            )


def _name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))



"""Gradients of tape against central differences in float64, eagerly and traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td


def numeric_gradient(fn: Callable[..., Any], arrays: Sequence[Any], k: int) -> Any:
    """The slope of scalar ``fn(*arrays)`` by each element of ``arrays[k]``."""
    step = 1e-5
    slopes = np.zeros_like(arrays[k])
    for place in np.ndindex(arrays[k].shape):
        values = []
        for sign in (1.0, -1.0):
            moved = [a.copy() for a in arrays]
            moved[k][place] += sign * step
            values.append(float(fn(*(td.constant(a) for a in moved))))
        slopes[place] = (values[0] - values[1]) / (2 * step)
    return slopes


def tape_gradients(fn: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    """The gradients of scalar `fn` by all tensors."""
    with td.GradientTape() as tape:
        tape.watch(tensors)
        value = fn(*tensors)
    grads: list[Any] = tape.gradient(value, list(tensors))
    return [g if g is None else td.convert_to_tensor(g) for g in grads]


def check_gradients(fn: Callable[..., Any], *arrays: Any, second: bool = True) -> None:
    """First gradients of ``sum(fn(*arrays) * weights)``; with `second` those of a function of the
    gradients too. Traced gradients equal eager ones."""
    floats = [np.asarray(a, np.float64) for a in arrays]
    shape = fn(*(td.constant(a) for a in floats)).shape
    weights = td.constant(np.cos(1.3 * np.arange(np.prod(tuple(shape)))).reshape(tuple(shape)))

    def total(*tensors: Any) -> Any:
        return td.reduce_sum(fn(*tensors) * weights)

    def bend(*tensors: Any) -> Any:
        grads = [g for g in tape_gradients(total, tensors) if g is not None]
        return td.add_n([td.reduce_sum(td.square(g) * 0.5) for g in grads])

    for scalar in (total, bend) if second else (total,):
        tensors = [td.constant(a) for a in floats]
        eager = tape_gradients(scalar, tensors)
        traced = td.function(lambda *t, s=scalar: tape_gradients(s, t), autograph=False)(*tensors)
        for k, (grad, same) in enumerate(zip(eager, traced, strict=True)):
            expected = numeric_gradient(scalar, floats, k)
            actual = np.zeros_like(expected) if grad is None else grad.numpy()
            np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)
            if grad is not None:
                np.testing.assert_allclose(same.numpy(), actual, rtol=1e-9, atol=1e-10)

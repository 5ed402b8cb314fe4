"""Numeric checking of gradients by finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autodiff.tape import GradientTape
from treadle.core import nest
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.elementwise.arithmetic import add_n, multiply
from treadle.ops.indexing.gather import dense
from treadle.ops.reductions.reduction import reduce_sum

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


class GradientError(AssertionError):
    """A gradient differs from finite differences."""


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[tuple[NDArray, ...], tuple[NDArray, ...]]:
    """Theoretical and numerical Jacobians of `f` at `x`.

    Args:
        f: takes one tensor for each element of `x` and returns one tensor.
        x: a list of tensors or arrays; complex elements count as two real ones.
        delta: the step of the central differences; 1/1024 when omitted, as in TensorFlow.

    Returns:
        Two tuples with a matrix [elements of f(*x), elements of x[i]] for each i.

    Raises:
        ValueError: `x` is not a list or tuple.
    """
    if not isinstance(x, list | tuple):
        raise ValueError("Argument `x` must be a list or tuple of tensors, got " + repr(type(x)))
    points = [convert_to_tensor(v) for v in x]
    step = 1.0 / 1024 if delta is None else delta
    theoretical = _theoretical(f, points)
    numeric = tuple(_numeric(f, points, i, step) for i in range(len(points)))
    return theoretical, numeric


def max_error(theoretical: Sequence[NDArray], numeric: Sequence[NDArray]) -> float:
    """The largest absolute difference between the Jacobians that `compute_gradient` gave."""
    return max(
        (
            float(np.max(np.abs(a - b), initial=0.0))
            for a, b in zip(theoretical, numeric, strict=True)
        ),
        default=0.0,
    )


def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    wrap: Wrapper | None = None,
    delta: float = 1e-5,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Compare the gradients of `f` with finite differences.

    Args:
        f: takes `args` and returns a tensor or a nested structure of them; integer results are
            left out.
        args: tensors or arrays; use float64. The floating ones are differentiated by.
        order: 2 also checks the gradients of the gradients, and so on.
        wrap: applied to the gradient computation, such as ``td.function`` to check traced code.
        delta, rtol, atol: the step and the tolerances.

    Raises:
        GradientError: names the argument, the element and both values where they differ most.
    """
    points = [convert_to_tensor(a) for a in args]
    for level in range(1, order + 1):
        _compare(f, points, wrap, level, (delta, rtol, atol))
        f = _weighted_gradients(f, points)


def _compare(
    f: Callable[..., Any],
    points: Sequence[Tensor],
    wrap: Wrapper | None,
    level: int,
    tolerances: tuple[float, float, float],
) -> None:
    delta, rtol, atol = tolerances
    single = _weighted(f, points)

    def gradients(*xs: Any) -> list[Any]:
        with GradientTape() as tape:
            chosen = [x for x in xs if x.dtype.is_differentiable]
            tape.watch(chosen)
            y = single(*xs)
        found = tape.gradient(y, chosen, unconnected_gradients="zero")
        return [dense(g) for g in found]

    given = iter((wrap(gradients) if wrap else gradients)(*points))
    for number, point in enumerate(points):
        if not point.dtype.is_differentiable:
            continue
        analytic = _real_view(np.asarray(next(given)))
        numeric = _numeric(single, points, number, delta).reshape(analytic.shape)
        _report(analytic, numeric, f"order {level}, argument {number}", rtol, atol)


def _report(analytic: NDArray, numeric: NDArray, where: str, rtol: float, atol: float) -> None:
    error = np.abs(analytic - numeric)
    excess = error - (atol + rtol * np.abs(numeric))
    bad = ~(excess <= 0)
    if bad.any():
        worst = np.unravel_index(int(np.argmax(np.where(bad, error, -1))), error.shape)
        raise GradientError(
            f"{where}: {int(bad.sum())} of {error.size} derivatives differ; at index "
            f"{[int(i) for i in worst]} the gradient is {analytic[worst]:.9g} and finite "
            f"differences give {numeric[worst]:.9g}"
        )


def _weighted(f: Callable[..., Any], points: Sequence[Tensor]) -> Callable[..., Tensor]:
    """`f` as a function of one scalar: its results weighted with fixed, irregular numbers."""
    weights = [_weights(np.asarray(y), i) for i, y in enumerate(_floating(f, points))]
    if not weights:
        raise ValueError("check_gradients: the function returns no floating point tensor")

    def single(*xs: Any) -> Tensor:
        results = _floating(f, xs)
        return add_n([reduce_sum(multiply(y, w)) for y, w in zip(results, weights, strict=True)])

    return single


def _floating(f: Callable[..., Any], xs: Sequence[Any]) -> list[Tensor]:
    """The results of `f` that have gradients."""
    results = [convert_to_tensor(y) for y in nest.flatten(f(*xs)) if y is not None]
    return [y for y in results if y.dtype.is_differentiable]


def _weights(y: NDArray, number: int) -> NDArray:
    """Irregular weights that depend on the position along each axis."""
    total: Any = np.float64(0.7 + 0.31 * number)
    for axis, size in enumerate(y.shape):
        shape = [1] * y.ndim
        shape[axis] = size
        wave = np.cos(1.3 * np.arange(size) + 0.9 * axis + number)
        total = total + wave.reshape(shape)
    return np.asarray(total).astype(y.dtype)


def _weighted_gradients(f: Callable[..., Any], points: Sequence[Tensor]) -> Callable[..., Any]:
    """The gradients of `f` as a function of the same arguments."""
    single = _weighted(f, points)

    def gradients(*xs: Any) -> list[Any]:
        chosen = [x for x in xs if x.dtype.is_differentiable]
        with GradientTape() as tape:
            tape.watch(chosen)
            y = single(*xs)
        found = tape.gradient(y, chosen, unconnected_gradients="zero")
        return [dense(g) for g in found]

    return gradients


def _real_view(array: NDArray) -> NDArray:
    """A complex array as a real one with twice the elements along a new last axis."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def _theoretical(f: Callable[..., Any], points: Sequence[Tensor]) -> tuple[NDArray, ...]:
    with GradientTape(persistent=True) as tape:
        tape.watch(points)
        y = convert_to_tensor(f(*points))
    size = int(np.prod(y.shape.as_list()))  # type: ignore[arg-type]
    units = (1, 1j) if y.dtype.is_complex else (1,)
    rows: list[list[NDArray]] = [[] for _ in points]
    for k in range(size):
        for unit in units:
            seed = np.zeros(size, y.dtype.np_dtype)
            seed[k] = unit
            shaped = constant(seed.reshape(y.shape.as_list()))
            gradients = tape.gradient(
                y, list(points), output_gradients=shaped, unconnected_gradients="zero"
            )
            for row, g in zip(rows, gradients, strict=True):
                row.append(_real_view(np.asarray(dense(g))).reshape(-1))
    return tuple(
        np.array(row).reshape(len(units) * size, -1) if row else np.zeros((0, _real_size(p)))
        for row, p in zip(rows, points, strict=True)
    )


def _real_size(x: Tensor) -> int:
    return int(np.asarray(x).size) * (2 if x.dtype.is_complex else 1)


def _numeric(f: Callable[..., Any], points: Sequence[Tensor], number: int, delta: float) -> NDArray:
    """The Jacobian with respect to one argument, by central differences in float64."""
    point = np.asarray(points[number])
    columns = []
    for k in range(point.size):
        for unit in (1, 1j) if point.dtype.kind == "c" else (1,):
            sides = [_evaluate(f, points, number, k, unit * sign * delta) for sign in (1, -1)]
            columns.append((sides[0] - sides[1]) / (2 * delta))
    if not columns:
        return np.zeros((_evaluate(f, points, number, None, 0).size, 0))
    return np.stack(columns, axis=-1)


def _evaluate(
    f: Callable[..., Any], points: Sequence[Tensor], number: int, k: int | None, change: Any
) -> NDArray:
    moved = np.array(points[number])
    if k is not None:
        moved.reshape(-1)[k] += change
    changed = [constant(moved) if i == number else p for i, p in enumerate(points)]
    y = _real_view(np.asarray(convert_to_tensor(f(*changed))))
    return y.astype(np.float64).reshape(-1)

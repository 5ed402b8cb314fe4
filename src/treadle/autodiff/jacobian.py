"""Jacobians: one backward pass for each element of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from treadle.autodiff.values import filled, gradient_spec, zeros_for
from treadle.core import dtypes, nest
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.collections.lists import list_new, list_push, list_stack
from treadle.ops.control.control_flow import while_loop
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.indexing.transposing import transpose
from treadle.ops.shaping.creation import one_hot
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import reshape_to

# A trace repeats the backward pass up to so many times; beyond that it records a loop.
_MOST_COPIES = 8


class Tape(Protocol):
    """What a Jacobian asks of the `GradientTape` that recorded its target."""

    def used_once(self) -> AbstractContextManager[None]:
        """The block takes gradients; see `GradientTape.used_once`."""

    def vector_jacobian(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Sequence[Any]
    ) -> list[Tensor | None]:
        """One backward pass; see `GradientTape.vector_jacobian`."""


def jacobian(tape: Tape, target: Any, sources: Any, zero: bool) -> Any:
    """See `GradientTape.jacobian`; `zero`: zeros for sources that the target does not depend on,
    None otherwise."""
    target = convert_to_tensor(target)
    flat = nest.flatten(sources)
    size = _size(target.dims, "jacobian")
    with tape.used_once():
        rows = _rows(tape, target, flat, size, lambda k: _unit(k, size, target))
    results = [
        _shaped(row, (*target.dims, *source.spec.dims), source, zero)
        for row, source in zip(rows, flat, strict=True)
    ]
    return nest.pack(sources, results)


def batch_jacobian(tape: Tape, target: Any, source: Any, zero: bool) -> Any:
    """See `GradientTape.batch_jacobian`; `zero` as for `jacobian`."""
    dims = target.dims
    if target.ndim < 2 or source.spec.rank < 2 or dims[0] != source.spec.dims[0]:
        raise ValueError(
            f"Need first dimension of target shape ({target.shape}) and source shape "
            f"({source.shape}) to match.{at(user_origin())}"
        )
    size = _size(dims[1:], "batch_jacobian")
    with tape.used_once():
        # Element k of every example at once: examples do not depend on each other.
        (row,) = _rows(tape, target, [source], size, lambda k: _unit_of_examples(k, size, target))
    if row is not None:
        row = transpose(row, [1, 0, *range(2, row.ndim)])
    return _shaped(row, (*dims, *source.spec.dims[1:]), source, zero)


def _size(dims: Sequence[Dim], what: str) -> Dim:
    """The number of elements that are differentiated."""
    size = product(dims)
    if not isinstance(size, int) and context.recorder is None:
        raise ValueError(
            f"GradientTape.{what} needs a target of known shape, got {tuple(dims)}"
            f"{at(user_origin())}"
        )
    return size


def _unit(k: Any, size: Dim, target: Tensor) -> Tensor:
    """The gradient that picks element k of the target."""
    return reshape_to(one_hot(k, size, dtype=target.dtype), target.dims)


def _unit_of_examples(k: Any, size: Dim, target: Tensor) -> Tensor:
    """The gradient that picks element k of every example."""
    unit = one_hot(k, size, dtype=target.dtype)
    return broadcast_dims(reshape_to(unit, (1, *target.dims[1:])), target.dims)


def _rows(
    tape: Tape,
    target: Tensor,
    sources: Sequence[Any],
    size: Dim,
    unit: Callable[[Any], Tensor],
) -> list[Tensor | None]:
    """For each source its gradients for all units, stacked; None where nothing depends on it."""
    if not isinstance(size, int) or (context.recorder is not None and size > _MOST_COPIES):
        return _rows_by_loop(tape, target, sources, size, unit)
    rows = [tape.vector_jacobian([target], [unit(k)], sources) for k in range(size)]
    columns: list[Tensor | None] = []
    for number, source in enumerate(sources):
        parts = [row[number] for row in rows]
        if any(p is not None for p in parts):
            columns.append(stack([zeros_for(source) if p is None else p for p in parts]))
        else:
            columns.append(None)
    return columns


def _rows_by_loop(
    tape: Tape,
    target: Tensor,
    sources: Sequence[Any],
    size: Dim,
    unit: Callable[[Any], Tensor],
) -> list[Tensor | None]:
    """`_rows` as a loop in the graph."""
    connected = [False] * len(sources)

    def body(k: Tensor, *lists: Tensor) -> tuple[Tensor, ...]:
        gradients = tape.vector_jacobian([target], [unit(k)], sources)
        connected[:] = [g is not None for g in gradients]
        pushed = [
            list_push(items, zeros_for(source) if g is None else g)
            for items, g, source in zip(lists, gradients, sources, strict=True)
        ]
        return (k + 1, *pushed)

    specs = [gradient_spec(source) for source in sources]
    capacity = size if isinstance(size, int) else None
    lists = [list_new(TensorSpec(s.dims, s.dtype), capacity=capacity) for s in specs]
    count = dims_tensor(size, dtypes.int32)
    done = while_loop(lambda k, *_: k < count, body, (constant(0), *lists))
    return [
        list_stack(items, spec.dims) if found else None
        for items, spec, found in zip(done[1:], specs, connected, strict=True)
    ]


def _shaped(row: Tensor | None, dims: tuple[Dim, ...], source: Any, zero: bool) -> Tensor | None:
    """A Jacobian in its final dims; zeros or None where nothing depends on the source."""
    if row is not None:
        return reshape_to(row, dims)
    if not zero:
        return None
    return filled(0, TensorSpec(dims, source.spec.dtype))

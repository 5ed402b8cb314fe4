"""Jacobians: the backward pass for each element of the target, for all of them at once or one by
one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from treadle.autodiff.values import filled, gradient_spec, zeros_for
from treadle.core import dtypes, nest
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.vectorized import all_at_once
from treadle.ops.batching.call import numbers_of
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


# Gives the gradient of the target that picks an element, of the one-hot vector that names it.
Unit: TypeAlias = "Callable[[Tensor], Tensor]"


def jacobian(tape: Tape, target: Any, sources: Any, zero: bool, at_once: bool) -> Any:
    """See `GradientTape.jacobian`.

    Args:
        zero: zeros for sources that the target does not depend on, None otherwise.
        at_once: the backward pass is computed for all elements of the target at once.
    """
    target = convert_to_tensor(target)
    flat = nest.flatten(sources)
    size = _size(target.dims, "jacobian")
    rows = _Rows("GradientTape.jacobian", tape, target, flat, size)
    with tape.used_once():
        found = rows.found(lambda k: reshape_to(k, target.dims), at_once)
    results = [
        _shaped(row, (*target.dims, *source.spec.dims), source, zero)
        for row, source in zip(found, flat, strict=True)
    ]
    return nest.pack(sources, results)


def batch_jacobian(tape: Tape, target: Any, source: Any, zero: bool, at_once: bool) -> Any:
    """See `GradientTape.batch_jacobian`; `zero` and `at_once` as for `jacobian`."""
    dims = target.dims
    if target.ndim < 2 or source.spec.rank < 2 or dims[0] != source.spec.dims[0]:
        raise ValueError(
            f"Need first dimension of target shape ({target.shape}) and source shape "
            f"({source.shape}) to match.{at(user_origin())}"
        )
    size = _size(dims[1:], "batch_jacobian")
    rows = _Rows("GradientTape.batch_jacobian", tape, target, [source], size)
    with tape.used_once():
        # Element k of every example at once: examples do not depend on each other.
        (row,) = rows.found(lambda k: broadcast_dims(reshape_to(k, (1, *dims[1:])), dims), at_once)
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


class _Rows:
    """The backward passes of a target: for each source its gradients for all units, stacked, or
    None where nothing depends on it."""

    def __init__(
        self, what: str, tape: Tape, target: Tensor, sources: Sequence[Any], size: Dim
    ) -> None:
        self.what, self.tape, self.target = what, tape, target
        self.sources, self.size = sources, size

    def found(self, unit: Unit, at_once: bool) -> list[Tensor | None]:
        if self.size == 0:
            return self._none_of_them(unit)
        if at_once and self.size != 1:
            return self._at_once(unit)
        if isinstance(self.size, int) and (context.recorder is None or self.size <= _MOST_COPIES):
            return self._one_by_one(unit, self.size)
        return self._by_loop(unit)

    def _gradients(self, unit: Tensor) -> list[Tensor | None]:
        return self.tape.vector_jacobian([self.target], [unit], self.sources)

    def _none_of_them(self, unit: Unit) -> list[Tensor | None]:
        """A target without elements: one pass tells which sources it depends on."""
        gradients = self._gradients(unit(one_hot(0, 0, dtype=self.target.dtype)))
        specs = [gradient_spec(source) for source in self.sources]
        return [
            None if g is None else filled(0, TensorSpec((0, *spec.dims), spec.dtype))
            for g, spec in zip(gradients, specs, strict=True)
        ]

    def _at_once(self, unit: Unit) -> list[Tensor | None]:
        """The backward pass, traced for one unit and computed for all of them."""
        every = one_hot(numbers_of(self.size), self.size, dtype=self.target.dtype)
        return all_at_once(self.what, lambda k: self._gradients(unit(k)), [every], self.size)

    def _one_by_one(self, unit: Unit, size: int) -> list[Tensor | None]:
        """A pass after the other; a trace has a copy for each."""
        rows = [
            self._gradients(unit(one_hot(k, size, dtype=self.target.dtype))) for k in range(size)
        ]
        columns: list[Tensor | None] = []
        for number, source in enumerate(self.sources):
            parts = [row[number] for row in rows]
            if any(p is not None for p in parts):
                columns.append(stack([zeros_for(source) if p is None else p for p in parts]))
            else:
                columns.append(None)
        return columns

    def _by_loop(self, unit: Unit) -> list[Tensor | None]:
        """A loop in the graph."""
        connected = [False] * len(self.sources)

        def body(k: Tensor, *lists: Tensor) -> tuple[Tensor, ...]:
            gradients = self._gradients(unit(one_hot(k, self.size, dtype=self.target.dtype)))
            connected[:] = [g is not None for g in gradients]
            pushed = [
                list_push(items, zeros_for(source) if g is None else g)
                for items, g, source in zip(lists, gradients, self.sources, strict=True)
            ]
            return (k + 1, *pushed)

        specs = [gradient_spec(source) for source in self.sources]
        capacity = self.size if isinstance(self.size, int) else None
        lists = [list_new(TensorSpec(s.dims, s.dtype), capacity=capacity) for s in specs]
        count = dims_tensor(self.size, dtypes.int32)
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

"""Gradients that are rows of a table (`td.IndexedSlices`) in the rules of optimizers.

Each row is taken for itself, as Keras does: where a table's row was read twice, squares are those
of its two gradients. Where a rule changes no row but those of the gradient, nothing else of the
table is read or written: a step costs what the rows cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td

Gradient = td.Tensor | td.IndexedSlices


def each(function: Callable[..., td.Tensor], gradient: Gradient, *others: td.Variable) -> Any:
    """``function(gradient, *others)``: for rows with the rows of the variables that belong to
    them."""
    if not isinstance(gradient, td.IndexedSlices):
        return function(gradient, *(o.read_value() for o in others))
    rows = [td.gather(o, gradient.indices) for o in others]
    return td.IndexedSlices(function(gradient.values, *rows), gradient.indices)


def add(variable: td.Variable, change: Gradient) -> None:
    """Add a change, or the rows of one, to a variable."""
    if isinstance(change, td.IndexedSlices):
        variable.scatter_add(change)
    else:
        variable.assign_add(change)


def subtract(variable: td.Variable, change: Gradient) -> None:
    """Subtract a change, or the rows of one, from a variable."""
    if isinstance(change, td.IndexedSlices):
        variable.scatter_sub(change)
    else:
        variable.assign_sub(change)


def replace(variable: td.Variable, kept: td.Tensor, added: Gradient) -> None:
    """Let a variable be ``kept + added``."""
    if isinstance(added, td.IndexedSlices):
        variable.assign(kept)
        variable.scatter_add(added)
    else:
        variable.assign(kept + added)


def approach(
    variable: td.Variable, function: Callable[[td.Tensor], td.Tensor], gradient: Gradient,
    share: float,
) -> None:  # fmt: skip
    """Move a variable by a share of the way to ``function(gradient)``."""
    value = variable.read_value()
    if isinstance(gradient, td.IndexedSlices):
        rows = each(lambda g: function(g) * share, gradient)
        replace(variable, value - value * share, rows)
    else:
        variable.assign(value + (function(gradient) - value) * share)


def whole(gradient: Gradient, variable: td.Variable) -> td.Tensor:
    """A gradient as a tensor of the shape of its variable."""
    if not isinstance(gradient, td.IndexedSlices):
        return gradient
    zeros = td.zeros_like(variable)
    return td.tensor_scatter_nd_add(zeros, td.expand_dims(gradient.indices, -1), gradient.values)

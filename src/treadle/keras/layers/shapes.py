"""Shapes of tensors in structures, as tuples for programs and as lists for files."""

from __future__ import annotations

from typing import Any

import treadle as td


def shape_of(value: Any) -> Any:
    """The shape of a tensor as a tuple; None of what has none."""
    return tuple(value.shape) if hasattr(value, "shape") else None


def shapes_of(value: Any) -> Any:
    """The shapes of what a structure holds."""
    return td.nest.map_structure(shape_of, value)


def as_lists(shape: Any) -> Any:
    """A shape, or a structure of shapes, as lists."""
    if isinstance(shape, dict):
        return {name: as_lists(inner) for name, inner in shape.items()}
    if isinstance(shape, list | tuple | td.TensorShape):
        return [as_lists(inner) for inner in shape]
    return shape if shape is None else int(shape)


def of_lists(listed: Any) -> Any:
    """The shape, or the structure of shapes, of `as_lists`."""
    if isinstance(listed, dict):
        return {name: of_lists(inner) for name, inner in listed.items()}
    if any(isinstance(inner, list | dict) for inner in listed):
        return [of_lists(inner) for inner in listed]
    return tuple(listed)

"""The values of symbolic dims, for what runs a graph in Python: interpreter and callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core import errors
from treadle.core.shapes import (
    ANY,
    UNKNOWN_RANK,
    UNKNOWN_SHAPE,
    Dim,
    SymbolicDim,
    substitute,
    symbol_name,
)
from treadle.core.spec import Spec, spec_text

# Dims that the spec of a list leaves open: no value of theirs is ever known.
OPEN_DIMS = frozenset({ANY, *UNKNOWN_SHAPE, *UNKNOWN_RANK})


class Scope:
    """Symbol -> int. A region runs in a child scope: each iteration binds its symbols anew."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, int] | None = None) -> None:
        self.values: dict[str, int] = dict(values or {})

    def child(self) -> Scope:
        return Scope(self.values)

    def bind(self, spec: Spec, shape: tuple[int, ...]) -> None:
        """Learn the symbols of `spec` from an actual shape.

        Raises:
            InvalidArgumentError: the shape contradicts the spec with the values known so far.
        """
        if len(shape) != spec.rank:
            raise _mismatch(spec, shape, f"rank {len(shape)} instead of {spec.rank}")
        for dim, size in zip(spec.dims, shape, strict=True):
            name = symbol_name(dim)
            if name is not None:
                self.values.setdefault(name, size)
        for axis, (dim, size) in enumerate(zip(spec.dims, shape, strict=True)):
            known = self.known(dim)
            if known is not None and known != size:
                why = "" if isinstance(dim, int) else f" (the value of {dim})"
                raise _mismatch(spec, shape, f"dim {axis} is {size} instead of {known}{why}")

    def known(self, dim: Dim) -> int | None:
        """The value of `dim`, or None while one of its symbols is unknown."""
        if isinstance(dim, int):
            return dim
        value = substitute(dim, self.values)
        return value if isinstance(value, int) else None

    def resolve(self, attr: Any) -> Any:
        """An attribute with its symbolic dims replaced by ints, inside tuples, lists and dicts."""
        if isinstance(attr, SymbolicDim):
            return attr if attr in OPEN_DIMS else attr.evaluate(self.values)
        if isinstance(attr, tuple | list) and any(map(_may_hold_dim, attr)):
            return type(attr)([self.resolve(a) for a in attr])
        if isinstance(attr, dict):
            return {k: self.resolve(v) for k, v in attr.items()}
        if isinstance(attr, Spec):
            return attr.with_dims(substitute(d, self.values) for d in attr.dims)
        return attr


def _may_hold_dim(attr: Any) -> bool:
    return isinstance(attr, SymbolicDim | tuple | list | dict | Spec)


def _mismatch(spec: Spec, shape: tuple[int, ...], detail: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"a value of shape {shape} where {spec_text(spec)} is expected: {detail}"
    )

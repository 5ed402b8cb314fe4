"""Trace types: how a call's arguments are told apart, and what users' classes say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable


class TraceType:
    """The type of an argument of a `function`, as far as its traces depend on it.

    A class whose objects have a method ``__tf_tracing_type__`` that returns such a type decides
    which of its objects share a trace: those of equal types, and those whose type is a subtype of
    the type that a trace was made for.
    """

    __slots__ = ()

    def is_subtype_of(self, other: Any) -> bool:
        """Whether a trace for `other` serves values of this type."""
        raise NotImplementedError(f"{type(self).__name__} has no is_subtype_of")

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest type of which this one and all others are subtypes; None for none."""
        raise NotImplementedError(f"{type(self).__name__} has no most_specific_common_supertype")

    def placeholder_value(self, placeholder_context: Any = None) -> Any:
        """What the Python function gets for a value of this type while it is traced."""
        raise NotImplementedError(f"{type(self).__name__} has no placeholder_value")


class TypeSpec(TraceType):
    """The type of a tensor or of a structure of tensors: `TensorSpec` and its like."""

    __slots__ = ()

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value may be passed where this type is wanted."""
        raise NotImplementedError(f"{type(self).__name__} has no is_compatible_with")

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The narrowest type of which both are subtypes; ValueError where there is none."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No type is compatible with both {self!r} and {other!r}")
        return found


class TracingContext:
    """What ``__tf_tracing_type__`` is given. It has nothing to ask: types say all of a value."""

    __slots__ = ()


@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """An object that says by which type it counts in a call."""

    def __tf_tracing_type__(self, context: TracingContext) -> TraceType: ...

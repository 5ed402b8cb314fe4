"""The types of structures of tensors: IndexedSlices, tensor arrays, optionals, extension types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from treadle.core import nest
from treadle.core.trace_types import TypeSpec


class CompositeTensor:
    """Base of what is one tensor to users and several tensors to programs, such as ragged ones."""

    __slots__ = ()

    is_symbolic: Any  # whether it is a value of a function that is being traced
    _type_spec: Any  # its type, which does not say how many elements it has
    _told: Any = None  # sizes in its type that the types of its parts do not have; None for unknown

    def _count(self) -> Any:
        """How many slices there are along the first axis, for loops over them.

        Raises:
            TypeError: it is not iterated over.
        """
        raise NotImplementedError

    def _row_count(self) -> Any:
        """How many slices there are along the first axis, as a dim."""
        raise NotImplementedError

    def _row(self, index: Any) -> Any:
        """The slice at a position of the first axis, which may be a tensor of a loop."""
        raise NotImplementedError

    def _elements(self) -> Any:
        """The tensor of the elements, through which gradients go."""
        raise NotImplementedError

    def _with_elements(self, elements: Any) -> Any:
        """The same with other elements."""
        raise NotImplementedError


def with_elements(structure: Any) -> Any:
    """A structure with the elements of composite tensors in their places: itself where there are
    none."""
    if isinstance(structure, CompositeTensor):
        return structure._elements()
    parts = [part for _, part in nest.children(structure) or ()]
    found = [with_elements(part) for part in parts]
    if all(new is part for new, part in zip(found, parts, strict=True)):
        return structure
    return nest.rebuild(structure, found)


def of_elements(structure: Any, elements: Any) -> Any:
    """What `with_elements` made of a structure, changed, as composite tensors again; None stays."""
    if isinstance(structure, CompositeTensor):
        return None if elements is None else structure._with_elements(elements)
    parts = nest.children(structure)
    if parts is None:
        return elements
    pairs = zip(parts, nest.children(elements) or (), strict=True)
    return nest.rebuild(structure, [of_elements(part, given) for (_, part), (_, given) in pairs])


class CompositeSpec(TypeSpec):
    """The type of an object that is a structure (`core.nest`): the same structure of specs.

    A subclass is registered with `nest` so that its parts are the specs of the object's parts, and
    its static part is the object's.
    """

    value_type: ClassVar[Any]
    seen_as: ClassVar[Any]  # in structures it stands for an object of this class

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = getattr(spec_or_value, "_type_spec", spec_or_value)
        return self._compare(other, lambda mine, theirs: mine.is_compatible_with(theirs))

    def is_subtype_of(self, other: Any) -> bool:
        return self._compare(other, lambda mine, theirs: mine.is_subtype_of(theirs))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        if not all(map(self._is_like, others)):
            return None
        columns = [nest.flatten(s) for s in (self, *others)]
        if len(set(map(len, columns))) > 1:
            return None
        found = [_common(part, rest) for part, *rest in zip(*columns, strict=True)]
        return None if _NONE in found else nest.pack(self, found)

    def as_invariant(self, shape: Any) -> Any:
        """What a TensorShape stands for as the shape invariant of a loop variable: a type, or
        itself where it is one for the only tensor of the variable."""
        return shape

    def _compare(self, other: Any, fits: Callable[[Any, Any], bool]) -> bool:
        if not self._is_like(other):
            return False
        mine, theirs = nest.flatten(self), nest.flatten(other)
        return len(mine) == len(theirs) and all(
            fits(a, b) if isinstance(a, TypeSpec) and isinstance(b, TypeSpec) else a == b
            for a, b in zip(mine, theirs, strict=True)
        )

    def _is_like(self, other: Any) -> bool:
        return type(self) is type(other) and nest.static_part(self) == nest.static_part(other)

    def __eq__(self, other: object) -> bool:
        return self._is_like(other) and nest.flatten(self) == nest.flatten(other)

    def __hash__(self) -> int:
        return hash((type(self), nest.static_part(self), *nest.flatten(self)))


_NONE = object()  # no common type: None may be a part


def _common(part: Any, others: Sequence[Any]) -> Any:
    if isinstance(part, TypeSpec):
        found = part.most_specific_common_supertype(others)
        return _NONE if found is None else found
    return part if all(part == other for other in others) else _NONE


class CompositeTensorSpec(CompositeSpec):
    """The type of a `CompositeTensor`, which knows how pipelines batch its values.

    The values are given as the tuples of their arrays, in the order of the parts.
    """

    _told: Any = None  # as of the tensor

    def batched(self, size: int | None) -> Any:
        """The type of a batch; `size`: how many values it has, where that is known."""
        raise NotImplementedError

    def joined(self, values: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """A batch of values."""
        raise NotImplementedError

    def unbatched(self) -> Any:
        """The type of the slices along the first axis."""
        raise NotImplementedError

    def sliced(self, arrays: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The slices of a value along its first axis."""
        raise NotImplementedError

    def opened(self) -> Any:
        """The type of the same values of any shape."""
        raise NotImplementedError

    # Loops of programs put values together as tensors that are joined along their first axes.

    def piece_specs(self) -> list[Any]:
        """The types of the tensors that `pieces` gives."""
        raise NotImplementedError

    def pieces(self, value: Any) -> list[Any]:
        """A value as tensors whose first sizes may be others for other values."""
        raise NotImplementedError

    def of_pieces(self, joined: Sequence[Any], lengths: Sequence[Any], size: Any) -> Any:
        """The batch of `size` values.

        Args:
            joined: each of their pieces, joined along the first axes.
            lengths: the first sizes of the pieces.
        """
        raise NotImplementedError

"""``td.keras.tree``: nested lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.names import missing_in


class MAP_TO_NONE:
    """What a function for `traverse` gives where the result is to have None."""


def is_nested(structure: Any) -> bool:
    """Whether it is a list, a tuple, a dict or the like."""
    return bool(td.nest.is_nested(structure))


def flatten(structure: Any) -> list[Any]:
    """The leaves in order, those of dicts in the order of their keys."""
    return list(td.nest.flatten(structure))


def _parts(structure: Any) -> list[tuple[Any, Any]]:
    """The keys or positions of a nested structure, and what is there."""
    if isinstance(structure, dict):
        return [(key, structure[key]) for key in sorted(structure)]
    if hasattr(structure, "_fields"):
        return [(name, getattr(structure, name)) for name in structure._fields]
    return list(enumerate(structure))


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves, each with the keys and positions that lead to it."""
    if not is_nested(structure):
        return [((), structure)]
    return [
        ((key, *path), leaf)
        for key, part in _parts(structure)
        for path, leaf in flatten_with_path(part)
    ]


def map_structure(
    func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True
) -> Any:
    """A structure of what a function gives of the leaves that structures have at one place.

    Args:
        none_is_leaf: None is given to the function, too, rather than kept.

    Raises:
        TypeError: `func` is no function.
        ValueError: there are no structures, or they differ.
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable, got: {func}")
    if not structures:
        raise ValueError("Must provide at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    if none_is_leaf:
        return td.nest.map_structure(func, *structures, check_types=False)
    return td.nest.map_structure(
        lambda *leaves: None if all(leaf is None for leaf in leaves) else func(*leaves),
        *structures, check_types=False,
    )  # fmt: skip


def map_structure_up_to(
    shallow_structure: Any, func: Callable[..., Any], *structures: Any
) -> Any:
    """`map_structure` whose leaves are where `shallow_structure` has them."""
    if not structures:
        raise ValueError("Must provide at least one structure")
    columns = [_up_to(shallow_structure, structure) for structure in structures]
    found = [func(*row) for row in zip(*columns, strict=True)]
    return pack_sequence_as(shallow_structure, found)


def _up_to(shallow: Any, structure: Any) -> list[Any]:
    if not is_nested(shallow):
        return [structure]
    own, others = _parts(shallow), _parts(structure) if is_nested(structure) else []
    if [key for key, _ in own] != [key for key, _ in others]:
        raise ValueError(f"The structures differ: {shallow!r} and {structure!r}")
    return [
        leaf for (_, s), (_, o) in zip(own, others, strict=True) for leaf in _up_to(s, o)
    ]  # fmt: skip


def assert_same_structure(a: Any, b: Any) -> None:
    """Raise ValueError where two structures differ in their keys, lengths or depth."""
    td.nest.assert_same_structure(a, b, check_types=False)
    if [p for p, _ in flatten_with_path(a)] != [p for p, _ in flatten_with_path(b)]:
        raise ValueError(f"The structures differ: {a!r} and {b!r}")


def assert_same_paths(a: Any, b: Any) -> None:
    """Raise ValueError where other paths lead to the leaves of two structures."""
    first, second = ({path for path, _ in flatten_with_path(s)} for s in (a, b))
    if first != second:
        raise ValueError(
            f"`a` and `b` don't have the same paths. Only in a: {sorted(first - second, key=str)}, "
            f"only in b: {sorted(second - first, key=str)}"
        )


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """A structure with other leaves, which are listed in order.

    Raises:
        TypeError: they are no list.
        ValueError: their number is another.
    """
    if not is_nested(flat_sequence):
        raise TypeError(f"flat_sequence must be a sequence, not {flat_sequence!r}")
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`, but {len(flat_sequence)} "
                "leaves are given"
            )
        return flat_sequence[0]
    return td.nest.pack_sequence_as(structure, list(flat_sequence))


def lists_to_tuples(structure: Any) -> Any:
    """A structure with tuples instead of lists."""

    def replaced(part: Any) -> Any:
        return tuple(map(lists_to_tuples, part)) if isinstance(part, list) else None

    return traverse(replaced, structure)


def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of what a function gives of shapes: lists and tuples of ints and None."""

    def of_shape(part: Any) -> Any:
        if isinstance(part, list | tuple) and all(isinstance(d, int | type(None)) for d in part):
            found = func(part)
            return MAP_TO_NONE if found is None else found
        return None

    return traverse(of_shape, structure)


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """A structure whose parts are replaced by what a function gives of them, where that is not
    None.

    Args:
        func: of parts and leaves; `MAP_TO_NONE` stands for None.
        top_down: a part is given to the function before what is in it, and what is in it no more
            where the function replaces the part.
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable, got: {func}")
    found = func(structure) if top_down else None
    if found is None and is_nested(structure):
        parts = {key: traverse(func, part, top_down) for key, part in _parts(structure)}
        if isinstance(structure, dict):
            structure = type(structure)((key, parts[key]) for key in structure)
        elif hasattr(structure, "_fields"):
            structure = type(structure)(**parts)
        else:
            structure = type(structure)(parts.values())
    if not top_down:
        found = func(structure)
    if found is None:
        return structure
    return None if found is MAP_TO_NONE else found


__all__ = [
    "MAP_TO_NONE", "assert_same_paths", "assert_same_structure", "flatten", "flatten_with_path",
    "is_nested", "lists_to_tuples", "map_shape_structure", "map_structure", "map_structure_up_to",
    "pack_sequence_as", "traverse",
]  # fmt: skip

__getattr__ = missing_in(__name__)

"""TensorFlow's private module ``data.util.nest``: structures of elements of datasets, in which a
list is no structure, but what becomes a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle import nest as public
from treadle.compat.replacement import structures
from treadle.core import nest
from treadle.core.origin import at, user_origin


class _List:
    """A list, as a leaf."""

    def __init__(self, value: list[Any]) -> None:
        self.value = value


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    return None if isinstance(value, list) else nest.children_of_users(value)


def _hidden(structure: Any) -> Any:
    """The structure with leaves in the place of lists."""
    if isinstance(structure, list):
        return _List(structure)
    parts = _parts(structure)
    return structure if parts is None else nest.rebuild(structure, [_hidden(p) for _, p in parts])


def _shown(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, _List) else leaf


def is_nested(structure: Any) -> bool:
    """Whether an object is a tuple, a dict or the like, and no list."""
    return _parts(structure) is not None


is_sequence = is_nested


def flatten(structure: Any) -> list[Any]:
    """The leaves, lists among them."""
    parts = _parts(structure)
    return [structure] if parts is None else [leaf for _, p in parts for leaf in flatten(p)]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """A structure with other leaves.

    Raises:
        ValueError: there are more or fewer of them.
    """
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(
            f"The structure has {count} leaves, but flat_sequence has {len(flat_sequence)}"
            f"{at(user_origin())}"
        )
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    parts = _parts(structure)
    if parts is None:
        return next(leaves)
    return nest.rebuild(structure, [_packed(p, leaves) for _, p in parts])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise the errors of `nest.assert_same_structure` where two structures differ."""
    one, two = _hidden(nest1), _hidden(nest2)
    public.assert_same_structure(one, two, check_types=check_types, expand_composites=False)


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """What a function gives for the leaves at each place, in the first structure."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func!r}{at(user_origin())}")
    if not structure:
        raise ValueError(f"Must provide at least one structure{at(user_origin())}")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    leaves = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*each) for each in leaves])


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """What stands in a structure where another one, which is its upper part, has leaves."""
    found = structures.flatten_up_to(_hidden(shallow_tree), _hidden(input_tree))
    return [_shown_inside(each) for each in found]


def _shown_inside(value: Any) -> Any:
    parts = _parts(value)
    if parts is None:
        return _shown(value)
    return nest.rebuild(value, [_shown_inside(p) for _, p in parts])


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """`map_structure` for what stands at the leaves of the first."""
    if not inputs:
        raise ValueError(f"Cannot map over no sequences{at(user_origin())}")
    found = zip(*(flatten_up_to(shallow_tree, each) for each in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*each) for each in found])

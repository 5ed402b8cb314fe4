"""``td.keras.tree``: nested lists, tuples, deques and dicts."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from treadle.names import missing_in


class MAP_TO_NONE:
    """What a function for `traverse` gives where the result is to have None."""


def is_nested(structure: Any) -> bool:
    """Whether it is a list, a tuple, a deque or a dict."""
    return isinstance(structure, list | tuple | collections.deque | Mapping)


def _parts(structure: Any) -> list[tuple[Any, Any]]:
    """The keys or positions of a nested structure, and what is there: dicts in the order of their
    keys, ordered ones in their own."""
    if isinstance(structure, Mapping):
        ordered = isinstance(structure, collections.OrderedDict)
        keys = list(structure) if ordered else sorted(structure)
        return [(key, structure[key]) for key in keys]
    return list(enumerate(structure))


def _rebuilt(like: Any, parts: Iterable[Any]) -> Any:
    """A structure of the kind of another one, with these parts in the order of `_parts`."""
    if isinstance(like, collections.defaultdict):
        found = dict(zip((key for key, _ in _parts(like)), parts, strict=True))
        return type(like)(like.default_factory, {key: found[key] for key in like})
    if isinstance(like, Mapping):
        found = dict(zip((key for key, _ in _parts(like)), parts, strict=True))
        return type(like)((key, found[key]) for key in like)  # type: ignore[call-arg]
    if hasattr(like, "_fields"):
        return type(like)(*parts)
    if isinstance(like, collections.deque):
        return collections.deque(parts, like.maxlen)
    return type(like)(list(parts))


def flatten(structure: Any) -> list[Any]:
    """The leaves in order, those of dicts in the order of their keys."""
    return [leaf for _, leaf in flatten_with_path(structure)]


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves, each with the keys and positions that lead to it."""
    if not is_nested(structure):
        return [((), structure)]
    fields = getattr(structure, "_fields", None)
    return [
        ((key if fields is None else fields[key], *path), leaf)
        for key, part in _parts(structure)
        for path, leaf in flatten_with_path(part)
    ]


def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
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
        return map_structure_up_to(structures[0], func, *structures)

    def kept(*leaves: Any) -> Any:
        return None if all(leaf is None for leaf in leaves) else func(*leaves)

    return map_structure_up_to(structures[0], kept, *structures)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """`map_structure` whose leaves are where `shallow_structure` has them.

    Raises:
        ValueError: there are no structures, or they differ from it.
    """
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
    return [leaf for (_, s), (_, o) in zip(own, others, strict=True) for leaf in _up_to(s, o)]


def assert_same_structure(a: Any, b: Any, check_types: Any = None) -> None:
    """Raise ValueError where two structures differ in their kinds, keys, lengths or depth.

    Args:
        check_types: changes nothing, as in Keras 3.
    """
    same = is_nested(a) == is_nested(b)
    if same and is_nested(a):
        first, second = _parts(a), _parts(b)
        kinds = isinstance(a, Mapping) == isinstance(b, Mapping)
        same = kinds and [key for key, _ in first] == [key for key, _ in second]
        for (_, x), (_, y) in zip(first, second, strict=False) if same else ():
            assert_same_structure(x, y)
    if not same:
        raise ValueError(f"`a` and `b` don't have the same nested structure: {a!r} and {b!r}")


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
    given = list(flat_sequence)
    count = len(flatten(structure))
    if len(given) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had "
            f"{len(given)} items. Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    leaves = iter(given)

    def packed(part: Any) -> Any:
        if not is_nested(part):
            return next(leaves)
        return _rebuilt(part, [packed(inner) for _, inner in _parts(part)])

    return packed(structure)


def lists_to_tuples(structure: Any) -> Any:
    """A structure with tuples instead of lists."""

    def replaced(part: Any) -> Any:
        return tuple(part) if isinstance(part, list) else None

    return traverse(replaced, structure, top_down=False)


def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of what a function gives of shapes, which are lists and tuples of ints and None,
    and of leaves that are none."""

    def of_shape(part: Any) -> Any:
        listed = isinstance(part, list | tuple)
        if is_nested(part) and not (listed and all(isinstance(d, int | None) for d in part)):
            return None
        found = func(part)
        return MAP_TO_NONE if found is None else found

    return traverse(of_shape, structure)


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """A structure whose parts are replaced by what a function gives of them, where that is not
    None.

    Args:
        func: of parts and leaves; `MAP_TO_NONE` stands for None.
        top_down: a part is given to the function before what is in it, and what is in it no more
            where the function replaces the part.

    Raises:
        TypeError: `func` is no function.
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable, got: {func}")
    found = func(structure) if top_down else None
    if found is None and is_nested(structure):
        parts = [traverse(func, part, top_down) for _, part in _parts(structure)]
        structure = _rebuilt(structure, parts)
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

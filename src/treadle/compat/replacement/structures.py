"""TensorFlow's private module ``nest``: structures of which one is the upper part of another.

Functions whose names end in ``_up_to`` take the second structure apart only as far as the first
goes: what stands there for a leaf of the first is given whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack_sequence_as,
)

is_sequence = is_nested
_Path = tuple[Any, ...]


def is_nested_or_composite(seq: Any) -> bool:
    """Whether an object is a structure, or one value that is made of several tensors."""
    return nest.is_nested(seq)


def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether an object is a tuple with names of fields."""
    return isinstance(instance, tuple) and hasattr(instance, "_fields")


def is_mapping(obj: Any) -> bool:
    """Whether an object is a dictionary or behaves as one."""
    return isinstance(obj, Mapping)


def is_attrs(obj: Any) -> bool:
    """Whether an object is of a class that the package attrs made."""
    return hasattr(type(obj), "__attrs_attrs__")


def same_namedtuples(nest1: Any, nest2: Any) -> bool:
    """Whether two tuples with names of fields have the same names, and classes of one name."""
    fields = [getattr(each, "_fields", None) for each in (nest1, nest2)]
    return type(nest1).__name__ == type(nest2).__name__ and fields[0] == fields[1]


def _yield_value(iterable: Any) -> Iterator[Any]:
    """The parts of one level, in the order of `flatten`."""
    for _, part in nest.children(iterable) or ():
        yield part


def _yield_sorted_items(iterable: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and parts of one level: names of fields, keys, or positions."""
    if is_namedtuple(iterable):
        yield from zip(iterable._fields, iterable, strict=True)
    else:
        yield from nest.children(iterable) or ()


def _sequence_like(instance: Any, args: Sequence[Any]) -> Any:
    """A structure of the type of `instance` with other parts of its first level."""
    return nest.rebuild(instance, list(args))


_is_namedtuple, _is_mapping, _is_attrs = is_namedtuple, is_mapping, is_attrs


def _taken(expand_composites: bool) -> Callable[[Any], list[tuple[Any, Any]] | None]:
    """A function that gives the keys and parts of one level; None for a leaf."""
    parts = nest.children if expand_composites else nest.children_of_users

    def named(value: Any) -> list[tuple[Any, Any]] | None:
        found = parts(value)
        return list(_yield_sorted_items(value)) if found and is_namedtuple(value) else found

    return named


# -- a structure up to another -----------------------------------------------------------------


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """An error where the first structure is not the upper part of the second.

    Raises:
        TypeError: the second has a leaf, or another type, where the first has parts.
        ValueError: numbers or keys of parts differ.
    """
    list(_pairs(shallow_tree, input_tree, check_types, _taken(expand_composites), ()))


def _pairs(
    shallow: Any, deep: Any, check_types: bool,
    parts_of: Callable[[Any], list[tuple[Any, Any]] | None], path: _Path,
) -> Iterator[tuple[_Path, Any, Any]]:  # fmt: skip
    """The path, the leaf of the first structure and what the second has there."""
    upper = parts_of(shallow)
    if upper is None:
        yield path, shallow, deep
        return
    lower = parts_of(deep)
    if lower is None:
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. "
            f"Input has type: {type(deep)}{at(user_origin())}"
        )
    if check_types and not _alike(shallow, deep):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(deep)}, while shallow structure has type {type(shallow)}{at(user_origin())}"
        )
    if len(upper) != len(lower):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(lower)}, while shallow structure has length {len(upper)}{at(user_origin())}"
        )
    by_key = dict(lower) if isinstance(shallow, Mapping) and isinstance(deep, Mapping) else None
    for position, (key, part) in enumerate(upper):
        if by_key is not None and key not in by_key:
            raise ValueError(
                f"The two structures don't have the same keys. Input has {sorted(by_key, key=repr)}"
                f", which lacks {key!r}{at(user_origin())}"
            )
        other = lower[position][1] if by_key is None else by_key[key]
        yield from _pairs(part, other, check_types, parts_of, (*path, key))


def _alike(shallow: Any, deep: Any) -> bool:
    """Whether a structure may stand where the other is expected, by their types."""
    if isinstance(shallow, Mapping) and isinstance(deep, Mapping):
        return True
    if is_namedtuple(shallow) and is_namedtuple(deep):
        return same_namedtuples(shallow, deep)
    return issubclass(nest.seen_as(deep), nest.seen_as(shallow))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """What `input_tree` has for the leaves of `shallow_tree`."""
    taken = _taken(expand_composites)
    return [part for _, _, part in _pairs(shallow_tree, input_tree, check_types, taken, ())]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[_Path, Any]]:
    """The paths to the leaves of `shallow_tree` with what `input_tree` has there."""
    taken = _taken(expand_composites)
    return [
        (path, part) for path, _, part in _pairs(shallow_tree, input_tree, check_types, taken, ())
    ]


def map_structure_up_to(shallow_tree: Any, func: Any, *inputs: Any, **kwargs: Any) -> Any:
    """`func` of what structures have for each leaf of `shallow_tree`, in its form."""
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda _, *parts: func(*parts), *inputs, **kwargs
    )


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Any, *inputs: Any, **kwargs: Any
) -> Any:
    """`map_structure_up_to` whose function is given the path first.

    Raises:
        ValueError: no structure is given.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    taken = _taken(expand_composites)
    columns = [list(_pairs(shallow_tree, tree, check_types, taken, ())) for tree in inputs]
    results = [
        func(row[0][0], *(part for _, _, part in row), **kwargs)
        for row in zip(*columns, strict=True)
    ]
    return pack_sequence_as(shallow_tree, results, expand_composites=expand_composites)


def map_structure_with_tuple_paths(func: Any, *structure: Any, **kwargs: Any) -> Any:
    """`map_structure` whose function is given the path first: a tuple of keys."""
    for other in structure[1:]:
        assert_same_structure(
            structure[0], other, kwargs.get("check_types", True),
            kwargs.get("expand_composites", False),
        )  # fmt: skip
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Any, *structure: Any, **kwargs: Any) -> Any:
    """`map_structure` whose function is given the path first: the keys joined by slashes."""
    return map_structure_with_tuple_paths(
        lambda path, *parts, **more: func("/".join(map(str, path)), *parts, **more),
        *structure, **kwargs,
    )  # fmt: skip


def flatten_with_tuple_paths(
    structure: Any, expand_composites: bool = False
) -> list[tuple[_Path, Any]]:
    """The leaves with the paths to them."""
    return flatten_with_tuple_paths_up_to(structure, structure, expand_composites=expand_composites)


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves with the paths to them as texts."""
    found = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in found]


def yield_flat_paths(structure: Any, expand_composites: bool = False) -> Iterator[_Path]:
    """The paths to the leaves."""
    for path, _ in flatten_with_tuple_paths(structure, expand_composites):
        yield path


def get_traverse_shallow_structure(
    traverse_fn: Any, structure: Any, expand_composites: bool = False
) -> Any:
    """The upper part of a structure, as far as a function says to go.

    Args:
        traverse_fn: given a part, whether to take it apart; or a structure of bools like the part's
            first level, for its parts.

    Raises:
        TypeError: it says something else.
    """
    wanted = traverse_fn(structure)
    parts = _taken(expand_composites)(structure)
    if parts is None:
        if isinstance(wanted, bool):
            return wanted
        raise TypeError(f"traverse_fn returned {wanted!r} for a leaf{at(user_origin())}")
    if isinstance(wanted, bool):
        if not wanted:
            return False
        chosen = [True] * len(parts)
    else:
        assert_shallow_structure(wanted, structure, expand_composites=expand_composites)
        chosen = [part for _, part in nest.children(wanted) or ()]
    upper = [
        get_traverse_shallow_structure(traverse_fn, part, expand_composites) if choice else False
        for choice, (_, part) in zip(chosen, parts, strict=True)
    ]
    return nest.rebuild(structure, upper)


__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "get_traverse_shallow_structure",
    "is_attrs",
    "is_mapping",
    "is_namedtuple",
    "is_nested",
    "is_nested_or_composite",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "pack_sequence_as",
    "same_namedtuples",
    "yield_flat_paths",
]

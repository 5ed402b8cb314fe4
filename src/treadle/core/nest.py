"""Nested structures: lists, tuples, named tuples, mappings, dataclasses and attrs of leaves.

Mappings are flattened in sorted key order, as TensorFlow does; anything else is a leaf. A class
with the methods ``__tf_flatten__`` and ``__tf_unflatten__``, TensorFlow's protocol for dataclasses,
says itself what its children are, and what of its objects is data that no function changes.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from treadle.core.origin import at, user_origin

# Other types that are taken apart: type -> (its children, how to rebuild it with new ones).
_registered: dict[type, tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]] = {}
_static: dict[type, Callable[[Any], Hashable]] = {}
_composites: set[type] = set()  # of these, the types whose objects are leaves to users
_leaves: set[type] = set()  # types known to be taken apart never, of which most structures are made


def register_leaf(kind: type) -> type:
    """Decorator of a class whose own instances, not those of its subclasses, are leaves: nobody
    asks first whether they are mappings or have fields."""
    _leaves.add(kind)
    return kind


def register_node(
    kind: type,
    parts: Callable[[Any], list[Any]],
    build: Callable[[Any, list[Any]], Any],
    static: Callable[[Any], Hashable] | None = None,
    composite: bool = True,
) -> None:
    """Take instances of `kind` apart: ``parts(x)`` are its children, ``build(x, new)`` is like x
    with other children, ``static(x)`` is the part of its type that its class does not tell.

    A `composite` is one value to users, as a ragged tensor is: ``td.nest`` leaves it whole where it
    is not asked to take composites apart.
    """
    _registered[kind] = parts, build
    if composite:
        _composites.add(kind)
    if static is not None:
        _static[kind] = static


def taker_of(value: Any) -> tuple[Callable[[Any], list[Any]], Callable[[Any], Hashable]] | None:
    """The functions that give the children and the static part of an object; None where its type is
    not registered, or has no static part."""
    kind = type(value)
    if kind in _static:
        return _registered[kind][0], _static[kind]
    return (_own_parts, _own_data) if _says_its_parts(kind) else None


def static_part(value: Any) -> Hashable:
    """The part of an object's type that class and children do not tell, for registered types."""
    taker = taker_of(value)
    return None if taker is None else taker[1](value)


def _says_its_parts(kind: type) -> bool:
    return hasattr(kind, "__tf_flatten__") and hasattr(kind, "__tf_unflatten__")


def _own_parts(value: Any) -> list[Any]:
    return list(value.__tf_flatten__()[1])


def _own_data(value: Any) -> Hashable:
    return type(value), _hashable(value.__tf_flatten__()[0])


def _hashable(value: Any) -> Hashable:
    """Plain data as part of a key: lists, dicts and sets as tuples."""
    if isinstance(value, Mapping):
        return dict, tuple((key, _hashable(value[key])) for key in _sorted_keys(value))
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_hashable, value))
    return frozenset(value) if isinstance(value, set) else value


# The error for structures that a recursive function cannot follow to their end.
ENDLESS = "The structure contains itself, or is nested too deeply to be taken apart"


def is_nested(seq: Any) -> bool:
    """True for structures: list, tuple, mapping, dataclass instance, registered types."""
    return (
        isinstance(seq, list | tuple | Mapping)
        or type(seq) in _registered
        or field_names(seq) is not None
        or _says_its_parts(type(seq))
    )


def field_names(value: Any) -> list[str] | None:
    """The names of the fields of a dataclass instance or an attrs instance, else None."""
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return [f.name for f in dataclasses.fields(value)]
    if hasattr(kind, "__attrs_attrs__"):
        return [a.name for a in kind.__attrs_attrs__]
    return None


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return sorted(mapping, key=lambda k: (type(k).__name__, repr(k)))


def seen_as(value: Any) -> type:
    """The type that users know an object by: lists that are watched while a loop's body is traced
    are lists to them."""
    return getattr(value, "seen_as", type(value))


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """The (key, child) pairs of one level, or None for a leaf."""
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if type(value) in _leaves:
        return None
    if isinstance(value, Mapping):
        return [(key, value[key]) for key in _sorted_keys(value)]
    if type(value) in _registered:
        return list(enumerate(_registered[type(value)][0](value)))
    if _says_its_parts(type(value)):
        return list(enumerate(_own_parts(value)))
    names = field_names(value)
    return None if names is None else [(name, getattr(value, name)) for name in names]


def children_of_users(value: Any) -> list[tuple[Any, Any]] | None:
    """`children`, to which composites are leaves."""
    return None if type(value) in _composites else children(value)


def _taking(expand_composites: bool) -> Callable[[Any], list[tuple[Any, Any]] | None]:
    return children if expand_composites else children_of_users


def rebuild(like: Any, parts: list[Any]) -> Any:
    """A structure of the same type as `like` with `parts` as its children."""
    if isinstance(like, list):
        kind = seen_as(like)
        return parts if kind is list else kind(parts)
    if isinstance(like, tuple):
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    if isinstance(like, Mapping):
        by_key = dict(zip(_sorted_keys(like), parts, strict=True))
        items = [(key, by_key[key]) for key in like]  # the mapping's own order
        factory = getattr(like, "default_factory", None)
        if hasattr(like, "default_factory"):
            return type(like)(factory, items)  # type: ignore[call-arg]
        return type(like)(dict(items))  # type: ignore[call-arg]  # a Counter counts pairs
    if type(like) in _registered:
        return _registered[type(like)][1](like, parts)
    if _says_its_parts(type(like)):
        # A method of the class, or one of its objects.
        return like.__tf_unflatten__(like.__tf_flatten__()[0], tuple(parts))
    return _with_fields(like, dict(zip(field_names(like) or (), parts, strict=True)))


def _with_fields(like: Any, fields: dict[str, Any]) -> Any:
    """A dataclass or attrs instance like another one, with other values of its fields.

    A dataclass is made by its constructor where that takes all fields.
    """
    if dataclasses.is_dataclass(like) and all(f.init for f in dataclasses.fields(like)):
        return dataclasses.replace(like, **fields)  # type: ignore[type-var]
    made = copy.copy(like)
    for name, value in fields.items():
        object.__setattr__(made, name, value)  # frozen ones too
    return made


def flatten(structure: Any, expand_composites: bool = True) -> list[Any]:
    """The leaves in order; a leaf alone gives a list of one.

    Args:
        expand_composites: whether ragged and sparse tensors, extension types and the like are
            taken apart, too.

    Raises:
        ValueError: the structure contains itself, or is nested too deeply.
    """
    out: list[Any] = []
    try:
        _flatten_into(structure, out, _taking(expand_composites))
    except RecursionError:
        raise ValueError(f"{ENDLESS}{at(user_origin())}") from None
    return out


def _flatten_into(
    structure: Any, out: list[Any], parts_of: Callable[[Any], list[tuple[Any, Any]] | None]
) -> None:
    parts = parts_of(structure)
    if parts is None:
        out.append(structure)
    else:
        for _, child in parts:
            if type(child) in _leaves:
                out.append(child)
            else:
                _flatten_into(child, out, parts_of)


def flatten_with_paths(structure: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(path, leaf) pairs; a path reads as Python would index it, such as ``[0]['w'].bias``."""
    parts = children(structure)
    if parts is None:
        yield prefix, structure
        return
    for key, child in parts:
        step = f".{key}" if isinstance(key, str) and field_names(structure) else f"[{key!r}]"
        yield from flatten_with_paths(child, prefix + step)


def pack(structure: Any, flat: Iterable[Any], expand_composites: bool = True) -> Any:
    """`structure` with its leaves replaced by `flat`, in order.

    Raises:
        ValueError: where `flat` has too few or too many elements.
    """
    leaves = iter(flat)
    try:
        result = _pack(structure, leaves, _taking(expand_composites))
    except StopIteration:
        count = len(flatten(structure, expand_composites))
        raise ValueError(f"Too few leaves for the structure: expected {count}") from None
    if next(leaves, leaves) is not leaves:
        count = len(flatten(structure, expand_composites))
        raise ValueError(f"Too many leaves for a structure of {count}")
    return result


def _pack(
    structure: Any, leaves: Iterator[Any],
    parts_of: Callable[[Any], list[tuple[Any, Any]] | None],
) -> Any:  # fmt: skip
    parts = parts_of(structure)
    if parts is None:
        return next(leaves)
    packed = []
    for _, child in parts:  # not a generator: StopIteration must reach `pack`
        leaf = type(child) in _leaves
        packed.append(next(leaves) if leaf else _pack(child, leaves, parts_of))
    return rebuild(structure, packed)


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = True
) -> Any:
    """`structure` with its leaves replaced by those of `flat_sequence`, in order.

    Raises:
        TypeError: `flat_sequence` is no sequence.
        ValueError: it has too few or too many elements.
    """
    if not isinstance(flat_sequence, Sequence):
        raise TypeError(f"flat_sequence must be a sequence, not {type(flat_sequence).__name__}")
    return pack(structure, flat_sequence, expand_composites)


def map_structure(
    func: Callable[..., Any], *structure: Any,
    check_types: bool = True, expand_composites: bool = True,
) -> Any:  # fmt: skip
    """`func` applied leaf by leaf to structures of the same form.

    Args:
        check_types: the kinds of structures must be the same as well, not their forms only.
        expand_composites: whether ragged and sparse tensors, extension types and the like are
            taken apart, too.

    Raises:
        ValueError: no structure is given, or their forms differ.
        TypeError: their kinds differ, or `func` cannot be called.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, not {type(func).__name__}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    first, *others = structure
    for other in others:
        assert_same_structure(first, other, check_types, expand_composites)
    leaves = (flatten(each, expand_composites) for each in structure)
    return pack(first, map(func, *leaves), expand_composites)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = True
) -> None:
    """An error where two structures differ, which names the place.

    Args:
        check_types: the kinds of structures must be the same as well, not their forms only.
        expand_composites: whether ragged and sparse tensors, extension types and the like are
            taken apart, too.

    Raises:
        ValueError: their forms differ.
        TypeError: their kinds differ.
    """
    try:
        _compare(nest1, nest2, check_types, "", _taking(expand_composites))
    except RecursionError:
        raise ValueError(f"{ENDLESS}{at(user_origin())}") from None


def _compare(
    a: Any, b: Any, check_types: bool, path: str,
    parts_of: Callable[[Any], list[tuple[Any, Any]] | None],
) -> None:  # fmt: skip
    pa, pb = parts_of(a), parts_of(b)
    place = f" at {path}" if path else ""
    if (pa is None) != (pb is None):
        raise ValueError(f"The structures differ{place}: {_kind(a)} against {_kind(b)}")
    if pa is None or pb is None:
        return
    alike = not check_types or (isinstance(a, Mapping) and isinstance(b, Mapping))
    if seen_as(a) is not seen_as(b) and not alike:
        raise TypeError(f"The structures differ{place}: {_kind(a)} against {_kind(b)}")
    if static_part(a) != static_part(b):
        raise TypeError(f"The structures differ{place}: {a!r} against {b!r}")
    if [k for k, _ in pa] != [k for k, _ in pb]:
        keys = f"keys {[k for k, _ in pa]} against {[k for k, _ in pb]}"
        raise ValueError(f"The structures differ{place}: {keys}")
    for (key, child_a), (_, child_b) in zip(pa, pb, strict=True):
        _compare(child_a, child_b, check_types, f"{path}[{key!r}]", parts_of)


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if is_nested(value) else f"a leaf ({type(value).__name__})"

"""``td.nest``: nested structures of lists, tuples, mappings and dataclasses.

What is one value to users, as ragged and sparse tensors, extension types or datasets, is a leaf;
`expand_composites` takes it apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treadle.core import nest
from treadle.names import missing_in


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves in order; a leaf alone gives a list of one.

    Args:
        expand_composites: whether ragged and sparse tensors, extension types and the like are
            taken apart, too.

    Raises:
        ValueError: the structure contains itself, or is nested too deeply.
    """
    return nest.flatten(structure, expand_composites)


def is_nested(seq: Any) -> bool:
    """True for structures: lists, tuples, mappings and dataclass instances."""
    return nest.children_of_users(seq) is not None


def pack(structure: Any, flat: Iterable[Any], expand_composites: bool = False) -> Any:
    """`structure` with its leaves replaced by `flat`, in order.

    Raises:
        ValueError: where `flat` has too few or too many elements.
    """
    return nest.pack(structure, flat, expand_composites)


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """`structure` with its leaves replaced by those of `flat_sequence`, in order.

    Raises:
        TypeError: `flat_sequence` is no sequence.
        ValueError: it has too few or too many elements.
    """
    return nest.pack_sequence_as(structure, flat_sequence, expand_composites)


def map_structure(
    func: Callable[..., Any], *structure: Any,
    check_types: bool = True, expand_composites: bool = False,
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
    return nest.map_structure(
        func, *structure, check_types=check_types, expand_composites=expand_composites
    )


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
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
    nest.assert_same_structure(nest1, nest2, check_types, expand_composites)


__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack",
    "pack_sequence_as",
]

__getattr__ = missing_in(__name__)

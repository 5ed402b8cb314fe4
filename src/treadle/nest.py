"""``td.nest``: nested structures of lists, tuples, mappings and dataclasses."""

from treadle.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
)

pack_sequence_as = pack

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack",
    "pack_sequence_as",
]

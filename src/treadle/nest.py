"""``td.nest``: nested structures of lists, tuples, mappings and dataclasses."""

from treadle.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
    pack_sequence_as,
)
from treadle.names import missing_in

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack",
    "pack_sequence_as",
]

__getattr__ = missing_in(__name__)

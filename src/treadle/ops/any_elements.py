"""Which ops take strings: those that only move or compare elements, and those that call Python.

Importing this module tells them so. Other ops on strings have tags in their own records.
"""

from __future__ import annotations

from treadle.ops import python_functions
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.collections import iterators, lists
from treadle.ops.control import io
from treadle.ops.conversion import CONST
from treadle.ops.dims import DIM, SHAPE
from treadle.ops.elementwise import comparison, selection, unary
from treadle.ops.indexing import basic, gather, index, masks, scatter, updates
from treadle.ops.registry import add_tag
from treadle.ops.shaping import creation, joining, padding, permuting, reshaping, slicing

# Compiled programs have numbers in place of strings (`treadle.runtime.words`), of which 0 stands
# for the empty string: these ops do with the numbers what they do with the strings.
add_tag(
    "any_elements", CONST, DIM, SHAPE, BROADCAST_TO, comparison.EQUAL, comparison.NOT_EQUAL,
    selection.WHERE, unary.IDENTITY, unary.STOP_GRADIENT,
    creation.FILL, creation.ONE_HOT, joining.CONCAT, joining.STACK, padding.PAD,
    permuting.TRANSPOSE, permuting.REVERSE, reshaping.RESHAPE, reshaping.ENSURE_SHAPE,
    slicing.STRIDED_SLICE,
    basic.DYNAMIC_SLICE, gather.GATHER, index.INDEX,
    masks.COMPRESS, scatter.GATHER_ND, scatter.SCATTER_UPDATE, updates.SLICE_UPDATE,
    updates.INDEX_UPDATE, updates.DYNAMIC_SLICE_UPDATE,
    lists.LIST_NEW, lists.LIST_PUSH, lists.LIST_GET, lists.LIST_SET, lists.LIST_LENGTH,
    lists.LIST_STACK, lists.LIST_UNSTACK, lists.LIST_CONCAT, lists.LIST_SPLIT, lists.LIST_JOIN,
    lists.LIST_SCATTER, lists.LIST_TRUNCATE, lists.LIST_EXTEND,
)  # fmt: skip
add_tag(
    "strings", io.PRINT, io.ASSERT, python_functions.NUMPY_FUNCTION,
    python_functions.PURE_NUMPY_FUNCTION, iterators.MAKE_ITERATOR, iterators.GET_NEXT,
)  # fmt: skip

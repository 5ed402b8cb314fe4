"""Elementwise comparisons; they give bool tensors."""

from __future__ import annotations

import numpy as np

from treadle.ops.op_makers import ANY_KIND, binary, binary_op, boolean
from treadle.ops.properties import Relation
from treadle.ops.registry import Op

_CHEAP = frozenset({"cheap"})


def _comparison(name: str, eager: np.ufunc, kinds: str, lower: str, relation: Relation) -> Op:
    tags = _CHEAP | {"any_elements"} if "s" in kinds else _CHEAP
    return binary_op(name, eager, kinds, lower, None, boolean, tags=tags, relation=relation)


EQUAL = _comparison("equal", np.equal, ANY_KIND + "s", "eq", Relation.EQUAL)
NOT_EQUAL = _comparison("not_equal", np.not_equal, ANY_KIND + "s", "ne", Relation.NOT_EQUAL)
LESS = _comparison("less", np.less, "fiub", "lt", Relation.LESS)
LESS_EQUAL = _comparison("less_equal", np.less_equal, "fiub", "le", Relation.LESS_EQUAL)
GREATER = _comparison("greater", np.greater, "fiub", "gt", Relation.GREATER)
GREATER_EQUAL = _comparison("greater_equal", np.greater_equal, "fiub", "ge", Relation.GREATER_EQUAL)

# The op that asks for a relation.
COMPARISONS = {
    op.relation: op for op in (EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL)
}

equal = binary(EQUAL, "x == y, element by element.")
not_equal = binary(NOT_EQUAL, "x != y, element by element.")
less = binary(LESS, "x < y, element by element.")
less_equal = binary(LESS_EQUAL, "x <= y, element by element.")
greater = binary(GREATER, "x > y, element by element.")
greater_equal = binary(GREATER_EQUAL, "x >= y, element by element.")

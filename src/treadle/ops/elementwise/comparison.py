"""Elementwise comparisons; they give bool tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.tensor import NDArray
from treadle.ops.op_makers import ANY_KIND, binary, binary_op, boolean
from treadle.ops.properties import Relation
from treadle.ops.registry import Op

_CHEAP = frozenset({"cheap"})


def _comparison(
    name: str, eager: Callable[..., Any], kinds: str, lower: str, relation: Relation,
    every: bool = False,
) -> Op:  # fmt: skip
    tags = _CHEAP | {"any_elements"} if "s" in kinds else _CHEAP
    return binary_op(
        name, eager, kinds, lower, None, boolean, every=every, tags=tags, relation=relation
    )


EQUAL = _comparison("equal", np.equal, ANY_KIND + "s", "eq", Relation.EQUAL)
NOT_EQUAL = _comparison("not_equal", np.not_equal, ANY_KIND + "s", "ne", Relation.NOT_EQUAL)
LESS = _comparison("less", np.less, "fiub", "lt", Relation.LESS)
LESS_EQUAL = _comparison("less_equal", np.less_equal, "fiub", "le", Relation.LESS_EQUAL)
GREATER = _comparison("greater", np.greater, "fiub", "gt", Relation.GREATER)
GREATER_EQUAL = _comparison("greater_equal", np.greater_equal, "fiub", "ge", Relation.GREATER_EQUAL)



def _of_any_shapes(compare: np.ufunc, otherwise: bool) -> Callable[[NDArray, NDArray], NDArray]:
    """The comparison of arrays, every element of which is `otherwise` where their shapes do not
    broadcast: there are some, so that a test whether all or any are true says so, too."""

    def eager(x: NDArray, y: NDArray) -> NDArray:
        rank = max(x.ndim, y.ndim)
        shapes = [(1,) * (rank - a.ndim) + a.shape for a in (x, y)]
        sizes = list(zip(*shapes, strict=True))
        if all(m == n or 1 in (m, n) for m, n in sizes):
            return compare(x, y)  # type: ignore[no-any-return]
        return np.full([max(m, n, 1) for m, n in sizes], otherwise)

    return eager


# The operators ``==`` and ``!=`` where a trace does not know whether two shapes broadcast. Programs
# are made for those that do (`graph.passes.assumed_sizes`).
SAME = _comparison(
    "same", _of_any_shapes(np.equal, False), ANY_KIND + "s", "eq", Relation.EQUAL, every=True
)
NOT_SAME = _comparison(
    "not_same", _of_any_shapes(np.not_equal, True), ANY_KIND + "s", "ne", Relation.NOT_EQUAL,
    every=True,
)  # fmt: skip
OF_ONE_SHAPE = {SAME: EQUAL, NOT_SAME: NOT_EQUAL}  # what they are for shapes that broadcast

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

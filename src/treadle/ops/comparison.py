"""Elementwise comparisons; they give bool tensors."""

from __future__ import annotations

import numpy as np

from treadle.ops.families import ANY_KIND, binary, binary_op, boolean

EQUAL = binary_op("equal", np.equal, ANY_KIND, "eq", None, boolean)
NOT_EQUAL = binary_op("not_equal", np.not_equal, ANY_KIND, "ne", None, boolean)
LESS = binary_op("less", np.less, "fiub", "lt", None, boolean)
LESS_EQUAL = binary_op("less_equal", np.less_equal, "fiub", "le", None, boolean)
GREATER = binary_op("greater", np.greater, "fiub", "gt", None, boolean)
GREATER_EQUAL = binary_op("greater_equal", np.greater_equal, "fiub", "ge", None, boolean)

equal = binary(EQUAL, "x == y, element by element.")
not_equal = binary(NOT_EQUAL, "x != y, element by element.")
less = binary(LESS, "x < y, element by element.")
less_equal = binary(LESS_EQUAL, "x <= y, element by element.")
greater = binary(GREATER, "x > y, element by element.")
greater_equal = binary(GREATER_EQUAL, "x >= y, element by element.")

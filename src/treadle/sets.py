"""``td.sets``: sets along the last axis of tensors."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.sparse.sets import (
    difference,
    intersection,
    size,
    union,
)

__all__ = [
    "difference",
    "intersection",
    "size",
    "union",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)

"""``td.linalg``: matrices."""

from treadle.ops.creation import (
    eye,
)
from treadle.ops.linalg import (
    diag,
    diag_part,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
    trace,
)
from treadle.ops.reduction import (
    norm,
)

__all__ = [
    "diag",
    "diag_part",
    "eye",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "tensordot",
    "trace",
]

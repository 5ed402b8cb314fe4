"""``td.linalg``: matrices."""

from treadle.names import missing_in
from treadle.ops.clipping import (
    global_norm,
)
from treadle.ops.creation import (
    eye,
)
from treadle.ops.einsum import (
    einsum,
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
    "einsum",
    "eye",
    "global_norm",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "tensordot",
    "trace",
]

__getattr__ = missing_in(__name__)

"""``td.linalg``: matrices."""

from treadle.names import missing_in
from treadle.ops.linalg.einsum import (
    einsum,
)
from treadle.ops.linalg.matrices import (
    diag,
    diag_part,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
    trace,
)
from treadle.ops.linalg.matrix_functions import (
    adjoint,
    band_part,
    cholesky,
    cholesky_solve,
    det,
    eigh,
    eigvalsh,
    inv,
    logdet,
    lstsq,
    qr,
    slogdet,
    solve,
    svd,
    triangular_solve,
)
from treadle.ops.reductions.norms import (
    global_norm,
    norm,
)
from treadle.ops.shaping.creation import (
    eye,
)

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "eye",
    "global_norm",
    "inv",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "tensordot",
    "trace",
    "triangular_solve",
]

__getattr__ = missing_in(__name__)

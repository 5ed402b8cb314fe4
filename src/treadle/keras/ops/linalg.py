"""``td.keras.ops.linalg``: linear algebra."""

from treadle.keras.ops.linear_algebra import (
    cholesky,
    cholesky_inverse,
    det,
    eig,
    eigh,
    inv,
    jvp,
    lstsq,
    lu_factor,
    matrix_rank,
    norm,
    pinv,
    qr,
    solve,
    solve_triangular,
    svd,
)
from treadle.names import missing_in

__all__ = [
    "cholesky", "cholesky_inverse", "det", "eig", "eigh", "inv", "jvp", "lstsq", "lu_factor",
    "matrix_rank", "norm", "pinv", "qr", "solve", "solve_triangular", "svd",
]  # fmt: skip

__getattr__ = missing_in(__name__)

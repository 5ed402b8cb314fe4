"""``td.linalg``: matrices."""

import importlib
from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import missing_name
from treadle.ops.linalg.diagonals import (
    diag,
    diag_part,
    set_diag,
    tensor_diag,
    tensor_diag_part,
    trace,
)
from treadle.ops.linalg.eigenvalues import (
    eig,
    eigvals,
)
from treadle.ops.linalg.einsum import (
    einsum,
)
from treadle.ops.linalg.lu import (
    lu,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
)
from treadle.ops.linalg.matrices import (
    cross,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
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
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    triangular_solve,
)
from treadle.ops.linalg.norms import (
    norm,
    normalize,
)
from treadle.ops.linalg.spectral_functions import (
    expm,
    logm,
    sqrtm,
)
from treadle.ops.linalg.tridiagonal import (
    banded_triangular_solve,
    eigh_tridiagonal,
    tridiagonal_matmul,
    tridiagonal_solve,
)
from treadle.ops.nn.compositions import (
    l2_normalize,
)
from treadle.ops.reductions.norms import (
    global_norm,
)
from treadle.ops.shaping.creation import (
    eye,
)

if TYPE_CHECKING:
    from treadle.linear_operators import (
        LinearOperator,
        LinearOperatorAdjoint,
        LinearOperatorBlockDiag,
        LinearOperatorComposition,
        LinearOperatorDiag,
        LinearOperatorFullMatrix,
        LinearOperatorIdentity,
        LinearOperatorInversion,
        LinearOperatorLowerTriangular,
        LinearOperatorLowRankUpdate,
        LinearOperatorScaledIdentity,
        LinearOperatorTridiag,
        LinearOperatorZeros,
        experimental,
    )

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorScaledIdentity",
    "LinearOperatorTridiag",
    "LinearOperatorZeros",
    "adjoint",
    "band_part",
    "banded_triangular_solve",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "experimental",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]

explain_errors(__name__)

# Imported when first used: importing treadle does not need them.
_LAZY = {
    "experimental": "treadle.linear_operators",
    **dict.fromkeys(
        (name for name in __all__ if name.startswith("LinearOperator")), "treadle.linear_operators"
    ),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise missing_name(__name__, name)
    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value

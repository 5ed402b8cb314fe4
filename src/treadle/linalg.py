"""``td.linalg``: matrices."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided
from treadle.ops.linalg.matrices import (
    cross,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
)
from treadle.ops.shaping.creation import (
    eye,
)

if TYPE_CHECKING:
    from treadle.linear_operators import (
        LinearOperator,
        LinearOperatorAdjoint,
        LinearOperatorBlockDiag,
        LinearOperatorBlockLowerTriangular,
        LinearOperatorCirculant,
        LinearOperatorCirculant2D,
        LinearOperatorCirculant3D,
        LinearOperatorComposition,
        LinearOperatorDiag,
        LinearOperatorFullMatrix,
        LinearOperatorHouseholder,
        LinearOperatorIdentity,
        LinearOperatorInversion,
        LinearOperatorKronecker,
        LinearOperatorLowerTriangular,
        LinearOperatorLowRankUpdate,
        LinearOperatorPermutation,
        LinearOperatorScaledIdentity,
        LinearOperatorToeplitz,
        LinearOperatorTridiag,
        LinearOperatorZeros,
        experimental,
    )
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

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorPermutation",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
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
__getattr__ = provided(__name__, {
    "treadle.linear_operators": """
        LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag
        LinearOperatorBlockLowerTriangular LinearOperatorCirculant LinearOperatorCirculant2D
        LinearOperatorCirculant3D LinearOperatorComposition LinearOperatorDiag
        LinearOperatorFullMatrix LinearOperatorHouseholder LinearOperatorIdentity
        LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate
        LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity
        LinearOperatorToeplitz LinearOperatorTridiag LinearOperatorZeros experimental
        """,
    "treadle.ops.linalg.diagonals": "diag diag_part set_diag tensor_diag tensor_diag_part trace",
    "treadle.ops.linalg.eigenvalues": "eig eigvals",
    "treadle.ops.linalg.einsum": "einsum",
    "treadle.ops.linalg.lu": "lu lu_matrix_inverse lu_reconstruct lu_solve",
    "treadle.ops.linalg.matrix_functions": """
        adjoint band_part cholesky cholesky_solve det eigh eigvalsh inv logdet lstsq matrix_rank
        pinv qr slogdet solve svd triangular_solve
        """,
    "treadle.ops.linalg.norms": "norm normalize",
    "treadle.ops.linalg.spectral_functions": "expm logm sqrtm",
    "treadle.ops.linalg.tridiagonal": """
        banded_triangular_solve eigh_tridiagonal tridiagonal_matmul tridiagonal_solve
        """,
    "treadle.ops.nn.compositions": "l2_normalize",
    "treadle.ops.reductions.norms": "global_norm",
})  # fmt: skip

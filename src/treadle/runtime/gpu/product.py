"""Products of matrices as a driver computes them."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.core.records import record


@record(frozen=True)
class Factor:
    """The matrices of one operand, each stored row by row.

    Attributes:
        address: of the first element of the first matrix.
        turned: whether the operand is the transpose of the matrices that are stored.
        lead: elements from one stored row to the next.
        step: elements from one matrix to the next; 0 where all are the same one.
    """

    address: int
    turned: bool
    lead: int
    step: int


@record(frozen=True)
class Product:
    """The products of `batch` pairs of matrices [m, k] and [k, n]; all numbers are at least 1.

    Attributes:
        dtype: of all elements, floating or complex. Sums of 16-bit floats are those of float32,
            rounded once.
        out: address of the results, matrices in row-major order.
        step: elements from one result to the next.
        tensor_float: whether factors of float32 may be rounded to TensorFloat-32.
    """

    dtype: DType
    batch: int
    m: int
    n: int
    k: int
    a: Factor
    b: Factor
    out: int
    step: int
    tensor_float: bool = False

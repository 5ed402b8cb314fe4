"""Products of matrices by cuBLAS.

The library is called without CuPy, whose own calls of cuBLAS are refused while work is recorded and
know no bfloat16.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.runtime.gpu.product import Product

# Numbers of cuBLAS: how elements are stored and in which type sums are computed.
ELEMENT = {
    dtypes.float32: 0, dtypes.float64: 1, dtypes.float16: 2, dtypes.complex64: 4,
    dtypes.complex128: 5, dtypes.bfloat16: 14,
}  # fmt: skip
_SUM_OF_FLOAT, _SUM_OF_DOUBLE, _SUM_OF_TENSOR_FLOAT = 68, 70, 77
_WHOLE_SUMS = 16  # partial sums of 16-bit floats are not rounded to 16 bits
_ANY_METHOD = -1
# Numbers by which a product is multiplied, as long as the longest of them.
ONE: dict[int, ctypes.Array[Any]] = {4: (ctypes.c_float * 2)(1, 0), 8: (ctypes.c_double * 2)(1, 0)}
ZERO: dict[int, ctypes.Array[Any]] = {4: (ctypes.c_float * 2)(), 8: (ctypes.c_double * 2)()}


class CublasError(RuntimeError):
    """cuBLAS refused a call."""


def cublas_library(name: str = "cublas") -> ctypes.CDLL:
    """The library, or "cublasLt", which comes with it, as CuPy finds it.

    Raises:
        OSError: it is not installed.
    """
    finder = importlib.import_module("cuda.pathfinder")
    try:
        found = finder.load_nvidia_dynamic_lib(name)
    except finder.DynamicLibNotFoundError as error:
        text = f'products of matrices need cuBLAS (of pip install "treadle[cuda12]"): {error}'
        raise OSError(text) from None
    return ctypes.CDLL(found.abs_path)


class Cublas:
    """Calls of cuBLAS in one stream of the current device.

    Args:
        library: see `cublas_library`.
        stream: the stream's handle.
        workspace, size: memory of the device, and its bytes, that products may use. With memory of
            their own they allocate nothing, and the order of their sums is always the same.
    """

    def __init__(
        self, library: ctypes.CDLL, stream: int, workspace: int = 0, size: int = 0
    ) -> None:
        self.library = library
        handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(handle))
        self.handle = handle
        self._call("cublasSetStream_v2", handle, ctypes.c_void_p(stream))
        self._call("cublasSetMathMode", handle, ctypes.c_int(_WHOLE_SUMS))
        if size:
            place = ctypes.c_void_p(workspace)
            self._call("cublasSetWorkspace_v2", handle, place, ctypes.c_size_t(size))

    def product(self, product: Product) -> None:
        """See `treadle.runtime.gpu.driver.Driver.product`.

        cuBLAS stores matrices column by column: to it each of ours is its transpose. So it
        multiplies the transposes in the other order, which gives the transpose of the result.
        """
        p, element = product, ELEMENT[product.dtype]
        sums, wide = sums_of(p.dtype, p.tensor_float)
        word, whole = ctypes.c_int, ctypes.c_int64
        left = (ctypes.c_void_p(p.b.address), word(element), whole(p.b.lead), whole(p.b.step))
        right = (ctypes.c_void_p(p.a.address), word(element), whole(p.a.lead), whole(p.a.step))
        self._call(
            "cublasGemmStridedBatchedEx_64", self.handle, word(p.b.turned), word(p.a.turned),
            whole(p.n), whole(p.m), whole(p.k), ctypes.byref(ONE[wide]), *left, *right,
            ctypes.byref(ZERO[wide]), ctypes.c_void_p(p.out), word(element), whole(p.n),
            whole(p.step), whole(p.batch), word(sums), word(_ANY_METHOD),
        )  # fmt: skip

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise CublasError(f"{name} gives status {status}")


def sums_of(dtype: DType, tensor_float: bool) -> tuple[int, int]:
    """The number of the type in which sums are computed, and the bytes of its reals."""
    part = part_of(dtype)
    if part.size == 8:
        return _SUM_OF_DOUBLE, 8
    rounded = tensor_float and part is dtypes.float32
    return _SUM_OF_TENSOR_FLOAT if rounded else _SUM_OF_FLOAT, 4


def part_of(dtype: DType) -> DType:
    """The dtype of the parts of complex numbers, or of numbers themselves."""
    return dtype.real_dtype if dtype.is_complex else dtype

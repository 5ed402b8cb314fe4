"""The BLAS that NumPy brings along, called from generated code one thread at a time.

NumPy's wheels bundle OpenBLAS. Its own threads and ours would fight for the cores, so while a
routine of ours runs, OpenBLAS is told to use one thread, and our pool calls it from many.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112

# Prefix and suffix of the symbols, and whether integers have 64 bits.
_VARIANTS = (("scipy_", "64_", True), ("", "64_", True), ("scipy_", "", False), ("", "", False))


class Blas(NamedTuple):
    """Addresses of the routines.

    Attributes:
        sgemm, dgemm: ``cblas_sgemm`` and ``cblas_dgemm``.
        wide: their integers have 64 bits.
        get_threads, set_threads: OpenBLAS's thread count; 0 where there is no such setting.
        name: what the library calls itself.
    """

    sgemm: int
    dgemm: int
    wide: bool
    get_threads: int
    set_threads: int
    name: str


@functools.cache
def find_blas() -> Blas | None:
    """The BLAS of this process's NumPy, checked on a small product; None where there is none."""
    for library in _libraries():
        for prefix, suffix, wide in _VARIANTS:
            found = _from_library(library, prefix, suffix, wide)
            if found is not None and _multiplies(found):
                return found
    return None


def _libraries() -> Iterator[ctypes.CDLL]:
    """NumPy's core extension, whose dependencies are searched too, then its bundled libraries."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    folder = os.path.dirname(np.__file__)
    bundled = glob.glob(os.path.join(folder, "..", "numpy.libs", "*openblas*"))
    bundled += glob.glob(os.path.join(folder, ".dylibs", "*openblas*"))
    for path in [str(core.__file__), *sorted(bundled)]:
        try:
            yield ctypes.CDLL(path)
        except OSError:
            continue


def _from_library(library: ctypes.CDLL, prefix: str, suffix: str, wide: bool) -> Blas | None:
    def address(name: str) -> int:
        function = getattr(library, f"{prefix}{name}{suffix}", None)
        return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0

    gemms = address("cblas_sgemm"), address("cblas_dgemm")
    if not all(gemms):
        return None
    config = getattr(library, f"{prefix}openblas_get_config{suffix}", None)
    name = "BLAS"
    if config is not None:
        config.restype = ctypes.c_char_p
        name = config().decode()
        wide = "USE64BITINT" in name
    threads = address("openblas_get_num_threads"), address("openblas_set_num_threads")
    return Blas(*gemms, wide, *(threads if all(threads) else (0, 0)), name)


def _multiplies(blas: Blas) -> bool:
    """Whether both routines give the right product of two small matrices."""
    integer = ctypes.c_int64 if blas.wide else ctypes.c_int32
    kinds: tuple[tuple[int, Any, Any], ...] = (
        (blas.sgemm, np.float32, ctypes.c_float),
        (blas.dgemm, np.float64, ctypes.c_double),
    )
    for address, dtype, number in kinds:
        pointer = ctypes.c_void_p
        gemm = ctypes.CFUNCTYPE(
            None, *[ctypes.c_int] * 3, *[integer] * 3, number, pointer, integer, pointer, integer,
            number, pointer, integer,
        )(address)  # fmt: skip
        a, b = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(12, dtype=dtype).reshape(4, 3)
        c = np.full((2, 4), np.nan, dtype)
        pointers = [x.ctypes.data for x in (a, b, c)]
        gemm(
            ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 2, 4, 3, 1.0, pointers[0], 3, pointers[1], 3, 0.0,
            pointers[2], 4,
        )  # fmt: skip
        if not np.array_equal(c, np.einsum("ik,jk->ij", a, b)):
            return False
    return True

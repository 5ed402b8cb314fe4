"""Routines in a subset of Python: what the compiler takes, other machines, memory of others."""

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

from treadle.runtime.cpu.emission import assembly_text
from treadle.runtime.cpu.library_code import routine_address, table_address
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.routines.compiler import add_function
from treadle.runtime.cpu.routines.entry import row_text
from treadle.runtime.cpu.target import aarch64, baseline, host
from treadle.runtime.routines.language import Array, T, i64
from treadle.runtime.routines.subset import KINDS, RoutineError

pytestmark = pytest.mark.thorough

SORTING = "BITS=32 FLOATING=1 I=i32 K=u32 SIGNED=0 T=f32"
SYMBOLS = [
    f"rows sorting.argsort DESCENDING=1 {SORTING}",
    f"rows sorting.top_k DESCENDING=1 {SORTING}",
    f"rows sorting.searchsorted RIGHT=1 {SORTING}",
    "rows fourier.transform T=f32",
    "rows fourier.real_transform T=f64",
    "rows fourier.to_real T=f32",
    "rows drawing.gamma BITS=32 R=f32 T=f32 WHOLE=0",
    "rows drawing.poisson BITS=32 R=i32 T=f32 WHOLE=1",
    "rows drawing.binomial BITS=64 R=f64 T=f64 WHOLE=0",
    "rows drawing.order I=i32",
    "rows series.betainc T=f32",
    "rows series.polygamma T=f64",
    "rows series.random_gamma_grad T=f32",
    "rows drawing.shuffled I=i32 SIGNED=0 T=u32",
]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_machine_has_code(symbol: str) -> None:
    for target in (aarch64(), baseline(1), baseline(3), host()):
        assert "routine" in assembly_text(row_text(symbol, target), target)


def numbers_into_lists(x: Array[T], n: i64) -> None:
    x[n] = [n]  # type: ignore[list-item]


def other_type(x: Array[T], n: i64) -> None:
    x[n] = n + 1


@pytest.mark.parametrize("function", [numbers_into_lists, other_type])
def test_what_is_not_in_the_subset_is_refused(function: Any) -> None:
    with pytest.raises(RoutineError, match=function.__name__):
        add_function(Module(host()), function, {"T": KINDS["f32"]})


class Guarded:
    """Arrays that end where the process may not read on."""

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []

    def __call__(self, array: Any) -> Any:
        page = mmap.PAGESIZE
        size = -(-max(array.nbytes, 1) // page) * page
        memory = mmap.mmap(-1, size + page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), page, 0) == 0
        self.maps.append(memory)
        placed = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes)
        placed[:] = array.reshape(-1)
        return placed


def call(symbol: str, operands: list[Any], numbers: list[int], space: Any) -> None:
    """Run a routine as programs do."""
    pointers = (ctypes.c_void_p * (len(operands) + 2))(*(o.ctypes.data for o in operands))
    words = (ctypes.c_int64 * len(numbers))(*numbers)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(routine_address(symbol))
    function(table_address(1), pointers, words, space.ctypes.data)


@pytest.mark.parametrize("n", [0, 1, 5, 16, 17, 64, 65, 200])
def test_routines_stay_in_their_arrays(n: int) -> None:
    guarded, rng = Guarded(), np.random.default_rng(n)
    x = rng.standard_normal((3, n)).astype(np.float32)
    found = guarded(np.zeros((3, n), np.int32))
    space = np.zeros(24 * n + 4096 + 64, np.uint8)
    call(SYMBOLS[0], [guarded(x), found], [3, 1, len(space), 1, n], space)
    np.testing.assert_array_equal(found.reshape(3, n), np.argsort(-x, -1, kind="stable"))
    k = min(n, 7)
    values, places = guarded(np.zeros((3, k), np.float32)), guarded(np.zeros((3, k), np.int32))
    call(SYMBOLS[1], [guarded(x), values, places], [3, 1, len(space), 1, n, k], space)
    np.testing.assert_array_equal(values.reshape(3, k), -np.sort(-x, -1)[:, :k])
    ordered = np.sort(x, -1)
    wanted = rng.standard_normal((3, 5)).astype(np.float32)
    places = guarded(np.zeros((3, 5), np.int32))
    operands = [guarded(ordered), guarded(wanted), places]
    call(SYMBOLS[2], operands, [15, 1, len(space), 2, n, 5], space)
    expected = [np.searchsorted(a, b, "right") for a, b in zip(ordered, wanted, strict=True)]
    np.testing.assert_array_equal(places.reshape(3, 5), expected)

"""Kernels are compiled for GPUs, without one, by the compilers of CUDA C that are here.

TREADLE_TEST_CUDA=1 says that there is one: nvcc, or NVRTC from its wheel
(`treadle.runtime.gpu.toolkit`).
"""

import os

import pytest

from tests.runtime.gpu import test_row_routines
from tests.runtime.gpu.compiling import ARCHITECTURES, check
from tests.runtime.gpu.test_kernels import compiled, compiled_parts, functions
from tests.runtime.gpu.test_routines import compiled_cases
from treadle.runtime.gpu.kernels import PRELUDE
from treadle.runtime.gpu.toolkit import CompileError, Compiler, compilers

LIBRARIES = {
    "cases": compiled, "in parts": compiled_parts, "functions": lambda: functions()[0],
    "routines": compiled_cases, "rows": lambda: test_row_routines.compiled()[0],
}  # fmt: skip


def test_a_compiler_is_where_it_must_be() -> None:
    if os.environ.get("TREADLE_TEST_CUDA") == "1":
        assert compilers(), "TREADLE_TEST_CUDA=1 asks for tests with a compiler of CUDA C"


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
@pytest.mark.parametrize("kernels", LIBRARIES)
def test_kernels_compile(compiler: Compiler, kernels: str) -> None:
    library = LIBRARIES[kernels]()
    text = "\n".join(code.text for _, code in library.distinct.values())
    assert "__CUDA_ARCH__" not in PRELUDE.read_text() + text  # one text for all architectures
    check(compiler, text)


ARITHMETIC = """
TD_KERNEL k(float *x) { x[0] = td_add(td_mul(x[1], x[2]), x[3]); x[4] = x[5] != 0.0f; }
TD_KERNEL joined(float *x) { x[0] = td_fma(x[1], x[2], x[3]); }
"""


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
def test_numbers_are_rounded_as_on_a_processor(compiler: Compiler) -> None:
    """Each operation by itself, and results below the normal numbers are no zeros."""
    ptx = compiler.compile(ARITHMETIC, ARCHITECTURES[-1]).ptx
    alone, joined = ptx.split(".entry")[1:]
    assert "mul" in alone and "fma" not in alone and "fma.rn.f32" in joined and ".ftz" not in ptx


REFUSED = {
    "by the compiler": ("TD_KERNEL k() { nothing_known(); }", "nothing_known"),
    "by the assembler": (
        "TD_KERNEL k(int *x) { __shared__ int y[20000]; y[threadIdx.x] = x[threadIdx.x];"
        " __syncthreads(); x[threadIdx.x] = y[x[0]]; }",
        "shared data",
    ),
}


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
@pytest.mark.parametrize("text, words", REFUSED.values(), ids=REFUSED)
def test_the_words_of_a_compiler(compiler: Compiler, text: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        check(compiler, text)
    with pytest.raises(CompileError, match=words):
        compiler.compile(text, ARCHITECTURES[0])

"""Kernels are compiled for GPUs, without one, by the compilers of CUDA C that are here.

TREADLE_TEST_CUDA=1 says that there is one: nvcc, or NVRTC from its wheel
(`treadle.runtime.gpu.toolkit`).
"""

import os

import pytest

from tests.runtime.gpu import test_row_routines
from tests.runtime.gpu.test_kernels import compiled, compiled_parts, functions
from tests.runtime.gpu.test_routines import compiled_cases
from treadle.runtime.gpu.toolkit import CompileError, Compiler, compilers

LIBRARIES = {
    "cases": compiled, "in parts": compiled_parts, "functions": lambda: functions()[0],
    "routines": compiled_cases, "rows": lambda: test_row_routines.compiled()[0],
}  # fmt: skip


def test_a_compiler_is_where_it_must_be() -> None:
    if os.environ.get("TREADLE_TEST_CUDA") == "1":
        assert compilers(), "TREADLE_TEST_CUDA=1 asks for tests with a compiler of CUDA C"


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kernels", LIBRARIES)
def test_kernels_compile(compiler: Compiler, architecture: str, kernels: str) -> None:
    library = LIBRARIES[kernels]()
    text = "\n".join(code.text for _, code in library.distinct.values())
    assert len(compiler.compile(text, architecture).code) > len(library.distinct)


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
def test_the_words_of_a_compiler(compiler: Compiler) -> None:
    with pytest.raises(CompileError, match="nothing_known"):
        compiler.compile("TD_KERNEL k() { nothing_known(); }", "sm_80")

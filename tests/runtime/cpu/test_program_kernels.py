"""How kernels are called."""

import pytest

from tests.runtime.cpu.native_kernels import JITS
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.program_kernels import fewest_units


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_all_planned_threads_work_and_no_more(threads):
    fn = Function(Module(JITS["host"].target))
    for units in range(1, 300):
        useful = units // fewest_units(fn, units, threads)
        assert useful <= threads
        if units >= threads * (threads + 1):
            assert useful == threads

"""The NumPy programs of the benchmark: jitted they do what NumPy does."""

import pytest

import treadle as td
from benchmarks.numpy_programs import PROGRAMS
from benchmarks.numpy_programs.worker import agree


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    assert agree(program, td.jit(program.function), program.arguments(program.small))

"""NumPy kernels as people write them, run by NumPy, Numba, JAX and `td.jit` unchanged.

`python -m benchmarks.numpy_programs` measures them.
"""

from benchmarks.numpy_programs import (
    dynamic_programming,
    images_and_signals,
    linear_algebra,
    networks,
    particles,
    sparse_and_graphs,
    statistics,
    stencils,
)
from benchmarks.numpy_programs.program import Program

PROGRAMS: list[Program] = [
    program
    for module in (
        linear_algebra, stencils, dynamic_programming, statistics, images_and_signals, particles,
        sparse_and_graphs, networks,
    )
    for program in module.PROGRAMS
]  # fmt: skip

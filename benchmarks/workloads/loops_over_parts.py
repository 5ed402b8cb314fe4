"""Loops over parts of arrays whose bounds they decide: factorisations, solves, recursions."""

import numpy as np

from benchmarks import part_programs_numba
from benchmarks.part_arguments import ARGUMENTS
from benchmarks.workload import Workload

SIZES = (100, 400)


class LoopOverParts(Workload):
    """A program of `benchmarks.part_programs`, called with arguments of size n."""

    kinds = ("CPU",)
    tolerance = 1e-8
    without = ("treadle-eager", "tf", "tf-xla")  # an op or a copy of the array for each part

    def arguments(self):
        return ARGUMENTS[self.function](self.n, np.float64)

    def tf2(self, td, function):
        from benchmarks import part_programs  # imports treadle, which peers need not have

        program = getattr(part_programs, self.function)
        return function(program), *(td.constant(a) for a in self.arguments())

    def numba(self, numba):
        return numba.njit(getattr(part_programs_numba, self.function)), *self.arguments()


WORKLOADS = [
    LoopOverParts(f"parts: {name.replace('_', ' ')} {n}", function=name, n=n)
    for name, value in vars(part_programs_numba).items()
    if callable(value)
    for n in SIZES
]

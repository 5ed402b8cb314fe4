"""What the schedule asks of the processor."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.kernel.ir import Kernel
from treadle.runtime.cpu.compiled_kernels import in_terms_of, kernel_code
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.thread_count import planned_workers
from treadle.runtime.fusion.strided import View
from treadle.runtime.memory.plan import ALIGNMENT
from treadle.runtime.reach import Reach
from treadle.runtime.schedule.facts import Facts, Needs
from treadle.runtime.schedule.steps import Loop, Rows


class CpuFacts(Facts):
    """What the schedule must know of this machine (`schedule.facts.Facts`)."""

    def __init__(self, threads: int | None = None) -> None:
        """`threads`: the most that a program can use; those of this process when omitted."""
        super().__init__(dataclasses.replace(host().tuning, threads=threads or planned_workers()))

    def routine_bytes(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Dim | None:
        from treadle.runtime.cpu.library import routine_for
        from treadle.runtime.cpu.library_code import prepare_routine

        routine = routine_for(node, apart, views)
        if routine is None:
            return None
        prepare_routine(routine.symbol)
        return routine.workspace(self.tuning.threads)

    def reaches(
        self, node: Node, apart: bool = False, views: Sequence[View] = ()
    ) -> Sequence[Reach | None]:
        from treadle.runtime.cpu.library import routine_for

        routine = routine_for(node, apart, views)
        return () if routine is None else routine.reaches

    def takes_views(self, node: Node, views: Sequence[View]) -> bool:
        from treadle.runtime.cpu.library import routine_for

        return routine_for(node, views=views) is not None

    def panel_width(self, node: Node, times: int | None) -> int | None:
        from treadle.runtime.cpu.library import panel_width

        return panel_width(node, times)

    def takes_epilogue(self, node: Node) -> bool:
        from treadle.runtime.cpu.library import routine_for

        routine = routine_for(node)
        return routine is not None and routine.epilogue

    def kernel_needs(self, kernel: Kernel) -> Needs | None:
        code = kernel_code(kernel)
        if code is None:
            return None
        scratch = in_terms_of(kernel, code.emitted.scratch)
        shared = in_terms_of(kernel, code.emitted.shared)
        return Needs(_rounded(scratch) * self.tuning.threads, shared)

    def is_few(self, kernel: Kernel, points: int) -> bool:
        from treadle.runtime.cpu.nest.shape import is_few

        return is_few(kernel, points, self.tuning)

    def is_vector(self, kernel: Kernel, points: int) -> bool:
        from treadle.runtime.cpu.nest.shape import lanes_of

        return points <= lanes_of(kernel, host())

    def rows(self, loop: Loop) -> Rows | None:
        from treadle.runtime.cpu.rows import split_rows

        return split_rows(loop, self.tuning.threads)


def _rounded(size: Dim) -> Dim:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT

"""Horizontal fusion: neighbouring launches of one flat kernel become one launch.

An optimizer step over all parameters is then a single kernel over many segments of different
lengths, and its work is divided among the threads as a whole.
"""

from __future__ import annotations

from treadle.kernel.ir import Kernel
from treadle.kernel.rewrite import canonical
from treadle.runtime.schedule.steps import Launch, Place, SegmentedLaunch, Step


def merge_segments(steps: list[Step]) -> list[Step]:
    """`steps` with runs of independent launches of one kernel merged."""
    result: list[Step] = []
    run = _Run()
    for step in steps:
        launch = step if isinstance(step, Launch) and _fits(step) else None
        if launch is None or not run.takes(launch):
            result += run.merged()
            run = _Run()
        if launch is not None:
            run.add(launch)
        else:
            result.append(step)
    return result + run.merged()


class _Run:
    """Independent launches of one kernel."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.kernel: Kernel | None = None
        self.written: set[Place] = set()
        self.touched: set[Place] = set()

    def takes(self, step: Launch) -> bool:
        """Whether `step` has the kernel of the run and touches nothing that the run writes."""
        if self.written & {*step.reads, *step.writes} or self.touched & set(step.writes):
            return False
        return self.kernel is None or self.kernel is canonical(step.kernel)

    def add(self, step: Launch) -> None:
        self.kernel = self.kernel or canonical(step.kernel)
        self.launches.append(step)
        self.written.update(step.writes)
        self.touched.update(step.reads, step.writes)

    def merged(self) -> list[Step]:
        """The run as one launch; one that stands alone as it is."""
        if len(self.launches) < 2:
            return list(self.launches)
        first = self.launches[0].kernel
        kernel = Kernel(first.axes, first.buffers, first.stores, segmented=True)
        reads = [p for s in self.launches for p in s.reads]
        writes = [p for s in self.launches for p in s.writes]
        return [SegmentedLaunch(kernel, list(self.launches), reads=reads, writes=writes)]


def _fits(step: Launch) -> bool:
    """Whether the launch is a flat kernel on arrays, without memory of its own."""
    if step.extent is None or not step.native or step.kernel.few or step.scratch or step.shared:
        return False
    return all(step.operands[i].place is not None for i in step.outputs)

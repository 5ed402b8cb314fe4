"""Horizontal fusion: neighbouring launches of one flat kernel become one launch.

An optimizer step over all parameters is then a single kernel over many segments of different
lengths, and its work is divided among the threads as a whole.
"""

from __future__ import annotations

from treadle.kernel.ir import Kernel
from treadle.runtime.fusion.rewrite import canonical
from treadle.runtime.schedule.steps import Launch, SegmentedLaunch, Step


def merge_segments(steps: list[Step]) -> list[Step]:
    """`steps` with runs of independent launches of one kernel merged."""
    result: list[Step] = []
    run: list[Launch] = []
    for step in steps:
        if isinstance(step, Launch) and _fits(step):
            if run and not _joins(run, step):
                result += _merged(run)
                run = []
            run.append(step)
        else:
            result += _merged(run)
            run = []
            result.append(step)
    return result + _merged(run)


def _fits(step: Launch) -> bool:
    """Whether the launch is a flat kernel on arrays, without memory of its own."""
    if step.extent is None or not step.native or step.scratch or step.shared:
        return False
    return all(step.operands[i].place is not None for i in step.outputs)


def _joins(run: list[Launch], step: Launch) -> bool:
    """Whether `step` has the kernel of the run and touches nothing that the run writes."""
    if canonical(run[0].kernel) is not canonical(step.kernel):
        return False
    written = {p for s in run for p in s.writes}
    touched = {p for s in run for p in (*s.reads, *s.writes)}
    return not written & {*step.reads, *step.writes} and not touched & set(step.writes)


def _merged(run: list[Launch]) -> list[Step]:
    if len(run) < 2:
        return list(run)
    first = run[0].kernel
    kernel = Kernel(first.axes, first.buffers, first.stores, segmented=True)
    reads = [p for s in run for p in s.reads]
    writes = [p for s in run for p in s.writes]
    return [SegmentedLaunch(kernel, list(run), reads=reads, writes=writes)]

"""Small kernels that a device runs side by side: independent launches become one launch.

A launch costs the host and the device some microseconds, which is more than many kernels take: the
sum of a loss, the gradient of a bias, a counter of steps. As one kernel whose stores have no axis
in common they cost one launch. The device says for which kernels this is so (`Facts.joins`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias

from treadle.core.records import record
from treadle.kernel.ir import Axis, Buffer, Kernel, Store
from treadle.kernel.rewrite import Rewrite
from treadle.runtime.fusion.kernels import with_extent
from treadle.runtime.schedule.joining import is_plain
from treadle.runtime.schedule.steps import (
    Launch,
    LibraryCall,
    Note,
    SegmentedLaunch,
    Step,
    memory,
)

MOST_LOOKED_AT = 32  # steps before a launch among which it looks for another: time of compiling


Joins: TypeAlias = Callable[[Kernel, Kernel, Kernel], bool]


def join_side_by_side(steps: Sequence[Step], joins: Joins) -> list[Step]:
    """`steps` with independent launches joined. The earlier one of two is done later then, and so
    are the steps that need it.

    Args:
        joins: whether two kernels are better one: given both, and the kernel that does what they
            do.
    """
    done: list[_Touching] = []
    for step in steps:
        done.append(_touching(step))
        _join_last(done, joins)
    return [t.step for t in done]


@record(eq=False)
class _Touching:
    """A step, and the memory that it touches."""

    step: Step
    reads: set[Hashable]
    writes: set[Hashable]

    def conflicts(self, other: _Touching) -> bool:
        """Whether the order of two steps matters."""
        both = self.writes & (other.reads | other.writes) or self.reads & other.writes
        return bool(both)


def _touching(step: Step) -> _Touching:
    return _Touching(step, set(map(memory, step.reads)), set(map(memory, step.writes)))


def _join_last(done: list[_Touching], joins: Joins) -> None:
    """Join the last step with one before it, if there is one that allows that."""
    last = done[-1]
    second = _launch_of(last.step)
    if second is None:
        return
    for position in reversed(range(max(0, len(done) - 1 - MOST_LOOKED_AT), len(done) - 1)):
        earlier = done[position]
        if not is_plain(earlier.step):
            return
        first = _launch_of(earlier.step)
        if first is None or isinstance(earlier.step, Note) and isinstance(last.step, Note):
            continue
        between = done[position + 1 : -1]
        late = [earlier]
        for other in between:
            if any(other.conflicts(t) for t in late):
                late.append(other)
        movable = all(isinstance(t.step, _OF_DEVICE) for t in late)
        if not movable or any(last.conflicts(t) for t in late):
            continue
        kernels = _own(first), _own(second)
        joined = _beside(*kernels)
        if joins(*kernels, joined):
            step = _joined(earlier.step, last.step, joined)
            stay = [t for t in between if t not in late]
            done[position:] = [*stay, _touching(step), *late[1:]]
            return


_OF_DEVICE = (Launch, LibraryCall, Note, SegmentedLaunch)  # the host makes none of their operands


def _launch_of(step: Step) -> Launch | None:
    """The launch of a step that may do the work of another one as well."""
    if isinstance(step, Note):
        return step.launches[0] if step.launches else None
    if not isinstance(step, Launch) or not step.native or step.scratch or step.shared:
        return None
    return step if step.extent is None or isinstance(step.extent, int) else None


def _own(step: Launch) -> Kernel:
    """The kernel of a launch, of the sizes that it has there."""
    return step.kernel if step.extent is None else with_extent(step.kernel, step.extent)


def _beside(first: Kernel, second: Kernel) -> Kernel:
    """The kernel that does what two do, with no axis and no buffer in common."""
    axes: list[Axis] = []
    buffers: list[Buffer] = []
    stores: list[Store] = []
    for kernel in (first, second):
        own = {a: Axis(f"i{n}", a.extent) for n, a in enumerate(kernel.axes, len(axes))}
        given = {
            b: Buffer(f"x{n}", b.dtype, b.shape) for n, b in enumerate(kernel.buffers, len(buffers))
        }
        axes += own.values()
        buffers += given.values()
        stores += _renamed(kernel, own, given)
    return Kernel(tuple(axes), tuple(buffers), tuple(stores))


def _renamed(
    kernel: Kernel, axes: Mapping[Axis, Axis], buffers: Mapping[Buffer, Buffer]
) -> list[Store]:
    rewrite = Rewrite(lambda buffer, index: (buffers[buffer], index), axes)
    return [rewrite.store(s) for s in kernel.stores]


def _joined(first: Step, second: Step, kernel: Kernel) -> Step:
    """The step of two, whose launches are one launch of a kernel."""
    launches = [launch for step in (first, second) if (launch := _launch_of(step)) is not None]
    before, after = launches
    count = len(before.operands)
    launch = Launch(
        kernel, before.operands + after.operands,
        before.outputs + [count + n for n in after.outputs],
        reads=before.reads + after.reads, writes=before.writes + after.writes,
    )  # fmt: skip
    note = next((s for s in (first, second) if isinstance(s, Note)), None)
    if note is None:
        return launch
    every = [launch, *note.launches[1:]]
    reads, writes = [p for s in every for p in s.reads], [p for s in every for p in s.writes]
    return Note(note.findings, every, reads=reads, writes=writes)

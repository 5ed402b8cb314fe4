"""Small kernels that a device runs side by side: independent launches become one launch.

A launch costs the host and the device some microseconds, which is more than many kernels take: the
sum of a loss, the gradient of a bias, a counter of steps. As one kernel whose stores have no axis
in common they cost one launch. The device says for which kernels this is so
(`Facts.share_of_launch`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from treadle.core.records import record
from treadle.kernel.ir import Axis, Buffer, Kernel, Store
from treadle.kernel.rewrite import Rewrite
from treadle.runtime.fusion.kernels import with_extent
from treadle.runtime.schedule.facts import Facts
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


def join_side_by_side(steps: Sequence[Step], facts: Facts) -> list[Step]:
    """`steps` with independent launches joined. The earlier one of two is done later then, and so
    are the steps that need it."""
    done: list[_Group] = []
    for step in steps:
        done.append(_group(step, facts))
        _join_last(done)
    return [g.step() for g in done]


@record(eq=False)
class _Group:
    """Steps that become one, and the memory that they touch.

    Attributes:
        share: of a launch, that they take; None where they are launched alone.
    """

    steps: list[Step]
    reads: set[Hashable]
    writes: set[Hashable]
    share: float | None

    def conflicts(self, other: _Group) -> bool:
        """Whether the order of two groups matters."""
        both = self.writes & (other.reads | other.writes) or self.reads & other.writes
        return bool(both)

    def joins(self, other: _Group) -> bool:
        """Whether there is room in a launch for both."""
        if self.share is None or other.share is None or self.share + other.share > 1:
            return False
        return self.note is None or other.note is None

    @property
    def note(self) -> Note | None:
        """The step among them that notes checks: there is at most one."""
        return next((s for s in self.steps if isinstance(s, Note)), None)

    def and_then(self, other: _Group) -> _Group:
        share = None if self.share is None or other.share is None else self.share + other.share
        steps = [*self.steps, *other.steps]
        return _Group(steps, self.reads | other.reads, self.writes | other.writes, share)

    def step(self) -> Step:
        """The step that does what all do."""
        if len(self.steps) == 1:
            return self.steps[0]
        launch = _joined([s for step in self.steps if (s := _launch_of(step)) is not None])
        note = self.note
        if note is None:
            return launch
        every = [launch, *note.launches[1:]]
        reads, writes = [p for s in every for p in s.reads], [p for s in every for p in s.writes]
        return Note(note.findings, every, reads=reads, writes=writes)


def _group(step: Step, facts: Facts) -> _Group:
    launch, share = _launch_of(step), None
    if launch is not None and (launch.extent is None or isinstance(launch.extent, int)):
        share = facts.share_of_launch(launch.kernel, launch.extent)
    return _Group([step], set(map(memory, step.reads)), set(map(memory, step.writes)), share)


def _join_last(done: list[_Group]) -> None:
    """Join the last group with one before it, if there is one that allows that."""
    last = before = done[-1]
    if last.share is None:
        return
    for position in reversed(range(max(0, len(done) - 1 - MOST_LOOKED_AT), len(done) - 1)):
        earlier = done[position]
        if not all(map(is_plain, earlier.steps)):
            return
        if before.conflicts(earlier):
            before = before.and_then(earlier)  # what must come before the last group, too
            continue
        if not earlier.joins(last):
            continue
        between, late = done[position + 1 : -1], [earlier]
        for other in between:
            if any(other.conflicts(g) for g in late):
                late.append(other)
        if all(isinstance(s, _OF_DEVICE) for g in late for s in g.steps):
            stay = [g for g in between if g not in late]
            done[position:] = [*stay, earlier.and_then(last), *late[1:]]
            return


_OF_DEVICE = (Launch, LibraryCall, Note, SegmentedLaunch)  # the host makes none of their operands


def _launch_of(step: Step) -> Launch | None:
    """The launch of a step that may do the work of others as well."""
    if isinstance(step, Note):
        return step.launches[0] if step.launches else None
    plain = isinstance(step, Launch) and step.native and not step.scratch and not step.shared
    return step if plain else None  # type: ignore[return-value]


def _joined(launches: Sequence[Launch]) -> Launch:
    """One launch for several, of the kernel that does what all do, with no axis and no buffer in
    common."""
    axes: list[Axis] = []
    buffers: list[Buffer] = []
    stores: list[Store] = []
    outputs: list[int] = []
    for step in launches:
        kernel = step.kernel if step.extent is None else with_extent(step.kernel, step.extent)
        first = len(buffers)
        own = {a: Axis(f"i{n}", a.extent) for n, a in enumerate(kernel.axes, len(axes))}
        given = {b: Buffer(f"x{n}", b.dtype, b.shape) for n, b in enumerate(kernel.buffers, first)}
        axes += own.values()
        buffers += given.values()
        outputs += [first + n for n in step.outputs]
        stores += _renamed(kernel, own, given)
    return Launch(
        Kernel(tuple(axes), tuple(buffers), tuple(stores)),
        [o for step in launches for o in step.operands], outputs,
        reads=[p for step in launches for p in step.reads],
        writes=[p for step in launches for p in step.writes],
    )  # fmt: skip


def _renamed(
    kernel: Kernel, axes: Mapping[Axis, Axis], buffers: Mapping[Buffer, Buffer]
) -> list[Store]:
    rewrite = Rewrite(lambda buffer, index: (buffers[buffer], index), axes)
    return [rewrite.store(s) for s in kernel.stores]

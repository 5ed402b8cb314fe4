"""Stretches of a program that are recorded, where the program as a whole cannot be.

Functions of CuPy take memory of their own, and exchanges by copies wait for other devices: calls
with them are not recorded. What the device does between them is: neighbouring steps whose work is
the same in all calls with the same addresses and sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from treadle.core.shapes import Dim, dim_symbols
from treadle.graph.ir import Value
from treadle.kernel.ir import Extent
from treadle.runtime.gpu.driver import Recording
from treadle.runtime.gpu.recorded import recorded
from treadle.runtime.gpu.routines.exchanges import ExchangeRoutine
from treadle.runtime.schedule.steps import (
    Block,
    Copy,
    Evaluate,
    Launch,
    LibraryCall,
    Note,
    Operand,
    Place,
    SegmentedLaunch,
    Step,
    Update,
)

if TYPE_CHECKING:
    from treadle.runtime.gpu.program import GpuProgram
    from treadle.runtime.gpu.run import Run

FEWEST = 3  # launches: a recording of fewer costs about as much as they do
_KNOWN = ("temporary", "argument", "constant", "variable", "output", "status")


class Stretch:
    """Neighbouring steps that are recorded together."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)


class Stretches:
    """The steps of a program with those in stretches.

    Attributes:
        numbers: steps by which the host computes numbers from sizes alone, which come first.
        items: the others.
        size: how many stretches there are.
    """

    def __init__(self, program: GpuProgram, block: Block) -> None:
        self.program = program
        self.sizes = {s.name for s in program.planned.signature.symbols}
        self.known: set[Value] = set()
        self.numbers = [s for s in block.steps if isinstance(s, Evaluate) and self._settled(s)]
        rest = [s for s in block.steps if s not in set(self.numbers)]
        self.items: list[Step | Stretch] = list(self._items(rest))
        self.size = sum(isinstance(item, Stretch) for item in self.items)

    def _settled(self, step: Evaluate) -> bool:
        """Whether a number depends on sizes alone."""
        if not all(o.place is None and o.value in self.known for o in step.inputs.values()):
            return False
        if not all(self._has(e.dim) for e in _extents(step.expr)):
            return False
        self.known.add(step.value)
        return True

    def _items(self, steps: Iterable[Step]) -> Iterator[Step | Stretch]:
        found: list[Step] = []
        for step in steps:
            if self._fits(step):
                found.append(step)
                continue
            yield from self._ended(found)
            yield step
            found = []
        yield from self._ended(found)

    def _ended(self, steps: list[Step]) -> Iterator[Step | Stretch]:
        if sum(map(self._launches, steps)) >= FEWEST:
            yield Stretch(steps)
        else:
            yield from steps

    def _launches(self, step: Step) -> int:
        return len(step.launches) if isinstance(step, Note) else 1

    def _fits(self, step: Step) -> bool:
        """Whether a step does the same in all calls with the same addresses and sizes."""
        match step:
            case Launch():
                return step.native and self._launch_fits(step)
            case SegmentedLaunch():
                return all(self._launch_fits(s) for s in step.segments)
            case Note():
                return bool(step.launches) and all(map(self._launch_fits, step.launches))
            case Update():
                return step.launch is not None and self._launch_fits(step.launch)
            case Copy():
                return self._operand_fits(step.source) and self._place_fits(step.target)
            case LibraryCall():
                routine = self.program.routines[step]
                if not routine.replays or isinstance(routine, ExchangeRoutine):
                    return False
                operands = [*step.inputs, *step.outputs]
                if not all(o.place is not None and self._operand_fits(o) for o in operands):
                    return False
                if step.epilogue is not None and not self._launch_fits(step.epilogue):
                    return False
                return self._has(routine.workspace) and self._has(routine.launches)
        return False

    def _launch_fits(self, step: Launch) -> bool:
        if step.extent is not None and not self._has(step.extent):
            return False
        names = {name for name in step.kernel.symbols if name != "n" or step.extent is None}
        return names <= self.sizes and all(map(self._operand_fits, step.operands))

    def _operand_fits(self, operand: Operand) -> bool:
        if operand.place is None:
            return operand.value in self.known
        return self._place_fits(operand.place)

    def _place_fits(self, place: Place) -> bool:
        if place.kind not in _KNOWN or not all(map(self._has, place.dims)):
            return False
        return place.kind != "temporary" or self._has(self.program.plan.offset(place))

    def _has(self, dim: Dim) -> bool:
        """Whether a size is known when a call begins."""
        return isinstance(dim, int) or dim_symbols(dim) <= self.sizes


class KeptStretches:
    """The recordings of the stretches for calls with the same addresses and sizes, and the memory
    that all of their work is done in.

    Args:
        run: the first of these calls.
    """

    def __init__(self, stretches: Stretches, run: Run) -> None:
        self.stretches = stretches
        run.begin()
        run.reserve_scratch(_launches_in(stretches))
        self.workspace, self.scratch = run.workspace, list(run.scratch)
        self.bytes = run.scratch_bytes
        self.status = run.status
        self.recordings: dict[Stretch, Recording | None] = {}

    def work(self, run: Run) -> None:
        """Do the work of a call; what is not recorded yet is."""
        run.turned.clear()
        run.workspace, run.scratch, run.scratch_bytes = self.workspace, [*self.scratch], self.bytes
        run.steps(self.stretches.numbers)
        for item in self.stretches.items:
            if not isinstance(item, Stretch):
                run.steps([item])
                continue
            if item not in self.recordings:
                before = run.submitted
                self.recordings[item] = recorded(run, partial(run.steps, item.steps))
                run.submitted = before
            recording = self.recordings[item]
            if recording is None:  # the device cannot record such work
                run.steps(item.steps)
            else:
                recording.submit()
                run.submitted += 1


def _launches_in(stretches: Stretches) -> Collection[Step]:
    """The steps of all stretches, and the launches that they are made of."""
    steps = [s for item in stretches.items if isinstance(item, Stretch) for s in item.steps]
    inner: list[Any] = [x for s in steps if isinstance(s, Note) for x in s.launches]
    inner += [s.launch for s in steps if isinstance(s, Update)]
    inner += [s.epilogue for s in steps if isinstance(s, LibraryCall)]
    return {*steps, *inner}


def _extents(expr: Any) -> Iterator[Extent]:
    """The sizes in an expression."""
    if isinstance(expr, Extent):
        yield expr
    for part in getattr(expr, "args", ()):
        yield from _extents(part)


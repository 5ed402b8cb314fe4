"""Kernels of a loop that threads would divide so that an array moves between their caches.

    for k in range(n):
        w = sum over i of v[i] * a[i, :]      # each thread has columns of `a`
        a -= v[:, None] * w                   # each thread has rows of `a`

In every iteration the part of `a` that one core has written is read by another one. A cache line
takes longer to get there than its elements take to be computed, so one thread runs such kernels,
unless the array is so large that it would not stay in the caches of the cores anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.core.shapes import product
from treadle.kernel.ir import Axis, Index, Kernel, Load, index_axes
from treadle.kernel.rewrite import canonical
from treadle.runtime.cpu.compiled_kernels import kernel_code
from treadle.runtime.cpu.nest.shape import choose_shape, operations_of
from treadle.runtime.cpu.rows import memory
from treadle.runtime.cpu.target import host
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Launch, Loop, Operand, Step
from treadle.runtime.tuning import Tuning


def kernels_of_one_thread(block: Block, workers: int) -> frozenset[Launch]:
    """The launches in loops of a program that only one of its threads is to run."""
    if workers < 2:
        return frozenset()
    loops = [s for s in all_steps(block) if isinstance(s, Loop)]
    return frozenset(launch for loop in loops for launch in _moving(loop.body.steps))


def _moving(steps: Sequence[Step]) -> Iterator[Launch]:
    """Those of an iteration that divide an array in different ways, of which one writes it."""
    tuning = host().tuning
    launches = [s for s in steps if isinstance(s, Launch) and s.native]
    divisions: dict[Any, dict[frozenset[int], list[Launch]]] = {}
    written = {memory(p) for s in launches for n in s.outputs if (p := s.operands[n].place)}
    for launch in launches:
        for operand, division in _divided(launch, tuning):
            place = operand.place
            assert place is not None
            size = product(place.dims)
            fits = isinstance(size, int) and size * place.dtype.size <= 2 * tuning.near
            if fits and memory(place) in written:
                found = divisions.setdefault(memory(place), {})
                found.setdefault(division, []).append(launch)
    for ways in divisions.values():
        if len(ways) > 1:
            yield from (launch for way in ways.values() for launch in way)


def _divided(launch: Launch, tuning: Tuning) -> Iterator[tuple[Operand, frozenset[int]]]:
    """The operands whose elements a kernel uses once, with the axes along which threads divide
    them, if it computes so little that lines of the operands take longer to move."""
    if kernel_code(launch.kernel) is None:
        return
    kernel = canonical(launch.kernel)
    parallel = choose_shape(kernel, host()).parallel
    if parallel is None:
        return
    accesses = [(e.buffer, e.index) for e in kernel.exprs if isinstance(e, Load)]
    accesses += [(s.buffer, s.index) for s in kernel.stores]
    operands = dict(zip(kernel.buffers, launch.operands, strict=True))
    for buffer, index in accesses:
        operand = operands[buffer]
        if operand.place is None or not _uses_once(kernel, index):
            continue
        if _cycles_of_a_line(kernel, buffer.dtype.size, tuning) < tuning.moving:
            yield operand, _axes_of(index, parallel)


def _uses_once(kernel: Kernel, index: Sequence[Index]) -> bool:
    """Whether no two positions of a kernel's axes use the same element."""
    used: set[Axis] = set()
    for part in index:
        used |= index_axes(part)
    return used >= set(kernel.axes)


def _axes_of(index: Sequence[Index], parallel: Axis) -> frozenset[int]:
    return frozenset(n for n, part in enumerate(index) if parallel in index_axes(part))


def _cycles_of_a_line(kernel: Kernel, size: int, tuning: Tuning) -> int:
    """About how long a core computes on the elements of a cache line."""
    work = tuning.line // size * operations_of(kernel.exprs)
    return work * tuning.meeting // tuning.task_elements

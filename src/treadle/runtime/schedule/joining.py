"""Kernels of numbers that are launched before another kernel and become part of it.

A check is computed by kernels that reduce arrays to numbers. The kernel that notes its failure
reads these numbers: as one kernel they are one launch. The earlier kernels are done later then,
where the steps between allow that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from treadle.kernel.ir import Axis, Buffer, Expr, Kernel, Load, apply, postorder
from treadle.kernel.rewrite import Rewrite, rebuilt
from treadle.runtime.schedule.steps import (
    Copy,
    Evaluate,
    Fetch,
    Guard,
    Launch,
    LibraryCall,
    LoadScalar,
    Measure,
    Note,
    Operand,
    SegmentedLaunch,
    Sizes,
    Step,
    Update,
    memory,
)

# A kernel that is not launched yet, and its operands.
Pending: TypeAlias = tuple[Kernel, list[Operand]]
# The buffers of a joined kernel and their operands, by what the arrays are.
Shared: TypeAlias = dict[Hashable, tuple[Buffer, Operand]]

_PLAIN = (
    Copy, Evaluate, Fetch, Guard, Launch, LibraryCall, LoadScalar, Measure, Note, SegmentedLaunch,
    Sizes, Update,
)  # fmt: skip


def is_plain(step: Step) -> bool:
    """Whether a step tells in `reads` and `writes` all memory that it touches, and ends no program
    where it stands."""
    return isinstance(step, _PLAIN) and not (isinstance(step, Note) and not step.launches)


def join_earlier(
    steps: list[Step], kernel: Kernel, operands: list[Operand], fits: Callable[[Pending], bool]
) -> Pending:
    """Take kernels of numbers out of `steps` into a kernel that follows these steps and reads the
    numbers.

    Args:
        fits: whether the device has code for a kernel.
    """
    read: set[Hashable] = set()  # by the steps that stay between
    written: set[Hashable] = set()
    for position in reversed(range(len(steps))):
        step = steps[position]
        if not is_plain(step):
            break
        reads, writes = set(map(memory, step.reads)), set(map(memory, step.writes))
        needed = {memory(o.place) for o in operands if o.place is not None}
        movable = not (writes & (read | written) or reads & written)
        joined = None
        if isinstance(step, Launch) and _makes_numbers(step) and writes & needed and movable:
            joined = _joined(step, kernel, operands)
        if joined is not None and fits(joined):
            kernel, operands = joined
            del steps[position]
        else:
            read |= reads
            written |= writes
    return kernel, operands


def _makes_numbers(step: Launch) -> bool:
    """Whether all results of a launch are numbers, which it computes without other memory."""
    plain = step.native and step.extent is None and step.scratch is None and step.shared is None
    return plain and all(not s.index and s.combine == "set" for s in step.kernel.stores)


def _joined(step: Launch, kernel: Kernel, operands: Sequence[Operand]) -> Pending | None:
    """One kernel for a launch and a kernel that follows it; None where the latter writes what the
    former touches."""
    after = dict(zip(kernel.buffers, operands, strict=True))
    before = dict(zip(step.kernel.buffers, step.operands, strict=True))
    stored = {_key(b, after[b]) for b in kernel.outputs}
    if stored & {_key(b, o) for b, o in before.items()}:
        return None
    found: Shared = {}
    axes = _axes(step.kernel, kernel)
    first = Rewrite(_in(shared_buffers(found, before)), axes)
    then = Rewrite(_in(shared_buffers(found, after)))
    stores = [first.store(s) for s in step.kernel.stores]
    values = {s.buffer: s.value for s in stores}
    following = [then.store(s) for s in kernel.stores]
    new = with_values([s.value for s in following], values)
    stores += [replace(s, value=v) for s, v in zip(following, new, strict=True)]
    every = dict.fromkeys([*kernel.axes, *axes.values()])
    buffers = tuple(b for b, _ in found.values())
    return Kernel(tuple(every), buffers, tuple(stores)), [o for _, o in found.values()]


def shared_buffers(
    found: Shared, given: Mapping[Buffer, Operand], keep: bool = False
) -> dict[Buffer, Buffer]:
    """The buffers of a joined kernel in place of those of one of its parts: one for each array,
    whichever part has it.

    Args:
        found: the buffers so far, to which those are added that are new.
        keep: whether new ones have their old names.
    """
    names = {}
    for old, operand in given.items():
        key = _key(old, operand)
        if key not in found:
            taken = {buffer.name for buffer, _ in found.values()}
            free = (f"x{n}" for n in count(len(found)) if f"x{n}" not in taken)
            found[key] = Buffer(old.name if keep else next(free), old.dtype, old.shape), operand
        names[old] = found[key][0]
    return names


def _in(names: dict[Buffer, Buffer]) -> Callable[..., tuple[Buffer, object]]:
    return lambda buffer, index: (names[buffer], index)


def _key(buffer: Buffer, operand: Operand) -> Hashable:
    """Equal for two buffers that are the same array in the same dims."""
    place = operand.place
    return operand.value if place is None else memory(place), buffer.dtype, buffer.shape


def _axes(first: Kernel, then: Kernel) -> dict[Axis, Axis]:
    """The axes of a kernel as those of the joined one, where axes of one extent are one loop."""
    free = list(then.axes)
    names: dict[Axis, Axis] = {}
    for axis in first.axes:
        same = next((a for a in free if a.extent == axis.extent), None)
        if same is not None:
            free.remove(same)
        number = len(then.axes) + len(names)
        names[axis] = same or Axis(f"i{number}", axis.extent)
    return names


def with_values(roots: Sequence[Expr], values: Mapping[Buffer, Expr]) -> list[Expr]:
    """Expressions with the values of buffers for their loads, each of the element that is
    computed."""
    new: dict[Expr, Expr] = {}
    for expr in postorder(roots):
        made = rebuilt(expr, new.__getitem__)
        if isinstance(made, Load) and made.buffer in values:
            value = values[made.buffer]
            if made.valid is not None and made.fill is not None:
                value = apply("select", made.valid, value, made.fill)
            made = value
        new[expr] = made
    return [new[r] for r in roots]

"""Which loops leave the rows of their arrays apart.

The steps of a recurrent network compute every row of the state from the same row before: a thread
can run all iterations on its own rows, and need not wait for others in between. That is so where
every array that the loop writes has as many rows as the others, and each step reads of such arrays
only the rows that it writes. Numbers and what the loop only reads may be used in any way; each
thread has numbers of its own, which are the same.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from treadle.core.records import record
from treadle.core.shapes import product, substitute
from treadle.core.switches import is_on
from treadle.kernel.ir import Affine, Axis, Index, Kernel, Load, index_axes
from treadle.kernel.rewrite import canonical
from treadle.ops.collections.lists import LIST_GET, LIST_SET
from treadle.runtime.cpu.compiled_kernels import in_terms_of, kernel_code
from treadle.runtime.cpu.nest.shape import choose_shape
from treadle.runtime.cpu.target import host
from treadle.runtime.schedule.lists import puts_element
from treadle.runtime.schedule.steps import (
    Check,
    Copy,
    Evaluate,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Loop,
    Operand,
    Place,
    Position,
    Rows,
    Step,
)


def split_rows(loop: Loop, workers: int) -> Rows | None:
    """How threads share the rows of a loop's arrays; None where iterations mix them, or where
    that would not pay."""
    if not (is_on("rows") and is_on("threads")):
        return None
    arrays = [c.place for c in loop.carried if c.place is not None]
    extents = {p.dims[0] if p.dims else None for p in arrays}
    rows = extents.pop() if len(extents) == 1 else None
    if not isinstance(rows, int) or rows < 2 or workers < 2:
        return None
    products = any(isinstance(s, LibraryCall) for s in loop.body.steps)
    blocks = _blocks(rows, workers) if products else min(rows, workers)
    analysis = _Analysis(loop, Rows(rows, blocks))
    return analysis.plan if analysis.agrees() else None


def _blocks(rows: int, workers: int) -> int:
    """Blocks as high as a tile of a product, but about as many rows for every thread."""
    from treadle.runtime.cpu.matmul.tiles import most_rows

    def cost(blocks: int) -> float:
        height = -(-rows // blocks)
        return -(-blocks // workers) * height * (1 + 0.5 / height)

    least = -(-rows // most_rows(host(), 2))
    most = min(rows, least + 2 * workers)
    return min(range(least, most + 1), key=lambda blocks: (cost(blocks), blocks))


def memory(place: Place) -> Any:
    """What tells apart the memory of places: the halves of a pair take turns, and every read of a
    variable has a place of its own."""
    if place.kind.startswith("pair"):
        return "pair", place.number
    return ("variable", place.number) if place.kind == "variable" else place


@record
class _Analysis:
    loop: Loop
    plan: Rows
    written: set[Any] = field(default_factory=set)
    work: int = 0
    shared: int = 0

    def agrees(self) -> bool:
        loop = self.loop
        kinds = {c.place.kind for c in loop.carried if c.place is not None}
        if not kinds <= {"temporary", "pair", "output"}:
            return False
        steps = loop.body.steps
        outputs = [p for s in steps for p in _results(s)]
        outputs += [c.place for c in loop.carried if c.place is not None]
        if not all(self._has_rows(p) for p in outputs):
            return False
        self.written = {memory(p) for p in outputs}
        tests = (isinstance(s, Evaluate) and self._allows(s) for s in loop.condition.steps)
        return all(tests) and all(map(self._allows, steps)) and self._pays()

    def _pays(self) -> bool:
        """Whether threads have enough to do in an iteration, in which they need not meet, and in
        the whole loop; what each of them reads in every iteration must stay near it."""
        trips, tuning = self.loop.trips, host().tuning
        if self.work < tuning.task_flops // 4 or self.shared > tuning.near:
            return False
        return trips is None or trips * self.work >= 4 * tuning.task_flops

    def _has_rows(self, place: Place) -> bool:
        return bool(place.dims) and place.dims[0] == self.plan.extent

    def _mixes(self, operand: Operand) -> bool:
        """Whether an operand is an array that the loop writes."""
        return operand.place is not None and memory(operand.place) in self.written

    def _allows(self, step: Step) -> bool:
        match step:
            case Evaluate():
                return not any(map(self._mixes, step.inputs.values()))
            case LoadScalar():
                return memory(step.source) not in self.written
            case Check(told=[_, *_]):
                return False  # its kernels are not for the rows of one thread
            case Check() | Position():
                return not any(map(self._mixes, step.callback.inputs))
            case Copy():
                return step.source.place is not None and self._has_rows(step.source.place)
            case Launch():
                return self._kernel(step)
            case LibraryCall():
                return self._product(step)
            case ListStep():
                return self._list(step)
        return False

    def _product(self, step: LibraryCall) -> bool:
        from treadle.runtime.cpu.library import part_routine
        from treadle.runtime.cpu.library_code import prepare_routine

        routine = part_routine(step.node, self.plan.blocks)
        if routine is None or step.views or self._mixes(step.inputs[1]):
            return False
        prepare_routine(routine.symbol)
        k, n = step.node.inputs[0].spec.dims[1], step.node.outputs[0].spec.dims[1]
        if not isinstance(k, int) or not isinstance(n, int):
            return False
        if step.epilogue is not None and not self._epilogue(step.epilogue):
            return False
        self.work += 2 * self.plan.extent * k * n
        self.shared += k * n * step.node.outputs[0].spec.dtype.size
        return True

    def _list(self, step: ListStep) -> bool:
        op = step.node.op
        if op is LIST_GET:
            place = step.outputs[0].place
            return place is None or place.kind == "element"
        if not puts_element(step.node):
            return False
        value = step.inputs[-1]
        known = op is LIST_SET or self.loop.trips is not None
        rows = value.place is not None and self._has_rows(value.place)
        grows = bool(step.node.attrs.get("grow"))
        return step.owned and known and rows and not grows

    def _kernel(self, step: Launch) -> bool:
        """Whether positions of the kernel's parallel axis are rows, or an equal part of them."""
        code = kernel_code(step.kernel) if step.native else None
        if code is None or code.emitted.finish is not None or step.shared is not None:
            return False
        kernel = canonical(step.kernel)
        axis = choose_shape(kernel, host()).parallel
        if axis is None or units_of_a_row(step, self.plan) is None:
            return False
        return self._keeps_rows(step, kernel, axis)

    def _epilogue(self, step: Launch) -> bool:
        kernel = canonical(step.kernel)
        axis = kernel.axes[0]
        if len(kernel.axes) != 2 or axis.extent != self.plan.extent:
            return False
        return self._keeps_rows(step, kernel, axis)

    def _keeps_rows(self, step: Launch, kernel: Kernel, axis: Axis) -> bool:
        """Whether what a kernel reads of the loop's arrays is in the rows that it writes."""
        tuning = host().tuning
        element = max(1, tuning.task_flops // (2 * tuning.task_elements))  # operations of a product
        self.work += element * _elements(step, kernel)
        moving = {
            buffer
            for position, (buffer, operand) in enumerate(
                zip(kernel.buffers, step.operands, strict=True)
            )
            if self._mixes(operand) or position in step.outputs
        }
        scalars = any(step.operands[i].place is None for i in step.outputs)
        exprs = kernel.exprs
        loads = [(e.buffer, e.index) for e in exprs if isinstance(e, Load)]
        places = [*loads, *((s.buffer, s.index) for s in kernel.stores)]
        return not scalars and all(
            _stays_in_row(buffer.shape, index, axis) for buffer, index in places if buffer in moving
        )


def _results(step: Step) -> list[Place]:
    """The arrays that a step writes, without what it works with or only finds."""
    if isinstance(step, ListStep):
        return []
    extra = [getattr(step, name, None) for name in ("scratch", "shared")]
    return [p for p in step.writes if p not in extra]


def units_of_a_row(step: Launch, rows: Rows) -> int | None:
    """Positions of a kernel's parallel axis to a row; None where they are no rows."""
    code = kernel_code(step.kernel)
    assert code is not None
    units = in_terms_of(step.kernel, code.emitted.units)
    if step.extent is not None:
        units = substitute(units, {"n": step.extent})
    if not isinstance(units, int) or units < rows.extent or units % rows.extent:
        return None
    return units // rows.extent


def _elements(step: Launch, kernel: Kernel) -> int:
    """About how many elements a kernel computes."""
    if isinstance(step.extent, int):
        return step.extent
    size = product(a.extent for a in kernel.axes)
    return size if isinstance(size, int) else 0


def _stays_in_row(shape: tuple[Any, ...], index: tuple[Index, ...], axis: Axis) -> bool:
    """Whether the first index is the position on the axis, and no other one depends on it."""
    if not index or shape[0] != axis.extent:
        return False
    first = isinstance(index[0], Affine) and index[0] == Affine(((axis, 1),), 0)
    return first and all(axis not in index_axes(i) for i in index[1:])

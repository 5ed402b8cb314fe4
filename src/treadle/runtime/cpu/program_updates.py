"""Updates of a part of an array, as loops inside a program.

Positions that were not checked by a node before are checked here before anything is written.
That is not done by a kernel before the step, because updates of a few rows then take 1.4 to 1.7
times as long.
Writes happen in the order of the positions: the last one stays, and sums have one order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.ops.properties import PartKind
from treadle.runtime.cpu.elements import Elements, stored_type
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_kernels import emit_launch
from treadle.runtime.cpu.program_python import emit_callback
from treadle.runtime.schedule.steps import Callback, Launch, Operand, Place, Update

MOST_VECTOR = 32  # bytes: rows that are added are short, longer vectors would seldom fit


def emit_update(emitter: Emitter, step: Update) -> None:
    """One update."""
    part = step.node.op.part
    assert part is not None
    _WRITERS[part.kind](emitter, step, part.use.combine)


@record
class Part:
    """What is written: the elements of an operand, replacing or changing the target's.

    combine: how, as in stores of kernels.
    """

    emitter: Emitter
    operand: Operand
    target: str
    combine: str = "set"
    place: Place | None = None  # of the target

    @property
    def dtype(self) -> DType:
        return self.operand.value.spec.dtype

    def row(self, target: Word, source: Word, count: Word) -> None:
        """Write `count` neighbouring elements at an offset."""
        fn = self.emitter.fn
        address = fn.offset(self.target, target, stored_type(self.dtype))
        if self.operand.place is None:
            self._element(address)
            return
        origin = self.emitter.pointer(self.operand.place)
        origin = fn.offset(origin, source, stored_type(self.dtype))
        if self.combine != "set":
            combine_row(self.emitter, self.combine, self.dtype, address, origin, count)
        else:
            move(self.emitter, address, origin, fn.mul(count, self.dtype.size))

    def _element(self, address: str) -> None:
        """Write a rank-0 value."""
        emitter, dtype = self.emitter, self.dtype
        register = emitter.registers[self.operand.value]
        if self.combine != "set":
            old = emitter.load_scalar(address, dtype, self.place)
            register = emitter.elements.apply(self.combine, [old, register], [dtype] * 2, dtype)
        if register in emitter.selections:
            register = emitter.elements.opaque(register, dtype)
        emitter.store_scalar(register, dtype, address, self.place)


def combine_row(
    emitter: Emitter, function: str, dtype: DType, target: str, source: str, count: Word
) -> None:
    """``target[k] = function(target[k], source[k])`` for neighbouring elements."""
    fn = emitter.fn
    lanes = min(MOST_VECTOR, emitter.module.target.tuning.vector_bytes) // dtype.size
    whole = fn.mul(fn.divide(count, lanes), lanes)
    for width, start, stop in ((lanes, 0, whole), (0, whole, count)):
        if start == stop:
            continue
        elements = Elements(fn, width)
        kind = elements.wrap(stored_type(dtype))
        with fn.loop(start, stop, max(width, 1)) as k:
            places = [fn.offset(p, k, stored_type(dtype)) for p in (target, source)]
            raw = [fn.value(f"load {kind}, ptr {p}, align {dtype.size}") for p in places]
            values = [elements.from_memory(r, dtype) for r in raw]
            result = elements.apply(function, values, [dtype] * 2, dtype)
            stored = elements.to_memory(result, dtype)
            fn.emit(f"store {kind} {stored}, ptr {places[0]}, align {dtype.size}")


# Of one axis of a part: how many positions, and the distance between them in target and source.
Walk = tuple[Word, Word, Word]


def write_part(part: Part, axes: Sequence[Walk], start: Word, row: Word) -> None:
    """Write rows of `row` elements; `axes` are the loops around them, outermost first."""
    fn = part.emitter.fn
    target = start
    source: Word = 0
    with ExitStack() as loops:
        for count, target_step, source_step in axes:
            k = loops.enter_context(fn.loop(0, count))
            target = fn.add(target, fn.mul(k, target_step))
            source = fn.add(source, fn.mul(k, source_step))
        part.row(target, source, row)


def refuse_if(emitter: Emitter, condition: str | bool, refuse: Callback | None) -> None:
    """Let the op's NumPy implementation raise its error where an i1 holds."""
    assert refuse is not None
    with emitter.fn.when(condition) as needed:
        if needed:
            emit_callback(emitter, refuse)


# -- the ops -------------------------------------------------------------------------------------


def _index(emitter: Emitter, step: Update, combine: str) -> None:
    """x[..., i, ...] = part; i was checked, or comes from a read that was."""
    fn, axis = emitter.fn, step.node.attrs["axis"]
    dims = step.node.inputs[0].spec.dims
    outer, size, inner = (
        emitter.dim(product(d)) for d in (dims[:axis], dims[axis : axis + 1], dims[axis + 1 :])
    )
    place = from_start(emitter, step.inputs[1], size)
    part = Part(emitter, step.inputs[2], emitter.pointer(step.target), combine, step.target)
    write_part(part, [(outer, fn.mul(size, inner), inner)], fn.mul(place, inner), inner)


def _element_update(emitter: Emitter, step: Update, combine: str) -> None:
    """x[i, j, ...] = value; the positions were checked."""
    fn = emitter.fn
    *positions, value = step.inputs[1:]
    place: Word = 0
    for position, dim in zip(positions, step.node.inputs[0].spec.dims, strict=True):
        size = emitter.dim(dim)
        place = fn.add(fn.mul(place, size), from_start(emitter, position, size))
    Part(emitter, value, emitter.pointer(step.target), place=step.target).row(place, 0, 1)


def _slice(emitter: Emitter, step: Update, combine: str) -> None:
    """A part with known bounds."""
    fn, attrs, operand = emitter.fn, step.node.attrs, step.inputs[1]
    x, dims = (v.spec.dims for v in step.node.inputs)
    loops, start, row = _walk(emitter, x, dims, attrs["begin"], attrs["strides"])
    part = Part(emitter, operand, emitter.pointer(step.target), combine)
    with fn.when(_some(emitter, operand)) as needed:
        if needed:
            write_part(part, loops, start, row)


def _walk(
    emitter: Emitter, x: Sequence[Dim], part: Sequence[Dim], begins: Sequence[Dim],
    strides: Sequence[int],
) -> tuple[list[Walk], Word, Word]:  # fmt: skip
    """The loops over a part of x, the offset of its first element, and the length of its rows."""
    fn = emitter.fn
    loops: list[Walk] = []
    start: Word = 0
    row: Word = 1
    whole = True  # everything inside is contiguous in the target
    inner_target: Word = 1
    inner_source: Word = 1
    axes = zip(x, part, begins, strides, strict=True)
    for extent, count, begin, stride in reversed(list(axes)):
        size, number = emitter.dim(extent), emitter.dim(count)
        start = fn.add(start, fn.mul(emitter.dim(begin), inner_target))
        if whole and stride == 1:
            row = fn.mul(row, number)
        else:
            loops.insert(0, (number, fn.mul(inner_target, stride), inner_source))
            whole = False
        whole = whole and extent == count
        inner_target, inner_source = fn.mul(inner_target, size), fn.mul(inner_source, number)
    return loops, start, row


def _some(emitter: Emitter, operand: Operand) -> str | bool:
    """Whether the operand has elements: the offset of an empty part may lie outside."""
    return emitter.fn.compare("ne", emitter.dim(product(operand.value.spec.dims)), 0)


def _scatter(emitter: Emitter, step: Update, combine: str) -> None:
    """Parts at positions given by the rows of an array."""
    dims = step.node.inputs[0].spec.dims
    target = emitter.pointer(step.target)
    scatter(emitter, step.inputs[1:], target, dims, combine, step.refuse, step.launch)


def scatter(
    emitter: Emitter, operands: Sequence[Operand], target: str, dims: Sequence[Dim], combine: str,
    refuse: Callback | None, launch: Launch | None,
) -> None:  # fmt: skip
    """Write `operands` = (rows of positions, updates) into an array of `dims`: with a kernel, or a
    loop where the rows are few."""
    fn, positions = emitter.fn, operands[0]
    spec = positions.value.spec
    depth, rows = spec.dims[-1], emitter.dim(product(spec.dims[:-1]))
    assert isinstance(depth, int)
    sizes = [emitter.dim(d) for d in dims[:depth]]
    inner = emitter.dim(product(dims[depth:]))
    if depth:
        refuse_outside(emitter, positions, rows, sizes, refuse)
    if launch is not None:
        emit_launch(emitter, launch)
        return
    part = Part(emitter, operands[1], target, combine)
    with fn.loop(0, rows) as r:
        place: Word = 0
        for k, size in enumerate(sizes):
            element = load_integer(emitter, positions, fn.add(fn.mul(r, depth), k))
            place = fn.add(fn.mul(place, size), element)
        part.row(fn.mul(place, inner), fn.mul(r, inner), inner)


def refuse_outside(
    emitter: Emitter, positions: Operand, rows: Word, sizes: Sequence[Word],
    refuse: Callback | None, low: bool = True,
) -> None:  # fmt: skip
    """Raise where an element of a row of positions is not in [0, size); without `low` negative
    ones pass."""
    fn, beyond = emitter.fn, "uge" if low else "sge"

    def row(r: Word, found: list[str]) -> list[str]:
        (any_bad,) = found
        for k, size in enumerate(sizes):
            element = load_integer(emitter, positions, fn.add(fn.mul(r, len(sizes)), k))
            bad = fn.value(f"icmp {beyond} i64 {element}, {size}")
            any_bad = fn.value(f"or i1 {any_bad}, {bad}")
        return [any_bad]

    start: Word = 0
    found = "false"
    if (
        len(sizes) == 1
        and positions.place is not None
        and not (isinstance(rows, int) and rows < 32)
    ):
        start, found = _vectors_outside(emitter, positions, rows, sizes[0], beyond)
    (found,) = fn.carried(start, rows, 1, ["i1"], [found], row)
    refuse_if(emitter, found, refuse)


def _vectors_outside(
    emitter: Emitter, positions: Operand, count: Word, size: Word, beyond: str
) -> tuple[Word, str]:
    """Compare positions with a size a vector at a time: where the rest begins, and whether one of
    those before it lies beyond."""
    fn, dtype = emitter.fn, positions.value.spec.dtype
    assert positions.place is not None
    source = emitter.pointer(positions.place)
    lanes = min(MOST_VECTOR, emitter.module.target.tuning.vector_bytes) // dtypes.int64.size
    elements = Elements(fn, lanes)
    whole, wide = elements.wrap(stored_type(dtype)), elements.wrap("i64")
    limit = elements.splat(str(size), dtypes.int64)
    mask = elements.wrap("i1")

    def vector(k: Word, found: list[str]) -> list[str]:
        place = fn.offset(source, k, stored_type(dtype))
        raw = fn.value(f"load {whole}, ptr {place}, align {dtype.size}")
        element = elements.apply("cast", [raw], [dtype], dtypes.int64)
        bad = fn.value(f"icmp {beyond} {wide} {element}, {limit}")
        return [fn.value(f"or {mask} {found[0]}, {bad}")]

    rest = fn.mul(fn.divide(count, lanes), lanes)
    (bad,) = fn.carried(0, rest, lanes, [mask], ["zeroinitializer"], vector)
    return rest, elements.lanes32.any(bad)


def _segments(emitter: Emitter, step: Update, combine: str) -> None:
    """Add rows to the rows that ids name."""
    dims = step.node.inputs[0].spec.dims
    add_segments(emitter, step.inputs[2], dims, step.refuse, step.launch)


def add_segments(
    emitter: Emitter, ids: Operand, dims: Sequence[Dim], refuse: Callback | None,
    launch: Launch | None,
) -> None:  # fmt: skip
    """Add rows to the rows of an array of `dims` that `ids` name; negative ids are dropped."""
    assert launch is not None
    rows = emitter.dim(product(ids.value.spec.dims))
    refuse_outside(emitter, ids, rows, [emitter.dim(dims[0])], refuse, low=False)
    emit_launch(emitter, launch)


# -- integers ------------------------------------------------------------------------------------


def integer(emitter: Emitter, operand: Operand) -> str:
    """A rank-0 operand as i64."""
    register = emitter.registers[operand.value]
    return emitter.elements.apply("cast", [register], [operand.value.spec.dtype], dtypes.int64)


def load_integer(emitter: Emitter, operand: Operand, position: Word) -> str:
    """An element of an integer operand as i64."""
    if operand.place is None:
        return integer(emitter, operand)
    dtype = operand.value.spec.dtype
    pointer = emitter.fn.offset(emitter.pointer(operand.place), position, stored_type(dtype))
    return emitter.elements.apply(
        "cast", [emitter.load_scalar(pointer, dtype)], [dtype], dtypes.int64
    )


def from_start(emitter: Emitter, operand: Operand, size: Word) -> Word:
    """A rank-0 operand as a position; unsigned ones do not count from the end."""
    place = integer(emitter, operand)
    return place if operand.value.spec.dtype.is_unsigned else wrapped(emitter, place, size)


def wrapped(emitter: Emitter, place: str, size: Word) -> Word:
    """Negative positions count from the end."""
    fn = emitter.fn
    return fn.select(fn.compare("slt", place, 0), fn.add(place, size), place)


# How a part is written, with how it is combined with what was there.
_WRITERS: dict[PartKind, Callable[[Emitter, Update, str], None]] = {
    PartKind.ELEMENT: _element_update,
    PartKind.INDEX: _index,
    PartKind.SLICE: _slice,
    PartKind.ROWS: _scatter,
    PartKind.SEGMENTS: _segments,
}

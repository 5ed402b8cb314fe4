"""The ops on native lists whose elements differ in shape (`ragged_memory.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.spec import ListSpec
from treadle.ops.collections.lists import LIST_PUSH
from treadle.ops.lowering import ListAction
from treadle.runtime.cpu import program_lists as plain
from treadle.runtime.cpu.list_memory import LENGTH
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_lists import action_of
from treadle.runtime.cpu.program_python import call_python
from treadle.runtime.cpu.program_updates import integer
from treadle.runtime.cpu.ragged_memory import (
    BEGIN,
    COUNT,
    DIMS,
    RaggedList,
    copy_of,
    link,
    product_of,
    store_word,
)
from treadle.runtime.schedule.lists import Ragged
from treadle.runtime.schedule.steps import Guard, ListStep, Operand
from treadle.runtime.symbols import told_symbol

_SHAPE = "an element has {} along an axis where {} is expected"
_UNWRITTEN = "an element is read before it was written: its shape is not known"
_LENGTHS = "lists of {} and {} elements cannot be added"
_PIECES = "the elements have {} values in all, not the {} that are given"


def emit_list_step(emitter: Emitter, step: ListStep) -> None:
    """One list op, on either kind of lists."""
    lists = [o.value for o in (*step.inputs, *step.outputs) if isinstance(o.value.spec, ListSpec)]
    if not isinstance(emitter.program.element_dims[lists[0]], Ragged):
        plain.emit_list_step(emitter, step)
        return
    plain.define(emitter)
    if step.slot is not None:
        emitter.places.pointers[step.slot] = _slot(emitter, step)
    else:
        _BY_ACTION[action_of(step)](emitter, step)


def _require(emitter: Emitter, step: ListStep, a: Word, b: Word, text: str) -> None:
    """Where two numbers differ, leave the program through Python with an error that names both."""
    fn = emitter.fn
    differ = fn.compare("ne", a, b)
    if differ is False:
        return
    number = emitter.program.add_callback(Guard(step.node, (0, 0), text))
    words = fn.alloca("[2 x i64], align 8")
    with fn.when(differ):
        fn.emit(f"store i64 {a}, ptr {words}, align 8")
        store_word(emitter, words, 1, b)
        call_python(emitter, number, words)


def _given(emitter: Emitter, step: ListStep, position: int = 0) -> RaggedList:
    operand = step.inputs[position]
    return RaggedList(emitter, operand, emitter.registers[operand.value])


def _changed(emitter: Emitter, step: ListStep) -> RaggedList:
    """The list that the op may change, which is its result."""
    operand = step.inputs[0]
    items = emitter.registers[operand.value] if step.owned else copy_of(emitter, operand)
    emitter.registers[step.outputs[0].value] = items
    return RaggedList(emitter, operand, items)


def _made(emitter: Emitter, out: Operand, capacity: Word = plain.FEWEST) -> RaggedList:
    """A new list, without elements."""
    ragged = emitter.program.element_dims[out.value]
    assert isinstance(ragged, Ragged)
    items = plain.made(emitter, plain.FEWEST, out.value.spec.dtype.size)
    records = plain.made(emitter, capacity, 8 * (DIMS + ragged.rank))
    link(emitter, items, records)
    emitter.registers[out.value] = items
    return RaggedList(emitter, out, items)


def _new(emitter: Emitter, step: ListStep) -> None:
    items = _made(emitter, step.outputs[0], plain.expected(step))
    if step.inputs:
        items.extend(emitter.fn.max(integer(emitter, step.inputs[0]), 0))


def _slot(emitter: Emitter, step: ListStep) -> str:
    """Where `list_push` or `list_set` puts its element."""
    fn = emitter.fn
    items = _changed(emitter, step)
    dims = [emitter.dim(d) for d in step.inputs[-1].value.spec.dims]
    if step.node.op is LIST_PUSH:
        index: Word = items.length()
        plain.reserve(emitter, items.records, fn.add(index, 1), items.record_bytes)
        store_word(emitter, items.records, LENGTH, fn.add(index, 1))
        return items.put(items.record(index), dims)
    index = integer(emitter, step.inputs[1])
    if step.node.attrs.get("grow"):
        plain.check_index(emitter, step, str(index), str((1 << 63) - 1))
        items.extend(fn.add(index, 1))
    else:
        plain.check_index(emitter, step, str(index), items.length())
    return _set_slot(emitter, items, items.record(index), dims)


def _set_slot(emitter: Emitter, items: RaggedList, record: str, dims: Sequence[Word]) -> str:
    """The place of the old element where the new one has as many scalars, else a new place."""
    fn, begin = emitter.fn, emitter.fn.alloca("i64, align 8")
    fn.emit(f"store i64 {fn.load_word(record, BEGIN)}, ptr {begin}, align 8")
    count = product_of(emitter, dims)
    written = fn.compare("sge", fn.load_word(record, BEGIN), 0)
    fits = fn.compare("eq", fn.load_word(record, COUNT), count)
    stays = fn.value(f"and i1 {written}, {fits}")
    with fn.when(fn.value(f"xor i1 {stays}, true")):
        fn.emit(f"store i64 {items.grow(count)}, ptr {begin}, align 8")
    found = fn.load_word(begin)
    for word, value in enumerate((found, count, *dims)):
        store_word(emitter, record, word, value)
    return items.place(found)


def _put(emitter: Emitter, step: ListStep) -> None:
    plain.put(emitter, step.inputs[-1], _slot(emitter, step))


def _get(emitter: Emitter, step: ListStep) -> None:
    fn, items, out = emitter.fn, _given(emitter, step), step.outputs[0]
    index = integer(emitter, step.inputs[1])
    plain.check_index(emitter, step, index, items.length())
    record = items.record(index)
    begin, found = fn.load_word(record, BEGIN), items.dims(record)
    hole = fn.value(f"icmp slt i64 {begin}, 0")
    _tell_dims(emitter, step, out, found, hole if items.holes else "")
    source = items.place(begin)
    size = fn.mul(product_of(emitter, [emitter.dim(d) for d in out.value.spec.dims]), items.size)
    if out.place is not None and out.place.kind == "element":
        emitter.places.pointers[out.place] = source
        return
    target = emitter.slot(out.value) if out.place is None else emitter.pointer(out.place)
    if items.holes:
        with fn.when(hole):
            fn.emit(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")
        size = fn.select(hole, 0, size)
    move(emitter, target, source, size)
    if out.place is None:
        emitter.registers[out.value] = emitter.load_scalar(target, out.value.spec.dtype)


def _tell_dims(
    emitter: Emitter, step: ListStep, out: Operand, found: Sequence[str], hole: str
) -> None:
    """Give symbols without a value the dims of the element; other dims must be those of the
    element."""
    fn = emitter.fn
    dims = list(zip(out.value.spec.dims, found, strict=True))
    for dim, word in dims:
        new = told_symbol(dim, emitter.sizes.symbols.keys())
        if new is None:
            continue
        name, rest = new
        if hole:
            _require(emitter, step, fn.select(hole, 1, 0), 0, _UNWRITTEN)
        least = emitter.dim(rest)
        _require(emitter, step, word, fn.max(word, least) if rest != 0 else word, _SHAPE)
        emitter.sizes.symbols[name] = str(fn.sub(word, least))
    for dim, word in dims:
        expected = emitter.dim(dim)
        if expected != word:
            _require(emitter, step, fn.select(hole or False, expected, word), expected, _SHAPE)


def _length(emitter: Emitter, step: ListStep) -> None:
    plain.give_length(emitter, step, _given(emitter, step).length())


def _truncate(emitter: Emitter, step: ListStep) -> None:
    fn, items = emitter.fn, _changed(emitter, step)
    length = fn.min(items.length(), fn.max(integer(emitter, step.inputs[1]), 0))
    store_word(emitter, items.records, LENGTH, length)

    def one(i: Word, state: list[str]) -> list[str]:
        record = items.record(i)
        end = fn.add(fn.load_word(record, BEGIN), fn.load_word(record, COUNT))
        return [str(fn.max(state[0], end))]

    used = fn.carried(0, length, 1, ["i64"], ["0"], one)[0]
    store_word(emitter, items.items, LENGTH, used)


def _extend(emitter: Emitter, step: ListStep) -> None:
    _changed(emitter, step).extend(integer(emitter, step.inputs[1]))


def _pack(emitter: Emitter, step: ListStep) -> None:
    fn, items = emitter.fn, _given(emitter, step)
    values, shapes = step.outputs
    assert values.place is not None and shapes.place is not None
    emitter.define_symbols(values.value.spec.dims, [items.sum(COUNT)])
    emitter.define_symbols(shapes.value.spec.dims, [items.length(), str(items.rank)])
    items.gather(emitter.pointer(values.place))
    target = emitter.pointer(shapes.place)
    with fn.loop(0, items.length()) as i:
        row, record = fn.offset(target, fn.mul(i, items.rank), "i64"), items.record(i)
        hole = fn.value(f"icmp slt i64 {fn.load_word(record, BEGIN)}, 0") if items.holes else False
        for axis, dim in enumerate(items.dims(record)):
            store_word(emitter, row, axis, fn.select(hole, -1, dim))


def _unpack(emitter: Emitter, step: ListStep) -> None:
    values, shapes = step.inputs
    rows, fn = emitter.operand_pointer(shapes), emitter.fn
    ragged = emitter.program.element_dims[step.outputs[0].value]
    assert isinstance(ragged, Ragged)
    rank = ragged.rank

    def dims(i: Word) -> list[Word]:
        row = fn.offset(rows, fn.mul(i, rank), "i64")
        return [fn.load_word(row, axis) for axis in range(rank)]

    _from_pieces(emitter, step, values, emitter.dim(shapes.value.spec.dims[0]), dims)


def _split(emitter: Emitter, step: ListStep) -> None:
    values, lengths = step.inputs
    assert lengths.place is not None
    place, fn = emitter.pointer(lengths.place), emitter.fn
    rest: list[Word] = [emitter.dim(d) for d in values.value.spec.dims[1:]]

    def dims(i: Word) -> list[Word]:
        length = emitter.load_scalar(fn.offset(place, i, "i32"), lengths.value.spec.dtype)
        wide = fn.value(f"sext i32 {length} to i64")
        return [fn.max(wide, 0), *rest]

    _from_pieces(emitter, step, values, emitter.dim(lengths.value.spec.dims[0]), dims)


def _unstack(emitter: Emitter, step: ListStep) -> None:
    (values,) = step.inputs
    first, *rest = (emitter.dim(d) for d in values.value.spec.dims)
    _from_pieces(emitter, step, values, first, lambda i: rest)


def _from_pieces(
    emitter: Emitter, step: ListStep, values: Operand, length: Word,
    dims: Callable[[Word], Sequence[Word]],
) -> None:  # fmt: skip
    """A list of consecutive pieces of an array; `dims` gives their shapes."""
    fn, items = emitter.fn, _made(emitter, step.outputs[0], length)
    assert values.place is not None

    def one(i: Word, state: list[str]) -> list[str]:
        shape, record = dims(i), items.record(i)
        count = product_of(emitter, shape)
        begin: Word = state[0]
        if items.holes and shape:
            hole = fn.compare("slt", shape[0], 0)
            count, begin = fn.select(hole, 0, count), fn.select(hole, -1, begin)
        for word, value in enumerate((begin, count, *shape)):
            store_word(emitter, record, word, value)
        return [str(fn.add(state[0], count))]

    used = fn.carried(0, length, 1, ["i64"], ["0"], one)[0]
    total = product_of(emitter, [emitter.dim(d) for d in values.value.spec.dims])
    _require(emitter, step, used, total, _PIECES)
    store_word(emitter, items.records, LENGTH, length)
    items.grow(total)
    move(emitter, items.place(0), emitter.pointer(values.place), fn.mul(total, items.size))


def _stack(emitter: Emitter, step: ListStep) -> None:
    fn, items, out = emitter.fn, _given(emitter, step), step.outputs[0]
    assert out.place is not None
    emitter.define_symbols(out.value.spec.dims, [items.length(), *items.largest()])
    first, *rest = (emitter.dim(d) for d in out.value.spec.dims)
    _require(emitter, step, items.length(), first, "the list has {} elements, not {}")
    _check_all(emitter, step, items, rest)
    target, size = emitter.pointer(out.place), fn.mul(product_of(emitter, rest), items.size)
    if items.holes:
        whole = fn.mul(first, size)
        fn.emit(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {whole}, i1 false)")
    with fn.loop(0, first) as i:
        record = items.record(i)
        source = items.place(fn.load_word(record, BEGIN))
        bytes_ = fn.mul(fn.load_word(record, COUNT), items.size)
        move(emitter, fn.offset(target, fn.mul(i, size), "i8"), source, bytes_)


def _check_all(
    emitter: Emitter, step: ListStep, items: RaggedList, dims: Sequence[Word], first: int = 0
) -> None:
    """Require that the elements that were written have the given dims, from axis `first` on."""
    fn = emitter.fn
    with fn.loop(0, items.length()) as i:
        record = items.record(i)
        hole = fn.value(f"icmp slt i64 {fn.load_word(record, BEGIN)}, 0")
        for dim, word in zip(dims, items.dims(record)[first:], strict=True):
            _require(emitter, step, fn.select(hole, dim, word), dim, _SHAPE)


def _concat(emitter: Emitter, step: ListStep) -> None:
    fn, items = emitter.fn, _given(emitter, step)
    joined, lengths = step.outputs
    assert joined.place is not None and lengths.place is not None
    count, dims = items.length(), items.largest()
    if items.holes:
        with fn.loop(0, count) as i:
            hole = fn.value(f"icmp slt i64 {fn.load_word(items.record(i), BEGIN)}, 0")
            _require(emitter, step, fn.select(hole, 1, 0), 0, _UNWRITTEN)
    rows = items.sum(DIMS)
    emitter.define_symbols(joined.value.spec.dims, [rows, *dims[1:]])
    emitter.define_symbols(lengths.value.spec.dims, [count])
    first, *rest = (emitter.dim(d) for d in joined.value.spec.dims)
    _require(emitter, step, rows, first, "the elements have {} rows, not {}")
    _check_all(emitter, step, items, rest, first=1)
    items.gather(emitter.pointer(joined.place))
    target = emitter.pointer(lengths.place)
    with fn.loop(0, count) as i:
        narrow = fn.value(f"trunc i64 {items.dims(items.record(i))[0]} to i32")
        fn.emit(f"store i32 {narrow}, ptr {fn.offset(target, i, 'i32')}, align 4")


def _add(emitter: Emitter, step: ListStep) -> None:
    """Add the elements of two lists; elements that were not written are left out of the sum."""
    fn = emitter.fn
    a, b = (_given(emitter, step, k) for k in (0, 1))
    count = a.length()
    _require(emitter, step, count, b.length(), _LENGTHS)
    items = _made(emitter, step.outputs[0], count)
    items.extend(count)
    with fn.loop(0, count) as i:
        record = items.record(i)
        first, second = a.record(i), b.record(i)
        has_first, has_second = (
            fn.value(f"icmp sge i64 {fn.load_word(r, BEGIN)}, 0") for r in (first, second)
        )
        with fn.when(has_first):
            _copy_element(emitter, a, first, items, record)
        with fn.when(fn.value(f"and i1 {has_first}, {has_second}")):
            for mine, other in zip(a.dims(first), b.dims(second), strict=True):
                _require(emitter, step, mine, other, _SHAPE)
            _add_element(emitter, step, b, second, items, record)
        lone = fn.value(f"xor i1 {has_first}, true")
        with fn.when(fn.value(f"and i1 {lone}, {has_second}")):
            _copy_element(emitter, b, second, items, record)


def _copy_element(
    emitter: Emitter, source: RaggedList, old: str, target: RaggedList, new: str
) -> None:
    place = target.put(new, source.dims(old))
    size = emitter.fn.mul(emitter.fn.load_word(old, COUNT), source.size)
    move(emitter, place, source.place(emitter.fn.load_word(old, BEGIN)), size)


def _add_element(
    emitter: Emitter, step: ListStep, source: RaggedList, old: str, target: RaggedList, new: str
) -> None:
    fn, dtype = emitter.fn, step.inputs[0].value.spec.dtype
    start = source.place(fn.load_word(old, BEGIN))
    total = target.place(fn.load_word(new, BEGIN))
    with fn.loop(0, fn.load_word(old, COUNT)) as j:
        x, y = (fn.offset(p, fn.mul(j, source.size), "i8") for p in (total, start))
        values = [emitter.load_scalar(p, dtype) for p in (x, y)]
        emitter.store_scalar(emitter.elements.apply("add", values, [dtype, dtype], dtype), dtype, x)


_BY_ACTION: dict[ListAction, Callable[[Emitter, ListStep], None]] = {
    ListAction.NEW: _new,
    ListAction.PUSH: _put,
    ListAction.GET: _get,
    ListAction.SET: _put,
    ListAction.LENGTH: _length,
    ListAction.TRUNCATE: _truncate,
    ListAction.EXTEND: _extend,
    ListAction.STACK: _stack,
    ListAction.UNSTACK: _unstack,
    ListAction.PACK: _pack,
    ListAction.UNPACK: _unpack,
    ListAction.CONCAT: _concat,
    ListAction.SPLIT: _split,
    ListAction.ADD: _add,
}

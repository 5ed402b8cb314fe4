"""Lists in native programs: growing buffers that live until the call ends.

A list is the address of a header (`list_memory.py`). All elements of the lists here have one known
size. An op changes its list in place where nobody needs the old one, which the schedule has found
out; otherwise it works on a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.ops.collections.lists import LIST_PUSH
from treadle.ops.lowering import ListAction
from treadle.runtime.cpu.list_memory import DATA, LENGTH, add_lists
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_python import call_python
from treadle.runtime.cpu.program_updates import integer
from treadle.runtime.schedule.lists import Ragged, list_form
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Branch, ListStep, Loop, Operand

FEWEST = 8  # elements that a new list has room for
MOST_EXPECTED = 1 << 16  # a hint of more elements than this is not believed


def emit_list_step(emitter: Emitter, step: ListStep) -> None:
    """One list op."""
    define(emitter)
    if step.slot is not None:
        emitter.places.pointers[step.slot] = list_slot(emitter, step)
        return
    _BY_ACTION[action_of(step)](emitter, step)


def define(emitter: Emitter) -> None:
    add_lists(emitter.module)


def element_bytes(emitter: Emitter, operand: Operand) -> Word:
    """The size of an element of a list operand."""
    dims = emitter.program.element_dims[operand.value]
    assert not isinstance(dims, Ragged)
    count = product(dims)
    return emitter.fn.mul(emitter.dim(count), operand.value.spec.dtype.size)


def _items(emitter: Emitter, step: ListStep) -> str:
    """The list that the op may change."""
    items = emitter.registers[step.inputs[0].value]
    return items if step.owned else copied(emitter, items, element_bytes(emitter, step.inputs[0]))


def copied(emitter: Emitter, items: str, size: Word) -> str:
    """A copy of a list."""
    define(emitter)
    places = f"ptr %state, ptr {emitter.memory.lists}, ptr {emitter.memory.wanted}"
    return emitter.exits.obtained(f"@list_copy({places}, ptr {items}, i64 {size})")


def makes_lists(block: Block) -> bool:
    """Whether a block makes native lists, which can be freed after it unless they are results."""
    return any(
        (isinstance(s, ListStep) and (_result(s) == "made" or not s.owned))
        or (isinstance(s, Loop) and any(c.copied for c in s.carried))
        or (isinstance(s, Branch) and (s.then.copied or s.otherwise.copied))
        for s in all_steps(block)
        if not (isinstance(s, ListStep) and _result(s) == "read")
    )


def _result(step: ListStep) -> str:
    form = list_form(step.node)
    assert form is not None
    return form.result


def action_of(step: ListStep) -> ListAction:
    """The action of a step on its lists."""
    form = list_form(step.node)
    assert form is not None
    return form.action


def free_lists_since(emitter: Emitter, before: str, kept: Sequence[str]) -> None:
    """Free the lists that were made since `before` was the first one, except those in `kept`."""
    if not emitter.program.native_lists:
        return
    define(emitter)
    fn = emitter.fn
    words = fn.alloca(f"[{max(1, len(kept))} x ptr], align 8")
    for i, items in enumerate(kept):
        fn.emit(f"store ptr {items}, ptr {fn.offset(words, i, 'ptr')}")
    fn.emit(
        f"call void @free_lists_since(ptr %state, ptr {emitter.memory.lists}, ptr {before}, "
        f"ptr {words}, i64 {len(kept)})"
    )


def _length(emitter: Emitter, items: str) -> str:
    return emitter.fn.load_word(items, LENGTH)


def _reserve(emitter: Emitter, items: str, count: Word, size: Word) -> None:
    """Make the list at least `count` elements long; new elements are zeros."""
    _ready(emitter, "list_extend", items, count, size)


def reserve(emitter: Emitter, items: str, count: Word, size: Word) -> None:
    """Give the list room for at least `count` elements."""
    _ready(emitter, "list_reserve", items, count, size)


def _ready(emitter: Emitter, function: str, items: str, count: Word, size: Word) -> None:
    """Leave the program where there is no memory for the elements."""
    operands = f"ptr %state, ptr {emitter.memory.wanted}, ptr {items}, i64 {count}, i64 {size}"
    emitter.exits.leave_unless(emitter.fn.value(f"call i1 @{function}({operands})"))


def made(emitter: Emitter, capacity: Word, size: Word) -> str:
    """A new list."""
    places = f"ptr %state, ptr {emitter.memory.lists}, ptr {emitter.memory.wanted}"
    return emitter.exits.obtained(f"@list_new({places}, i64 {capacity}, i64 {size})")


def address(emitter: Emitter, items: str, index: Word, size: Word) -> str:
    fn = emitter.fn
    data = fn.load_word(items, DATA, "ptr")
    return fn.offset(data, fn.mul(index, size), "i8")


def put(emitter: Emitter, operand: Operand, target: str) -> None:
    """Store an operand as an element."""
    if operand.place is None:
        register = emitter.registers[operand.value]
        emitter.store_scalar(register, operand.value.spec.dtype, target)
    else:
        size = product(operand.value.spec.dims) * operand.value.spec.dtype.size
        move(emitter, target, emitter.pointer(operand.place), emitter.dim(size))


def check_index(emitter: Emitter, step: ListStep, index: str, length: str) -> None:
    """Leave the program, through Python, where the index is not in [0, length)."""
    fn = emitter.fn
    number = emitter.program.add_callback(step)
    words = fn.alloca("[2 x i64], align 8")
    outside = fn.value(f"icmp uge i64 {index}, {length}")
    k = fn.unique()
    fn.fork(outside, f"outside{k}", f"inside{k}", likely=False)
    fn.label(f"outside{k}")
    fn.emit(f"store i64 {index}, ptr {words}")
    fn.emit(f"store i64 {length}, ptr {fn.offset(words, 1, 'i64')}")
    call_python(emitter, number, words)
    fn.enter(f"inside{k}")


def expected(step: ListStep) -> int:
    """How many elements to make room for in a new list."""
    hint = step.node.attrs.get("capacity")
    return hint if isinstance(hint, int) and 0 < hint <= MOST_EXPECTED else FEWEST


def _new(emitter: Emitter, step: ListStep) -> None:
    out = step.outputs[0]
    size = element_bytes(emitter, out)
    items = made(emitter, expected(step), size)
    if step.inputs:
        count = emitter.fn.max(integer(emitter, step.inputs[0]), 0)
        if step.node.attrs.get("unset"):
            reserve(emitter, items, count, size)
            length = emitter.fn.offset(items, LENGTH, "i64")
            emitter.fn.emit(f"store i64 {count}, ptr {length}")
        else:
            _reserve(emitter, items, count, size)
    emitter.registers[out.value] = items


def _push(emitter: Emitter, step: ListStep) -> None:
    put(emitter, step.inputs[1], list_slot(emitter, step))


def list_slot(emitter: Emitter, step: ListStep) -> str:
    """The place where `list_push` or `list_set` puts its element, in a list with room for it."""
    items = _items(emitter, step)
    slot = _new_slot if step.node.op is LIST_PUSH else _set_slot
    place = slot(emitter, step, items)
    emitter.registers[step.outputs[0].value] = items
    return place


def _new_slot(emitter: Emitter, step: ListStep, items: str) -> str:
    fn, size = emitter.fn, element_bytes(emitter, step.inputs[0])
    length = _length(emitter, items)
    reserve(emitter, items, fn.add(length, 1), size)
    place = address(emitter, items, length, size)
    fn.emit(f"store i64 {fn.add(length, 1)}, ptr {fn.offset(items, LENGTH, 'i64')}")
    return place


def _get(emitter: Emitter, step: ListStep) -> None:
    items = emitter.registers[step.inputs[0].value]
    index = integer(emitter, step.inputs[1])
    check_index(emitter, step, index, _length(emitter, items))
    size = element_bytes(emitter, step.inputs[0])
    source = address(emitter, items, index, size)
    out = step.outputs[0]
    emitter.define_symbols(out.value.spec.dims, _element_shape(emitter, step))
    if out.place is None:
        emitter.registers[out.value] = emitter.load_scalar(source, out.value.spec.dtype)
    elif out.place.kind == "element":
        emitter.places.pointers[out.place] = source
    else:
        move(emitter, emitter.pointer(out.place), source, size)


def _element_shape(emitter: Emitter, step: ListStep) -> list[str]:
    dims = emitter.program.element_dims[step.inputs[0].value]
    assert not isinstance(dims, Ragged)
    return [str(emitter.dim(d)) for d in dims]


def _set(emitter: Emitter, step: ListStep) -> None:
    put(emitter, step.inputs[2], list_slot(emitter, step))


def _set_slot(emitter: Emitter, step: ListStep, items: str) -> str:
    fn, size = emitter.fn, element_bytes(emitter, step.inputs[0])
    index = integer(emitter, step.inputs[1])
    if step.node.attrs.get("grow"):
        check_index(emitter, step, index, str((1 << 63) - 1))
        _reserve(emitter, items, fn.add(index, 1), size)
    else:
        check_index(emitter, step, index, _length(emitter, items))
    return address(emitter, items, index, size)


def _get_length(emitter: Emitter, step: ListStep) -> None:
    give_length(emitter, step, _length(emitter, emitter.registers[step.inputs[0].value]))


def give_length(emitter: Emitter, step: ListStep, length: str) -> None:
    """Let the result of a step be a length."""
    out = step.outputs[0].value
    cast = emitter.elements.apply("cast", [length], [dtypes.int64], out.spec.dtype)
    emitter.registers[out] = cast


def _truncate(emitter: Emitter, step: ListStep) -> None:
    fn = emitter.fn
    items = _items(emitter, step)
    length = fn.min(_length(emitter, items), fn.max(integer(emitter, step.inputs[1]), 0))
    fn.emit(f"store i64 {length}, ptr {fn.offset(items, LENGTH, 'i64')}")
    emitter.registers[step.outputs[0].value] = items


def _extend(emitter: Emitter, step: ListStep) -> None:
    items = _items(emitter, step)
    size = element_bytes(emitter, step.inputs[0])
    _reserve(emitter, items, integer(emitter, step.inputs[1]), size)
    emitter.registers[step.outputs[0].value] = items


def _unstack(emitter: Emitter, step: ListStep) -> None:
    source, out = step.inputs[0], step.outputs[0]
    assert source.place is not None
    size = element_bytes(emitter, out)
    count = emitter.dim(source.value.spec.dims[0])
    items = made(emitter, count, size)
    emitter.fn.emit(f"store i64 {count}, ptr {emitter.fn.offset(items, LENGTH, 'i64')}")
    data = emitter.fn.load_word(items, DATA, "ptr")
    move(emitter, data, emitter.pointer(source.place), emitter.fn.mul(count, size))
    emitter.registers[out.value] = items


def _stack(emitter: Emitter, step: ListStep) -> None:
    """Copy the elements, which lie one after the other, into an array. Its first dim is a symbol
    that gets its value here."""
    items = emitter.registers[step.inputs[0].value]
    out = step.outputs[0]
    assert out.place is not None
    length = _length(emitter, items)
    emitter.define_symbols(out.value.spec.dims, [length, *_element_shape(emitter, step)])
    data = emitter.fn.load_word(items, DATA, "ptr")
    if out.place.kind == "element":
        emitter.places.pointers[out.place] = data
        return
    size = emitter.fn.mul(length, element_bytes(emitter, step.inputs[0]))
    move(emitter, emitter.pointer(out.place), data, size)


_BY_ACTION: dict[ListAction, Callable[[Emitter, ListStep], None]] = {
    ListAction.NEW: _new,
    ListAction.PUSH: _push,
    ListAction.GET: _get,
    ListAction.SET: _set,
    ListAction.LENGTH: _get_length,
    ListAction.TRUNCATE: _truncate,
    ListAction.EXTEND: _extend,
    ListAction.UNSTACK: _unstack,
    ListAction.STACK: _stack,
}

"""Lists in native programs: growing buffers that live until the call ends.

A list is the address of a header: next header of the call, length, capacity, data, and the list
of records of a list of arrays of several shapes (`ragged_memory.py`), else null. All elements of
the lists here have one known size. An op changes its list in place where nobody needs the old one,
which the schedule has found out; otherwise it works on a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.shapes import product
from treadle.ops.lists import LIST_PUSH
from treadle.ops.lowering import ListAction
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_memory import ALLOC, MOST_BYTES
from treadle.runtime.cpu.program_state import fixed
from treadle.runtime.schedule.lists import Ragged, list_form
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, ListStep, Loop, Operand

LENGTH, DATA, RECORDS, HEADER = 1, 3, 4, 5  # words of a header, and how many these are
FEWEST = 8  # elements that a new list has room for
MOST_EXPECTED = 1 << 16  # a hint of more elements than this is not believed


def emit_list_step(emitter: Emitter, step: ListStep) -> None:
    """One list op."""
    define(emitter)
    if step.slot is not None:
        emitter.pointers[step.slot] = list_slot(emitter, step)
        return
    _BY_ACTION[action_of(step)](emitter, step)


def define(emitter: Emitter) -> None:
    emitter.module.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    emitter.module.declare("{i64, i1} @llvm.smul.with.overflow.i64(i64, i64)")
    emitter.module.define("alloc", ALLOC)
    emitter.module.define("lists", _TEXT)


def element_bytes(emitter: Emitter, operand: Operand) -> Word:
    """The size of an element of a list operand."""
    dims = emitter.element_dims[operand.value]
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
    places = f"ptr %state, ptr {emitter.chain}, ptr {emitter.wanted}"
    return emitter.obtained(f"@list_copy({places}, ptr {items}, i64 {size})")


def makes_lists(block: Block) -> bool:
    """Whether a block makes native lists, which nobody needs after it but those it hands on."""
    return any(
        (isinstance(s, ListStep) and (_result(s) == "made" or not s.owned))
        or (isinstance(s, Loop) and any(c.copied for c in s.carried))
        for s in all_steps(block)
        if not (isinstance(s, ListStep) and _result(s) == "read")
    )


def _result(step: ListStep) -> str:
    form = list_form(step.node)
    assert form is not None
    return form.result


def action_of(step: ListStep) -> ListAction:
    """What a step does with its lists."""
    form = list_form(step.node)
    assert form is not None
    return form.action


def free_lists_since(emitter: Emitter, before: str, kept: Sequence[str]) -> None:
    """Free the lists made since the chain began with `before`, but those in `kept`."""
    if not emitter.native_lists:
        return
    define(emitter)
    fn = emitter.fn
    words = fn.alloca(f"[{max(1, len(kept))} x ptr], align 8")
    for i, items in enumerate(kept):
        fn.emit(f"store ptr {items}, ptr {fn.offset(words, i, 'ptr')}")
    fn.emit(
        f"call void @free_lists_since(ptr %state, ptr {emitter.chain}, ptr {before}, "
        f"ptr {words}, i64 {len(kept)})"
    )


def integer(emitter: Emitter, operand: Operand) -> str:
    from treadle.core import dtypes

    register = emitter.registers[operand.value]
    return emitter.elements.apply("cast", [register], [operand.value.spec.dtype], dtypes.int64)


def _length(emitter: Emitter, items: str) -> str:
    return emitter.fn.load_word(items, LENGTH)


def _reserve(emitter: Emitter, items: str, count: Word, size: Word) -> None:
    """Make the list `count` elements long at least; new ones are zeros."""
    _ready(emitter, "list_extend", items, count, size)


def reserve(emitter: Emitter, items: str, count: Word, size: Word) -> None:
    """Give the list room for `count` elements at least."""
    _ready(emitter, "list_reserve", items, count, size)


def _ready(emitter: Emitter, function: str, items: str, count: Word, size: Word) -> None:
    """Leave the program where there is no memory for the elements."""
    operands = f"ptr %state, ptr {emitter.wanted}, ptr {items}, i64 {count}, i64 {size}"
    emitter.leave_unless(emitter.fn.value(f"call i1 @{function}({operands})"))


def made(emitter: Emitter, capacity: Word, size: Word) -> str:
    """A new list."""
    places = f"ptr %state, ptr {emitter.chain}, ptr {emitter.wanted}"
    return emitter.obtained(f"@list_new({places}, i64 {capacity}, i64 {size})")


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
    from treadle.runtime.cpu.program_steps import call_python

    fn = emitter.fn
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)
    words = fn.alloca("[2 x i64], align 8")
    outside = fn.value(f"icmp uge i64 {index}, {length}")
    k = fn.unique()
    fn.emit(f"br i1 {outside}, label %outside{k}, label %inside{k}, !prof !1")
    fn.label(f"outside{k}")
    fn.emit(f"store i64 {index}, ptr {words}")
    fn.emit(f"store i64 {length}, ptr {fn.offset(words, 1, 'i64')}")
    call_python(emitter, number, words)
    fn.branch(f"inside{k}")
    fn.label(f"inside{k}")


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
    """Where `list_push` or `list_set` puts its element; the list is made ready for it."""
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
        emitter.pointers[out.place] = source
    else:
        move(emitter, emitter.pointer(out.place), source, size)


def _element_shape(emitter: Emitter, step: ListStep) -> list[str]:
    dims = emitter.element_dims[step.inputs[0].value]
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
    """A length is what the op gives."""
    from treadle.core import dtypes

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
    """The elements lie one after the other: a copy gives the array, whose first dim is a symbol
    that gets its value here."""
    items = emitter.registers[step.inputs[0].value]
    out = step.outputs[0]
    assert out.place is not None
    length = _length(emitter, items)
    emitter.define_symbols(out.value.spec.dims, [length, *_element_shape(emitter, step)])
    data = emitter.fn.load_word(items, DATA, "ptr")
    if out.place.kind == "element":
        emitter.pointers[out.place] = data
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

# Functions that need memory give null or false where there is none, the size is in `wanted` then;
# their lists are as before.
_TEXT = f"""
define internal ptr @elements(ptr %state, ptr %wanted, i64 %count, i64 %size) #0 {{
  %product = call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 %count, i64 %size)
  %exact = extractvalue {{i64, i1}} %product, 0
  %over = extractvalue {{i64, i1}} %product, 1
  %bytes = select i1 %over, i64 {MOST_BYTES}, i64 %exact
  %p = call ptr @alloc(ptr %state, ptr %wanted, i64 %bytes)
  ret ptr %p
}}

define internal ptr @list_new(
    ptr %state, ptr %chain, ptr %wanted, i64 %capacity, i64 %size
) noinline #0 {{
entry:
  %some = call i64 @llvm.smax.i64(i64 %capacity, i64 1)
  %head = call ptr @alloc(ptr %state, ptr %wanted, i64 {8 * HEADER})
  %headless = icmp eq ptr %head, null
  br i1 %headless, label %out, label %headed
out:
  ret ptr null
headed:
  %data = call ptr @elements(ptr %state, ptr %wanted, i64 %some, i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %drop, label %good
drop:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %head)
  ret ptr null
good:
  %before = load ptr, ptr %chain
  store ptr %before, ptr %head
  %lengthp = getelementptr i64, ptr %head, i64 1
  store i64 0, ptr %lengthp
  %capacityp = getelementptr i64, ptr %head, i64 2
  store i64 %some, ptr %capacityp
  %datap = getelementptr i64, ptr %head, i64 3
  store ptr %data, ptr %datap
  %recordsp = getelementptr i64, ptr %head, i64 4
  store ptr null, ptr %recordsp
  store ptr %head, ptr %chain
  ret ptr %head
}}

define internal i1 @list_reserve(
    ptr %state, ptr %wanted, ptr %list, i64 %count, i64 %size
) #0 {{
entry:
  %capacityp = getelementptr i64, ptr %list, i64 2
  %capacity = load i64, ptr %capacityp
  %fits = icmp sle i64 %count, %capacity
  br i1 %fits, label %done, label %grow
done:
  ret i1 true
grow:
  %grown = call i1 @list_grow(ptr %state, ptr %wanted, ptr %list, i64 %count, i64 %size)
  ret i1 %grown
}}

define internal i1 @list_grow(
    ptr %state, ptr %wanted, ptr %list, i64 %count, i64 %size
) noinline #0 {{
entry:
  %lengthp = getelementptr i64, ptr %list, i64 1
  %length = load i64, ptr %lengthp
  %capacityp = getelementptr i64, ptr %list, i64 2
  %capacity = load i64, ptr %capacityp
  %datap = getelementptr i64, ptr %list, i64 3
  %data = load ptr, ptr %datap
  %twice = shl i64 %capacity, 1
  %room = call i64 @llvm.smax.i64(i64 %twice, i64 %count)
  %fresh = call ptr @elements(ptr %state, ptr %wanted, i64 %room, i64 %size)
  %none = icmp eq ptr %fresh, null
  br i1 %none, label %out, label %good
out:
  ret i1 false
good:
  %used = mul i64 %length, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %fresh, ptr %data, i64 %used, i1 false)
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %data)
  store ptr %fresh, ptr %datap
  store i64 %room, ptr %capacityp
  ret i1 true
}}

define internal i1 @list_extend(
    ptr %state, ptr %wanted, ptr %list, i64 %count, i64 %size
) noinline #0 {{
entry:
  %lengthp = getelementptr i64, ptr %list, i64 1
  %length = load i64, ptr %lengthp
  %more = icmp sgt i64 %count, %length
  br i1 %more, label %grow, label %done
done:
  ret i1 true
grow:
  %roomy = call i1 @list_reserve(ptr %state, ptr %wanted, ptr %list, i64 %count, i64 %size)
  br i1 %roomy, label %clear, label %out
out:
  ret i1 false
clear:
  %datap = getelementptr i64, ptr %list, i64 3
  %data = load ptr, ptr %datap
  %used = mul i64 %length, %size
  %rest = getelementptr i8, ptr %data, i64 %used
  %new = sub i64 %count, %length
  %bytes = mul i64 %new, %size
  call void @llvm.memset.p0.i64(ptr %rest, i8 0, i64 %bytes, i1 false)
  store i64 %count, ptr %lengthp
  ret i1 true
}}

define internal ptr @list_copy(
    ptr %state, ptr %chain, ptr %wanted, ptr %list, i64 %size
) noinline #0 {{
entry:
  %lengthp = getelementptr i64, ptr %list, i64 1
  %length = load i64, ptr %lengthp
  %room = add i64 %length, 1
  %new = call ptr @list_new(ptr %state, ptr %chain, ptr %wanted, i64 %room, i64 %size)
  %none = icmp eq ptr %new, null
  br i1 %none, label %out, label %good
out:
  ret ptr null
good:
  %newlengthp = getelementptr i64, ptr %new, i64 1
  store i64 %length, ptr %newlengthp
  %datap = getelementptr i64, ptr %list, i64 3
  %data = load ptr, ptr %datap
  %newdatap = getelementptr i64, ptr %new, i64 3
  %newdata = load ptr, ptr %newdatap
  %bytes = mul i64 %length, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %newdata, ptr %data, i64 %bytes, i1 false)
  ret ptr %new
}}

define internal void @free_lists_since(
    ptr %state, ptr %chain, ptr %before, ptr %kept, i64 %count
) noinline #0 {{
entry:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  br label %next
next:                                   ; %link is where the address of the list is
  %link = phi ptr [%chain, %entry], [%link, %gone], [%list, %keep]
  %list = load ptr, ptr %link
  %end = icmp eq ptr %list, %before
  br i1 %end, label %done, label %look
look:
  %i = phi i64 [0, %next], [%i1, %other]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %compare, label %gone
compare:
  %oneptr = getelementptr ptr, ptr %kept, i64 %i
  %one = load ptr, ptr %oneptr
  %itself = icmp eq ptr %one, %list
  %recordsp = getelementptr i64, ptr %one, i64 4
  %records = load ptr, ptr %recordsp
  %its = icmp eq ptr %records, %list
  %same = or i1 %itself, %its
  br i1 %same, label %keep, label %other
other:
  %i1 = add i64 %i, 1
  br label %look
keep:
  br label %next
gone:
  %after = load ptr, ptr %list
  store ptr %after, ptr %link
  %datap = getelementptr i64, ptr %list, i64 3
  %data = load ptr, ptr %datap
  call void %free(ptr %data)
  call void %free(ptr %list)
  br label %next
done:
  ret void
}}

define internal void @free_lists(ptr %state, ptr %chain) noinline #0 {{
entry:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  %first = load ptr, ptr %chain
  br label %next
next:
  %list = phi ptr [%first, %entry], [%after, %one]
  %end = icmp eq ptr %list, null
  br i1 %end, label %done, label %one
one:
  %after = load ptr, ptr %list
  %datap = getelementptr i64, ptr %list, i64 3
  %data = load ptr, ptr %datap
  call void %free(ptr %data)
  call void %free(ptr %list)
  br label %next
done:
  ret void
}}
"""

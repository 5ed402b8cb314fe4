"""The memory of lists in native programs (`program_lists.py`), and the functions that change it.

Functions that need memory give null or false where there is none, the size is in `wanted` then;
their lists are as before.
"""

from __future__ import annotations

import functools

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I1, I64, PTR, Struct, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.program_layout import STATE
from treadle.runtime.cpu.program_memory import MOST_BYTES, add_alloc, alloc_unit

# A header: the next one of the call, how many elements there are and room for how many, their
# memory, the list of records of a list of arrays of several shapes (`ragged_memory.py`).
LIST = Struct("List", bytes=40)
LIST.fields |= {
    "next": (0, LIST.pointer), "length": (8, I64), "capacity": (16, I64), "data": (24, PTR),
    "records": (32, LIST.pointer),
}  # fmt: skip
HEADER = LIST.bytes // 8  # words of a header, and some of them
LENGTH, DATA, RECORDS = (LIST.fields[name][0] // 8 for name in ("length", "data", "records"))

_CHAIN = pointer(LIST.pointer)  # where the address of a call's first header is


def add_lists(module: Module) -> None:
    """Define ``ptr @list_new(state, chain, wanted, capacity, size)``, ``i1 @list_reserve(state,
    wanted, list, count, size)``, ``i1 @list_extend(state, wanted, list, count, size)``, ``ptr
    @list_copy(state, chain, wanted, list, size)``, ``void @free_lists_since(state, chain, before,
    kept, count)`` and ``void @free_lists(state, chain)``; `size` is that of an element."""
    add_alloc(module)
    _list_unit().add_to(module)


@functools.cache
def _list_unit() -> Unit:
    unit = Unit()
    _add_making(unit)
    _add_growing(unit)
    _add_freeing(unit)
    return unit


def _add_making(unit: Unit) -> None:
    alloc = alloc_unit()["alloc"]

    @unit.function(PTR, state=STATE.pointer, wanted=pointer(I64), count=I64, size=I64)
    def elements(f: Function, state: Value, wanted: Value, count: Value, size: Value) -> None:
        """Memory for so many elements."""
        exact, over = f.product(count, size, signed=True)
        f.ret(f.call(alloc, state, wanted, over.select(MOST_BYTES, exact)))

    @unit.function(
        LIST.pointer, attributes="noinline", state=STATE.pointer, chain=_CHAIN,
        wanted=pointer(I64), capacity=I64, size=I64,
    )  # fmt: skip
    def list_new(
        f: Function, state: Value, chain: Value, wanted: Value, capacity: Value, size: Value
    ) -> None:
        some = f.smax(capacity, 1)
        head = f.call(alloc, state, wanted, LIST.bytes).as_pointer(LIST)
        with f.when(head.eq(None), "out"):
            f.ret(None)
        data = f.call(elements, state, wanted, some, size)
        with f.when(data.eq(None), "drop"):
            f.call(state["free"], head)
            f.ret(None)
        head["next"] = chain.load()
        head["length"] = 0
        head["capacity"] = some
        head["data"] = data
        head["records"] = None
        chain.store(head)
        f.ret(head)

    @unit.function(
        LIST.pointer, attributes="noinline", state=STATE.pointer, chain=_CHAIN,
        wanted=pointer(I64), list=LIST.pointer, size=I64,
    )  # fmt: skip
    def list_copy(
        f: Function, state: Value, chain: Value, wanted: Value, list: Value, size: Value
    ) -> None:
        length = list["length"]
        new = f.call(list_new, state, chain, wanted, length + 1, size)
        with f.when(new.eq(None), "out"):
            f.ret(None)
        new["length"] = length
        data, copied = list["data"], new["data"]
        f.copy(copied, data, length * size)
        f.ret(new)


def _add_growing(unit: Unit) -> None:
    elements = unit["elements"]
    parameters = {
        "state": STATE.pointer, "wanted": pointer(I64), "list": LIST.pointer, "count": I64,
        "size": I64,
    }  # fmt: skip

    def list_grow(
        f: Function, state: Value, wanted: Value, list: Value, count: Value, size: Value
    ) -> None:
        """Move the elements to memory for `count` or twice as many."""
        length, capacity, data = list["length"], list["capacity"], list["data"]
        room = f.smax(capacity << 1, count)
        fresh = f.call(elements, state, wanted, room, size)
        with f.when(fresh.eq(None), "out"):
            f.ret(False)
        f.copy(fresh, data, length * size)
        f.call(state["free"], data)
        list["data"] = fresh
        list["capacity"] = room
        f.ret(True)

    grow = unit.add("list_grow", list_grow, parameters, I1, attributes="noinline")

    def list_reserve(
        f: Function, state: Value, wanted: Value, list: Value, count: Value, size: Value
    ) -> None:
        """Room for `count` elements at least."""
        with f.when(count.sle(list["capacity"]), "done"):
            f.ret(True)
        f.ret(f.call(grow, state, wanted, list, count, size))

    reserve = unit.add("list_reserve", list_reserve, parameters, I1)

    def list_extend(
        f: Function, state: Value, wanted: Value, list: Value, count: Value, size: Value
    ) -> None:
        """Make the list `count` elements long at least; new ones are zeros."""
        length, grows = list["length"], f.block("grows")
        done, out, clear = f.block("done"), f.block("out"), f.block("clear")
        f.branch(count.sgt(length), grows, done)
        f.begin(done)
        f.ret(True)
        f.begin(grows)
        f.branch(f.call(reserve, state, wanted, list, count, size), clear, out)
        f.begin(out)
        f.ret(False)
        f.begin(clear)
        rest = list["data"].skip(length * size)
        f.clear(rest, (count - length) * size)
        list["length"] = count
        f.ret(True)

    unit.add("list_extend", list_extend, parameters, I1, attributes="noinline")


def _add_freeing(unit: Unit) -> None:
    @unit.function(
        attributes="noinline", state=STATE.pointer, chain=_CHAIN, before=LIST.pointer,
        kept=_CHAIN, count=I64,
    )  # fmt: skip
    def free_lists_since(
        f: Function, state: Value, chain: Value, before: Value, kept: Value, count: Value
    ) -> None:
        """Free the lists that were made since the chain began with `before`, but those among
        `kept` and their records."""
        free = state["free"]
        with f.loop("next", link=chain) as lists:
            link = lists["link"]  # where the address of the list is
            list = link.load()
            lists.leave_if(list.eq(before))
            keep = f.block("keep")
            with f.loop("look", i=0) as look:
                look.run_while(look["i"].slt(count))
                one = kept[look["i"]]
                same = one.eq(list) | one["records"].eq(list)
                f.refuse(same, keep, "other")
                look.again(look["i"] + 1)
            link.store(list["next"])
            f.call(free, list["data"])
            f.call(free, list)
            lists.again(link)
            f.begin(keep)
            lists.again(list.as_pointer(LIST.pointer))
        f.ret()

    @unit.function(attributes="noinline", state=STATE.pointer, chain=_CHAIN)
    def free_lists(f: Function, state: Value, chain: Value) -> None:
        free = state["free"]
        with f.loop("next", list=chain.load()) as lists:
            list = lists["list"]
            lists.leave_if(list.eq(None))
            after = list["next"]
            f.call(free, list["data"])
            f.call(free, list)
            lists.again(after)
        f.ret()

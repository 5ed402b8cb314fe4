"""Memory that a program takes while it runs: the workspace and late arrays."""

from __future__ import annotations

import functools

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, PTR, pointer, words
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.program_layout import STATE
from treadle.runtime.memory.plan import ALIGNMENT

MOST_BYTES = 1 << 50  # what is asked for where a size exceeds it: nobody has so much

_BUFFER = words("Buffer", {"memory": PTR, "room": I64})  # null and 0 at first; in bytes


def add_workspace(module: Module) -> None:
    """Define ``ptr @take_workspace(state, size)``, null where there is no memory, and ``void
    @give_workspace(state, p)``."""
    _workspace_unit().add_to(module)


def add_alloc(module: Module) -> None:
    """Define ``ptr @alloc(state, wanted, size)``: memory for a program that has begun; null where
    there is none, and then the size is in `wanted`."""
    alloc_unit().add_to(module)


def add_late(module: Module) -> None:
    """Define ``ptr @late_alloc(state, chain, wanted, size)`` and ``void @late_free(state, chain,
    until)``: arrays whose sizes become known late, in a chain until they are freed."""
    add_alloc(module)
    _late_unit().add_to(module)


def add_grown(module: Module) -> None:
    """Define ``ptr @grown_reserve(state, wanted, buffer, size)``: the memory of a growing buffer,
    made large enough, whatever is in it then."""
    add_alloc(module)
    _grown_unit().add_to(module)


def add_extend(module: Module) -> None:
    """Define ``ptr @grown_extend(state, wanted, buffer, used, size)``: the same, and the first
    `used` bytes are kept."""
    add_alloc(module)
    _extend_unit().add_to(module)


def _room(size: Value) -> Value:
    """The bytes to ask for: room for the header, and a multiple of the alignment."""
    return (size + (2 * ALIGNMENT - 1)) & -ALIGNMENT


@functools.cache
def _workspace_unit() -> Unit:
    """One idle workspace is kept in the state table. A call takes it by an atomic exchange, or
    allocates one when another call has it. Its size lies before it."""
    unit = Unit()

    @unit.function(PTR, attributes="noinline", state=STATE.pointer, size=I64)
    def take_workspace(f: Function, state: Value, size: Value) -> None:
        new, drop = f.block("new"), f.block("drop")
        word = state.place("workspace").exchange(0, "acquire")
        f.refuse(word.eq(0), new, "old")
        base = word.to_pointer(pointer(I64))
        f.require(base.load().uge(size), drop, "take")
        f.ret(base.skip(ALIGNMENT))
        f.begin(drop)
        f.call(state["free"], base)
        f.jump(new)
        f.begin(new)
        fresh = f.call(state["aligned_alloc"], ALIGNMENT, _room(size))
        with f.when(fresh.eq(None), "out"):
            f.ret(None)
        fresh.as_pointer(I64).store(size)
        f.ret(fresh.skip(ALIGNMENT))

    @unit.function(attributes="noinline", state=STATE.pointer, p=PTR)
    def give_workspace(f: Function, state: Value, p: Value) -> None:
        before = state.place("workspace").exchange(p.skip(-ALIGNMENT).to_word(), "release")
        with f.when(before.ne(0), "drop"):
            f.call(state["free"], before.to_pointer())
        f.ret()

    return unit


@functools.cache
def alloc_unit() -> Unit:
    unit = Unit()

    @unit.function(PTR, attributes="noinline", state=STATE.pointer, wanted=pointer(I64), size=I64)
    def alloc(f: Function, state: Value, wanted: Value, size: Value) -> None:
        p = f.call(state["aligned_alloc"], ALIGNMENT, _room(size))
        with f.when(p.eq(None), "out"):
            wanted.store(size)
            f.ret(None)
        f.ret(p)

    return unit


@functools.cache
def _late_unit() -> Unit:
    """The first word of an array's memory is the next one in the chain."""
    unit, alloc = Unit(), alloc_unit()["alloc"]
    chained = pointer(PTR)

    @unit.function(
        PTR, attributes="noinline", state=STATE.pointer, chain=chained, wanted=pointer(I64),
        size=I64,
    )  # fmt: skip
    def late_alloc(f: Function, state: Value, chain: Value, wanted: Value, size: Value) -> None:
        p = f.call(alloc, state, wanted, size + ALIGNMENT)
        with f.when(p.eq(None), "out"):
            f.ret(None)
        p.as_pointer(PTR).store(chain.load())
        chain.store(p)
        f.ret(p.skip(ALIGNMENT))

    @unit.function(attributes="noinline", state=STATE.pointer, chain=chained, until=PTR)
    def late_free(f: Function, state: Value, chain: Value, until: Value) -> None:
        free = state["free"]
        with f.loop("next", p=chain.load()) as each:
            p = each["p"]
            each.leave_if(p.eq(until))
            after = p.as_pointer(PTR).load()
            f.call(free, p)
            each.again(after)
        chain.store(until)
        f.ret()

    return unit


@functools.cache
def _grown_unit() -> Unit:
    unit, alloc = Unit(), alloc_unit()["alloc"]

    @unit.function(
        PTR, attributes="noinline", state=STATE.pointer, wanted=pointer(I64),
        buffer=_BUFFER.pointer, size=I64,
    )  # fmt: skip
    def grown_reserve(f: Function, state: Value, wanted: Value, buffer: Value, size: Value) -> None:
        room, p = buffer["room"], buffer["memory"]
        with f.when(size.sle(room) & p.ne(None), "good"):
            f.ret(p)
        f.call(state["free"], p)
        buffer["memory"] = None
        buffer["room"] = 0
        more = size + size.lshr(1)
        new = f.call(alloc, state, wanted, more)
        with f.when(new.eq(None), "out"):
            f.ret(None)
        buffer["memory"] = new
        buffer["room"] = more
        f.ret(new)

    return unit


@functools.cache
def _extend_unit() -> Unit:
    unit, alloc = Unit(), alloc_unit()["alloc"]

    @unit.function(
        PTR, state=STATE.pointer, wanted=pointer(I64), buffer=_BUFFER.pointer, used=I64, size=I64
    )
    def grown_extend(
        f: Function, state: Value, wanted: Value, buffer: Value, used: Value, size: Value
    ) -> None:
        room, p = buffer["room"], buffer["memory"]
        with f.when(size.sle(room), "good"):
            f.ret(p)
        more = f.smax(room << 1, size)
        new = f.call(alloc, state, wanted, more)
        with f.when(new.eq(None), "out"):  # what is there stays until the call ends
            f.ret(None)
        f.copy(new, p, used)
        buffer["memory"] = new
        buffer["room"] = more
        f.call(state["free"], p)
        f.ret(new)

    return unit

"""The machine code of the pool of threads (`threads.py`), with that which looks for signals."""

from __future__ import annotations

from typing import Any

from treadle.runtime.cpu.builder.function import Callee, Function
from treadle.runtime.cpu.builder.types import (
    I32,
    I64,
    PTR,
    VOID,
    Struct,
    function,
    words,
)  # fmt: skip
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.pool_memory import HEAD, PATIENCE, SLOT
from treadle.runtime.cpu.program_layout import CALL
from treadle.runtime.cpu.program_poll import signals_unit
from treadle.runtime.cpu.target import Target

SLICE_NS = 1_000_000  # what a slice of a launch takes at least, but for the first ones
_CHUNK = 64  # parts of a launch that is cut finely begin at multiples of so many units
IDLE, POSTED, RUNNING, DONE = range(4)  # the states of a slot

_KERNEL = function(VOID, PTR, PTR, I64, I64, PTR)  # buffers, dims, first unit, end, scratch
TASK = function(VOID, PTR, I64, I64)  # record, part, parts
_SLOT = Struct(
    "Slot",
    {
        "state": (0, I32), "task": (8, TASK), "record": (16, PTR), "part": (24, I64),
        "parts": (32, I64), "step": (40, I64), "asleep": (64, I32), "quit": (68, I32),
        "mutex": (128, PTR), "wakes": (192, PTR),
    },
    SLOT,
)  # fmt: skip
# Its slots begin at HEAD. A region has as many parts as there are threads: the workers, the caller,
# and those for which there are no processors (`spare`), whose parts fall to the others.
# `patience` is how often the caller pauses before another thread may have the core.
_POOL = Struct(
    "Pool", {"busy": (0, I64), "workers": (8, I64), "spare": (16, I64), "patience": (PATIENCE, I64)}
)
_LAUNCH = words(
    "Launch",
    {
        "kernel": _KERNEL, "buffers": PTR, "dims": PTR, "units": I64, "grain": I64,
        "scratch": PTR, "stride": I64, "slice": I64, "call": CALL.pointer,
    },
)  # fmt: skip


def pool_text(target: Target) -> str:
    """The module of the pool."""
    unit = Unit()
    unit.variable("pool", "internal global ptr null")
    wake = _add_slots(unit)
    _add_parts(unit)
    _add_worker(unit, target)
    parallel = _add_parallel(unit, target, wake)
    add_launch(unit, parallel)
    return unit.text(target, signals_unit())


def _pause(f: Function, target: Target) -> None:
    """Tell the core that this is a spin loop."""
    _, call, callee = target.pause.rpartition("call ")
    if call:
        f.declarations[callee.replace("(i32 1)", "(i32)")] = None
    f.emit(target.pause)


def _add_slots(unit: Unit) -> Callee:
    """What Python calls for the pool and its slots."""
    lock, unlock, signal = (
        unit.external(f"pthread_{name}", I32, PTR)
        for name in ("mutex_lock", "mutex_unlock", "cond_signal")
    )
    init_mutex = unit.external("pthread_mutex_init", I32, PTR, PTR)
    init_condition = unit.external("pthread_cond_init", I32, PTR, PTR)

    @unit.function(internal=False, p=_POOL.pointer)
    def set_pool(f: Function, p: Value) -> None:
        f.global_("pool", _POOL.pointer).store(p, "release")
        f.ret()

    @unit.function(internal=False, slot=_SLOT.pointer)
    def init_slot(f: Function, slot: Value) -> None:
        mutex, wakes = slot.place("mutex"), slot.place("wakes")
        f.call(init_mutex, mutex, None)
        f.call(init_condition, wakes, None)
        f.ret()

    @unit.function(slot=_SLOT.pointer)
    def wake(f: Function, slot: Value) -> None:
        mutex, wakes = slot.place("mutex"), slot.place("wakes")
        f.call(lock, mutex)
        f.call(signal, wakes)
        f.call(unlock, mutex)
        f.ret()

    @unit.function(internal=False, slot=_SLOT.pointer)
    def quit_slot(f: Function, slot: Value) -> None:
        slot.place("quit").store(1, "seq_cst")
        f.call(wake, slot)
        f.ret()

    return wake


def _add_parts(unit: Unit) -> None:
    @unit.function(task=TASK, record=PTR, part=I64, parts=I64, step=I64)
    def run_parts(
        f: Function, task: Value, record: Value, part: Value, parts: Value, step: Value
    ) -> None:
        """A part, and every further one at so many steps: those of threads without a processor."""
        with f.loop("next", part=part) as each:
            f.call(task, record, each["part"], parts)
            following = each["part"] + step
            each.again_if(following.slt(parts), following)
        f.ret()


def _add_worker(unit: Unit, target: Target) -> None:
    """``work(slot, spins)``: what a worker does until it is to quit."""
    lock, unlock = (unit.external(f"pthread_mutex_{name}", I32, PTR) for name in ("lock", "unlock"))
    wait = unit.external("pthread_cond_wait", I32, PTR, PTR)

    @unit.function(internal=False, slot=_SLOT.pointer, spins=I64)
    def work(f: Function, slot: Value, spins: Value) -> None:
        state, asleep = slot.place("state"), slot.place("asleep")
        mutex, wakes = slot.place("mutex"), slot.place("wakes")
        restart, claim, out = f.block("restart"), f.block("claim"), f.block("out")
        f.jump(restart)
        f.begin(restart)
        with f.loop("spin", n=0) as spin:
            f.refuse(state.load("acquire").eq(POSTED), claim, "idle")
            _pause(f, target)
            count = spin["n"] + 1
            spin.again_if(count.ult(spins), count)
        f.call(lock, mutex)
        asleep.store(1, "seq_cst")
        with f.loop("doze") as doze:
            f.refuse(slot.place("quit").load("seq_cst").ne(0), out, "look")
            doze.leave_if(state.load("seq_cst").eq(POSTED))
            f.call(wait, wakes, mutex)
            doze.again()
        asleep.store(0, "seq_cst")
        f.call(unlock, mutex)
        f.jump(restart)
        f.begin(claim)  # the caller may have taken the part back
        f.require(state.replace(POSTED, RUNNING, "acq_rel", "acquire"), restart, "go")
        given = (slot[name] for name in ("task", "record", "part", "parts", "step"))
        f.call(unit["run_parts"], *given)
        state.store(DONE, "release")
        f.jump(restart)
        f.begin(out)
        f.call(unlock, mutex)
        f.ret()


def _add_parallel(unit: Unit, target: Target, wake: Callee) -> Callee:
    look = signals_unit()["look"]
    sched_yield = unit.external("sched_yield", I32)

    @unit.function(slot=_SLOT.pointer, task=TASK, record=PTR, part=I64, parts=I64, step=I64)
    def post(
        f: Function, slot: Value, task: Value, record: Value, part: Value, parts: Value,
        step: Value,
    ) -> None:  # fmt: skip
        """Give a worker its part."""
        slot["task"] = task
        slot["record"] = record
        slot["part"] = part
        slot["parts"] = parts
        slot["step"] = step
        slot.place("state").exchange(POSTED, "seq_cst")
        with f.when(slot.place("asleep").load("seq_cst").ne(0), "call"):
            f.call(wake, slot)
        f.ret()

    @unit.function(
        slot=_SLOT.pointer, task=TASK, record=PTR, part=I64, parts=I64, step=I64,
        call=CALL.pointer,
    )  # fmt: skip
    def join(
        f: Function, slot: Value, task: Value, record: Value, part: Value, parts: Value,
        step: Value, call: Value,
    ) -> None:  # fmt: skip
        """Do a part that its worker has not begun, or wait for it."""
        state = slot.place("state")
        with f.when(state.replace(POSTED, IDLE, "acq_rel", "acquire"), "mine"):
            f.call(unit["run_parts"], task, record, part, parts, step)
            f.ret()
        pool = f.global_("pool", _POOL.pointer).load("acquire")
        patience = pool.place("patience").load("monotonic")
        with f.loop("wait", n=0) as wait:
            wait.leave_if(state.load("acquire").eq(DONE))
            count, pause = wait["n"] + 1, f.block("pause")
            f.require(count.ugt(patience), pause, "yield")
            f.call(sched_yield)  # the worker may be waiting for this very processor
            f.call(look, call)  # the worker will see that it is to stop
            wait.again(count)
            f.begin(pause)
            _pause(f, target)
            wait.again(count)
        state.store(IDLE, "release")
        f.ret()

    @unit.function(internal=False, task=TASK, record=PTR, most=I64, call=CALL.pointer)
    def parallel(f: Function, task: Value, record: Value, most: Value, call: Value) -> None:
        pool = f.global_("pool", _POOL.pointer).load("acquire")
        ready, others = pool.place("workers").load("monotonic"), most - 1
        workers = others.slt(ready).select(others, ready)
        threads = ready + 1 + pool.place("spare").load("monotonic")
        alone, region = f.block("alone"), f.block("region")
        f.require(workers.sgt(0), alone, "try")
        f.branch(pool.place("busy").exchange(1, "acquire").eq(0), region, alone)
        f.begin(alone)
        f.call(task, record, 0, 1)
        f.ret()
        f.begin(region)
        parts, step = most.slt(threads).select(most, threads), workers + 1
        slots = pool.skip(HEAD, _SLOT)
        with f.loop("posting", k=0) as posting:
            slot, part = slots.at(posting["k"]), posting["k"] + 1
            f.call(post, slot, task, record, part, parts, step)
            posting.again_if(part.slt(workers), part)
        f.call(unit["run_parts"], task, record, 0, parts, step)
        with f.loop("joining", k=0) as joining:
            slot, part = slots.at(joining["k"]), joining["k"] + 1
            f.call(join, slot, task, record, part, parts, step, call)
            joining.again_if(part.slt(workers), part)
        pool.place("busy").store(0, "release")
        f.ret()

    @unit.function(internal=False, task=TASK, record=PTR, most=I64, call=CALL.pointer)
    def parallel_alone(
        f: Function, task: Value, record: Value, most: Value, call: Value
    ) -> None:
        """The same on the caller alone."""
        f.call(task, record, 0, 1)
        f.ret()

    return parallel


def add_launch(unit: Unit, parallel: Callee) -> None:
    look = signals_unit()["look"]
    fields: dict[str, Any] = {name: kind for name, (_, kind) in _LAUNCH.fields.items()}

    @unit.function(
        kernel=_KERNEL, buffers=PTR, dims=PTR, lo=I64, hi=I64, scratch=PTR, slice=I64,
        call=CALL.pointer,
    )  # fmt: skip
    def slices(
        f: Function, kernel: Value, buffers: Value, dims: Value, lo: Value, hi: Value,
        scratch: Value, slice: Value, call: Value,
    ) -> None:  # fmt: skip
        """The units [lo, hi), with a look between two slices; these grow until they take long
        enough."""
        with f.when(call.eq(None), "whole"):
            f.call(kernel, buffers, dims, lo, hi, scratch)
            f.ret()
        with f.loop("next", start=lo, size=slice, before=0) as each:
            start, size = each["start"], each["size"]
            reach = start + size
            last = reach.sge(hi)
            end = last.select(hi, reach)
            f.call(kernel, buffers, dims, start, end, scratch)
            each.leave_if(last)
            now = f.call(look, call)
            each.leave_if(now.slt(0))
            took = now - each["before"]  # the first time since the clock began: too long
            each.again(end, size << took.slt(SLICE_NS).zext(I64), now)
        f.ret()

    @unit.function(record=PTR, part=I64, parts=I64)
    def launch_part(f: Function, record: Value, part: Value, parts: Value) -> None:
        """A part's units, none for the last parts where whole chunks are few."""
        launch = record.as_pointer(_LAUNCH)
        kernel, buffers, dims, units, grain, scratch, stride, slice, call = (
            launch[name] for name in _LAUNCH.fields
        )
        fit = units.sdiv(grain)
        useful = fit.slt(parts).select(fit, parts)
        n = useful.slt(1).select(1, useful)
        even = (units + n - 1).sdiv(n)
        long = grain.sge(_CHUNK)
        size = long.select((even + (_CHUNK - 1)) & -_CHUNK, even)
        lo = part * size
        end = lo + size
        hi = end.sgt(units).select(units, end)
        with f.when(lo.slt(hi), "run"):
            own = scratch.skip(part * stride)
            f.call(slices, kernel, buffers, dims, lo, hi, own, slice, call)
        f.ret()

    @unit.function(internal=False, **fields)
    def launch_alone(f: Function, *given: Value) -> None:
        """`launch` on the caller alone."""
        kernel, buffers, dims, units, _, scratch, _, slice, call = given
        f.call(slices, kernel, buffers, dims, 0, units, scratch, slice, call)
        f.ret()

    @unit.function(internal=False, **fields)
    def launch(f: Function, *given: Value) -> None:
        kernel, buffers, dims, units, grain, scratch, _, slice, call = given
        record = f.alloca(I64, len(given), align=16).as_pointer(_LAUNCH)
        with f.when(units.slt(grain << 1), "one"):
            f.call(slices, kernel, buffers, dims, 0, units, scratch, slice, call)
            f.ret()
        for name, value in zip(_LAUNCH.fields, given, strict=True):
            record[name] = value
        f.call(parallel, f.address(launch_part), record, units.sdiv(grain), call)
        f.ret()

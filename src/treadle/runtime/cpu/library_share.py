"""How a routine's tasks come to the threads of the pool."""

from __future__ import annotations

import functools

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, PTR, VOID, function, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.llvm_text import Module


def add_thread_control(module: Module) -> None:
    """``@share`` runs a phase on the pool, or on the caller if there is one task at most."""
    _thread_unit().add_to(module)


@functools.cache
def _thread_unit() -> Unit:
    unit = Unit()
    phase = function(VOID, PTR, I64, I64)  # record, worker, workers
    parallel = function(VOID, phase, PTR, I64, PTR)  # phase, record, the most parts, call

    @unit.function(table=pointer(parallel), phase=phase, record=PTR, tasks=I64, call=PTR)
    def share(
        f: Function, table: Value, phase: Value, record: Value, tasks: Value, call: Value
    ) -> None:
        several, one = tasks.sgt(1), f.block("one")
        run = table.load()  # the first word of `TABLE`
        f.require(several & run.ne(None), one, "many")
        f.call(run, phase, record, tasks, call)
        f.ret()
        f.begin(one)
        f.call(phase, record, 0, 1)
        f.ret()

    return unit

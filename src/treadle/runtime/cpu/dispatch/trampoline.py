"""The trampoline: a vectorcall function that tries plans and otherwise calls the portable path.

    checks -> result arrays -> program -> tensors, numbers -> container

The plan is in use from the checks on. Python code may run while objects are made, by a collection,
and in a program that lets it (`hold`): then the inputs are held, as they are where the caller's
lists hold them. A call that no plan takes, or whose program asks for help, is passed on to the
Python method with all its arguments.
"""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch.call_code.call import Call
from treadle.runtime.cpu.dispatch.call_code.checks import write_checks
from treadle.runtime.cpu.dispatch.call_code.entry import write_entry
from treadle.runtime.cpu.dispatch.call_code.failure import write_failure
from treadle.runtime.cpu.dispatch.call_code.outputs import add_handlers, write_outputs
from treadle.runtime.cpu.dispatch.call_code.portable import write_portable
from treadle.runtime.cpu.dispatch.call_code.probe import add_probes
from treadle.runtime.cpu.dispatch.call_code.program import add_done, write_program
from treadle.runtime.cpu.dispatch.call_code.results import write_results
from treadle.runtime.cpu.dispatch.call_code.spares import add_spares
from treadle.runtime.cpu.dispatch.layout import CallLayout
from treadle.runtime.cpu.dispatch.structs import Structs
from treadle.runtime.cpu.target import Target


def trampoline_text(layout: CallLayout, tail: int, target: Target) -> str:
    """The module with ``ptr @trampoline(self, args, count, names)``, and ``@probe`` to try it with.

    Args:
        tail: offset in the function object of its words: vectorcall, first plan, table, room.
    """
    structs, unit = Structs(layout), Unit()
    add_handlers(unit, structs)
    add_spares(unit, structs)
    add_done(unit, structs)
    of_object = structs.of_object

    @unit.function(
        of_object, internal=False, function=structs.function(tail).pointer,
        args=pointer(of_object), count=I64, names=of_object,
    )  # fmt: skip
    def trampoline(f: Function, function: Value, args: Value, count: Value, names: Value) -> None:
        c = Call(f, structs, unit, function, args, count, names)
        bad = f.block("bad")
        write_entry(c)
        write_checks(c)
        write_outputs(c)
        write_program(c, bad)
        write_results(c)
        write_failure(c, bad)
        write_portable(c)

    add_probes(unit)
    return unit.text(target)

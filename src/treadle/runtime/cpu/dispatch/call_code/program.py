"""The program runs."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Block, Function
from treadle.runtime.cpu.builder.types import I64, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch.call_code.call import Call
from treadle.runtime.cpu.dispatch.structs import Structs
from treadle.runtime.cpu.program_entry import DONE


def write_program(c: Call, bad: Block) -> None:
    """Go on where the program is done, else to `bad`."""
    f, plan = c.f, c.plan
    code, state = plan["run"], plan["state"]
    hits = plan.place("hits")
    hits.store(hits.load() + 1)
    c.status = f.call(code, state, c.frame)
    f.require(c.status.eq(DONE), bad, "good")


def add_done(unit: Unit, structs: Structs) -> None:
    decref = structs.table.fields["Py_DecRef"][1]
    objects = pointer(structs.of_object)

    @unit.function(decref=decref, objects=objects, first=I64, last=I64)
    def drop(f: Function, decref: Value, objects: Value, first: Value, last: Value) -> None:
        """Drop references."""
        with f.loop("each", i=first) as each:
            i = each["i"]
            each.run_while(i.ult(last))
            f.call(decref, objects[i])
            each.again(i + 1)
        f.ret()

    @unit.function(plan=structs.plan.pointer, holds=I64, decref=decref, inputs=objects, held=I64)
    def done(
        f: Function, plan: Value, holds: Value, decref: Value, inputs: Value, held: Value
    ) -> None:
        """A plan is not needed any more, nor are the inputs."""
        active = plan.place("active")
        active.store(active.load() - 1)
        with f.when(holds.ne(0), "less"):
            f.call(drop, decref, inputs, 0, held)
        f.ret()

"""The plan and the inputs are kept from here on, and there are arrays for the results, the large
ones in memory that is kept.

Making an object may run Python's collector, and with it finalizers and other threads, which may
drop the plan and what lies in the caller's lists.
"""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I32, I64, PTR
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch import call_plan
from treadle.runtime.cpu.dispatch.call_code.call import Call
from treadle.runtime.cpu.dispatch.structs import Structs


def write_outputs(c: Call) -> None:
    """The plan is in use, the inputs are held where the caller does not hold them."""
    f, plan, table = c.f, c.plan, c.table
    active = plan.place("active")
    active.store(active.load() + 1)
    c.output_count = plan["outputs"]
    c.output_table = plan["output_table"]
    c.incref, c.decref = table["Py_IncRef"], table["Py_DecRef"]
    array_type, new_array = table["ndarray"], table["new_array"]
    c.holds = plan["hold"]
    with f.when(c.holds.ne(0), "hold_inputs"), f.loop("holding", h=0) as holding:
        h = holding["h"]
        holding.run_while(h.ult(c.held))
        f.call(c.incref, c.inputs[h])
        holding.again(h + 1)
    c.handler_before = f.call(c.helper("own_handler"), table, plan["large"])
    c.spares = plan["spares"]
    with f.loop("making", j=0) as making:
        c.making = making["j"]
        made = f.block("all_made")
        one = f.block("make_one")
        f.branch(c.making.ult(c.output_count), one, made)
        f.begin(made)
        f.call(c.helper("other_handler"), table, c.handler_before)
        f.jump(making.exit)
        f.begin(one)
        _make(c, c.output_table.at(c.making), array_type, new_array)
        making.again(c.making + 1)


def _make(c: Call, output: Value, array_type: Value, new_array: Value) -> None:
    """Room for a result: an element of the frame, an object that is used again, or a new array."""
    f, j = c.f, c.making
    of_object = c.structs.of_object
    form = output["form"]
    number, array = f.block("number"), f.block("array")
    ready = f.block("ready", object=of_object, array=of_object)
    addressed = f.block("addressed", object=of_object, data=PTR)
    is_number, is_plain = form.uge(call_plan.SCALAR), form.eq(call_plan.PLAIN)
    f.branch(is_number, number, array)
    f.begin(number)  # the program writes it to the frame
    f.jump(addressed(None, c.frame.at(output["word"])))
    f.begin(array)
    idle = f.call(c.helper("spare"), c.table, c.spares, output, j)
    anew = f.block("anew")
    f.require(idle.ne(None), anew, "reuse")
    f.call(c.incref, idle)
    f.refuse(is_plain, ready(idle, idle), "reuse_tensor")
    f.jump(ready(idle, idle["tensor_array"]))
    f.begin(anew)
    dtype, rank, dims = output["dtype"], output["rank"], output["dims"]
    rank_32 = rank.trunc(I32)
    f.call(c.incref, dtype)
    new = f.call(new_array, array_type, dtype, rank_32, dims, None, None, 0, None)
    f.require(new.ne(None), c.fail_making, "made_anew")
    f.require(is_plain, ready(new, new), "park_array")
    f.call(c.helper("park"), c.table, c.spares, j, new)  # held here: nobody takes it meanwhile
    f.jump(ready(new, new))
    f.begin(ready)
    f.jump(addressed(ready["object"], ready["array"]["array_data"]))
    f.begin(addressed)
    c.made[j] = addressed["object"]
    c.put_address(output["slot"], addressed["data"])


def add_handlers(unit: Unit, structs: Structs) -> None:
    """Large results come from memory that is kept: NumPy's allocator is changed while they are
    made."""
    of_object, of_table = structs.of_object, structs.table.pointer

    @unit.function(of_object, table=of_table, large=I64)
    def own_handler(f: Function, table: Value, large: Value) -> None:
        """The allocator before, or null where it stays."""
        with f.when(large.ne(0), "set"):
            f.ret(f.call(table["set_handler"], table["handler"]))
        f.ret(None)

    @unit.function(table=of_table, before=of_object)
    def other_handler(f: Function, table: Value, before: Value) -> None:
        with f.when(before.ne(None), "set"):
            set_handler, decref = table["set_handler"], table["Py_DecRef"]
            f.call(decref, f.call(set_handler, before))
            f.call(decref, before)
        f.ret()

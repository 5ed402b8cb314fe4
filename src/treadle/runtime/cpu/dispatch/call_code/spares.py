"""Results that a plan keeps (`dispatch.spares`): one that nobody holds, and a new one put in."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch import call_plan
from treadle.runtime.cpu.dispatch.call_code.call import rank_of, require_equal
from treadle.runtime.cpu.dispatch.spares import EACH
from treadle.runtime.cpu.dispatch.structs import Structs


def add_spares(unit: Unit, structs: Structs) -> None:
    of_object, of_table = structs.of_object, structs.table.pointer
    objects = pointer(of_object)

    @unit.function(of_object, table=of_table, spares=objects, output=structs.output.pointer, j=I64)
    def spare(f: Function, table: Value, spares: Value, output: Value, j: Value) -> None:
        """A tensor or plain array for result j that only the plan holds, unchanged since it was
        made; null where none is."""
        no = f.block("no")
        with f.when(spares.eq(None), "none"):
            f.jump(no)
        first = j * EACH
        last = first + EACH
        array_type = table["ndarray"]
        dtype, rank, dims = output["dtype"], output["rank"], output["dims"]
        flags, plain = output["flags"], output["form"].eq(call_plan.PLAIN)
        with f.loop("next", k=first) as each:
            k, busy = each["k"], f.block("busy")
            each.run_while(k.ult(last))
            kept = spares[k]  # an empty place holds None, which others hold too
            f.require(kept["refcount"].eq(1), busy, "open")
            array = f.block("array", array=of_object)
            f.refuse(plain, array(kept), "inside")
            weak, inner = kept["tensor_weak"], kept["tensor_array"]
            f.branch(weak.eq(None) & inner.ne(None), array(inner), busy)
            f.begin(array)
            a = array["array"]
            f.require(a["type"].eq(array_type), busy, "shape")
            alone, unseen = a["refcount"].eq(1), a["array_weak"].eq(None)
            same_dtype, same_rank = a["array_dtype"].eq(dtype), rank_of(a).eq(rank)
            same_flags = a["array_flags"].sext(I64).eq(flags)
            f.require((alone & unseen) & (same_dtype & same_rank) & same_flags, busy, "measure")
            require_equal(f, a["array_dims"], dims, rank, busy)
            f.ret(kept)
            f.begin(busy)
            each.again(k + 1)
        f.jump(no)
        f.begin(no)
        f.ret(None)

    @unit.function(table=of_table, spares=objects, j=I64, t=of_object)
    def park(f: Function, table: Value, spares: Value, j: Value, t: Value) -> None:
        """Keep `t` for result j, in place of the one that has waited longest."""
        with f.when(spares.eq(None), "none"):
            f.ret()
        incref, decref = table["Py_IncRef"], table["Py_DecRef"]
        first = j * EACH
        f.call(incref, t)
        with f.loop("moving", k=0, moved=t) as moving:
            place = spares.at(first + moving["k"])
            before = place.load()
            place.store(moving["moved"])
            following = moving["k"] + 1
            moving.again_if(following.ult(EACH), following, before)
        f.call(decref, before)
        f.ret()

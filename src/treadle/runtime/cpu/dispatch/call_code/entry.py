"""Where a call comes in: which calls plans may take, and room for the largest plan."""

from __future__ import annotations

from treadle.runtime.cpu.builder.types import I32, I64, pointer
from treadle.runtime.cpu.dispatch.call_code.call import Call

_COUNT = (1 << 63) - 1  # the bits of a vectorcall's count that are the count


def write_entry(c: Call) -> None:
    f = c.f
    c.overflow = f.alloca(I32, align=4)
    c.count = c.count & _COUNT
    c.table = c.function["table"]
    f.require(c.table["modes"].load().eq(0), c.portable, "first")  # no traces or tapes at work
    c.first = c.function["plan"]
    c.room = c.function["room"]
    of_object = c.structs.of_object
    c.frame = f.alloca(I64, c.room, align=16)
    c.bases = f.alloca(pointer(of_object), c.room)
    c.inputs = f.alloca(of_object, c.room)
    c.starts, c.ends = f.alloca(I64, c.room), f.alloca(I64, c.room)
    c.made, c.items = f.alloca(of_object, c.room), f.alloca(of_object, c.room)
    c.bases.store(c.args)

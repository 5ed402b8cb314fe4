"""The call as ``Function.__call__(self, *args, **names)``."""

from __future__ import annotations

from treadle.runtime.cpu.builder.types import I64
from treadle.runtime.cpu.dispatch.call_code.call import Call


def write_portable(c: Call) -> None:
    f = c.f
    f.begin(c.portable)
    counted = f.block("counted", extra=I64)
    f.require(c.names.ne(None), counted(0), "with_names")
    f.jump(counted(c.names["size"]))
    f.begin(counted)
    given = c.count + counted["extra"]
    arguments = f.alloca(c.structs.of_object, given + 1)
    arguments.store(c.function.as_pointer(c.structs.object))
    f.copy(arguments.at(1), c.args, given << 3)
    function, call = c.table["portable"], c.table["PyObject_Vectorcall"]
    f.ret(f.call(call, function, arguments, c.count + 1, c.names))

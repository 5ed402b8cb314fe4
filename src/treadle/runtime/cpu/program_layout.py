"""Where a program finds what it is called with: state table, the record of a call, variables."""

from __future__ import annotations

from treadle.runtime.cpu.builder.types import I32, I64, PTR, VOID, Type, function, words
from treadle.runtime.cpu.program_state import FIXED

_FIELDS: dict[str, Type] = {
    "workspace": I64,  # an address or 0, exchanged at once
    "aligned_alloc": function(PTR, I64, I64),
    "free": function(VOID, PTR),
    "callback": function(I64, I64, PTR, PTR),
    "PyEval_SaveThread": function(PTR),
    "PyEval_RestoreThread": function(VOID, PTR),
    "PyErr_CheckSignals": function(I32),
    "clock_gettime": function(I32, I32, PTR),
    "Py_IncRef": function(VOID, PTR),
    "Py_DecRef": function(VOID, PTR),
    "PyLong_FromLong": function(PTR, I64),
    "PyThread_get_thread_ident": function(I64),
    "clock_ns": function(I64, PTR),
}

# The words of a state table at fixed positions (`program_state.FIXED`).
STATE = words("State", {name: _FIELDS.get(name, PTR) for name in FIXED})

# The record of a call: the state of its Python thread (null while it holds the GIL), when it looked
# at the clock last, the period in which it looks for signals, whether it is to stop, its state
# table, the number of its Python thread.
CALL = words(
    "Call",
    {
        "thread": PTR, "last": I64, "period": I64, "stopped": I64, "state": STATE.pointer,
        "ident": I64,
    },
)  # fmt: skip

# A variable (`core.host_storage.VariableCell`): its elements, whether somebody else holds them, the
# array, how many programs read it, and the thread that writes it.
CELL = words("Cell", {"data": PTR, "shared": I64, "array": PTR, "readers": I64, "writer": I64})

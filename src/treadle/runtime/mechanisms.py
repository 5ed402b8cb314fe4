"""The mechanisms of the compiler and of calls that can be switched off like passes."""

from __future__ import annotations

from treadle.core.switches import declare

_PROGRAM = {
    "fusion": "elementwise nodes, views and row reductions share a kernel",
    "siblings": "reductions over the same rows, and readers of one large array, share a kernel",
    "epilogues": "library routines run the elementwise kernels that follow them",
    "strided": "matrix products read transposes and slices of arrays where their elements are",
    "takeovers": "an update of a part overwrites its operand where nothing needs the old value",
    "direct": "kernels store into the parts of arrays that updates in place name",
    "stored_rows": "rows that a sum of segments or a scatter stores are computed where it does",
    "segments": "neighbouring launches of one flat kernel are one launch over all their arrays",
    "side_by_side": "small independent kernels are one launch where a launch costs more than they",
    "told_late": "kernels that only the message of an error needs run where it is raised",
    "lifting": "constants are operands, where kernels beyond the first differ in nothing else",
    "inheritance": "a kernel's result takes the memory of an operand that it reads last",
    "sharing": "temporaries that are never in use together share memory",
    "slots": "what a loop puts into a list is computed there",
    "rows": "loops that leave the rows of their arrays apart are run by all threads at once",
    "parts_of_programs": "kernels of few points in loops are written into the program's own code",
    "independent": "scalar loops whose iterations are independent are computed in vectors",
    "joint": "iterations whose loops inside add up numbers go through these loops together",
    "paced": "scalar loops that count in steps, or may end early, are checked and polled in strips",
    "contraction": "scalar loops take products into sums, rounded once",
    "threads": "work is divided among the threads of the pool",
    "wide_vectors": "kernels use the widest vectors of the processor, not 128 bits",
}
_TRACING = {
    "rolled_loops": "loops over Python ranges and lists are loops of the program, not unrolled",
}
_CALLS = {
    "shared_programs": "traces that differ only in dims share one program",
    "native_calls": "calls go from CPython to the program without Python in between",
    "eager_programs": "eager operations on large arrays are programs, once these are compiled",
    "spares": "small results are used again when nobody holds them",
}

for _name, _does in _PROGRAM.items():
    declare(_name, "program", _does)
for _name, _does in _TRACING.items():
    declare(_name, "tracing", _does)
for _name, _does in _CALLS.items():
    declare(_name, "calls", _does)

"""A typed builder of LLVM functions, for the parts of the runtime that are machine code.

The allocator, the pool of threads, the calls from Python and the lists of programs are written with
it. Kernels and library routines have an emitter of their own (`llvm_text`), which knows less about
types and more about vectors.

    types.py     numbers, pointers, functions, and structs with the offsets of their fields
    values.py    values: operators, comparisons, conversions, the elements that pointers lead to
    function.py  functions: blocks with parameters, branches, conditions and loops
    unit.py      the functions that belong together, and their text
"""

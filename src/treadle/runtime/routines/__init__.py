"""Routines of the library in a subset of Python: sorting, small matrices, counting, random numbers.

`subset.py` says what the subset is. Devices compile it: `cpu/routines` to LLVM, `gpu/routines` to
CUDA C. Every other module here holds routines.
"""

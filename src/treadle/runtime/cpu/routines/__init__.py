"""Routines of the library written in a subset of Python: sorting, small matrices, counting.

`compiler.py` says what the subset is, `entry.py` how a program calls a routine. Every other module
here holds routines.
"""

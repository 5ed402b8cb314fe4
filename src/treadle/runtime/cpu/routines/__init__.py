"""The routines of `runtime/routines` on a processor: `compiler.py` makes LLVM text of them, and
`entry.py` says how a program calls one."""

"""Do repeated calls leak references or memory? Every path of a call, counted.

`python -m benchmarks.refcounts` under a debug build of CPython (with a NumPy built for it) compares
`sys.gettotalrefcount` before and after; other builds compare what they can.
"""

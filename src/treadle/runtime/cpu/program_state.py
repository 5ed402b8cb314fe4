"""The table through which a program reaches everything that has an address.

Program objects are cached on disk, so no address may be part of the code: constants, cells of
variables, kernels and the functions of the process are words of a table that the program gets
as an argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

# Words at fixed positions. The first is the workspace that is free for the next call, or 0.
FIXED = (
    "workspace", "aligned_alloc", "free", "callback", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyErr_CheckSignals", "clock_gettime", "launch", "library",
    "None", "ndarray", "Py_IncRef", "PyLong_FromLong", "parallel",
    "Py_DecRef", "PyThread_get_thread_ident", "clock_ns", "look", "poll", "python",
)  # fmt: skip

Key = tuple[str, Hashable]


class StateTable:
    """Hands out the positions of words; `keys` tells what each must hold."""

    def __init__(self, keys: Sequence[Key] | None = None) -> None:
        """`keys`: what the words must hold, in order; left out, those at fixed positions."""
        first = [("fixed", name) for name in FIXED] if keys is None else keys
        self.keys: dict[Key, int] = {key: i for i, key in enumerate(first)}

    def position(self, kind: str, key: Hashable) -> int:
        return self.keys.setdefault((kind, key), len(self.keys))


def fixed(name: str) -> int:
    return FIXED.index(name)

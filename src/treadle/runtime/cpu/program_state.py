"""The table through which a program reaches everything that has an address.

Program objects are cached on disk, so no address may be part of the code: constants, cells of
variables, kernels and the functions of the process are words of a table that the program gets
as an argument.
"""

from __future__ import annotations

from collections.abc import Hashable

# Words at fixed positions. The first is the workspace that is free for the next call, or 0.
FIXED = (
    "workspace", "aligned_alloc", "free", "abort", "callback", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyErr_CheckSignals", "clock_gettime", "launch", "library",
    "None", "ndarray", "Py_IncRef", "PyLong_FromLong", "parallel",
)  # fmt: skip

Key = tuple[str, Hashable]


class StateTable:
    """Hands out the positions of words; `keys` tells what each must hold."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {("fixed", name): i for i, name in enumerate(FIXED)}

    def position(self, kind: str, key: Hashable) -> int:
        return self.keys.setdefault((kind, key), len(self.keys))


def fixed(name: str) -> int:
    return FIXED.index(name)

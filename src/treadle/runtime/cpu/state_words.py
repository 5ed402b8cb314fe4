"""What the words of a program's state table are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.switches import is_on
from treadle.graph.ir import Graph
from treadle.runtime.callbacks import Callbacks, captured_variable
from treadle.runtime.cpu.abi import c_function
from treadle.runtime.cpu.kept_memory import kept_memory
from treadle.runtime.cpu.threads import PoolAddresses, pool
from treadle.runtime.step_times import step_times


class StateWords:
    """Gives the word of a kind and key.

    Args:
        graph: has the captured variables.
        constants: the literal arrays, by number.
        callbacks: the program's, if it has any.
        workers: how many threads have workspace.
        has_library: whether the program calls the library.
        kernel: the address of a kernel by its key.
        number: that of a program which writes down when its steps ran.
    """

    def __init__(
        self, graph: Graph, constants: Sequence[Any], callbacks: Callbacks | None, workers: int,
        has_library: bool, kernel: Callable[[Any], int], number: int = 0,
    ) -> None:  # fmt: skip
        self.graph, self.constants, self.callbacks = graph, constants, callbacks
        self.workers, self.has_library, self.kernel = workers, has_library, kernel
        self.number = number

    def __call__(self, kind: str, key: Any) -> int:
        if kind == "fixed":
            return self._fixed(key)
        if kind == "constant":
            return int(self.constants[key].ctypes.data)
        if kind == "kernel":
            return self.kernel(key)
        if kind == "routine":
            from treadle.runtime.cpu.library_code import routine_address

            return routine_address(key)
        if kind == "times":
            return step_times.address
        if kind == "number":
            return self.number
        assert kind == "cell"
        return ctypes.addressof(captured_variable(self.graph, key).cell())

    def _fixed(self, name: str) -> int:
        if name == "callback":
            return 0 if self.callbacks is None else self.callbacks.address
        if name in ("launch", "parallel"):
            on = is_on("threads")
            return int(getattr(pool().addresses, name if on else f"{name}_alone"))
        if name in PoolAddresses.__annotations__:
            return int(getattr(pool().addresses, name))
        if name == "aligned_alloc":
            return kept_memory().allocate
        if name == "free":
            return kept_memory().free
        if name == "None":
            return id(None)
        if name == "ndarray":
            return id(np.ndarray)
        if name == "library":
            return self._library()
        return c_function(name)

    def _library(self) -> int:
        if not self.has_library:
            return 0
        from treadle.runtime.cpu.library_code import table_address

        return table_address(self.workers)

"""Many random numbers at once, drawn eagerly by programs instead of NumPy.

A program draws any number of them: how many is a dim of an operand without elements, so that one
program for an op and its dtypes serves all shapes. From `WORTH_WAITING` numbers on operations wait
for it. Fewer are always NumPy's where the program gives other bits, so that what is drawn does not
depend on how soon the compiler is done; for an exact op a thread compiles it meanwhile, once NumPy
has drawn many numbers for it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.caches import clears
from treadle.core.devices import HOST
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec, array_spec
from treadle.graph.ir import Graph
from treadle.ops.registry import Op
from treadle.runtime import compile_native, stored_native
from treadle.runtime.devices import backend
from treadle.runtime.executable import Executable
from treadle.tracing import settings
from treadle.tracing.eager_programs import graph_of, is_plain, typed

WORTH_WAITING = 1 << 21  # numbers for which NumPy takes as long as the compiler for a program
WORTH_COMPILING = 1 << 18  # numbers, one time after another, from which on programs draw others
FEW = 1 << 10  # numbers for which NumPy is asked

_draws: dict[Hashable, _Draw] = {}
_lock = locks.lock()


class _Draw:
    """An op that draws, with its dtypes.

    Attributes:
        graph: what its program is made from; None where the compiler has no form.
        executable: the program, once there is one.
        drawn: how many numbers NumPy has drawn.
    """

    def __init__(self, graph: Graph | None) -> None:
        self.graph, self.drawn = graph, 0
        self.executable = None if graph is None else stored_native(graph)
        self._lock = locks.lock()

    def compile(self) -> None:
        """Make the program, unless somebody has. It does not raise."""
        with self._lock:
            if self.graph is not None and self.executable is None:
                try:
                    self.executable = compile_native(self.graph)
                except Exception:
                    self.graph = None

    def asked(self, count: int) -> Executable | None:
        """The program for so many numbers; None where NumPy is to draw them."""
        if self.executable is None and self.graph is not None:
            self.drawn += count
            if count >= WORTH_WAITING or settings.wait_for_eager_programs:
                self.compile()
            elif self.drawn >= WORTH_COMPILING:
                self.drawn = 0  # a fork drops what waits: ask again
                backend().compile_later(f"draw {id(self)}", self.compile, self.graph)
        return self.executable


def run_draw(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What an op that draws gives for host arrays, by a program; None where NumPy is to draw."""
    shape = attrs.get("shape")
    if shape is None or arrays[0].shape != (3,) or not all(type(d) is int for d in shape):
        return None
    count = math.prod(shape)
    if count < (FEW if "exact" in op.tags else WORTH_WAITING):
        return None
    others = {name: value for name, value in attrs.items() if name != "shape"}
    if not all(map(is_plain, others.values())):
        return None
    dtypes = tuple(a.dtype for a in arrays)
    key = (op, dtypes, tuple((name, typed(value)) for name, value in others.items()))
    with _lock:
        draw = _draws.get(key)
        if draw is None:
            draw = _draws[key] = _Draw(_graph(op, arrays, others))
    executable = draw.asked(count)
    if executable is None:
        return None
    try:
        (drawn,) = executable.run([*arrays, np.empty((count, 0), np.uint8)])
    except Exception:
        return None  # NumPy tells why
    return drawn.reshape(shape)


def _graph(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Graph | None:
    """A graph that draws as many numbers as its last operand has rows; None for an op that draws
    none, but tells of a state."""
    if backend().eager_elements is None:
        return None
    count = SymbolicDim.symbol("count")
    specs = [*map(array_spec, arrays), TensorSpec((count, 0), "uint8")]
    graph = graph_of(op, specs, {"shape": (count,), **attrs}, HOST, operands=len(arrays))
    return graph if [result.spec.dims for result in graph.results] == [(count,)] else None


@clears
def _forget() -> None:
    """Forget the programs."""
    with _lock:
        _draws.clear()

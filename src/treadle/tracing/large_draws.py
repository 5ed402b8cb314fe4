"""Many random numbers at once, drawn eagerly by programs instead of NumPy.

A program draws any number of them: how many is a dim of an operand without elements, so that one
program for an op and its dtypes serves all shapes. Operations wait for it, so what is drawn does
not depend on how soon the compiler is done; fewer numbers than `WORTH_WAITING` are always NumPy's.
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
from treadle.ops.registry import Op
from treadle.runtime import compile_native
from treadle.runtime.executable import Executable
from treadle.tracing.eager_programs import graph_of, is_plain, typed

WORTH_WAITING = 1 << 21  # numbers for which NumPy takes as long as the compiler for a program

_programs: dict[Hashable, Executable | None] = {}  # None where the compiler has no form
_lock = locks.lock()


def run_draw(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What an op that draws gives for host arrays, by a program; None where NumPy is to draw."""
    shape = attrs.get("shape")
    if shape is None or arrays[0].shape != (3,) or not all(type(d) is int for d in shape):
        return None
    count = math.prod(shape)
    if count < WORTH_WAITING:
        return None
    others = {name: value for name, value in attrs.items() if name != "shape"}
    if not all(map(is_plain, others.values())):
        return None
    dtypes = tuple(a.dtype for a in arrays)
    key = (op, dtypes, tuple((name, typed(value)) for name, value in others.items()))
    with _lock:
        if key not in _programs:
            _programs[key] = _program(op, arrays, others)
        executable = _programs[key]
    if executable is None:
        return None
    try:
        (drawn,) = executable.run([*arrays, np.empty((count, 0), np.uint8)])
    except Exception:
        return None  # NumPy tells why
    return drawn.reshape(shape)


def _program(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Executable | None:
    """A program that draws as many numbers as its last operand has rows; None for what draws none,
    but tells of a state, and for what the compiler has no form for."""
    count = SymbolicDim.symbol("count")
    specs = [*map(array_spec, arrays), TensorSpec((count, 0), "uint8")]
    graph = graph_of(op, specs, {"shape": (count,), **attrs}, HOST, operands=len(arrays))
    if [result.spec.dims for result in graph.results] != [(count,)]:
        return None
    try:
        return compile_native(graph)
    except Exception:
        return None


@clears
def _forget() -> None:
    """Forget the programs."""
    with _lock:
        _programs.clear()

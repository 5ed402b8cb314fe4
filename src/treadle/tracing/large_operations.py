"""Eager operations on large arrays: programs of one operation, compiled while NumPy still answers.

From the first time that an operation is met it has an entry, by its attributes and the dtypes and
dims of its operands. The program of a graph on disk is used at once. Where there is none NumPy
computes, and from the second meeting on a thread in the background compiles; operations that differ
in dims only share programs, as the traces of a function do. Where NumPy would take longer than the
compiler, by what is known of the op or what NumPy took for operations like it, the operation waits
for its program, and `settings.wait_for_eager_programs` lets all operations wait, so that no result
depends on how soon a thread is done. Random numbers have programs of their own (`large_draws`).

A program gives the bits that the operation has in a function. Where it raises, NumPy is asked,
whose error is the operation's.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from treadle.core import locks
from treadle.core.caches import clears
from treadle.core.devices import HOST
from treadle.core.interrupts import is_mode
from treadle.core.spec import TensorSpec, array_spec
from treadle.core.switches import is_on, may_be_off
from treadle.graph.ir import Graph, Node
from treadle.ops.lowering import Compute, Library, Rows
from treadle.ops.quiet import quiet
from treadle.ops.registry import Op, infer_outputs, is_program, large, many_calls
from treadle.runtime import compile_native, stored_native
from treadle.runtime.devices import backend
from treadle.runtime.executable import Executable
from treadle.tracing import settings
from treadle.tracing.eager_programs import graph_of, is_plain, typed
from treadle.tracing.large_draws import run_draw
from treadle.tracing.programs import Programs

CALLS = 32  # of NumPy, about, that ops of several steps make; each costs what a program does
# What the compiler takes for a program of one operation: seconds, and as many elements as NumPy
# computes meanwhile in one call.
COMPILING = 0.1
WORTH_WAITING = 1 << 26
MOST_ENTRIES = 4096  # that are kept: those made last


class _WithinCall(threading.local):
    """The calls around an operation that run op by op.

    Attributes:
        depth: how many of them wait for programs of their own (`composed_calls`): no thread
            compiles for their ops meanwhile.
    """

    depth = 0


within_call = is_mode(_WithinCall())

_programs = Programs(compile_native)
_entries: dict[Hashable, _Entry] = {}
_paces: dict[Hashable, float] = {}  # seconds of NumPy an element, by families of operations
_lock = locks.lock()


class _Entry:
    """An operation on operands of some dtypes and dims.

    Attributes:
        executable: its program; None where there is none yet, or never will be.
        graph: what is to be compiled; None where NumPy is as good.
        failure: why the compiler gave up; the op remains NumPy's, as it is where there is none.
        waits: for its program, as NumPy would take longer.
        work: how many elements are worked on.
    """

    __slots__ = ("executable", "failure", "family", "graph", "key", "met", "waits", "work")

    def __init__(self, graph: Graph | None, family: Hashable, work: int, waits: bool) -> None:
        self.graph, self.family, self.work, self.waits = graph, family, work, waits
        self.key = "" if graph is None else f"{graph.name} {id(graph)}"
        self.executable: Executable | None = None
        self.failure: Exception | None = None
        self.met = 0

    def compile(self) -> None:
        """Make the program, unless somebody has. It does not raise."""
        graph = self.graph
        if graph is None or self.executable is not None:
            return
        try:
            executable = _programs.compile(graph, self.family)
            if executable.counters.get("callbacks", 0):  # it would call NumPy
                self.graph = None
            else:
                self.executable = executable
        except Exception as error:  # the compiler has no form for it: it remains NumPy's
            self.graph, self.failure = None, error


def run_large(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The result of an op on host arrays by its program, a tuple of several; None where NumPy is to
    compute it, or to raise its error."""
    if may_be_off() and not is_on("eager_programs"):
        return None
    if "draws" in op.tags:
        return run_draw(op, arrays, attrs)
    try:
        key = _key(op, arrays, attrs)
        entry = _entries.get(key)
    except TypeError:  # an attribute that has no hash
        return None
    if entry is None:
        entry = _new_entry(op, arrays, attrs)
        if entry is None:
            return None
        with _lock:
            if len(_entries) >= MOST_ENTRIES:
                for old in list(_entries)[: MOST_ENTRIES // 4]:
                    del _entries[old]
            entry = _entries.setdefault(key, entry)
    executable = entry.executable
    if executable is None:
        if entry.graph is None:
            return None
        executable = _asked(entry)
        if executable is None:
            return _by_numpy(entry, op, arrays, attrs)
    try:
        results = executable.run(arrays)
    except Exception:
        return None  # NumPy tells why
    return results[0] if len(results) == 1 else tuple(results)


def _key(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Hashable:
    """What operations with one program have in common. Equal numbers of several types differ."""
    key = [op, *attrs]
    for array in arrays:
        key += array.dtype, array.shape
    for value in attrs.values():
        kind = type(value)
        key += (kind, value) if kind is bool or kind is int else (typed(value),)
    return tuple(key)


def _new_entry(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> _Entry | None:
    """An entry for an op that is met for the first time; None for what the op refuses."""
    least = backend().eager_elements
    if least is None or not is_on("eager_programs"):
        return None
    large.elements = least, least // CALLS, 0
    never = _Entry(None, None, 0, False)
    if not all(map(is_plain, attrs.values())):
        return never
    specs = [array_spec(a) for a in arrays]
    try:
        outputs = infer_outputs(op, specs, attrs)
    except Exception:
        return None
    if not all(type(s) is TensorSpec and _is_known(s) for s in (*specs, *outputs)):
        return never
    if isinstance(op.lower, Rows) and op.lower.call(specs, outputs, attrs) is None:
        return never  # programs ask NumPy
    work = _work(op, specs, outputs)
    waits = _numpy_elements(op, work, specs, outputs) >= WORTH_WAITING
    if not waits and work < large.elements[many_calls(op)]:
        return never
    graph = graph_of(op, specs, attrs, HOST)
    family = (op, tuple((name, typed(value)) for name, value in attrs.items()))
    waits = waits or _paces.get(family, 0.0) * work >= COMPILING
    return _Entry(graph, family, work, waits)


def _is_known(spec: TensorSpec) -> bool:
    return all(isinstance(d, int) for d in spec.dims)


def _work(op: Op, specs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """How many elements are worked on: for what moves or maps elements those of the results."""
    results = sum(map(_elements, outputs))
    if isinstance(op.lower, Compute) and op.lower.kind not in ("reduce", "scan"):
        return results
    return max(results, *map(_elements, specs))


def _numpy_elements(op: Op, work: int, specs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """About how many elements NumPy computes, all of its calls together.

    The root of the product of the operands' and results' sizes is how many multiplications a
    product of matrices has, and about how many a convolution has, but for the widths of windows.
    """
    if isinstance(op.lower, Library) and not ("blas" in op.tags and specs[0].dtype.is_floating):
        return max(work, math.isqrt(math.prod(map(_elements, (*specs, *outputs)))))
    return work * (CALLS if many_calls(op) else 1)


def elements_of(node: Node) -> int:
    """About how many elements NumPy computes for an operation of a graph; 0 where that is unknown,
    or it only moves or renames them."""
    specs, outputs = [v.spec for v in node.inputs], [v.spec for v in node.outputs]
    if not is_program(node.op) or "draws" in node.op.tags:
        return 0
    if not all(type(s) is TensorSpec and _is_known(s) for s in (*specs, *outputs)):
        return 0
    return _numpy_elements(node.op, _work(node.op, specs, outputs), specs, outputs)


def _elements(spec: TensorSpec) -> int:
    product = 1
    for dim in spec.dims:
        product *= int(dim)  # type: ignore[arg-type]
    return product


def _asked(entry: _Entry) -> Executable | None:
    """The program that an entry has from now on; None while NumPy is to compute."""
    assert entry.graph is not None
    if within_call.depth and not entry.waits:
        return None
    entry.met += 1
    if entry.met == 1:
        entry.executable = stored_native(entry.graph) or _programs.shared(entry.graph, entry.family)
    if entry.executable is not None:
        return entry.executable
    if entry.waits or settings.wait_for_eager_programs:
        entry.compile()
    elif entry.met > 1 and not entry.met & entry.met - 1:  # a fork drops what waits: ask again
        backend().compile_later(entry.key, entry.compile, entry.graph)
    return entry.executable


def _by_numpy(entry: _Entry, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What NumPy computes; from how long it takes follows whether operations like it wait."""
    assert op.eager is not None
    begun = time.thread_time()
    result = quiet.call(op.eager, *arrays, **attrs)
    seconds = time.thread_time() - begun
    if entry.work:
        with _lock:
            if len(_paces) >= MOST_ENTRIES:
                _paces.clear()
            _paces[entry.family] = seconds / entry.work
    entry.waits = seconds >= COMPILING
    return result


@clears
def _forget() -> None:
    """Forget the operations and their programs, those that somebody still holds among them."""
    global _programs
    with _lock:
        _entries.clear()
        _paces.clear()
        _programs = Programs(compile_native)

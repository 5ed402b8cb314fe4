"""NativeExecutable: a compiled program and the Python function that calls it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import arrays as core_arrays
from treadle.core import errors
from treadle.core.living import Living
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.core.spec import ResourceSpec, Spec
from treadle.graph.ir import Graph
from treadle.ops.state import Variable
from treadle.runtime.callbacks import Call, Callbacks
from treadle.runtime.cpu.abi import FASTCALL, MethodDef, layout
from treadle.runtime.cpu.kept_arrays import empty
from treadle.runtime.cpu.kept_memory import frees_idle_memory, kept_memory
from treadle.runtime.cpu.program_entry import (
    DONE,
    EXHAUSTED,
    NO_ARRAY,
    NO_MEMORY,
    NOT_WRITABLE,
    RAISED,
    WRONG_SHAPE,
)  # fmt: skip
from treadle.runtime.cpu.program_state import StateTable
from treadle.runtime.executable import Executable
from treadle.runtime.exhausted import no_results, no_workspace
from treadle.runtime.signature import Signature
from treadle.runtime.step_times import step_times

if TYPE_CHECKING:
    from treadle.runtime.memory.use import MemoryUse

core_arrays.use_allocator(empty)  # what is made from now on may meet programs

_ATTEMPTS = 10_000
_RUN = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


@record
class Program:
    """What the compiler hands over.

    Attributes:
        entry: address of ``entry(state, objects...)``, 0 where arrays are passed by address.
        run: address of ``run(state, frame)``.
        words: fills the state table: (kind, key) -> address.
        code: names the machine code of `entry` and `run` on disk.
        written: numbers of the parameters that are variables written in place.
        keep: objects that own what the table points to.
    """

    signature: Signature
    table: StateTable
    entry: int
    run: int
    words: Callable[[str, Any], int]
    callbacks: Callbacks | None
    written: list[int]
    releases_gil: bool
    needs_frame: bool
    texts: dict[str, Callable[[], str]]
    counters: dict[str, int]
    memory: MemoryUse | None
    code: str
    keep: list[Any] = field(default_factory=list)


class NativeExecutable(Executable):
    """Runs a compiled program.

    Attributes:
        output_specs: the specs of the results.
        run: takes a value for every parameter; see `Executable.run`. While `step_times.on` the
            program that `make_timed` compiles runs instead, which writes down when its steps ran.
    """

    mode = "native"

    def __init__(
        self, graph: Graph, program: Program, output_specs: list[Spec] | None = None,
        make_timed: Callable[[], NativeExecutable] | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            output_specs: where `graph` is not the optimized one, which may know more dims.
            make_timed: None for a program that writes down when its steps ran.
        """
        super().__init__(graph)
        self.make_timed = make_timed
        self._timed: NativeExecutable | None = None
        self.program = program
        self.counters, self.texts = program.counters, program.texts
        self.output_specs = output_specs or [v.spec for v in graph.results]
        self._keep: list[Any] = []
        self._state = self._fill_state()
        weakref.finalize(self, _free_workspace, self._state).atexit = False
        _programs.add(self)
        self._slots = [i for i, p in enumerate(graph.params) if isinstance(p.spec, ResourceSpec)]
        self.call = self._entry()
        self.run = self._write_run()  # type: ignore[assignment, method-assign]

    @property
    def memory(self) -> MemoryUse | None:
        return self.program.memory

    @property
    def state_address(self) -> int:
        """The state table, the first argument of the program."""
        return int(self._state.ctypes.data)

    # -- what native code needs --------------------------------------------------------------

    def _fill_state(self) -> Any:
        table = self.program.table
        state = np.zeros(len(table.keys), np.int64)
        for (kind, key), position in table.keys.items():
            state[position] = 0 if position == 0 else self.program.words(kind, key)
        return state

    def _entry(self) -> Any:
        """``call(*arrays and outputs)`` gives None or a status."""
        if self.program.entry and layout() is not None:
            return builtin(self.program.entry, self._state, self._keep)
        return self._by_address

    def _by_address(self, *values: Any) -> int | None:
        """The portable call: a frame of addresses (variables that are arguments come last)."""
        signature = self.program.signature
        frame = (ctypes.c_int64 * max(signature.words, 1))()
        cells = len(signature.arguments)
        for i, value in enumerate(values):
            if cells <= i < cells + len(signature.cells):
                frame[i] = ctypes.addressof(value.cell())
            elif type(value) is not np.ndarray:  # the address would be that of a passing copy
                return NO_ARRAY
            else:
                frame[i] = value.__array_interface__["data"][0]
        order = {number: i for i, number in enumerate(signature.arguments)}
        for i, source in enumerate(signature.symbols):
            frame[len(values) + i] = values[order[source.argument]].shape[source.axis]
        status = _RUN(self.program.run)(self.state_address, ctypes.addressof(frame))
        return None if status == DONE else int(status)

    # -- the Python side of a call -----------------------------------------------------------

    def _write_run(self) -> Callable[[Sequence[Any]], list[Any]]:
        """A function written for this program: makes the results, calls, looks at the status."""
        signature = self.program.signature
        names = [f"a{i}" for i in range(len(self._graph.params))]
        outputs = [f"o{i}" for i in signature.outputs]
        scope: dict[str, Any] = {
            "empty": empty, "call": self.call, "failed": self._failed, "times": step_times,
            "no_results": self._no_results, "timed": self._run_timed,
        }  # fmt: skip
        body = [] if self.make_timed is None else ["if times.on:", "    return timed(arrays)"]
        body += [f"{', '.join(names)}, = arrays"] if names else []
        body += self._size_checks()
        body += [f"{s.name} = a{s.argument}.shape[{s.axis}]" for s in self._used_symbols()]
        body += self._new_results(outputs, scope)
        passed = [f"a{i}" for i in (*signature.arguments, *signature.cells)] + outputs
        call = f"status = call({', '.join(passed)})"
        body += self._around(call, scope, names)
        body.append("if status is not None:")
        body.append(f"    return failed(status, arrays, [{', '.join(passed)}], {len(outputs)})")
        results = [
            f"o{i}" if i in signature.outputs else f"found[{i}]"
            for i in range(len(self.output_specs))
        ]
        body.append(f"return [{', '.join(results)}]")
        source = "def run(arrays):\n" + "\n".join(f"    {line}" for line in body)
        exec(compile(source, f"<treadle run of {self._graph.name}>", "exec"), scope)
        run: Callable[[Sequence[Any]], list[Any]] = scope["run"]
        return run

    def _run_timed(self, arrays: Sequence[Any]) -> list[Any]:
        if self._timed is None:
            assert self.make_timed is not None
            since = perf_counter_ns()
            self._timed = self.make_timed()
            step_times.compiled(self._graph.name, since)
        return self._timed.run(arrays)

    def _new_results(self, names: list[str], scope: dict[str, Any]) -> list[str]:
        """Arrays for the results; NumPy raises ValueError for more bytes than it can count."""
        if not names:
            return []
        lines = ["try:"]
        for name, number in zip(names, self.program.signature.outputs, strict=True):
            spec = self.output_specs[number]
            scope[f"d_{name}"] = spec.dtype.np_dtype
            lines.append(f"    {name} = empty({_shape_source(spec)}, d_{name})")
        return [
            *lines,
            "except (MemoryError, ValueError):",
            "    return no_results(arrays)",
        ]

    def _size_checks(self) -> list[str]:
        """Tests of sizes that follow from others: a symbol used twice, or ``2*B``."""
        sources = {(s.argument, s.axis): s.name for s in self.program.signature.symbols}
        value = {s.name: f"a{s.argument}.shape[{s.axis}]" for s in self.program.signature.symbols}
        tests = []
        for number in self.program.signature.arguments:
            for axis, dim in enumerate(self._graph.params[number].spec.dims):
                if isinstance(dim, SymbolicDim) and (number, axis) not in sources:
                    tests.append(f"a{number}.shape[{axis}] != {_dim_source(dim, value)}")
        if not tests:
            return []
        return [f"if {' or '.join(tests)}:", f"    return failed({WRONG_SHAPE}, arrays, [], 0)"]

    def _used_symbols(self) -> list[Any]:
        specs = [self.output_specs[n] for n in self.program.signature.outputs]
        used = set().union(*(s.symbols() for s in specs))
        return [s for s in self.program.signature.symbols if s.name in used]

    def _around(self, call: str, scope: dict[str, Any], names: list[str]) -> list[str]:
        """The call, with what callbacks need to know."""
        if not self.program.needs_frame:
            return [call]
        assert self.program.callbacks is not None
        scope["local"], scope["Call"] = self.program.callbacks.local, Call
        return [
            "outer, this = local.innermost, Call(arrays)",
            "found = this.delivered",
            "try:",
            "    local.innermost = this",
            f"    {call}",
            "finally:",
            "    local.innermost = outer",
        ]

    def _failed(
        self, status: int | None, arrays: Sequence[Any], passed: list[Any], outputs: int
    ) -> list[Any]:
        """What to do about a status other than success."""
        found: dict[int, Any] = {}
        for _ in range(_ATTEMPTS):
            if status != NOT_WRITABLE:
                break
            self._wait_for_variables(arrays)
            for number in self.program.written:
                arrays[number].make_writable()
            status, found = self._again(arrays, passed)
        if status is None:
            made = iter(passed[len(passed) - outputs :])
            numbers = range(len(self.output_specs))
            return [found[n] if n in found else next(made) for n in numbers]
        if status == NO_ARRAY:  # NumPy scalars, subclasses of ndarray
            plain = [a if _is_plain(a) else np.asarray(a, order="C") for a in arrays]
            return self.run(plain)
        if status == WRONG_SHAPE:
            return self.where_sizes_differ(arrays)
        if status in (RAISED, EXHAUSTED) and self.program.callbacks is not None:
            raise self.program.callbacks.take_failure()
        if status == NO_MEMORY:
            raise no_workspace(self._graph, self.program.memory, self._sizes(arrays))
        raise RuntimeError(f"{self._graph.name}: the program returned status {status}")

    def _wait_for_variables(self, arrays: Sequence[Any]) -> None:
        """Programs of other threads that write variables of this one come first."""
        for number in self._slots:
            variable = arrays[number]
            if variable.cell().writer and not variable.wait_until_whole():
                raise errors.InternalError(
                    None, None,
                    f"{self._graph.name} uses variable {variable.name!r} while a program "
                    f"that writes it is interrupted in this thread{at(user_origin())}",
                )  # fmt: skip

    def _no_results(self, arrays: Sequence[Any]) -> list[Any]:
        """There are no arrays for the results: sizes below zero or that do not fit together, which
        the interpreter refuses with the name of the op, or no memory."""
        specs = {number: self.output_specs[number] for number in self.program.signature.outputs}
        sizes = self._sizes(arrays)
        dims = [substitute(d, sizes) for spec in specs.values() for d in spec.dims]
        pairs = [[substitute(d, sizes) for d in pair] for pair in self.guards]
        differ = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
        if differ or any(isinstance(d, int) and d < 0 for d in dims):
            return self._failed(WRONG_SHAPE, arrays, [], 0)
        raise no_results(self._graph, specs, self.program.memory, sizes) from None

    def _sizes(self, arrays: Sequence[Any]) -> dict[str, int]:
        """What the symbols are in a call."""
        symbols = self.program.signature.symbols
        return {s.name: arrays[s.argument].shape[s.axis] for s in symbols}

    def _again(self, arrays: Sequence[Any], passed: list[Any]) -> tuple[int | None, dict[int, Any]]:
        """Call once more; gives the status and the delivered results."""
        callbacks = self.program.callbacks
        if not self.program.needs_frame or callbacks is None:
            return self.call(*passed), {}
        local, this = callbacks.local, Call(arrays)
        outer = local.innermost
        try:
            local.innermost = this
            status = self.call(*passed)
        finally:
            local.innermost = outer
        return status, this.delivered


def builtin(address: int, bound: Any, keep: list[Any]) -> Any:
    """A built-in function around native code that takes (self, arguments, their number).

    Args:
        bound: its `self`.
        keep: gets what must live as long as the function.
    """
    definition = MethodDef(b"program", address, FASTCALL, None)
    keep.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), bound, None)


def _is_plain(value: Any) -> bool:
    """Whether a program takes a value as it is."""
    return isinstance(value, Variable) or type(value) is np.ndarray


def _shape_source(spec: Spec) -> str:
    dims = [_dim_source(d) for d in spec.dims]
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def _dim_source(dim: Dim, names: Mapping[str, str] | None = None) -> str:
    """A dim as a Python expression over its symbols, or over what `names` has for them."""
    if not isinstance(dim, SymbolicDim):
        return str(dim)
    return " + ".join(
        "*".join([str(c), *(_atom_source(a, names or {}) for a in monomial)])
        for monomial, c in dim.terms
    )


def _atom_source(atom: Any, names: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        return names.get(atom, atom)
    operation, a, b = atom
    left, right = f"({_dim_source(a, names)})", f"({_dim_source(b, names)})"
    if operation in ("max", "min"):
        return f"{operation}({left}, {right})"
    return f"({left} {'//' if operation == 'floordiv' else '%'} {right} if {right} else 0)"


def _free_workspace(state: Any) -> None:
    """Give the idle workspace back when the program goes."""
    kept_memory().drop(int(state.ctypes.data))


_programs: Living[NativeExecutable] = Living()


@frees_idle_memory
def _free_workspaces() -> None:
    """Free the workspaces of all programs that are not running."""
    for program in _programs:
        _free_workspace(program._state)

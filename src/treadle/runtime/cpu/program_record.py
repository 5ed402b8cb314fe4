"""A compiled program without its machine code, and its form on disk: plain data.

What is read is compared with the graph at hand: numbers of parameters, results and constants must
exist there, dtypes and sizes must be the graph's. A record that does not fit its graph is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.dtypes import as_dtype, from_numpy
from treadle.core.plain_data import DamagedError, from_bytes, to_bytes
from treadle.core.records import record
from treadle.core.shapes import OPEN_SYMBOLS, Dim, SymbolicDim, compound
from treadle.core.spec import BufferSpec, ListSpec, ResourceSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph
from treadle.runtime.cpu.program_state import FIXED
from treadle.runtime.memory.use import PARTS, Array, Maker, MemoryUse
from treadle.runtime.signature import Signature
from treadle.runtime.symbols import symbol_sources

_SPECS: dict[str, type[Spec]] = {
    "tensor": TensorSpec, "list": ListSpec, "variable": ResourceSpec, "buffer": BufferSpec,
}  # fmt: skip
_SPEC_NAMES = {kind: name for name, kind in _SPECS.items()}
_COMPOUND = ("floordiv", "mod", "max", "min")


@record(frozen=True)
class Record:
    """A program without its machine code.

    Attributes:
        code: the key of the program's own object.
        table: what the words of the state table are; a kernel is (key of its object, symbol).
        constants: the literal arrays; an int stands for a captured tensor.
        guards: dims that the graph takes to be equal.
        output_specs: of the optimized graph's results.
        memory: what a run needs.
        makers: what makes that for which there may be no memory, by the number of the callback.
        choices: what was chosen for routines among candidates, by class (`winners.py`).
        callbacks: whether it may call back into Python, when a check fails.
    """

    signature: Signature
    code: str
    by_object: bool
    table: list[tuple[str, Any]]
    constants: list[Any]
    callbacks: bool
    has_library: bool
    workers: int
    written: list[int]
    releases_gil: bool
    counters: dict[str, int]
    guards: list[tuple[Dim, Dim]]
    output_specs: list[Spec]
    memory: MemoryUse | None
    makers: dict[int, Maker | None]
    choices: dict[str, str]

    @property
    def constant_bytes(self) -> int:
        """The size of the literal arrays."""
        return sum(c.nbytes for c in self.constants if isinstance(c, np.ndarray))

    def to_bytes(self) -> bytes:
        """The record as it is kept on disk."""
        s = self.signature
        constants = [c if isinstance(c, int) else _array_data(c) for c in self.constants]
        return to_bytes(
            (
                (s.arguments, s.cells, s.outputs, [x.name for x in s.symbols]),
                (self.code, self.by_object, self.callbacks, self.has_library, self.workers),
                (self.written, self.releases_gil, self.counters),
                self.table[len(FIXED) :], constants,
                [(_dim_data(a), _dim_data(b)) for a, b in self.guards],
                [_spec_data(spec) for spec in self.output_specs],
                None if self.memory is None else _memory_data(self.memory),
                [(number, _maker_data(made_by)) for number, made_by in self.makers.items()],
                self.choices,
            )
        )  # fmt: skip

    @staticmethod
    def from_bytes(data: bytes, graph: Graph) -> Record:
        """The record of a graph's program.

        Raises:
            DamagedError: the bytes are no record of such a program.
        """
        try:
            record = _record(from_bytes(data), graph)
        except (TypeError, ValueError, LookupError) as error:
            raise DamagedError(f"no record of a program: {error}") from error
        _Fit(record, graph).check()
        return record


def _record(plain: Any, graph: Graph) -> Record:
    how, code, use, table, constants, guards, specs, memory, makers, choices = plain
    arguments, cells, outputs, symbols = how
    name, by_object, callbacks, has_library, workers = code
    written, releases_gil, counters = use
    sources = [s for s in symbol_sources(graph.params) if s.name in symbols]
    if [s.name for s in sources] != symbols:
        raise ValueError("other symbols than the graph's")
    return Record(
        Signature(_ints(arguments), _ints(cells), _ints(outputs), sources),
        _code_name(name), _a(bool, by_object),
        [*(("fixed", word) for word in FIXED), *(_key(*word) for word in table)],
        [c if type(c) is int else _array(*c) for c in constants],
        _a(bool, callbacks), _a(bool, has_library), _a(int, workers),
        _ints(written), _a(bool, releases_gil),
        {_a(str, what): _a(int, count) for what, count in _a(dict, counters).items()},
        [(_dim(a), _dim(b)) for a, b in guards],
        [_spec(*spec) for spec in specs],
        None if memory is None else _memory(*memory),
        {_a(int, number): _maker(made_by) for number, made_by in makers},
        {_a(str, text): _a(str, choice) for text, choice in _a(dict, choices).items()},
    )  # fmt: skip


class _Fit:
    """Compares a record with the graph that its program is to run."""

    def __init__(self, record: Record, graph: Graph) -> None:
        self.record, self.graph = record, graph

    def check(self) -> None:
        """Raises DamagedError where the program would reach for what the graph does not have."""
        for holds in (self._numbers, self._variables, self._words, self._results):
            if not holds():
                raise DamagedError(f"a record that does not fit its graph: {holds.__name__}")

    def _numbers(self) -> bool:
        """Arguments, results and threads exist."""
        signature, params = self.record.signature, self.graph.params
        tensors = all(_is_a(TensorSpec, params, number) for number in signature.arguments)
        sized = {source.argument for source in signature.symbols} <= set(signature.arguments)
        outputs = set(signature.outputs) <= set(range(len(self.graph.results)))
        return tensors and sized and outputs and 0 < self.record.workers <= 1 << 16

    def _variables(self) -> bool:
        """Variables that are passed or written are variables."""
        numbers = [*self.record.signature.cells, *self.record.written]
        return all(_is_a(ResourceSpec, self.graph.params, number) for number in numbers)

    def _words(self) -> bool:
        """Constants and captured variables of the state table exist."""
        record, params = self.record, self.graph.params
        captures = self.graph.captures
        first = len(params) - len(captures)
        known: dict[str, Callable[[Any], bool]] = {
            "fixed": lambda word: word in FIXED,
            "constant": lambda number: number in range(len(record.constants)),
            "cell": lambda number: number >= first and _is_a(ResourceSpec, params, number),
            "kernel": lambda kernel: True,
            "routine": lambda symbol: True,
        }
        places = [c for c in record.constants if isinstance(c, int)]
        held = all(c in range(len(captures)) and isinstance(captures[c], Tensor) for c in places)
        return held and all(known[kind](key) for kind, key in record.table)

    def _results(self) -> bool:
        """Results have the graph's dtypes and sizes."""
        made, traced = self.record.output_specs, [v.spec for v in self.graph.results]
        return len(made) == len(traced) and all(map(_is_such, made, traced))


def _is_a(kind: type[Spec], params: list[Any], number: int) -> bool:
    return number in range(len(params)) and isinstance(params[number].spec, kind)


def _is_such(spec: Spec, traced: Spec) -> bool:
    """Whether a result may have a spec, which may know more sizes than the traced one."""
    if type(spec) is not type(traced) or spec.dtype is not traced.dtype:
        return False
    same = all(
        isinstance(b, SymbolicDim) or a == b for a, b in zip(spec.dims, traced.dims, strict=False)
    )
    return spec.rank == traced.rank and same


# -- parts of a record as plain data, and back ----------------------------------------------------


def _a(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{type(value).__name__} instead of {kind.__name__}")
    return value


def _ints(values: Any) -> list[int]:
    return [_a(int, value) for value in _a(list, values)]


def _code_name(value: Any) -> str:
    """The key of an object on disk."""
    if not _a(str, value).isalnum():
        raise ValueError(f"objects are not called {value!r}")
    return str(value)


def _key(kind: Any, key: Any) -> tuple[str, Any]:
    """A word of the state table."""
    if kind in ("constant", "cell"):
        return kind, _a(int, key)
    if kind == "kernel":
        code, symbol = key
        return kind, (_code_name(code), _a(str, symbol))
    if kind in ("routine", "fixed"):
        return kind, _a(str, key)
    raise ValueError(f"words are not {kind!r}")


def _array_data(array: np.ndarray[Any, Any]) -> Any:
    return from_numpy(array.dtype).name, list(array.shape), array.tobytes()


def _array(dtype: Any, shape: Any, data: Any) -> np.ndarray[Any, Any]:
    kind = as_dtype(_a(str, dtype)).np_dtype
    return np.frombuffer(bytearray(_a(bytes, data)), kind).reshape(_ints(shape))


def _dim_data(dim: Dim) -> Any:
    """An int, or (atoms, coefficient) for each term."""
    if isinstance(dim, int):
        return dim
    return tuple((tuple(map(_atom_data, atoms)), count) for atoms, count in dim.terms)


def _atom_data(atom: Any) -> Any:
    return atom if isinstance(atom, str) else (atom[0], _dim_data(atom[1]), _dim_data(atom[2]))


def _dim(plain: Any) -> Dim:
    if type(plain) is int:
        return plain
    total: Dim = 0
    for atoms, count in _a(tuple, plain):
        term: Dim = _a(int, count)
        for atom in atoms:
            term = term * _atom(atom)
        total = total + term
    return total


def _atom(plain: Any) -> Dim:
    if type(plain) is str:
        if not plain.isidentifier() and plain not in OPEN_SYMBOLS:
            raise ValueError(f"symbols are not called {plain!r}")
        return SymbolicDim.symbol(plain)
    operation, left, right = plain
    if operation not in _COMPOUND:
        raise ValueError(f"dims are not computed by {operation!r}")
    return compound(operation, _dim(left), _dim(right))


def _spec_data(spec: Spec) -> Any:
    return _SPEC_NAMES[type(spec)], spec.dtype.name, tuple(map(_dim_data, spec.dims)), spec.name


def _spec(kind: Any, dtype: Any, dims: Any, name: Any) -> Spec:
    sizes = tuple(_dim(d) for d in dims)
    name = None if name is None else _a(str, name)
    return _SPECS[kind](sizes, as_dtype(_a(str, dtype)), name)  # type: ignore[call-arg]


def _maker_data(made_by: Maker | None) -> Any:
    return None if made_by is None else (made_by.op, made_by.origin)


def _maker(plain: Any) -> Maker | None:
    if plain is None:
        return None
    op, number = plain
    return Maker(_a(str, op), None if number is None else _a(int, number))


def _memory_data(use: MemoryUse) -> Any:
    parts = [_dim_data(getattr(use, name)) for name in (*PARTS, "temporaries")]
    large = [(_dim_data(a.bytes), a.text, _maker_data(a.maker)) for a in use.large]
    return parts, use.grows, large


def _memory(parts: Any, grows: Any, large: Any) -> MemoryUse:
    arrays = (Array(_dim(size), _a(str, text), _maker(made_by)) for size, text, made_by in large)
    *sizes, temporaries = map(_dim, parts)
    known: dict[str, Any] = dict(zip(PARTS, sizes, strict=True))
    return MemoryUse(**known, temporaries=temporaries, grows=_a(bool, grows), large=tuple(arrays))

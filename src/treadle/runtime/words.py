"""Programs on strings: they have a number for every string, which stands for it during one run.

A program's constants, and what it captured, have the same numbers in every run, the empty string
0. Arguments get theirs when the run begins; callbacks take the strings of the numbers and give new
strings numbers (`Words`). Equal strings have equal numbers, so ops that move or compare elements
are compiled as for integers (the tag ``any_elements``), and loops, branches and lists carry strings
as they carry numbers. Other ops on strings call their NumPy form. A run leaves nothing behind.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.interrupts import during, is_mode
from treadle.core.list_value import ListValue
from treadle.core.spec import ResourceSpec, Spec, array_spec, intern_spec, spec_text
from treadle.core.tensor import StringTensor, from_array
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import clone_graph, keep_params, replace_reads
from treadle.ops.conversion import CONST
from treadle.ops.lowering import Structure
from treadle.ops.registry import Op
from treadle.runtime.executable import AroundProgram, Executable

NDArray = np.ndarray[Any, Any]

# What remains true of an op that takes numbers and gives them to its NumPy form as strings.
_KEPT_TAGS = frozenset(
    {"asserts", "dynamic", "gives_own_arrays", "quiet", "raises", "speaks_for_caller", "strings"}
)


class Words:
    """The strings of one run, and their numbers.

    Args:
        constants: those of the program, with the numbers 0, 1, ...
    """

    def __init__(self, constants: Sequence[bytes]) -> None:
        self.strings = list(constants)
        self.numbers = {s: number for number, s in enumerate(constants)}

    def number(self, string: bytes) -> int:
        found = self.numbers.get(string)
        if found is None:
            found = self.numbers[string] = len(self.strings)
            self.strings.append(string)
        return found

    def encoded(self, value: Any) -> Any:
        """The numbers of an array or list of strings."""
        if isinstance(value, ListValue):
            return self._items(value, self.encoded)
        value = np.asarray(value, object)
        numbers = [self.number(s) for s in value.reshape(-1).tolist()]
        return np.array(numbers, np.int64).reshape(value.shape)

    def decoded(self, value: Any) -> Any:
        """The strings of an array or list of numbers."""
        if isinstance(value, ListValue):
            return self._items(value, self.decoded)
        strings = np.empty(value.size, object)
        strings[:] = [self.strings[number] for number in value.reshape(-1).tolist()]
        return strings.reshape(value.shape)

    def _items(self, value: ListValue, fn: Callable[[Any], Any]) -> ListValue:
        items = [None if item is None else fn(item) for item in value.items()]
        return ListValue(items, _numbered(value.spec) if fn == self.encoded else _named(value.spec))


class _Runs(threading.local):
    words: Words | None = None  # of the run in progress


_runs = is_mode(_Runs())


def _numbered(spec: Any) -> Any:
    """The spec of the numbers of strings."""
    return intern_spec(type(spec), spec.dims, dtypes.int64, spec.name, spec.device)


def _named(spec: Any) -> Any:
    """The spec of the strings of numbers."""
    return intern_spec(type(spec), spec.dims, dtypes.string, spec.name, spec.device)


def _is_strings(spec: Spec) -> bool:
    return spec.dtype is dtypes.string and not isinstance(spec, ResourceSpec)


class StringExecutable(AroundProgram):
    """The program of a graph with strings.

    Args:
        compile: makes the program of the graph with numbers in place of strings.
    """

    def __init__(self, graph: Graph, compile: Callable[[Graph], Executable]) -> None:
        words = Words([b""])
        work = clone_graph(graph)
        self._passed = _without_captures(work, words)
        _use_numbers(work, words)
        self.constants = words.strings
        super().__init__(graph, compile(work))
        self._storage = graph.device.storage
        self._given = [n for n, i in enumerate(self._passed) if _is_strings(graph.params[i].spec)]
        self._made = [i for i, v in enumerate(graph.results) if _is_strings(v.spec)]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        words, given = Words(self.constants), [arrays[i] for i in self._passed]
        for i in self._given:
            given[i] = self._on_device(words.encoded(given[i]))
        with during(_runs, "words", words):
            found = list(self.program.run(given))
        for i in self._made:
            found[i] = words.decoded(self._on_host(found[i]))
        return found

    def _on_device(self, value: Any) -> Any:
        return value if isinstance(value, ListValue) else self._storage.from_host(value)

    def _on_host(self, value: Any) -> Any:
        return value if isinstance(value, ListValue) else self._storage.to_host(value)


# -- the graph of numbers --------------------------------------------------------------------


def _without_captures(graph: Graph, words: Words) -> list[int]:
    """Let captured strings be constants; the numbers of the parameters that remain."""
    first = len(graph.params) - len(graph.captures)
    strings = [i for i, c in enumerate(graph.captures, first) if type(c) is StringTensor]
    replaced, constants = {}, []
    for i in strings:
        param = graph.params[i]
        node = Node(CONST, (), {"value": graph.captures[i - first]._numpy()}, [param.spec])
        node.region, node.outputs[0].name = graph, param.name
        replaced[param] = node.outputs[0]
        constants.append(node)
    replace_reads(graph, replaced)
    graph.nodes[:0] = constants
    kept = [i for i in range(len(graph.params)) if i not in strings]
    graph.captures = [graph.captures[i - first] for i in kept if i >= first]
    keep_params(graph, kept)
    return kept


def _use_numbers(graph: Graph, words: Words) -> None:
    """Let a graph have numbers in place of strings, its constants those of `words`."""
    for node in graph.walk():
        takes = tuple(v.spec.dtype is dtypes.string for v in node.inputs)
        gives = tuple(v.spec.dtype is dtypes.string for v in node.outputs)
        if "any_elements" in node.op.tags:
            node.attrs = {name: _attr(value, words) for name, value in node.attrs.items()}
        elif (any(takes) or any(gives)) and not node.regions:
            node.op = _on_numbers(node.op, takes, gives)
    _renew(graph)


def _attr(value: Any, words: Words) -> Any:
    """An attribute of an op that moves elements."""
    if isinstance(value, bytes):
        return words.number(value)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return words.encoded(value)
    return dtypes.int64 if value is dtypes.string else value


def _renew(region: Region) -> None:
    """Let values that are strings be numbers."""
    values: list[Value] = [*region.params, *(v for node in region.nodes for v in node.outputs)]
    for value in values:
        if _is_strings(value.spec):
            value.spec = _numbered(value.spec)
    for node in region.nodes:
        for inner in node.regions:
            _renew(inner)


@functools.cache
def _on_numbers(op: Op, takes: tuple[bool, ...], gives: tuple[bool, ...]) -> Op:
    """An op whose strings are numbers, and which gives its NumPy form the strings.

    Args:
        takes, gives: which inputs and outputs are strings, or variables that hold them.
    """

    def infer(*specs: Spec, **attrs: Any) -> tuple[Spec, ...]:
        given = [
            _named(s) if t and not isinstance(s, ResourceSpec) else s
            for s, t in zip(specs, takes, strict=True)
        ]
        found = op.infer(*given, **attrs)
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple(_numbered(s) if _is_strings(s) else s for s in outputs)

    def eager(*values: Any, **attrs: Any) -> Any:
        words = _runs.words
        assert words is not None
        given = [
            words.decoded(v) if t and isinstance(v, np.ndarray | ListValue) else v
            for v, t in zip(values, takes, strict=True)
        ]
        try:
            found = _evaluated(op, given, attrs)
        except (errors.OpError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            if says_itself:
                raise
            raise _failure(op, given, error) from error
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple(
            words.encoded(v) if g else v for v, g in zip(outputs, gives, strict=True)
        )  # fmt: skip

    says_itself = bool(op.tags & {"raises", "speaks_for_caller"})
    return replace(  # another name: graphs on disk are told apart by the names of their ops
        op, name=f"{op.name}_of_strings", infer=infer, eager=eager, gradient=None, lower=None,
        tags=(op.tags & _KEPT_TAGS) | {"speaks_for_caller"},
        parts=None, part=None, refuses=None, relation=None, neutral=None, on_dims=None,
        same_elements=None, of_nothing=None,
    )  # fmt: skip


def _evaluated(op: Op, values: list[Any], attrs: dict[str, Any]) -> Any:
    """The op's NumPy form; variables of strings are read and assigned here."""
    if op.lower is Structure.READ:
        return values[0]._numpy()
    if op.lower is Structure.ASSIGN:
        values[0]._assign_now(from_array(values[1]))
        return ()
    assert op.eager is not None
    return op.eager(*values, **attrs)


def _failure(op: Op, values: list[Any], error: Exception) -> errors.OpError:
    """The error with the strings' own types: whoever adds the line sees numbers."""
    shown = ", ".join(
        spec_text(array_spec(v) if isinstance(v, np.ndarray) else v.spec) for v in values
    )
    kind = type(error) if isinstance(error, errors.OpError) else errors.InvalidArgumentError
    message = error.message if isinstance(error, errors.OpError) else str(error)
    return kind(None, op, f"{op.name}({shown}): {message}")

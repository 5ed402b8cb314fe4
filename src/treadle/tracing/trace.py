"""Runs a Python function once with symbolic arguments and gives the graph of its operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from treadle.autograph.errors import StagingError
from treadle.autograph.loop_notes import loop_notes
from treadle.autograph.operators.undefined import Undefined
from treadle.core import nest
from treadle.core.context import context, recording, taping
from treadle.core.devices import HOST
from treadle.core.frames import forget_last
from treadle.core.names import unused_name
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.refusals import NotYetKnown
from treadle.core.spec import ListSpec, ResourceSpec, Spec, TensorSpec
from treadle.core.strategies import tracing_for_none
from treadle.core.switches import disabled
from treadle.core.tensor import SymbolicTensor, Tensor, from_array, lacks_rank, moved
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph, Region, Value, clone_node
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.unknown_rank import of_parts, parts_of
from treadle.ops.state import Variable
from treadle.tracing.frozen_randomness import watch_numpy_random
from treadle.tracing.placement import place_graph
from treadle.tracing.signature import Arguments, is_tensor_leaf, is_trace_type, leaf_spec


class ChangedArgument(NamedTuple):
    """An argument that a function changes in place, as NumPy would.

    Attributes:
        leaf: its number among the leaves of the arguments.
        how, where: the operation that changes it, and the line.
        goes_on: whether the function goes on with the changed values.
    """

    leaf: int
    name: str
    how: str
    where: str
    goes_on: bool


@record
class Trace:
    """The result of one trace.

    Attributes:
        graph: parameters are the tensor and variable arguments in order, then the captures.
        leaves: for every leaf of the arguments, its parameter's spec or None for Python values.
        structure: the function's result, with numbers of results in place of tensors.
        created_variables: whether the function made variables.
        changed: arguments that the function changes in place.
        told_apart: whether the function asked which variable an argument is, so that the trace
            serves no other.
        captured: what the function captures, wherever it is; the graph's captures are where the
            graph runs.
    """

    graph: Graph
    leaves: list[Spec | None]
    structure: Any
    created_variables: bool
    changed: list[ChangedArgument]
    told_apart: bool
    captured: list[Any]


class _Result:
    """Stands for result number `index` in a trace's structure; None results have no number."""

    __slots__ = ("index",)
    is_result = True  # what structures around it know holds for every run

    def __init__(self, index: int) -> None:
        self.index = index


def _run_later(error: NotYetKnown, function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call that the run makes; loaded with the first such call."""
    from treadle.tracing.late_calls import run_later

    return run_later(error, function, args, kwargs)


NotYetKnown.run_later = staticmethod(_run_later)


class _UnrankedResult:
    """Stands for a tensor of unknown rank: results number `index`, its elements, and ``index + 1``,
    its shape."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def of(self, results: Any) -> Any:
        """The tensor among the results; the spec among their specs."""
        elements, extents = results[self.index], results[self.index + 1]
        if isinstance(elements, Spec):
            return TensorSpec(None, elements.dtype).on(elements.device)
        return of_parts(elements, extents)


def trace(
    fn: Callable[..., Any],
    arguments: Arguments,
    name: str,
    may_create: bool,
    these_variables: bool = False,
) -> Trace:
    """Call ``fn`` with symbolic tensors in place of tensor arguments, recording a graph.

    Args:
        may_create: whether Variables may be created (a function's first call only).
        these_variables: variable arguments stand for themselves, because the function also
            reaches one of them by another way; otherwise any variable of their kind fits.

    Raises:
        the exceptions of `fn`; TypeError when it returns something that is not a tensor.
    """
    builder = GraphBuilder(name, outer=context.recorder)  # type: ignore[arg-type]
    try:
        return _traced(builder, fn, arguments, name, may_create, these_variables)
    except StagingError:
        if not any(note.rolled for note in loop_notes(builder.graph)):
            raise
    # A loop of the graph may hide what Python's own iterations would show, such as which of two
    # arrays that change places a variable holds in the end.
    builder = GraphBuilder(name, outer=context.recorder)  # type: ignore[arg-type]
    with disabled("rolled_loops"):
        return _traced(builder, fn, arguments, name, may_create, these_variables)


def _traced(
    builder: GraphBuilder,
    fn: Callable[..., Any],
    arguments: Arguments,
    name: str,
    may_create: bool,
    these_variables: bool,
) -> Trace:
    created = [False]
    if may_create:
        builder.on_variable = lambda: created.__setitem__(0, True)
    given: dict[Value, Any] = {}
    builder.lift_hook = lambda tensor: lift(tensor, given)
    names = parameter_names(arguments)
    specs = [_parameter_spec(kind) for kind in arguments.types]
    leaves: list[Any] = []
    stand_ins: dict[int, Variable] = {}
    kinds = arguments.types
    for leaf, kind, spec, label in zip(arguments.leaves, kinds, specs, names, strict=True):
        if is_trace_type(kind):
            leaf = kind.placeholder_value(None)
        if isinstance(leaf, Variable) and not these_variables:
            leaf = stand_ins.setdefault(id(leaf), leaf.stand_in())
        leaves.append(leaf if spec is None else _parameter(builder, leaf, spec, label))
        if isinstance(leaf, Tensor | np.ndarray | np.generic) and leaves[-1] is not leaf:
            given[leaves[-1].value] = leaf
    args, kwargs = arguments.pack(leaves)
    labelled = [*zip(arguments.names, args, strict=True), *kwargs.items()]
    given_lists = list(_lists(labelled))
    try:
        # Inside of another trace operations are for the device that the call is for.
        alone = builder.outer is None
        among = tracing_for_none() if alone else nullcontext()
        with recording(builder), taping(()), watch_numpy_random(name), among:
            result = fn(*args, **kwargs)
            _refuse_changes(given_lists, name)
            structure, results = _collect(result, name)
            graph = builder.finish(results)
            placed = [
                leaf.spec if isinstance(leaf, Variable) else leaf_spec(leaf)
                for leaf, spec in zip(arguments.types, specs, strict=True)
                if spec is not None
            ]
            captured = list(graph.captures)
            place_graph(graph, placed, builder.asked, inside=builder.outer is not None)
    finally:
        builder.finished = True
        forget_last()
    told_apart = any(variable.told_apart for variable in stand_ins.values())
    changed = _changed(builder, specs)
    return Trace(graph, specs, structure, created[0], changed, told_apart, captured)


def _lists(labelled: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any, Any]]:
    """(place, list or dict, a copy) for the lists and dicts in arguments."""
    for place, value in labelled:
        if isinstance(value, dict):
            yield place, value, dict(value)
            yield from _lists((f"{place}[{key!r}]", item) for key, item in value.items())
        elif isinstance(value, list | tuple):
            if isinstance(value, list):
                yield place, value, list(value)
            yield from _lists((f"{place}[{i}]", item) for i, item in enumerate(value))


def _refuse_changes(given: Iterable[tuple[str, Any, Any]], name: str) -> None:
    """An error for lists and dicts among the arguments that the function has changed: a call runs
    the graph, and the caller's own lists would stay as they were."""
    for place, now, before in given:
        is_dict = isinstance(before, dict)
        same = len(now) == len(before) and (not is_dict or now.keys() == before.keys())
        keys = before if is_dict else range(len(before))
        if not same or any(now[key] is not before[key] for key in keys):
            raise ValueError(
                f"{name!r} changes the {type(before).__name__} that is given as `{place}`, which "
                "its later calls would not do, as they run the traced graph: a function should "
                "not modify its arguments. Return the new value, or change a copy of it"
                f"{at(user_origin())}"
            )


def _changed(builder: GraphBuilder, specs: list[Spec | None]) -> list[ChangedArgument]:
    """The arguments that were changed in place, by the numbers of their leaves."""
    leaves = [number for number, spec in enumerate(specs) if spec is not None]
    pairs = zip(leaves, builder.graph.arguments, strict=True)
    changed = builder.changed
    return [ChangedArgument(n, p.name, *changed[p]) for n, p in pairs if p in changed]


def _parameter_spec(leaf: Any) -> Spec | None:
    if is_tensor_leaf(leaf):
        spec = leaf_spec(leaf)
        if isinstance(spec, ListSpec):
            return spec
        if isinstance(leaf, TensorSpec):
            spec = spec.with_fresh_symbols()
        return TensorSpec(spec.shape, spec.dtype)
    return leaf.spec.on(HOST) if isinstance(leaf, Variable) else None


def _parameter(builder: GraphBuilder, leaf: Any, spec: Spec, label: str) -> Any:
    """The trace's stand-in for an argument. A variable argument stays itself, bound to its
    parameter, so that attributes and assignments work on it."""
    parameter = builder.parameter(spec, label)
    if isinstance(spec, ResourceSpec):
        parameter.source = leaf
        builder.captured[id(leaf)] = (leaf, parameter)
        return leaf
    return parameter


def parameter_names(arguments: Arguments) -> list[str]:
    """Readable, unique names for the leaves: ``x``, ``batch_0``, ``params_w``, or as TensorSpecs
    have it."""
    names: list[str] = []
    taken: set[str] = set()
    labelled = [
        *zip(arguments.names, arguments.args, strict=True),
        *sorted(arguments.kwargs.items()),
    ]
    paths = [p for label, value in labelled for p, _ in nest.flatten_with_paths(value, label)]
    for path, kind in zip(paths, arguments.types, strict=True):
        given = kind.name if isinstance(kind, TensorSpec) else None
        base = given or "_".join(
            "".join(c if c.isalnum() or c == "_" else " " for c in path).split()
        )
        names.append(unused_name(base, taken))
    return names


def _collect(result: Any, name: str) -> tuple[Any, list[Tensor]]:
    """The result's structure with `_Result` leaves, and the tensors in order."""
    results: list[Tensor] = []

    def leaf(value: Any) -> Any:
        if value is None:
            return None
        tensor = _as_result(value, name)
        if lacks_rank(tensor):
            results.extend(parts_of(tensor))
            return _UnrankedResult(len(results) - 2)
        results.append(tensor)
        return _Result(len(results) - 1)

    return nest.map_structure(leaf, result), results


def _as_result(value: Any, name: str) -> Tensor:
    if isinstance(value, Undefined):
        value.fail()  # an item that only one branch has made
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name!r} returned a {type(value).__name__}, which is not a tensor: a function must "
            "return tensors, variables, numbers, None, or nested structures of them"
            f"{at(user_origin())}"
        ) from None


def results_of(structure: Any, tensors: Any) -> Any:
    """The user's result: `structure` with its `_Result` leaves replaced by tensors."""


    def value(leaf: Any) -> Any:
        if isinstance(leaf, _UnrankedResult):
            return leaf.of(tensors)
        return tensors[leaf.index] if isinstance(leaf, _Result) else leaf

    return nest.map_structure(value, structure)


_OF_RESULT = re.compile(r"%(\d+)( of unknown rank)?")


def numbered(structure: Any) -> Any:
    """The structure of a function's result as plain data: ``"%0"`` for the first tensor."""

    def text(leaf: Any) -> Any:
        if leaf is None:
            return None
        return f"%{leaf.index}" + (" of unknown rank" if isinstance(leaf, _UnrankedResult) else "")

    return nest.map_structure(text, structure)


def structure_of(plain: Any, count: int) -> Any:
    """The structure that `numbered` was given.

    Args:
        count: how many results the graph has.

    Raises:
        ValueError: it is none, or names a result that there is not.
    """

    def marker(leaf: Any) -> Any:
        found = _OF_RESULT.fullmatch(leaf) if isinstance(leaf, str) else None
        if leaf is None:
            return None
        if found is None or int(found[1]) + bool(found[2]) >= count:
            raise ValueError(f"{leaf!r} is none of {count} results")
        return (_UnrankedResult if found[2] else _Result)(int(found[1]))

    return nest.map_structure(marker, plain)


def lift(tensor: SymbolicTensor, given: Mapping[Value, Any]) -> Tensor:
    """The value of a traced tensor in this call: a variable's initial value.

    Args:
        given: the values of the parameters, where a call traces the function.

    Raises:
        ValueError: it depends on a value inside a branch or loop, or on an argument of which only
            the spec is known.
    """
    from treadle.runtime import interpreter

    graph = Graph("initial_value")
    mapping: dict[Value, Value] = {}

    def compute(recorder: Any, value: Value) -> None:
        """Let the graph compute a value of a function, or of a branch or loop in it."""
        needed = _slice(recorder.region, value)
        captured = {
            param.value: outer for outer, param in recorder.captured.values() if outer is not param
        }
        for read in _outer_values(needed, value):
            outer = captured.get(read, given.get(read))
            if isinstance(outer, SymbolicTensor) and outer.recorder is recorder.parent:
                compute(outer.recorder, outer.value)
                mapping[read] = mapping[outer.value]
            elif outer is None:
                raise ValueError(
                    "The initial value of a variable that is created inside a function may not "
                    "depend on arguments without values, or on what a branch or loop changes: "
                    f"{tensor!r}. Pass a function as initial_value, or create the variable outside"
                    f"{at(user_origin())}"
                )
            elif read not in mapping:
                mapping[read] = graph.add_param(read.spec, read.name)
                graph.captures.append(outer)
        for node in needed:
            if not all(output in mapping for output in node.outputs):
                clone_node(node, graph, mapping)

    compute(tensor.recorder, tensor.value)
    graph.results = [mapping[tensor.value]]
    with recording(None), taping(()):
        values = [c if isinstance(c, Variable) else convert_to_tensor(c) for c in graph.captures]
        inputs = [c if isinstance(c, Variable) else c._numpy() for c in values]
        found = from_array(interpreter.run(graph, inputs)[0])
        devices = (c.spec.device for c in values)
        return moved(found, next((d for d in devices if d is not HOST), HOST))


def _slice(region: Region, value: Value) -> list[Any]:
    """The nodes of the region that `value` depends on, in order."""
    wanted = {value}
    needed = []
    for node in reversed(region.nodes):
        if wanted.intersection(node.outputs):
            needed.append(node)
            wanted.update(node.inputs)
    return needed[::-1]


def _outer_values(nodes: list[Any], result: Value) -> list[Value]:
    """Values that are read but computed by none of the nodes, each once."""
    made = {v for node in nodes for v in node.outputs}
    reads = [v for node in nodes for v in node.inputs] + [result]
    return list(dict.fromkeys(v for v in reads if v not in made))

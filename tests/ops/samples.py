"""A sample for every op: the cases of the tables and the programs beside them, and what running
them tells (docs/ops.md shows it)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import treadle as td
from tests.ops.cases import Case
from tests.ops.programs import NUMERIC, OTHERS, Program
from tests.ops.test_cases import ALL
from treadle.core import dtypes, nest
from treadle.core.context import add_tape, context, recording, set_tapes
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph
from treadle.graph.passes import optimize
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.loading import load_all_ops
from treadle.ops.registry import OPS, Op
from treadle.runtime.compiler import plan_program
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Callback

# Why an op has no sample: where it is tested, or why it cannot be.
WITHOUT: dict[str, str] = {
    "dynamic_slice_add": "a pass writes it where loops add up parts: test_properties.py",
    "element_at": "checks on devices with memory of their own: runtime/test_residence.py",
    "first_bad": "checks on devices with memory of their own: runtime/test_residence.py",
    "note": "checks on devices with memory of their own: runtime/test_residence.py",
    "list_pack": "lists between a function and its gradient: runtime/test_ragged_lists.py",
    "list_unpack": "lists between a function and its gradient: runtime/test_ragged_lists.py",
    "write_summary": "it writes files: tests/summary",
    "timestamp": "no two calls give the same",
    "raise": "only td.jit records it: jitted/test_branches.py",
    "critical": "a mark of programs that hold locks: tests/ops/test_critical_sections.py",
    "python_print": "only td.jit records it: jitted/test_printing.py",
    **dict.fromkeys(
        ("not_same", "of_size", "one_size"),
        "sizes that only a run tells: test_late_broadcasts.py",
    ),
    **dict.fromkeys(
        ("common", "reduce_among", "reduce_replicas", "stack_among", "stack_replicas"),
        "strategies over several devices: distribute/test_on_gpus.py",
    ),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """A function and arguments for it.

    Attributes:
        fn: takes a tensor for each of `arrays`, gives a tensor or a structure of them.
        order: how often it can be differentiated.
        open_dims: whether it works when no dim of the arguments is known.
        close: how far results in functions may be from eager ones.
    """

    name: str
    fn: Callable[..., Any]
    arrays: tuple[Any, ...]
    order: int
    open_dims: bool
    close: float

    def __str__(self) -> str:
        return self.name

    def values(self, *tensors: Any) -> list[Any]:
        """The results as a list of tensors."""
        return [convert_to_tensor(x) for x in nest.flatten(self.fn(*tensors))]

    def gradients(self, *tensors: Any) -> list[Any]:
        """The gradients of a number that all results matter for."""
        with td.GradientTape() as tape:
            tape.watch(tensors)
            total = weighted(self.values(*tensors))
        found = tape.gradient(total, list(tensors), unconnected_gradients="zero")
        return [convert_to_tensor(g) for g in found]

    def second_gradients(self, *tensors: Any) -> list[Any]:
        """The gradients of the sum of the squares of the gradients."""
        with td.GradientTape() as tape:
            tape.watch(tensors)
            total = td.add_n([td.reduce_sum(g * g) for g in self.gradients(*tensors)])
        found = tape.gradient(total, list(tensors), unconnected_gradients="zero")
        return [convert_to_tensor(g) for g in found]

    @property
    def functions(self) -> list[Callable[..., list[Any]]]:
        """The function and its gradients."""
        return [self.values, self.gradients, self.second_gradients][: 1 + self.order]


def weighted(values: list[Any]) -> Any:
    """The sum of the elements of all values of floating dtype, each times a weight of its own."""
    parts = []
    for x in values:
        if x.dtype.is_floating:
            numbers = td.reshape(td.range(td.size(x), dtype=td.int32), td.shape(x))
            parts.append(td.reduce_sum(x * td.cast(td.cos(td.cast(numbers, td.float64)), x.dtype)))
    return td.add_n(parts)


def _of_case(case: Case) -> Sample:
    real = {"float32", "float64"} & set(case.dtypes)
    wanted = "float64" if real else case.dtypes[0]
    full = [s for s in case.shapes if all(0 not in shape for shape in s)]
    shapes = next((s for s in full if any(s)), case.shapes[0])
    order = (1 + case.twice) * case.differentiable * bool(real)
    arrays = tuple(case.arrays(shapes, wanted))
    return Sample(case.name, case.fn, arrays, order, case.symbolic, 1e-11)


def _of_complex_case(case: Case) -> Sample:
    arrays = tuple(case.arrays(case.shapes[1 % len(case.shapes)], "complex64"))
    return Sample(f"complex_{case.name}", case.fn, arrays, 0, case.symbolic, 1e-5)


def _of_program(program: Program) -> Sample:
    order = 2 * (program in NUMERIC and program.differentiable)
    close = 1e-6 if program.close else 1e-12
    fn = td.autograph.to_graph(program.fn)
    return Sample(program.name, fn, program.arrays, order, program.open_dims, close)


@cache
def samples() -> tuple[Sample, ...]:
    """All samples; programs first, as they are least."""
    found = [_of_program(p) for p in (*NUMERIC, *OTHERS)]
    found += map(_of_case, ALL)
    return (*found, *(_of_complex_case(c) for c in ALL if "complex64" in c.dtypes))


def all_ops() -> dict[str, Op]:
    """The registry, with the ops of modules that are imported on demand."""
    load_all_ops()
    assert td.py_function  # in autodiff, which is imported when its name is read
    return {name: op for name, op in OPS.items() if op.infer.__module__.startswith("treadle.")}


# -- what running them tells ---------------------------------------------------------------------


@dataclass
class Facts:
    """What is known of an op.

    Attributes:
        sample: a sample whose graph has it; `open_sample`: the same with open dims.
        order: how often it is differentiated.
    """

    sample: Sample | None = None
    open_sample: Sample | None = None
    order: int = 0


class _Calls(dict[str, tuple[Any, Any]]):
    """What a tape sees: the first call of each op in eager execution."""

    is_over = False
    _persistent = False

    def record(self, op: Op, inputs: Any, attrs: Any, outputs: Any) -> None:
        self.setdefault(op.name, (inputs, attrs))

    def watches(self, x: Any) -> bool:
        return False


@cache
def calls() -> dict[str, tuple[Any, Any]]:
    """For ops that run eagerly a call of theirs in a sample, as (inputs, attributes)."""
    found = _Calls()
    before = context.tapes
    try:
        add_tape(found)
        for sample in samples():
            for fn in sample.functions[:2]:
                fn(*(td.constant(a) for a in sample.arrays))
    finally:
        set_tapes(before)
    return found


@cache
def facts() -> dict[str, Facts]:
    """What the graphs of all samples tell, by the name of the op."""
    found = {name: Facts() for name in all_ops()}
    for sample in samples():
        _look(sample, found)
    return found


def _look(sample: Sample, found: dict[str, Facts]) -> None:
    for depth, fn in enumerate(sample.functions[:2]):
        for op, known in _known(traced(fn, sample.arrays), found):
            known.sample = known.sample or sample
            if op.gradient is not None:
                known.order = max(known.order, sample.order - depth)
        if sample.open_dims:
            for op, known in _known(traced(fn, sample.arrays, open_dims=True), found):
                known.sample = known.sample or sample
                known.open_sample = known.open_sample or sample
                if op.gradient is not None:
                    known.order = max(known.order, sample.order - depth)


def _known(graph: Graph, found: dict[str, Facts]) -> list[tuple[Op, Facts]]:
    """The ops of a graph, and what is known of them."""
    named = {node.op.name: node.op for node in graph.walk()}
    return [(op, found[name]) for name, op in named.items() if name in found]


def planned_ops(sample: Sample) -> tuple[set[Op], set[Op]]:
    """The ops of programs for a sample and its gradients, with those that passes write, and those
    of them that programs call."""
    found: set[Op] = set()
    called: set[Op] = set()
    for fn in sample.functions[:2]:
        graph = traced(fn, sample.arrays)
        if any(v.spec.dtype is dtypes.string for n in graph.walk() for v in n.outputs):
            return found, called  # programs have numbers in place of strings
        optimize(graph)
        planned = plan_program(graph)
        found |= {node.op for node in (*graph.walk(), *planned.work.walk())}
        called |= {s.node.op for s in all_steps(planned.block) if isinstance(s, Callback)}
    return found, called


def traced(fn: Callable[..., list[Any]], arrays: Any, open_dims: bool = False) -> Graph:
    """The graph of a function; with `open_dims` no dim of its arguments but 1 is known."""
    builder = GraphBuilder("f")
    params = []
    for spec in specs_of(arrays, open_dims):
        params.append(builder.parameter(spec.with_fresh_symbols("s")))
    with recording(builder), warnings.catch_warnings(action="ignore"):
        return builder.finish(fn(*params))


def specs_of(arrays: Any, open_dims: bool) -> list[TensorSpec]:
    """The signature for these arguments."""
    specs = []
    for array in arrays:
        tensor = td.constant(array)
        dims = [None if open_dims and d != 1 else d for d in np.shape(array)]
        specs.append(TensorSpec(dims, tensor.dtype))
    return specs


# -- dtypes --------------------------------------------------------------------------------------


def accepted(op: Op) -> list[DType]:
    """The dtypes of numbers that the op takes in its sample's call, in place of the one there."""
    found = []
    pure = op.effect is None and "strings" not in op.tags and op.name in calls()
    for dtype in NUMBERS if pure else ():
        specs, attrs = _call(op, dtype)
        if not all(isinstance(s, TensorSpec) for s in specs) or all(
            s.dtype is not dtype for s in specs
        ):
            continue
        try:
            op.infer(*specs, **attrs)
        except (TypeError, ValueError):
            continue
        found.append(dtype)
    return found


NUMBERS = dtypes.ALL


def _call(op: Op, dtype: DType) -> tuple[list[Any], Any]:
    """The specs and attributes of the op's call with another dtype for its main inputs: those of
    floating point numbers, or else those of the first one's dtype."""
    inputs, attrs = calls()[op.name]
    main = next((x.dtype for x in inputs if x.dtype.is_differentiable), None)
    main = main or (inputs[0].dtype if inputs else None)
    main = None if main is dtypes.string else main
    return [
        TensorSpec(x.dims, dtype) if x.dtype is main and isinstance(x.spec, TensorSpec) else x.spec
        for x in inputs
    ], attrs


def called_with(op: Op, dtype: DType) -> tuple[list[Any], Any]:
    """The inputs and attributes of the op's call with another dtype."""
    specs, attrs = _call(op, dtype)
    pairs = zip(calls()[op.name][0], specs, strict=True)
    return [x if x.dtype is s.dtype else td.cast(x, s.dtype) for x, s in pairs], attrs

"""Where programs come from: the corpus, the tests of the runtime, benchmarks, and random graphs."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from benchmarks.libraries import LIBRARIES
from benchmarks.measure import call
from benchmarks.workload import Workload, all_workloads, load
from tests.corpus.registry import Case
from tests.corpus.test_corpus import CASES, tensors
from tests.runtime import harness
from tests.runtime.fuzz.compare import EPSILON, spread
from tests.runtime.fuzz.execution import function
from tests.runtime.fuzz.generate import generate
from tests.runtime.gpu.collected import Collection
from treadle import runtime
from treadle.graph.ir import Graph
from treadle.runtime import interpreter


def corpus(found: Collection, cases: Sequence[Case] = CASES) -> None:
    """The functions of the corpus, and gradients of those that have one."""
    for number, case in enumerate(cases):
        if not case.tensors:
            continue
        name = f"{case.fn.__module__}.{case.fn.__name__} {number}"
        found.collect(name, lambda: td.function(case.fn)(*tensors(case)))
        if case.gradients:
            found.collect(f"gradient of {name}", lambda: _gradient(case))


def _gradient(case: Case) -> None:
    xs = tensors(case)
    with td.GradientTape() as tape:
        tape.watch(xs)
        y = td.function(case.fn)(*xs)
    tape.gradient(y, xs)


# Workloads of many small steps, each some launches: they run on the processor with smaller sizes.
LONG = ("datasets", "loops", "loops_over_parts", "scalar_loops")
# Rows are a whole number of the datasets' batches: which are shuffled into the last one must not
# count, as each pass shuffles anew.
SMALL = {"n": 12, "size": 20, "limit": 20, "rows": 640, "count": 60}


def workloads(modules: Sequence[str] | None = None) -> Iterator[tuple[Workload, bool]]:
    """The workloads that are a job of treadle, and whether the calls of each are to be kept. Those
    of `LONG` come a second time, smaller.

    Args:
        modules: of workloads; all by default.
    """
    for module, index in all_workloads().values():
        made = load((module, index))
        if made.fresh or (modules is not None and module not in modules):
            continue
        yield made, module not in LONG
        if module in LONG:
            smaller = copy.copy(made)
            smaller.name = f"{made.name}, smaller"
            for name in SMALL.keys() & vars(made).keys():
                setattr(smaller, name, min(SMALL[name], getattr(made, name)))
            yield smaller, True


def workload(found: Collection, made: Workload, calls: bool = True) -> None:
    """The programs of a workload's job."""

    def run() -> None:
        job = made.job(LIBRARIES["treadle"])
        if job is not None:
            call(job)

    found.collect(made.name, run, made.tolerance, calls=calls)


def graph(found: Collection, seed: int) -> None:
    """A random graph, for the sizes of its arrays, and for a batch of any size where it has one."""
    program = generate(seed)
    arrays = [program.arrays[v] for v in program.block.params]
    variables = {n: td.Variable(a) for n, a in program.variables.items()}
    body = function(program, variables)
    graphs = [harness.trace(body, *(td.TensorSpec(a.shape, a.dtype) for a in arrays))]
    if program.batch:
        with contextlib.suppress(Exception):  # it needs the size
            graphs.append(harness.trace(body, *program.specs()))
    for number, traced in enumerate(graphs):
        used = [n for n, v in enumerate(variables.values()) if any(c is v for c in traced.captures)]

        def moved(used: list[int] = used) -> list[Any]:
            spreads = spread(program)
            count = len(spreads) - len(variables)
            return [*spreads[:count], *(spreads[count + n] for n in used)]

        name = f"graph {seed}{' of any size' * number}"
        found.collect(name, lambda: _run(traced, arrays), spread=moved)


class Tests:
    """A plugin of pytest that keeps what tests give to `harness.both`, which does nothing then.

    Attributes:
        kept: the test, the graph, and the arrays of each.
    """

    def __init__(self) -> None:
        self.kept: list[tuple[str, Graph, list[Any]]] = []
        self.test = ""

    def both(self, graph: Graph, *arrays: Any, **others: Any) -> None:
        self.kept.append((self.test, graph, list(arrays)))

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.test = item.nodeid


def runtime_tests(found: Collection, names: Sequence[str]) -> None:
    """The graphs of tests of the runtime."""
    plugin, both = Tests(), harness.both
    folder = Path(harness.__file__).parent
    harness.both = plugin.both  # type: ignore[assignment]
    try:
        options = ["-qq", "--tb=no", "-rN", "-p", "no:cacheprovider"]
        pytest.main([*options, *(str(folder / n) for n in names)], [plugin])
    finally:
        harness.both = both
    for number, (test, traced, arrays) in enumerate(plugin.kept):
        moved = functools.partial(_moved, traced, arrays)
        found.collect(f"{test} {number}", lambda: _run(traced, arrays), spread=moved)


def _moved(traced: Graph, arrays: list[Any], runs: int = 4) -> list[Any]:
    """How far results and variables move when arguments are off by a few roundings of the
    coarsest numbers in the graph: sums of many products may differ by as much."""
    names = {v.spec.dtype.name for n in traced.walk() for v in (*n.inputs, *n.outputs)}
    epsilon = max((EPSILON[n] for n in names if n in EPSILON), default=0.0)
    plain = _interpreted(traced, arrays)
    found = [np.zeros(np.shape(a)) for a in plain]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        shaken = [
            (a * (1 + 4 * epsilon * rng.standard_normal(a.shape))).astype(a.dtype)
            if a.dtype.name in EPSILON
            else a
            for a in map(np.asarray, arrays)
        ]
        for total, a, b in zip(found, _interpreted(traced, shaken), plain, strict=True):
            np.maximum(total, np.abs(a.astype(np.float64) - b.astype(np.float64)), out=total)
    return found


def _interpreted(traced: Graph, arrays: list[Any]) -> list[Any]:
    """Results and variables afterwards, which are put back."""
    held = harness.captures(traced)
    variables = [v for v in held if isinstance(v, td.Variable)]
    start = [v.numpy().copy() for v in variables]
    found = [np.array(r) for r in interpreter.run(traced, [*map(np.asarray, arrays), *held])]
    found += [v.numpy().copy() for v in variables]
    for variable, array in zip(variables, start, strict=True):
        variable.assign(array)
    return found


def _run(traced: Graph, arrays: list[Any]) -> None:
    runtime.compile(traced).run([*map(np.asarray, arrays), *harness.captures(traced)])

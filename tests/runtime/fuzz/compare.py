"""Runs a program in every way there is and says where the results differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from tests.runtime.apart import Apart
from tests.runtime.cpu.machines import RUNNABLE
from tests.runtime.fuzz.execution import Noise, function
from tests.runtime.fuzz.program import Program, steps_of
from tests.runtime.harness import captures, native, trace
from treadle.core.errors import InvalidArgumentError
from treadle.graph.ir import Graph
from treadle.passes import disabled, switches
from treadle.runtime import Executable, compile, devices, interpreter
from treadle.runtime.cpu.target import using
from treadle.runtime.cpu.threads import pool
from treadle.runtime.scope import Scope

# What may round differently; results of programs with and without it agree nearly only.
ROUNDING = {"powers", "accumulations", "row_sums", "additions", "contraction", "narrow_products",
            "winograd"}  # fmt: skip
STAGES = ("graph", "target", "program")
SWITCHES = [s.name for s in switches() if s.stage in STAGES and not s.required]
EPSILON = {"float32": 1e-7, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}
NARROW = dict.fromkeys(EPSILON, 8e-3)
SIZES = (1, 2, 7, 40)  # of the batch, besides the one the program was made with


class Difference(Exception):
    """Two ways of running a program do not agree.

    Attributes:
        way: which way differs from the reference.
    """

    def __init__(self, way: str, what: str) -> None:
        super().__init__(f"{way}: {what}")
        self.way = way


@dataclass(frozen=True)
class Outcome:
    """What a run gave, and what the variables are after it."""

    results: list[Any]
    state: list[Any]

    def all(self) -> list[Any]:
        return [*self.results, *self.state]


def check(program: Program, seed: int, ways: Sequence[str] | None = None) -> int:
    """Run the program in every way.

    Args:
        seed: of what is chosen at random: switches.
        ways: names to keep to, of those below ("native", "off", "sizes", "function", "machine",
            "apart").

    Returns:
        How many runs were compared.

    Raises:
        Difference: two runs do not agree.
    """
    checks = Checks(program, seed)
    rng = np.random.default_rng([seed, 1])
    chosen = [w for w, p in WAYS.items() if rng.random() < p]
    for way in chosen if ways is None else ways:
        getattr(checks, way)()
    return checks.compared


WAYS = {"native": 1.0, "off": 0.35, "sizes": 0.7, "function": 0.3, "machine": 0.3, "apart": 0.3}


class Checks:
    """The ways of running one program."""

    def __init__(self, program: Program, seed: int) -> None:
        self.program = program
        self.rng = np.random.default_rng([seed, 2])
        self.wanted = eager(program)
        self.epsilons = EPSILON | (NARROW if _is_narrow(program) else {})
        self.compared = 0

    def native(self) -> None:
        """The compiled program: like eager and the interpreter, the same bits by any threads."""
        program = self.program
        variables = {n: td.Variable(a) for n, a in program.variables.items()}
        arrays = [program.arrays[v] for v in program.block.params]
        graph = trace(
            function(program, variables), *(td.TensorSpec(a.shape, a.dtype) for a in arrays)
        )
        values = [*arrays, *captures(graph)]
        interpreted = self._run(lambda: interpreter.run(graph, values), variables)
        self._compare("interpreter", interpreted, self.wanted)
        self.compiled = self._threads(native(graph), values, variables)
        self._compare("native", self.compiled, self.wanted)
        self.graph, self.values, self.variables = graph, values, variables

    def _threads(
        self, executable: Executable, values: list[Any], variables: dict[int, td.Variable]
    ) -> Outcome:
        before = pool().threads
        outcomes = []
        try:
            for count in (before, 1, 2, 3):
                pool().set_threads(count)
                outcomes.append(self._run(lambda: executable.run(values), variables))
        finally:
            pool().set_threads(before)
        for count, outcome in zip((1, 2, 3), outcomes[1:], strict=True):
            self._same_bits(f"{count} threads", outcome, outcomes[0])
        return outcomes[0]

    def off(self) -> None:
        """Compiled without some passes or mechanisms."""
        if not hasattr(self, "graph"):
            self.native()
        count = int(self.rng.integers(1, 5))
        names = [str(n) for n in self.rng.choice(SWITCHES, count, replace=False)]
        if self.rng.random() < 0.15:
            names = ["all"]
        with disabled(*names):
            outcome = self._threads(native(self.graph), self.values, self.variables)
        self._compare(f"without {', '.join(names)}", outcome, self.wanted)

    def machine(self) -> None:
        """Compiled for a machine with other vectors and caches."""
        if not hasattr(self, "graph"):
            self.native()
        name = str(self.rng.choice(sorted(RUNNABLE)))
        with using(RUNNABLE[name]):
            outcome = self._threads(native(self.graph), self.values, self.variables)
        self._compare(f"for {name}", outcome, self.wanted)

    def apart(self) -> None:
        """Scheduled for a device whose memory the host does not see."""
        if not hasattr(self, "graph"):
            self.native()
        with devices.using(Apart()):
            executable = compile(self.graph)
        if executable.mode != "apart":
            raise Difference("apart", executable.reason)
        outcome = self._run(lambda: executable.run(self.values), self.variables)
        self._compare("apart", outcome, self.wanted)

    def sizes(self) -> None:
        """Compiled once for all sizes of the batch."""
        program = self.program
        if not program.batch:
            return
        variables = {n: td.Variable(a) for n, a in program.variables.items()}
        try:
            graph = trace(function(program, variables), *program.specs())
        except Exception:
            return  # it needs the size
        executable = compile(graph)
        if executable.mode != "native":
            return  # it makes arrays of sizes that are found out late
        for size in (None, *SIZES):
            other = program if size is None else program.of_size(size)
            try:
                wanted = eager(other)
            except Exception:
                continue  # it does not work for this size
            if not _guarded(executable, graph, other):
                continue  # a call would have the graph interpreted
            values = [*(other.arrays[v] for v in other.block.params), *captures(graph)]
            outcome = self._run(lambda values=values: executable.run(values), variables)
            self._compare(f"size {size}", outcome, wanted, other)

    def function(self) -> None:
        """A function called again and again, with other sizes in between."""
        program = self.program
        variables = {n: td.Variable(a) for n, a in program.variables.items()}
        fn = td.function(function(program, variables), autograph=False)
        calls = [program] * 3
        if program.batch:
            calls += [program.of_size(n) for n in (5, 13, 5)] + [program]
        for number, other in enumerate(calls):
            try:
                wanted = eager(other)
            except Exception:
                continue
            args = [td.constant(other.arrays[v]) for v in other.block.params]
            try:
                outcome = self._run(lambda args=args: [r.numpy() for r in fn(*args)], variables)
            except (ValueError, InvalidArgumentError):
                if other is program:
                    raise
                continue  # a branch that does not run does not work for this size
            self._compare(f"call {number}", outcome, wanted, other)

    def _run(self, call: Any, variables: Mapping[int, td.Variable]) -> Outcome:
        for number, variable in variables.items():
            variable.assign(self.program.variables[number])
        results = call()
        self.compared += 1
        return Outcome(list(results), [v.numpy().copy() for v in variables.values()])

    def _same_bits(self, way: str, found: Outcome, wanted: Outcome) -> None:
        for n, (a, b) in enumerate(zip(found.all(), wanted.all(), strict=True)):
            if a.tobytes() != b.tobytes():
                raise Difference(way, f"result {n} has other bits")

    def _compare(
        self, way: str, found: Outcome, wanted: Outcome, program: Program | None = None
    ) -> None:
        spreads: list[Any] | None = None
        for n, (a, b) in enumerate(zip(found.all(), wanted.all(), strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape:
                raise Difference(way, f"result {n}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
            if not agree(a, b, None, self.epsilons):
                spreads = spreads or spread(program or self.program)
                if not agree(a, b, spreads[n], self.epsilons):
                    raise Difference(way, f"result {n}: {_summary(a, b)}")


def eager(program: Program, noise: Noise | None = None) -> Outcome:
    """The operations one by one."""
    variables = {n: td.Variable(a) for n, a in program.variables.items()}
    args = [td.constant(program.arrays[v]) for v in program.block.params]
    with np.errstate(all="ignore"):
        results = [r.numpy() for r in function(program, variables, noise)(*args)]
    return Outcome(results, [v.numpy() for v in variables.values()])


def _guarded(executable: Executable, graph: Graph, program: Program) -> bool:
    """Whether the dims are equal that the program takes to be equal."""
    scope = Scope()
    for param, value in zip(graph.params, program.block.params, strict=False):
        scope.bind(param.spec, program.arrays[value].shape)
    known = [(scope.known(a), scope.known(b)) for a, b in executable.guards]
    return all(a == b for a, b in known)


def _is_narrow(program: Program) -> bool:
    """Whether numbers of 16 bits occur: in kernels they have 32, so that less is rounded."""
    arrays = [*program.arrays.values(), *program.variables.values()]
    casts = {s.attrs.get("dtype") for s in steps_of(program.block)}
    return bool(({a.dtype.name for a in arrays} | casts) & {"float16", "bfloat16"})


def agree(found: Any, wanted: Any, spread: Any, epsilons: Mapping[str, float]) -> bool:
    """Whether the arrays differ by no more than rounding explains.

    Args:
        spread: how far noise of the size of rounding errors moves each element.
    """
    if found.dtype.name not in EPSILON:
        same = found == wanted
        return bool(np.all(same if spread is None else same | (spread > 0)))
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    epsilon = epsilons[found.dtype.name]
    finite = np.isfinite(b)
    scale = np.abs(b[finite]).max() if finite.any() else 0.0
    limit = 100 * epsilon * (np.abs(b) + 0.1 * scale + 0.1)
    if spread is not None:
        limit = limit + 30 * spread
    with np.errstate(all="ignore"):
        near = (np.abs(a - b) <= limit) & np.isfinite(a) & finite
    near |= (a == b) | (np.isnan(a) & np.isnan(b))
    if spread is not None:
        near |= ~np.isfinite(spread)
    return bool(near.all())


def spread(program: Program, runs: int = 6) -> list[Any]:
    """How far results move when every value in between is off by a few roundings."""
    with np.errstate(all="ignore"):
        plain = eager(program).all()
        found = [np.zeros(np.shape(a)) for a in plain]
        for seed in range(runs):
            try:
                noisy = eager(program, Shaken(seed)).all()
            except Exception:
                return [np.full(np.shape(a), np.inf) for a in plain]
            for total, a, b in zip(found, noisy, plain, strict=True):
                moved = np.abs(a.astype(np.float64) - b.astype(np.float64))
                np.maximum(total, np.where((a == b), 0.0, moved), out=total)
    return found


class Shaken:
    """Noise of a few units in the last place. Whole numbers stay: they are exact."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, x: Any) -> Any:
        if x.dtype.name not in EPSILON:
            return x
        value = x.numpy().astype(np.float64)
        size = 4 * EPSILON[x.dtype.name] * np.abs(value) * (value != np.floor(value))
        noise = np.where(np.isfinite(value), size * self.rng.standard_normal(value.shape), 0.0)
        return x + td.cast(td.constant(noise), x.dtype)


def _summary(a: Any, b: Any) -> str:
    """One of the elements that differ, the worst if there are numbers."""
    if a.dtype.name in EPSILON:
        a, b = a.astype(np.float64), b.astype(np.float64)
    wrong = ~((a == b) | ((a != a) & (b != b)))
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.abs(a.astype(np.float64) - b.astype(np.float64)), nan=np.inf)
    at = np.unravel_index(np.argmax(np.where(wrong, apart, -1.0)), a.shape)
    return f"{a[at]} instead of {b[at]} at {tuple(map(int, at))} of {a.shape}"

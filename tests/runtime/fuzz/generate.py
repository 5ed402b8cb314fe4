"""Makes random programs. Every step runs eagerly as it is chosen, so programs make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import treadle as td
from tests.runtime.fuzz.chooser import FLOATS, INTS, WIDE, Chooser, NoChoice
from tests.runtime.fuzz.execution import Run
from tests.runtime.fuzz.program import Block, Program, Step, steps_of
from tests.runtime.fuzz.registry import OPERATIONS

SMALL = (1, 2, 3, 5, 7, 16, 17, 33)
LARGE = (1, 3, 16, 33, 64, 100, 257, 1000)
BATCH = 11  # no other size: what it meets is of the batch's size, too
MOST_ELEMENTS = {"small": 40_000, "large": 600_000}
# How large whole numbers get, so that sums and products of them stay exact.
EXACT_LIMIT = {"float32": 2.0**12, "float64": 2.0**20, "float16": 128.0, "bfloat16": 16.0}
LIMIT = {"float32": 1e3, "float64": 1e3, "float16": 100.0, "bfloat16": 100.0}
REGIONS = ("while", "cond", "gradient")


@dataclass
class Profile:
    """What kind of program: drawn from the seed."""

    exact: bool
    large: bool
    symbolic: bool
    variables: bool
    narrow: bool
    steps: int
    regions: float


@dataclass
class Generator:
    """Grows a program step by step."""

    seed: int
    scopes: list[dict[int, Any]] = field(default_factory=list)
    variables: dict[int, td.Variable] = field(default_factory=dict)
    params: list[int] = field(default_factory=list)
    inputs: dict[int, Any] = field(default_factory=dict)
    batch: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.profile = self._profile()
        self.dims = LARGE if self.profile.large else SMALL

    def _profile(self) -> Profile:
        chance = self.rng.random
        large = chance() < 0.12
        return Profile(
            exact=chance() < 0.4,
            large=large,
            symbolic=chance() < 0.2,
            variables=chance() < 0.3,
            narrow=chance() < 0.2,
            steps=int(self.rng.integers(3, 9 if large else 25)),
            regions=float(self.rng.choice([0.0, 0.06, 0.15, 0.3])),
        )

    def program(self) -> Program:
        self.scopes.append({})
        floats = FLOATS if self.profile.narrow else WIDE
        chooser = Chooser(
            self.rng, self.scopes[0], self._fresh, self.profile.exact, self.dims, floats
        )
        self._start(chooser)
        initial = {k: v.numpy().copy() for k, v in self.variables.items()}
        steps = self._steps(chooser, self.profile.steps, 0)
        results = self._results(steps)
        return Program(
            Block(tuple(self.params), tuple(steps), tuple(results)),
            self.inputs,
            initial,
            self.batch,
        )

    def _results(self, steps: Sequence[Step]) -> list[int]:
        """What nothing else uses, and something of the rest."""
        made = [v for s in steps for v in s.outs]
        if not made:
            return list(self.params[:1])
        used: set[int] = set()
        for step in steps_of(Block((), tuple(steps), ())):
            used.update(step.args, *(b.results for b in step.bodies))
        picked = {made[int(self.rng.integers(len(made)))] for _ in range(self.rng.integers(3))}
        return sorted(picked | set([v for v in made if v not in used][-10:]))

    def _start(self, g: Chooser) -> None:
        main = g.pick(["float32", "float32", "float64", *g.floats[2:]])
        for _ in range(g.integer(1, 3)):
            shape = [g.pick(self.dims) for _ in range(g.pick([0, 1, 2, 2, 2, 3, 3, 4]))]
            while np.prod(shape) > MOST_ELEMENTS["large" if self.profile.large else "small"] / 8:
                shape[g.integer(0, len(shape) - 1)] = 1
            axis = None
            if self.profile.symbolic and shape:
                axis = 0 if g.chance(0.8) else g.integer(0, len(shape) - 1)
                shape[axis] = BATCH
            dtype = main if g.chance(0.7) else g.pick([*g.floats, *INTS, "bool"])
            value = g.new(shape, dtype)
            if axis is not None:
                self.batch[value] = axis
        if self.profile.variables:
            for _ in range(g.integer(1, 3)):
                like = g.value((*FLOATS, *INTS, "bool"))
                self.variables[self._number()] = td.Variable(g.data(g.shape(like), g.dtype(like)))

    def _number(self) -> int:
        self.count += 1
        return self.count - 1

    def _fresh(self, array: Any) -> int:
        number = self._number()
        self.params.append(number)
        self.inputs[number] = np.asarray(array)
        for scope in self.scopes:
            scope[number] = self.inputs[number]
        return number

    # Steps

    def _steps(self, g: Chooser, count: int, depth: int) -> list[Step]:
        steps: list[Step] = []
        for _ in range(count):
            for _attempt in range(30):
                step = self._step(g, depth)
                if step is not None:
                    steps.append(step)
                    break
        return steps

    def _step(self, g: Chooser, depth: int) -> Step | None:
        try:
            if depth < 3 and g.chance(self.profile.regions):
                step = self._region(g, depth)
            elif self.variables and g.chance(0.2):
                step = self._stateful(g)
            else:
                step = self._plain(g)
            return self._try(g, step)
        except NoChoice:
            return None

    def _plain(self, g: Chooser) -> Step:
        names = [n for n, o in OPERATIONS.items() if o.exact or not self.profile.exact]
        weights = np.array([OPERATIONS[n].weight for n in names])
        name = names[int(self.rng.choice(len(names), p=weights / weights.sum()))]
        args, attrs = OPERATIONS[name].choose(g)
        return Step(name, tuple(args), attrs, ())

    def _stateful(self, g: Chooser) -> Step:
        number = g.pick(list(self.variables))
        variable = self.variables[number]
        attrs = {"variable": number}
        if g.chance(0.4):
            return Step("read", (), attrs, (self._number(),))
        dtype, shape = variable.dtype.name, tuple(variable.shape)
        x = g.value((dtype,), test=lambda a: a.shape == shape)
        how = ["assign"] if dtype == "bool" else ["assign", "assign_add", "assign_sub"]
        return Step(g.pick(how), (x,), attrs, ())

    def _try(self, g: Chooser, step: Step) -> Step | None:
        """Run the step; its results are in scope then if they are of moderate size."""
        before = {k: v.numpy().copy() for k, v in self.variables.items()}
        try:
            step, found = self._run(g, step)
        except Exception:
            self._restore(before)
            return None
        if not all(self._moderate(a) for a in [*found, *self._state()]):
            self._restore(before)
            return None
        g.arrays.update(zip(step.outs, found, strict=True))
        return step

    def _run(self, g: Chooser, step: Step) -> tuple[Step, list[Any]]:
        with np.errstate(all="ignore"):
            if step.op in OPERATIONS:
                args = [td.constant(g.arrays[a]) for a in step.args]
                results = OPERATIONS[step.op].run(*args, **step.attrs)
                results = results if isinstance(results, list | tuple) else [results]
                step = replace(step, outs=self._numbers(len(results)))
            else:
                env = {k: td.constant(a) for k, a in g.arrays.items()}
                Run(self.variables).step(step, env)
                results = [env[v] for v in step.outs]
        return step, [r.numpy() for r in results]

    def _state(self) -> list[Any]:
        return [v.numpy() for v in self.variables.values()]

    def _restore(self, before: dict[int, Any]) -> None:
        for number, array in before.items():
            self.variables[number].assign(array)

    def _moderate(self, array: Any) -> bool:
        if array.ndim > 4 or array.size == 0:
            return False
        if array.size > MOST_ELEMENTS["large" if self.profile.large else "small"]:
            return False
        if array.dtype.name in FLOATS:
            limits = EXACT_LIMIT if self.profile.exact else LIMIT
            largest = np.abs(array.astype(np.float64)).max()
            return bool(largest <= limits[array.dtype.name])  # False for NaN
        return array.dtype.kind not in "iu" or bool(np.abs(array).max() <= 2**20)

    # Steps with bodies

    def _region(self, g: Chooser, depth: int) -> Step:
        open_scopes = len(self.scopes)
        try:
            return getattr(self, f"_{g.pick(REGIONS)}")(g, depth)
        finally:
            del self.scopes[open_scopes:]

    def _body(
        self, g: Chooser, params: dict[int, Any], depth: int, count: int, **more: Any
    ) -> tuple[list[Step], Chooser]:
        """Steps of a body, and what is in scope at its end."""
        before = {k: v.numpy().copy() for k, v in self.variables.items()}
        inner = Chooser(
            self.rng, {**g.arrays, **params}, self._fresh, g.exact, g.dims, g.floats,
            more.get("trips", g.trips), more.get("counter", g.counter),
        )  # fmt: skip
        self.scopes.append(inner.arrays)
        steps = self._steps(inner, count, depth + 1)
        self._restore(before)
        return steps, inner

    def _while(self, g: Chooser, depth: int) -> Step:
        carried = [g.value((*FLOATS, *INTS, "bool"))]
        carried += [g.value() for _ in range(g.integer(0, 2))]
        trips = g.integer(0, 7) if g.chance(0.8) else g.integer(8, 40)
        params = {self._number(): g.arrays[c] for c in carried}
        counter = self._number()
        scope = {**params, counter: np.asarray(0, np.int32)}
        made, inner = self._body(
            g, scope, depth, g.integer(1, 6), trips=max(trips, 1), counter=counter
        )
        results = [
            self._like(g.arrays[c], inner, made, p) for c, p in zip(carried, params, strict=True)
        ]
        stacked = self._stacked(inner, made) if trips else []
        dynamic = g.chance(0.25)
        args = [self._fresh(np.asarray(trips, np.int32)), *carried] if dynamic else carried
        attrs = {
            "count": None if dynamic else trips,
            "trips": trips,
            "stacked": [inner.dtype(s) for s in stacked],
            "growing": g.chance(0.3),
            "checkpoint": g.chance(0.15) and not self.variables,
        }
        body = Block((counter, *params), tuple(made), (*results, *stacked))
        return Step("while", tuple(args), attrs, self._numbers(len(body.results)), (body,))

    def _stacked(self, inner: Chooser, made: Sequence[Step]) -> list[int]:
        outs = [v for s in made for v in s.outs if inner.arrays[v].ndim < 4]
        count = min(len(outs), inner.integer(0, 2))
        return [inner.pick(outs) for _ in range(count)]

    def _numbers(self, count: int) -> tuple[int, ...]:
        return tuple(self._number() for _ in range(count))

    def _like(self, wanted: Any, inner: Chooser, made: list[Step], param: int | None) -> int:
        """A value of the body of the dtype and shape wanted, made from what is there if need be."""
        outs = [v for s in made for v in s.outs]

        def fits(v: int) -> bool:
            a = inner.arrays[v]
            return bool(a.dtype == wanted.dtype and a.shape == wanted.shape)

        if options := [v for v in outs if fits(v)]:
            return inner.pick(options)
        param = inner.pick([v for v in inner.arrays if fits(v)]) if param is None else param
        others = [v for v in outs if inner.dtype(v) in WIDE]
        if not others or wanted.dtype.name not in WIDE:
            return param
        step = Step("adapt", (inner.pick(others), param), {}, ())
        tried = self._try(inner, step)
        if tried is None:
            return param
        made.append(tried)
        return tried.outs[0]

    def _cond(self, g: Chooser, depth: int) -> Step:
        pred = g.value(("bool",), 0, 0) if g.chance(0.5) else self._fresh(np.asarray(g.chance(0.5)))
        like = [g.value() for _ in range(g.integer(1, 2))]
        bodies = []
        for _ in range(2):
            made, inner = self._body(g, {}, depth, g.integer(1, 4))
            results = tuple(self._like(g.arrays[v], inner, made, None) for v in like)
            bodies.append(Block((), tuple(made), results))
        return Step("cond", (pred,), {}, self._numbers(len(like)), tuple(bodies))

    def _gradient(self, g: Chooser, depth: int) -> Step:
        sources = list(dict.fromkeys(g.value(WIDE) for _ in range(g.integer(1, 3))))
        params = {self._number(): g.arrays[s] for s in sources}
        made, inner = self._body(g, params, depth, g.integer(2, 9))
        outs = [v for s in made for v in s.outs if inner.dtype(v) in WIDE]
        targets = list(dict.fromkeys(inner.pick(outs) for _ in range(g.integer(1, 2))))
        body = Block(tuple(params), tuple(made), tuple(targets))
        count = len(targets) + len(sources)
        return Step("gradient", tuple(sources), {}, self._numbers(count), (body,))


def generate(seed: int) -> Program:
    """The program of a seed: always the same one."""
    return Generator(seed).program()

"""Functions of the user in pipelines: traced once for the type of the elements, and compiled."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    DatasetSpec,
    Leaves,
    UserStructure,
    as_structure,
    as_value,
    call_arguments,
    holds_datasets,
    is_element,
    leaves_of,
    map_leaves,
    mapping_like,
    packed,
    packer,
    relaxed,
    sparse_tensor,
    spec_of,
)
from treadle.data.seeds import seeds_for
from treadle.data.stages.failures import Failure, paired, released
from treadle.data.stages.handles import dataset_of_spec
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.sources import leaf_value
from treadle.data.stages.stage import Stage, debugging, in_stage, no_end
from treadle.iteration import (
    NDArray,
    SparseTensorValue,
    Stream,
    at,
    children,
    drawing_from,
    from_array,
    global_seed,
    is_symbolic,
    making_alone,
    of_parts,
    rebuild,
    recording,
    specs_of_parts,
    taping,
    user_origin,
)

STATE = 3  # numbers of the state of a random stream
_STATES = 64  # that are drawn at once


def as_result(value: Any, top: bool = True) -> Any:
    """A function's result as a structure: a list at the top is a tuple, others are tensors."""
    if top and isinstance(value, list):
        value = tuple(value)
    if isinstance(value, Mapping):
        return mapping_like(value, {k: as_result(v, False) for k, v in value.items()})
    if isinstance(value, SparseTensorValue):
        return sparse_tensor(value)
    if isinstance(value, tuple):
        parts = [as_result(v, False) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or is_element(value):
        return value
    if isinstance(value, UserStructure):
        return rebuild(value, [as_result(part, False) for _, part in children(value) or ()])
    try:
        return td.convert_to_tensor(value)
    except ValueError as error:
        raise TypeError(str(error)) from error  # as TensorFlow has it for functions of datasets


class Mapped:
    """A user's function on elements, as a function on leaves.

    Args:
        fn: the user's function.
        specs: the specs of its arguments, each a structure.
        private: the seeds of the random ops that draw from states of this function's own. The
            states of each call are given to it; see `with_states`.

    Attributes:
        spec: the structure of its results.
        seeds: the seeds of the random ops that draw from streams that all share.
    """

    seeds: tuple[int | None, ...] = ()
    by_rank: _ByRank | None = None

    def __init__(
        self, fn: Callable[..., Any], specs: tuple[Any, ...], private: tuple[int | None, ...] = ()
    ) -> None:
        self.fn, self.pack = fn, packer(specs, as_value)
        self.eager = debugging.on or holds_datasets(specs)
        self.captures: tuple[Any, ...] = ()
        if self.eager:
            self.spec = result_spec(fn, specs)
            return
        self.ranked = [s.has_rank for s in leaves_of(specs)]
        inner = td.function(fn) if all(self.ranked) else td.autograph.to_graph(fn)

        def mapped(*args: Any) -> Any:
            return as_result(inner(*args))

        def mapped_parts(*parts: Any) -> Any:
            return mapped(*packed(specs, _joined(parts, self.ranked)))

        def with_own(*args: Any) -> Any:
            own = args[len(specs) :]
            with drawing_from(dict(zip(private, own, strict=True))):
                return mapped(*args[: len(specs)])

        if all(self.ranked):
            concrete = _traced(with_own, (*specs, *(_state() for _ in private)))
        else:
            flat = [part for spec in leaves_of(specs) for part in _part_specs(spec)]
            try:
                concrete = _traced(mapped_parts, flat)
            except (ValueError, TypeError, IndexError):
                self.by_rank = _ByRank(fn, specs)
                if not self.by_rank.found:  # then it is no matter of ranks
                    raise
                self.spec = self.by_rank.spec()
                return
        results = leaves_of(concrete.structured_outputs)
        if any(getattr(leaf, "is_dataset", False) for leaf in results):
            self.eager, self.spec = True, result_spec(fn, specs)
            return
        self.spec = map_leaves(_open_dims, concrete.structured_outputs)
        self.gives_ranked = [s.has_rank for s in leaves_of(self.spec)]
        self.concrete = concrete
        self.captures = tuple(map(_captured, concrete.captured_inputs))
        if all(self.ranked) and all(self.gives_ranked):
            found = [value for value in self.captures if isinstance(value, Stream)]
            self.seeds = tuple(stream.number for stream in found)

    def bound_to(self, captures: tuple[Any, ...]) -> Callable[[Leaves], Leaves]:
        """The function to call; `captures` has the values of symbolic tensors it closes over."""
        if self.eager:
            return self._call_eagerly
        if self.by_rank is not None:
            return self.by_rank
        run = _of_arrays(self.concrete)
        rest = list(captures)
        if all(self.ranked) and all(self.gives_ranked):
            return lambda leaves: tuple(run([*leaves, *rest]))

        def call(leaves: Leaves) -> Leaves:
            pairs = zip(leaves, self.ranked, strict=True)
            parts = [part for leaf, ranked in pairs for part in _parts(leaf, ranked)]
            return tuple(_joined(run([*parts, *rest]), self.gives_ranked))

        return call

    def with_states(self, captures: tuple[Any, ...]) -> Callable[[tuple[Leaves, Any]], Leaves]:
        """The function of (leaves, states), for one with states of its own: programs that run at
        once have different variables for them."""
        run, rest = _of_arrays(self.concrete), list(captures)
        free = deque[list[td.Variable]]()

        def call(given: tuple[Leaves, Any]) -> Leaves:
            leaves, states = given
            try:
                variables = free.pop()
            except IndexError:
                variables = [_state() for _ in states]
            for variable, state in zip(variables, states, strict=True):
                variable.overwrite(state)
            try:
                return tuple(run([*leaves, *variables, *rest]))
            finally:
                free.append(variables)

        return call

    def _call_eagerly(self, leaves: Leaves) -> Leaves:
        with td.device("CPU:0"):
            result = as_result(self.fn(*self.pack(leaves)))
        return tuple(np.asarray(x) if isinstance(x, td.Tensor) else x for x in leaves_of(result))


class _ByRank:
    """A user's function on elements of which some leaves have an unknown rank, where it must know
    the ranks: traced for those that the elements have.

    Args:
        fn: the user's function.
        specs: the specs of its arguments.

    Attributes:
        found: the function for each combination of ranks that was met, or that the type of its
            results is made from: those up to `MOST` for which it can be traced.
    """

    MOST = 5

    def __init__(self, fn: Callable[..., Any], specs: tuple[Any, ...]) -> None:
        self.fn, self.specs, self.leaves = fn, specs, leaves_of(specs)
        self.open = [i for i, spec in enumerate(self.leaves) if not spec.has_rank]
        self.found: dict[tuple[int, ...], Mapped] = {}
        for rank in range(self.MOST + 1):
            with contextlib.suppress(Exception):  # this rank may be none of the function's
                self._of((rank,) * len(self.open))

    def spec(self) -> Any:
        """The type of the results: without a rank where that depends on the elements."""
        specs = [mapped.spec for mapped in self.found.values()]
        leaves = [_common(column) for column in zip(*map(leaves_of, specs), strict=True)]
        return packer(specs[0])(tuple(leaves))

    def _of(self, ranks: tuple[int, ...]) -> Mapped:
        if ranks not in self.found:
            leaves = list(self.leaves)
            for place, rank in zip(self.open, ranks, strict=True):
                leaves[place] = td.TensorSpec([None] * rank, leaves[place].dtype)
            self.found[ranks] = Mapped(self.fn, packer(self.specs)(tuple(leaves)))
        return self.found[ranks]

    def __call__(self, leaves: Leaves) -> Leaves:
        mapped = self._of(tuple(leaves[place].ndim for place in self.open))
        return mapped.bound_to(mapped.captures)(leaves)


def _common(specs: Sequence[Any]) -> Any:
    """The type of leaves of several types: without a rank where theirs differ."""
    found = specs[0]
    for spec in specs[1:]:
        found = relaxed(found, spec, "results") if found.shape.rank == spec.shape.rank else (
            td.TensorSpec(None, found.dtype))  # fmt: skip
    return found


def _traced(fn: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """The compiled function for these specs: on the host, unless it says or captures otherwise."""
    with td.device("CPU:0"):
        return td.function(autograph=False)(fn).get_concrete_function(*specs)


def _of_arrays(concrete: Any) -> Callable[[list[Any]], Any]:
    """A compiled function as one of arrays on the host, wherever it runs."""
    run, device = concrete.executable.run, concrete.graph.device
    if device.kind == "CPU":
        return run  # type: ignore[no-any-return]
    storage = device.storage

    def call(values: list[Any]) -> list[Any]:
        there = [storage.from_host(x) if isinstance(x, np.ndarray) else x for x in values]
        return [x if isinstance(x, np.ndarray) else storage.to_host(x) for x in run(there)]

    return call


def _state() -> Any:
    """A variable on the host for the state of a random stream."""
    with making_alone():
        return td.Variable(np.zeros(STATE, np.int64), trainable=False)


def _part_specs(spec: Any) -> tuple[Any, ...]:
    return (spec,) if spec.has_rank else specs_of_parts(spec.dtype)


def _parts(leaf: Any, ranked: bool) -> tuple[Any, ...]:
    """What stands for a leaf in a program: for one of unknown rank, its elements and its shape."""
    return (leaf,) if ranked else (leaf.reshape(-1), np.array(leaf.shape, np.int64))


def _joined(parts: Sequence[Any], ranked: Sequence[bool]) -> list[Any]:
    """The leaves that parts stand for."""
    given = iter(parts)
    return [next(given) if known else of_parts(next(given), next(given)) for known in ranked]


def _captured(value: Any) -> Any:
    """A captured thing as compiled programs take it; symbolic tensors are found out later."""
    return np.asarray(value) if isinstance(value, td.Tensor) and not is_symbolic(value) else value


def _open_dims(spec: Any) -> Any:
    return td.TensorSpec(spec.shape, spec.dtype)


def result_spec(fn: Callable[..., Any], specs: tuple[Any, ...]) -> Any:
    """The spec of the result of `fn` for elements of these specs, found by tracing it aside."""
    found: list[Any] = []
    flat = leaves_of(specs)
    tensors = [
        part for s in flat if not isinstance(s, DatasetSpec) for part in _part_specs(s)
    ]  # fmt: skip

    def probe(*values: Any) -> int:
        given = iter(values)
        leaves = [
            dataset_of_spec(s.element_spec) if isinstance(s, DatasetSpec)
            else next(given) if s.has_rank else of_parts(next(given), next(given))
            for s in flat
        ]  # fmt: skip
        found.append(spec_of(as_result(fn(*packer(specs)(tuple(leaves))))))
        return 0

    with td.device("CPU:0"):
        td.function(probe).get_concrete_function(*tensors)
    return found[-1]


def argument_specs(spec: Any) -> tuple[Any, ...]:
    return call_arguments(spec)(spec)


class Map(Stage):
    """The function's results for all elements.

    A random function with seeds begins anew with every iterator, as TensorFlow's does, and goes on
    in the passes of a `repeat`: each element has streams of its own.
    """

    own_streams = False  # whether each element has streams of its own without seeds, too

    def __init__(self, inner: Stage, fn: Callable[..., Any]) -> None:
        self.inner = inner
        self.function = Mapped(fn, argument_specs(inner.spec))
        seeds = self.function.seeds
        restarts = [seed is not None or global_seed() is not None for seed in seeds]
        if seeds and (self.own_streams or any(restarts)):
            self.function = Mapped(fn, argument_specs(inner.spec), seeds)
        else:
            seeds = ()
        self.randomness = [
            Randomness(seeds_for(seed), True, restarts=again)
            for seed, again in zip(seeds, restarts, strict=False)
        ]
        self.captures = self.function.captures
        self.spec = self.function.spec

    def open(self) -> Iterator[Leaves]:
        return self.resume(0)

    def resume(self, count: int) -> Iterator[Leaves]:
        return map(*self.call_and_items(count))

    def call_and_items(self, skip: int) -> tuple[Callable[[Any], Leaves], Iterator[Any]]:
        """The function, whose errors name this stage, and what it is called with: an element, or an
        element with the states of its streams, for those after the first `skip`."""
        source: Iterator[Any] = self.inner.resume(skip) if skip else self.inner.open()
        if not self.randomness:
            return in_stage(self, self.function.bound_to(self.captures)), source
        states = [_drawn(randomness.generator(), skip) for randomness in self.randomness]
        call = in_stage(self, self.function.with_states(self.captures))
        return call, zip(source, zip(*states, strict=False), strict=False)

    def cardinality(self) -> int:
        return self.inner.cardinality()


def _drawn(generator: np.random.Generator, skip: int) -> Iterator[NDArray]:
    """States for one element after another, but for those of the first `skip`."""
    generator.integers(0, 1 << 63, (skip, STATE))
    while True:
        yield from generator.integers(0, 1 << 63, (_STATES, STATE))


class _Test(Stage):
    """A stage with a predicate."""

    what = "predicate"

    def __init__(self, inner: Stage, fn: Callable[..., Any]) -> None:
        self.inner, self.spec = inner, inner.spec
        self.function = Mapped(fn, argument_specs(inner.spec))
        self.captures = self.function.captures
        if self.function.spec != td.TensorSpec((), td.bool):
            raise ValueError(
                f"{self.what}: the predicate must return a bool scalar, not "
                f"{self.function.spec!r}{at(user_origin())}"
            )

    def test(self) -> Callable[[Leaves], bool]:
        call = in_stage(self, self.function.bound_to(self.captures))
        return lambda leaves: bool(call(leaves)[0])


class Filter(_Test):
    what = "filter"

    def open(self) -> Iterator[Leaves]:
        return filter(self.test(), self.inner.open())


class TakeWhile(_Test):
    what = "take_while"

    def open(self) -> Iterator[Leaves]:
        test = self.test()
        return released(self._elements(test), self)

    def _elements(self, test: Callable[[Leaves], bool]) -> Iterator[Any]:
        for found in paired(test, self.inner.open()):
            if type(found) is Failure:
                yield found
            elif found[0]:
                yield found[1]
            else:
                return


class Scan(Stage):
    """``state, output = fn(state, element)``."""

    def __init__(self, inner: Stage, initial: Any, fn: Callable[..., Any]) -> None:
        self.inner = inner
        state = as_structure(initial)
        self.start = tuple(map(leaf_value, leaves_of(state)))
        self.start_count = len(self.start)
        self.function = folding("scan", fn, spec_of(state), inner.spec, pair=True)
        self.captures = self.function.captures
        self.spec = self.function.spec[1]

    def open(self) -> Iterator[Leaves]:
        call, count = in_stage(self, self.function.bound_to(self.captures)), self.start_count
        state: Any = tuple(map(np.asarray, self.start))

        def step(leaves: Leaves) -> Leaves:
            nonlocal state
            result = call((*state, *leaves))
            state = result[:count]
            rest: Leaves = result[count:]
            return rest

        return map(step, self.inner.open())

    def cardinality(self) -> int:
        return self.inner.cardinality()


def folding(what: str, fn: Callable[..., Any], state: Any, element: Any, pair: bool) -> Mapped:
    """A function of (state, element), traced with the dims and ranks of the state open that it
    changes.

    Args:
        pair: it returns (state, output) and not the state alone.

    Raises:
        TypeError: the state changes its structure or dtype.
    """
    while True:
        function = Mapped(fn, (state, element))
        after = function.spec
        if pair:
            if type(after) is not tuple or len(after) != 2:
                raise TypeError(
                    f"{what}: the function must return a pair of the new state and the output, "
                    f"not {after!r}{at(user_origin())}"
                )
            after = after[0]
        text = f"{what}: the state before and after an element"
        wider = relaxed(state, after, text, ranks_too=True)
        if wider == state:
            return function
        state = wider


class DatasetFunction:
    """A function from elements to datasets. It runs in Python for every element.

    Attributes:
        captures: the values in its closure; a stage stores them: symbolic tensors among them have
            their values only where the stage is opened.
    """

    def __init__(self, fn: Callable[..., Any], inner: Any, what: str) -> None:
        self.fn, self.what = fn, what
        self.pack, self.arguments = packer(inner, as_value), call_arguments(inner)
        found = result_spec(fn, argument_specs(inner))
        if not isinstance(found, DatasetSpec):
            raise TypeError(
                f"{what}: the function must return a Dataset, not {found!r}{at(user_origin())}"
            )
        self.spec = found.element_spec
        self.captures: tuple[Any, ...] = _symbolic_cells(fn)

    def bound_to(self, captures: tuple[Any, ...]) -> Callable[[Leaves], Iterator[Leaves]]:
        """The function to call, with these values in its closure."""
        fn = _with_cells(self.fn, captures) if captures else self.fn

        def call(leaves: Leaves) -> Iterator[Leaves]:
            with recording(None), taping(()):
                try:
                    result = fn(*self.arguments(self.pack(leaves)))
                except td.errors.OutOfRangeError as error:
                    raise no_end(self.what, error) from error
            relaxed(result.element_spec, self.spec, self.what)
            opened: Iterator[Leaves] = result._stage.open()
            return opened

        return call


def _symbolic_cells(fn: Any) -> tuple[Any, ...]:
    """The contents of a function's closure where symbolic tensors are among them."""
    cells = getattr(fn, "__closure__", None) or ()
    held = tuple(_content(cell) for cell in cells)
    return held if any(map(is_symbolic, held)) else ()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _with_cells(fn: Any, contents: tuple[Any, ...]) -> Any:
    """The function with arrays, which stand for tensors now, in its closure."""
    cells = [
        CellType(from_array(new)) if is_symbolic(_content(old)) else old
        for old, new in zip(fn.__closure__, contents, strict=True)
    ]
    copy = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells))
    copy.__kwdefaults__ = fn.__kwdefaults__
    return copy

"""``vectorized_map``: a function of one example, computed for all examples of a batch at once.

The function is traced for one example. Its nodes then run again, in order, on values that hold all
examples along a first axis, by the batching rules of their ops (`Op.batch`). Values that do not
depend on an example stay as they are.

A branch whose condition differs between examples runs both ways, and a loop runs until no example
goes on; each result is taken where it belongs. Rows that a branch or an iteration does not concern
are computed from an example that it does concern, so that nothing happens which the function would
not do: no position out of range, no division by zero, no NaN in a gradient.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core import dtypes, errors, nest
from treadle.core.context import context, noted_meanwhile, recording
from treadle.core.origin import at, attributed_to, user_origin
from treadle.core.shapes import Dim, dim_symbols, symbol_name
from treadle.core.spec import ListSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Node, Region, Value
from treadle.graph.replay import Dims, learn_dims, substitute_dims, substitute_spec
from treadle.graph.rewrite import attr_symbols
from treadle.ops.batching import (  # noqa: F401  (they give ops their rules)
    collectives,
    images,
    lists,
    positions,
    strings,
)
from treadle.ops.batching.call import BatchedCall, NoRule, Same, numbers_of, repeated
from treadle.ops.batching.families import rule_of
from treadle.ops.batching.random import drawn_apart
from treadle.ops.collections.lists import LIST_LENGTH
from treadle.ops.collections.mapping import map_fn
from treadle.ops.control.control_flow import COND, WHILE, cond, staged_loop, traceable
from treadle.ops.conversion import CONST, convert_to_tensor
from treadle.ops.dims import OPEN_DIM, SHAPE
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.logic import logical_and
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import GATHER, dense
from treadle.ops.lowering import Compute, Structure
from treadle.ops.random.ops import SCRAMBLE, SKIP
from treadle.ops.reductions.reduction import argmax, reduce_all, reduce_any
from treadle.ops.registry import Op, run
from treadle.ops.requirements import require
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.shaping.slicing import STRIDED_SLICE
from treadle.ops.state import ASSIGN, READ, Variable


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """``fn(elems[0]), fn(elems[1]), ...`` along a new first axis, all computed at once.

    Args:
        fn: takes one example, in the structure of `elems`, and returns a tensor or a structure.
            It is traced once; random numbers are drawn for each example.
        elems: a tensor, or a structure of tensors with one first dim; tensors whose first dim is 1
            are the same for each example.
        fallback_to_while_loop: run operations that cannot be computed for all examples at once
            in a loop over the examples. False: they are refused.
        warn: whether a warning names the operations that run in a loop.

    Returns:
        The structure that `fn` returns: tensors of shape ``[n, *result.shape]``, also for
        IndexedSlices.

    Raises:
        TypeError: `fn` is no function, or returns what is no tensor.
        ValueError: a tensor of `elems` is a scalar, or an operation would run in a loop and
            `fallback_to_while_loop` is False.
        InvalidArgumentError: the first dims differ.
    """
    function = traceable("vectorized_map", always=True, fn=fn)
    examples, count = _examples(elems)
    structure: list[Any] = []

    def one(*params: Tensor) -> list[Any]:
        moving = iter(params)
        result = function(
            nest.pack(elems, [next(moving) if x.batched else x.tensor for x in examples])
        )
        result = nest.map_structure(dense, result, expand_composites=False)
        structure.append(result)
        return nest.flatten(result)

    moving = [x.tensor for x in examples if x.batched]
    found = all_at_once("vectorized_map", one, moving, count, fallback_to_while_loop, warn=warn)
    return nest.pack(structure[0], found)


def all_at_once(
    what: str,
    fn: Callable[..., list[Any]],
    examples: Sequence[Tensor],
    count: Dim,
    may_loop: bool = True,
    warn: bool = True,
) -> list[Tensor | None]:
    """The results of `fn` for all examples, along a new first axis.

    Args:
        what: the function of the user's program that asks, for errors and warnings.
        fn: takes a tensor for each of `examples`, gives a list of values or None. It is traced
            once; tapes see the operations on all examples.
        examples: tensors that hold the examples along their first axis.
        count: how many examples there are.
        may_loop: whether operations without a batching rule run in a loop, of which a warning
            tells if `warn`.
    """
    is_given: list[bool] = []

    def traced(*params: Tensor) -> list[Tensor]:
        results = fn(*params)
        is_given[:] = [x is not None for x in results]
        return [convert_to_tensor(x) for x in results if x is not None]

    batched = [_Value(x, True) for x in examples]
    region, captured = _trace(what, traced, [x.example_spec for x in batched])
    values = [*batched, *(_Value(x, False) for x in captured)]
    batch = _Batch(what, count, may_loop)
    try:
        found = [batch.whole(x) for x in batch.run(region, values)]
        how = f"{', '.join(sorted(op.name for op in batch.looped))}" if batch.looped else ""
    except _MustLoop as error:
        found = batch.looped_region(region, values)
        how = f"the whole function, because of {error},"
    if warn and how:
        warnings.warn(
            f"{what} runs {how} example by example in a loop{at(user_origin())}", stacklevel=3
        )
    given = iter(found)
    return [next(given) if g else None for g in is_given]


class _MustLoop(Exception):
    """A node whose results for all examples are no tensors; the text names its op."""


class _Value(NamedTuple):
    """A tensor, and whether it holds the examples along its first axis."""

    tensor: Any
    batched: bool

    @property
    def example_spec(self) -> Spec:
        """The spec for one example."""
        spec: Spec = self.tensor.spec
        if not self.batched or isinstance(spec, ListSpec):
            return spec
        return TensorSpec(spec.dims[1:], spec.dtype)


def _examples(elems: Any) -> tuple[list[_Value], Dim]:
    """The tensors of `elems`, and how many examples there are."""
    tensors = [convert_to_tensor(x) for x in nest.flatten(elems)]
    if not tensors or any(x.ndim == 0 for x in tensors):
        raise ValueError(
            f"vectorized_map: elems holds tensors of rank 1 or more, got {elems!r}"
            f"{at(user_origin())}"
        )
    firsts = [x.dims[0] for x in tensors]
    known = [d for d in firsts if isinstance(d, int) and d != 1]
    count = next(iter(known), next((d for d in firsts if not isinstance(d, int)), 1))
    if any(d != known[0] for d in known):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"vectorized_map: the first dims {firsts} of elems differ{at(user_origin())}",
        )
    values = []
    for x in tensors:
        if x.dims[0] == 1 and count != 1:
            values.append(_Value(reshape_to(x, x.dims[1:]), False))
        else:
            text = "vectorized_map: the tensors of elems have different numbers of elements"
            values.append(_Value(require(x, [(x.dims[0], count)], text), True))
    return values, count


def _trace(
    what: str, fn: Callable[..., list[Tensor]], specs: Sequence[Spec]
) -> tuple[Region, list[Any]]:
    """The region of a function, and the values of outside that its last parameters stand for."""
    recorder: Any = context.recorder

    def run_of_one(*params: Tensor) -> list[Tensor]:
        with noted_meanwhile():  # tapes see the operations on all examples later
            return fn(*params)

    if recorder is not None:
        child = recorder.trace_region(run_of_one, specs)
        captured = recorder.align_captures([child])
        return child.region, captured
    builder = GraphBuilder(what)
    params = [builder.parameter(s) for s in specs]
    try:
        with recording(builder):
            graph = builder.finish(run_of_one(*params))
    finally:
        builder.finished = True
    return graph, list(graph.captures)


class _Batch:
    """Runs regions for all examples.

    Attributes:
        what: the function of the user's program that asks.
        draws: whether random numbers are drawn for each example.
        looped: the ops that ran example by example.
    """

    def __init__(self, what: str, count: Dim, may_loop: bool, draws: bool = True) -> None:
        self.what, self.count, self.may_loop, self.draws = what, count, may_loop, draws
        self.looped: set[Op] = set()

    def whole(self, value: _Value) -> Tensor:
        """A value for all examples."""
        return value.tensor if value.batched else repeated(value.tensor, self.count)

    # -- nodes -------------------------------------------------------------------------------

    def run(self, region: Region, inputs: Sequence[_Value]) -> list[_Value]:
        """The results of a region for values of its parameters."""
        values: dict[Value, _Value] = {}
        dims: Dims = {}  # symbol of the region -> the dim that replaces it
        numbers: dict[str, Tensor] = {}  # symbol of the region -> its number in each example
        for param, given in zip(region.params, inputs, strict=True):
            values[param] = given
            learn_dims(param.spec, given.example_spec, dims)
        for node in _needed(region):
            if any(v not in values for v in node.inputs):  # a region that needs such a number
                raise self._must_loop(OPEN_DIM)
            operands = [values[v] for v in node.inputs]
            if node.op is OPEN_DIM and operands[0].batched:
                (name,) = node.outputs[0].spec.symbols()
                numbers[name] = operands[0].tensor
                continue
            with attributed_to(node.origin or user_origin()):
                if numbers and numbers.keys() & attr_symbols(node.attrs):
                    outputs = [self._sliced_apart(node, operands[0], dims, numbers)]
                else:
                    outputs = self._node(node, operands, dims)
            for value, output in zip(node.outputs, outputs, strict=True):
                values[value] = output
                if not isinstance(value.spec, ListSpec):
                    learn_dims(value.spec, output.example_spec, dims)
        return [values[v] for v in region.results]

    def _node(self, node: Node, operands: list[_Value], dims: Dims) -> list[_Value]:
        attrs = {name: substitute_dims(value, dims) for name, value in node.attrs.items()}
        try:
            if node.op is COND:
                return self._cond(node, operands)
            if node.op is WHILE:
                return self._while(node, operands)
            if self.draws and _draws_anew(node) and not operands[0].batched:
                return self._draw(node, operands, attrs)
            if not any(x.batched for x in operands):
                return [_Value(x, False) for x in _run(node, operands, attrs)]
            return self._by_rule(node, operands, attrs)
        except NoRule as error:
            return self._example_by_example(node, operands, dims, str(error))

    def _sliced_apart(
        self, node: Node, operand: _Value, dims: Dims, numbers: Mapping[str, Tensor]
    ) -> _Value:
        """A slice that starts at sizes which differ between examples; nothing else has them."""
        sizes = {n: v for n, v in node.attrs.items() if n != "begin"}
        if node.op is not STRIDED_SLICE or numbers.keys() & attr_symbols(sizes):
            raise self._must_loop(OPEN_DIM)
        begins: list[Dim | Tensor] = []
        for begin in node.attrs["begin"]:
            number = numbers.get(symbol_name(begin) or "")
            if number is None and numbers.keys() & dim_symbols(begin):
                raise self._must_loop(OPEN_DIM)
            begins.append(substitute_dims(begin, dims) if number is None else number)
        attrs = {name: substitute_dims(value, dims) for name, value in node.attrs.items()}
        call = BatchedCall(node.op, [operand.tensor], [operand.batched], attrs, self.count)
        return _Value(positions.slices_of_examples(call, begins), True)

    def _must_loop(self, op: Op) -> Exception:
        """The error that has the whole function run in a loop, or that refuses it."""
        if self.may_loop:
            return _MustLoop(op.name)
        return ValueError(
            f"{self.what}: a size differs between examples: {op.name} cannot be computed for all "
            f"examples at once{at(user_origin())}"
        )

    def _by_rule(self, node: Node, operands: list[_Value], attrs: dict[str, Any]) -> list[_Value]:
        rule = rule_of(node.op)
        if rule is None:
            raise NoRule("there is no batching rule for it")
        tensors, batched = [x.tensor for x in operands], [x.batched for x in operands]
        found = rule(BatchedCall(node.op, tensors, batched, attrs, self.count, self.replay))
        return [
            _Value(x.value, False) if isinstance(x, Same) else _Value(x, True)
            for x in _as_tuple(found)
        ]

    def replay(
        self, region: Region, inputs: Sequence[Any], batched: Sequence[bool]
    ) -> list[Tensor]:
        """The results of a region for all examples."""
        values = [_Value(x, b) for x, b in zip(inputs, batched, strict=True)]
        return [self.whole(x) for x in self.run(region, values)]

    def _draw(self, node: Node, operands: list[_Value], attrs: dict[str, Any]) -> list[_Value]:
        """Random numbers of each example's own."""
        if any(x.batched for x in operands):
            tensors, batched = [x.tensor for x in operands], [x.batched for x in operands]
            call = BatchedCall(node.op, tensors, batched, attrs, self.count)
            return [_Value(drawn_apart(call), True)]
        shape = (self.count, *attrs["shape"])
        found = run(node.op, *(x.tensor for x in operands), **{**attrs, "shape": shape})
        return [_Value(found, node.op is not SKIP)]

    def _example_by_example(
        self, node: Node, operands: list[_Value], dims: Dims, reason: str
    ) -> list[_Value]:
        """A node in a loop over the examples."""
        if not self.may_loop:
            raise ValueError(
                f"{self.what}: {node.op.name} cannot be computed for all examples at once: "
                f"{reason}"
                f"{at(user_origin())}"
            )
        specs = [_open_spec(substitute_spec(v.spec, dims)) for v in node.outputs]
        if any(map(_is_list, [*node.outputs, *operands])) or any(
            not all(isinstance(d, int) for d in s.dims) and not _is_known(v.spec, dims)
            for s, v in zip(specs, node.outputs, strict=True)
        ):
            raise _MustLoop(node.op.name)
        self.looped.add(node.op)
        found = _loop_over(operands, lambda xs: _ONE._node(node, xs, dims), specs)
        return [_Value(x, True) for x in found]

    def looped_region(self, region: Region, inputs: Sequence[_Value]) -> list[Tensor]:
        """The results of a region in a loop over the examples."""
        specs = [v.spec.dtype for v in region.results]
        return _loop_over(inputs, lambda xs: _ONE.run(region, xs), specs)

    # -- branches ----------------------------------------------------------------------------

    def _cond(self, node: Node, operands: list[_Value]) -> list[_Value]:
        test, inputs = operands[0], operands[1:]
        then, otherwise = node.regions
        flags = [x.batched for x in inputs]
        if not test.batched:
            pairs = zip(_flags(then, flags), _flags(otherwise, flags), strict=True)
            wholes = [a or b for a, b in pairs]
            found = cond(
                test.tensor,
                lambda: self._as(wholes, self.run(then, inputs)),
                lambda: self._as(wholes, self.run(otherwise, inputs)),
            )
            return [_Value(x, w) for x, w in zip(found, wholes, strict=True)]
        _check_selectable(node, inputs)
        everywhere = [True] * len(node.outputs)
        if _is_total(then) and _is_total(otherwise):
            found = self._select(test.tensor, self.run(then, inputs), self.run(otherwise, inputs))
            return [_Value(x, True) for x in found]

        def both() -> list[Tensor]:
            chosen = self._concerned(test.tensor, inputs)
            rest = self._concerned(~test.tensor, inputs)
            return self._select(test.tensor, self.run(then, chosen), self.run(otherwise, rest))

        found = cond(
            reduce_all(test.tensor),
            lambda: self._as(everywhere, self.run(then, inputs)),
            lambda: cond(
                reduce_any(test.tensor),
                both,
                lambda: self._as(everywhere, self.run(otherwise, inputs)),
            ),
        )
        return [_Value(x, True) for x in found]

    def _as(self, wholes: Sequence[bool], values: Sequence[_Value]) -> list[Tensor]:
        """Tensors that hold all examples where `wholes` says so."""
        pairs = zip(wholes, values, strict=True)
        return [self.whole(x) if w else x.tensor for w, x in pairs]

    def _select(self, chosen: Tensor, a: Sequence[_Value], b: Sequence[_Value]) -> list[Tensor]:
        """For each example the results of one of two sides."""
        found = []
        for x, y in zip(map(self.whole, a), map(self.whole, b), strict=True):
            if x.ndim != y.ndim:
                raise NoRule("its branches give different ranks")
            mask = reshape_to(chosen, (self.count, *(1,) * (x.ndim - 1)))
            found.append(where(mask, x, y))
        return found

    def _concerned(self, mask: Tensor, values: Sequence[_Value]) -> list[_Value]:
        """Values in which examples outside of `mask` are replaced by the first one inside."""
        first = argmax(_number(mask))
        rows = where(mask, numbers_of(self.count), _number(first))
        return [
            _Value(run(GATHER, x.tensor, rows, axis=0, batch_dims=0), True) if x.batched else x
            for x in values
        ]

    # -- loops -------------------------------------------------------------------------------

    def _while(self, node: Node, operands: list[_Value]) -> list[_Value]:
        test, body = node.regions
        count = len(node.outputs)
        carried, fixed = operands[:count], operands[count:]
        flags, differs = _loop_flags(node, [x.batched for x in operands])
        start = self._as(flags, carried)

        def values(tensors: Sequence[Tensor]) -> list[_Value]:
            return [_Value(x, f) for x, f in zip(tensors, flags, strict=True)]

        def goes_on(tensors: Sequence[Tensor]) -> _Value:
            return self.run(test, [*values(tensors), *fixed])[0]

        if not differs:

            def step(tensors: Sequence[Tensor]) -> list[Tensor]:
                return self._as(flags, self.run(body, [*values(tensors), *fixed]))

            checkpoint = bool(node.attrs.get("checkpoint"))
            found = _loop(lambda ts: goes_on(ts).tensor, step, start, checkpoint)
            return values(found)
        _check_selectable(node, operands)
        _check_constant_shapes(node)
        total = _is_total(body)

        def step_of_some(tensors: Sequence[Tensor]) -> list[Tensor]:
            going, before = tensors[0], values(tensors[1:])
            inputs = [*before, *fixed]
            after = self.run(body, inputs if total else self._concerned(going, inputs))
            changed = [i for i, f in enumerate(flags) if f]
            new = self._select(going, [after[i] for i in changed], [before[i] for i in changed])
            merged = [x.tensor for x in before]
            for i, x in zip(changed, new, strict=True):
                merged[i] = x
            return [logical_and(going, self.whole(goes_on(merged))), *merged]

        begin = [self.whole(goes_on(start)), *start]
        found = _loop(lambda ts: reduce_any(ts[0]), step_of_some, begin, False)
        return values(found[1:])


_ONE = _Batch("", 1, False, draws=False)  # runs regions for one example, as they are


def _loop_over(
    values: Sequence[_Value], fn: Callable[[list[_Value]], list[_Value]], signature: list[Any]
) -> list[Tensor]:
    """The results of `fn` for each example, stacked."""
    moving = [x.tensor for x in values if x.batched]

    def one(elements: list[Tensor]) -> list[Tensor]:
        given = iter(elements)
        found = fn([_Value(next(given), False) if x.batched else x for x in values])
        return [x.tensor for x in found] or elements[:1]

    found = map_fn(one, moving, fn_output_signature=signature or [moving[0].dtype])
    return found if signature else []


def _is_known(spec: Spec, dims: Dims) -> bool:
    """Whether the dims of a result do not depend on an example's elements."""
    return spec.symbols() <= dims.keys()


def _loop(
    goes_on: Callable[[Sequence[Tensor]], Tensor],
    step: Callable[[Sequence[Tensor]], list[Tensor]],
    start: list[Tensor],
    checkpoint: bool,
) -> Sequence[Tensor]:
    """A loop, as one of the graph while one is traced."""
    if context.recorder is None:
        while bool(goes_on(start)):
            start = step(start)
        return start
    return staged_loop(
        lambda *ts: goes_on(ts), lambda *ts: tuple(step(ts)), tuple(start),
        widen=True, checkpoint=checkpoint,
    )  # fmt: skip


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _run(node: Node, operands: Sequence[_Value], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """A node as it is; outside of traces variables are read and assigned by their methods."""
    tensors = [x.tensor for x in operands]
    if node.op is READ and isinstance(tensors[0], Variable):
        return (tensors[0].read_value(),)
    if node.op is ASSIGN and isinstance(tensors[0], Variable):
        tensors[0].assign(tensors[1])
        return ()
    return _as_tuple(run(node.op, *tensors, **attrs))


def _number(x: Tensor) -> Tensor:
    """A bool or integer tensor as int32."""
    return run(CAST, x, dtype=dtypes.int32)  # type: ignore[no-any-return]


def _is_list(x: Any) -> bool:
    spec = x.tensor.spec if isinstance(x, _Value) else x.spec
    return isinstance(spec, ListSpec)


def _open_spec(spec: Spec) -> TensorSpec:
    """A spec as users give it: None for dims that are not known."""
    return TensorSpec([d if isinstance(d, int) else None for d in spec.dims], spec.dtype)


def _needed(region: Region) -> list[Node]:
    """The nodes that results depend on, those with effects, and those that attributes of others
    have their sizes from."""
    wanted = set(region.results)
    symbols: set[str] = set()
    nodes = []
    for node in reversed(region.nodes):
        if node.has_effect or symbols & _sizes_made(node) or not wanted.isdisjoint(node.outputs):
            nodes.append(node)
            wanted.update(node.inputs)
            inner = (n for r in node.regions for n in r.walk())
            symbols.update(*(attr_symbols(n.attrs) for n in (node, *inner)))
    return nodes[::-1]


def _sizes_made(node: Node) -> set[str]:
    """The symbols of sizes that come into being with a node's results."""
    made: set[str] = set().union(*(v.spec.symbols() for v in node.outputs))
    return made.difference(attr_symbols(node.attrs), *(v.spec.symbols() for v in node.inputs))


def _draws_anew(node: Node) -> bool:
    """Whether a node draws numbers of a generator's stream, or moves on in it. Stateless draws give
    every example the same numbers, as they would in a loop."""
    if "draws" not in node.op.tags or "shape" not in node.attrs:
        return False
    maker = node.inputs[0].node
    return maker is None or maker.op not in (SCRAMBLE, CONST)


def _check_selectable(node: Node, inputs: Sequence[_Value]) -> None:
    """Refuse what must not run for examples that it does not concern, or cannot be selected."""
    if node.has_effect:
        raise NoRule("its condition differs between examples and it has effects")
    if any(map(_is_list, node.outputs)) or any(x.batched and _is_list(x) for x in inputs):
        raise NoRule("its condition differs between examples and it changes a list")


def _check_constant_shapes(node: Node) -> None:
    body = node.regions[1]
    for before, after in zip(body.params, body.results, strict=False):
        if before.spec is not after.spec:
            raise NoRule("its condition differs between examples and sizes change in it")


def _is_total(region: Region) -> bool:
    """Whether a region may run on any elements: it refuses nothing and makes no new infinities."""
    return all(_may_run_anywhere(node) for node in region.nodes)


def _may_run_anywhere(node: Node) -> bool:
    lower = node.op.lower
    if node.regions or not node.is_pure or node.op.refuses is not None:
        return False
    if lower is Structure.CONSTANT:
        return True
    return isinstance(lower, Compute) and (lower.kind == "view" or "cheap" in node.op.tags)


def _flags(region: Region, given: Sequence[bool]) -> list[bool]:
    """Which results may differ between examples, if these parameters do."""
    known = dict(zip(region.params, given, strict=True))
    for node in region.nodes:
        flags = [known[v] for v in node.inputs]
        if node.op is COND:
            sides = [_flags(r, flags[1:]) for r in node.regions]
            found = [flags[0] or a or b for a, b in zip(*sides, strict=True)]
        elif node.op is WHILE:
            found, _ = _loop_flags(node, flags)
        elif node.op in (SHAPE, LIST_LENGTH, SKIP):
            found = [False]
        else:
            found = [_draws_anew(node) or any(flags)] * len(node.outputs)
        known.update(zip(node.outputs, found, strict=True))
    return [known[v] for v in region.results]


def _loop_flags(node: Node, given: Sequence[bool]) -> tuple[list[bool], bool]:
    """Which loop variables may differ between examples, and whether the condition does."""
    test, body = node.regions
    flags, fixed = list(given[: len(node.outputs)]), list(given[len(node.outputs) :])
    while True:
        differs = _flags(test, [*flags, *fixed])[0]
        after = _flags(body, [*flags, *fixed])
        moved = [r is not p for r, p in zip(body.results, body.params, strict=False)]
        new = [f or a or (differs and m) for f, a, m in zip(flags, after, moved, strict=True)]
        if new == flags:
            return flags, differs
        flags = new

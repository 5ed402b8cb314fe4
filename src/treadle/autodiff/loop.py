"""The gradient of ``while``: the loop saves values, which a second loop reads that runs back.

    while carried: carried = body(carried, invariant)

becomes

    while (carried, count, stacks): body, and each saved value is pushed on a stack of its own
    while (k = count, d_carried, d_invariant), k > 0:
        k -= 1; read the stacks at k; one step of reverse mode through the body

The forward node is changed in place, also when it stands in an outer region of the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from treadle.autodiff.checkpoints import require_repeatable
from treadle.autodiff.joint import (
    bind_sources,
    captured_outside,
    copy_into,
    dependent,
    extend_node,
    influencing,
    trace_gradient,
    trace_in,
)  # fmt: skip
from treadle.autodiff.partition import Joint, Partition, is_cheap, partition, repeated
from treadle.autodiff.saved_lists import restored, stored, stored_specs
from treadle.autodiff.values import accumulate, gradient_spec, zeros_for
from treadle.core import dtypes
from treadle.core.context import context, recording, taping
from treadle.core.origin import attributed_to
from treadle.core.records import record
from treadle.core.shapes import ANY, Dim, dim_symbols, fresh_symbol
from treadle.core.spec import ListSpec, Spec, TensorSpec
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.graph.ir import Node, Region, Value
from treadle.graph.passes.element_shapes import infer_element_shapes_of
from treadle.graph.replay import inner_symbols, substitute_spec
from treadle.graph.trip_count import most_iterations, step_of
from treadle.ops.collections.lists import LIST_GET, list_new, list_push
from treadle.ops.control.control_flow import WHILE
from treadle.ops.conversion import constant
from treadle.ops.elementwise.arithmetic import ADD, MULTIPLY, SUBTRACT
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import GREATER
from treadle.ops.registry import OpCall, run, run_with_regions
from treadle.ops.shaping.reshaping import RESHAPE


def while_gradient(call: OpCall, output_grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradient rule of ``while``."""
    loop = _Loop(call, output_grads)
    gradients: list[Tensor | None] = [None] * len(call.inputs)
    if not loop.sources:
        return gradients
    with attributed_to(loop.node.origin):
        joint = loop.trace_joint()
        if loop.node.attrs.get("checkpoint"):
            require_repeatable(loop.node)
            parts = repeated(joint)
        else:
            parts = partition(joint, is_cheap)
        stacks = _extend_forward(loop, joint, parts)
        results = _run_backward(loop, joint, parts, stacks)
    by_input = dict(zip([*loop.carried, *loop.invariant], results, strict=True))
    for position in range(len(call.inputs)):
        gradients[position] = by_input.get(loop.input_number(position))
    return gradients


class _Loop:
    """A ``while`` node, and which of its inputs take part in differentiation.

    Attributes:
        node: the forward node; builder: the one whose region holds it.
        carried, invariant: the numbers of the inputs with gradients, of either kind.
        counters: the numbers that the body adds to loop variables that count, by their positions.
        seeds: the gradients of the carried results.
    """

    def __init__(self, call: OpCall, output_grads: Sequence[Tensor | None]) -> None:
        first: Any = call.outputs[0]
        self.builder: Any = first.recorder
        self.node: Node = first.value.producer
        infer_element_shapes_of(self.node, self.builder.graph)
        self.count = len(self.node.outputs)
        self.first_count = self.builder.carried_at_first.get(self.node, self.count)
        body = self.node.regions[1]
        needed = {self.input_number(i) for i, n in enumerate(call.needed) if n}
        given = {i for i, g in enumerate(output_grads) if g is not None}
        forward = self._grow(needed, lambda active: dependent(body, active))
        backward = self._grow(given, lambda active: influencing(body, active & self._carried()))
        self.sources = sorted(forward & backward)
        self.carried = [i for i in self.sources if i < self.count]
        self.invariant = [i for i in self.sources if i >= self.count]
        # The specs of carried results whose dims differ from one iteration to the next.
        pairs = [(body.params[i].spec, body.results[i].spec) for i in self.carried]
        known = {s for p in body.params for s in p.spec.symbols()}
        told = [after.symbols() <= known for _, after in pairs]
        self.changing = {after for (before, after), ok in zip(pairs, told, strict=True)
                         if ok and after is not before}  # fmt: skip
        # The specs of the carried results' gradients: dims that are only made in the body are new.
        self.moving = [after if ok else _with_new_symbols(after)
                       for (_, after), ok in zip(pairs, told, strict=True)]  # fmt: skip
        self.counters = {
            i: step for i in range(self.count) if (step := step_of(self.node, i)) is not None
        }
        self.inputs: list[Any] = [self.builder.tensor_of(v) for v in self.node.inputs]
        grads = dict(enumerate(output_grads))
        self.seeds = [self._seed(call, grads.get(i), i) for i in self.carried]

    def _carried(self) -> set[int]:
        return set(range(self.count))

    def _grow(self, start: set[int], step: Any) -> set[int]:
        """The inputs that `start` leads to through any number of iterations."""
        active = set(start)
        while not step(active) <= active:
            active |= step(active)
        return active

    def _seed(self, call: OpCall, given: Tensor | None, number: int) -> Tensor:
        if given is not None:
            return given
        return zeros_for(self.builder.tensor_of(self.node.outputs[number]))

    def input_number(self, position: int) -> int:
        """The node's input for an input of the recorded call: later ones may have moved."""
        return position if position < self.first_count else position + self.count - self.first_count

    @property
    def body(self) -> Region:
        return self.node.regions[1]

    def trace_joint(self) -> Joint:
        """The body and one step of reverse mode through it, in a region of their own.

        Its parameters: the loop's inputs, the gradients of the carried results, the sums so far
        of the invariants' gradients. Its results: the carried values, then the new gradients.
        """
        specs = [p.spec for p in self.body.params]
        moving = self.moving
        sums = [gradient_spec(self.body.params[i]) for i in self.invariant]
        effects: list[frozenset[Node]] = []

        def step(*params: Any) -> list[Tensor]:
            own, rest = params[: len(specs)], params[len(specs) :]
            bind_sources(own, self.inputs)
            seeds, before = rest[: len(moving)], rest[len(moving) :]
            outputs, gradients, inside = trace_gradient(
                self.body, own, self.carried, seeds, self.sources
            )
            effects.append(inside)
            with taping(()):
                added = [
                    accumulate(a, g) for a, g in zip(before, gradients[len(moving) :], strict=True)
                ]
            return [*outputs, *gradients[: len(moving)], *added]

        child = trace_in(self.builder, step, [*specs, *moving, *sums])
        params = child.region.params
        unknown = params[len(specs) : len(specs) + len(moving) + len(sums)]
        told = {*params[: self.count], *unknown} - {params[i] for i in self.counters}
        free = [p for p in params if p not in told]
        mentioned = {s for spec in self.changing for s in spec.symbols()}
        outer = captured_outside(child)
        again = bool(self.node.attrs.get("checkpoint"))
        return Joint(child.region, self.count, unknown, free, outer, effects[0], mentioned, again)


def _with_new_symbols(spec: Spec) -> Spec:
    """The spec with a new symbol for each symbolic dim."""
    new: Spec = spec.with_dims(d if isinstance(d, int) else fresh_symbol() for d in spec.dims)
    return new


@record
class _Stacks:
    """The lists that the forward loop hands to the backward one, as tensors outside the loops."""

    count: SymbolicTensor
    by_value: dict[Value, list[SymbolicTensor]]


def _extend_forward(loop: _Loop, joint: Joint, parts: Partition) -> _Stacks:
    """Give the forward node a counter and stacks, and a body that fills them."""
    builder, node, count = loop.builder, loop.node, loop.count
    counts = [len(stored_specs(joint, v)) for v in parts.saved]
    start = _start_values(loop, [s for v in parts.saved for s in stored_specs(joint, v)])
    extra = [t.spec for t in start]
    specs = [p.spec for p in loop.body.params]
    all_specs = [*specs[:count], *extra, *specs[count:]]

    def body(*params: Any) -> list[Tensor]:
        carried, (counter, *stacks), invariant = _split(params, count, len(extra))
        own = [t.value for t in (*carried, *invariant)]
        mapping = dict(zip(joint.region.params, own, strict=False))
        wanted = [*joint.region.results[:count], *parts.saved]
        results = copy_into(context.recorder, joint, parts.forward, wanted, mapping)
        saved = zip(parts.saved, results[count:], strict=True)
        tensors = [t for v, x in saved for t in stored(joint, v, x)]
        pushed = [list_push(stack, t) for stack, t in zip(stacks, tensors, strict=True)]
        return [*results[:count], run(ADD, counter, constant(1, dtypes.int32)), *pushed]

    def condition(*params: Any) -> list[Tensor]:
        carried, _, invariant = _split(params, count, len(extra))
        old, into = node.regions[0], context.recorder
        mapping = dict(zip(old.params, [t.value for t in (*carried, *invariant)], strict=True))
        return [*copy_into(into, Joint(old, 1, (), ()), old.nodes, old.results, mapping)]

    children = [trace_in(builder, fn, all_specs) for fn in (condition, body)]
    more = builder.align_captures(children)
    inputs = [*loop.inputs[:count], *start, *loop.inputs[count:], *more]
    outputs = extend_node(builder, node, inputs, children, extra)
    builder.carried_at_first.setdefault(node, loop.first_count)
    stacks = iter(outputs[1:])
    pairs = zip(parts.saved, counts, strict=True)
    return _Stacks(outputs[0], {v: list(islice(stacks, n)) for v, n in pairs})


def _start_values(loop: _Loop, stored: Sequence[Spec]) -> list[Tensor]:
    """The counter and the empty stacks, made just before the loop."""
    builder, node = loop.builder, loop.node
    capacity = most_iterations(node)
    with recording(builder), taping(()):
        first = len(builder.region.nodes)
        start = [constant(0, dtypes.int32)]
        start += [list_new(_stack_spec(s), capacity=capacity) for s in stored]
    nodes = builder.region.nodes
    made = nodes[first:]
    del nodes[first:]
    position = nodes.index(node)
    nodes[position:position] = made
    return start


def _split(values: Sequence[Any], first: int, second: int) -> tuple[Any, Any, Any]:
    return values[:first], values[first : first + second], values[first + second :]


def _stack_spec(spec: Spec) -> TensorSpec:
    """The element spec of a stack; dims that only the loop knows are left open."""
    return TensorSpec([ANY if dim_symbols(d) else d for d in spec.dims], spec.dtype)


def _run_backward(loop: _Loop, joint: Joint, parts: Partition, stacks: _Stacks) -> list[Tensor]:
    """Record the loop that runs back and return the gradients of the sources."""
    renamed = _local_symbols(loop, joint)
    sums = [zeros_for(loop.inputs[i]) for i in loop.invariant]
    inside = [substitute_spec(v.spec, renamed) for v in joint.unknown]
    outside_specs = [
        spec.with_dims(fresh_symbol() if dim_symbols(d) else d for d in spec.dims)
        if v.spec in loop.changing
        else spec
        for v, spec in zip(joint.unknown, inside, strict=True)
    ]
    invariant = joint.region.params[loop.count : len(loop.inputs)]
    outside = dict(zip(invariant, loop.inputs[loop.count :], strict=True))
    counters = {joint.region.params[i]: i for i in loop.counters}

    def step(k: Tensor, *gradients: Any) -> list[Tensor]:
        builder: Any = context.recorder
        index = run(SUBTRACT, k, constant(1, dtypes.int32))
        mapping: dict[Value, Value] = {}
        for value in parts.free:
            if value in outside:
                mapping[value] = builder.use(outside[value]).value
            elif value in counters:
                mapping[value] = _count(loop, counters[value], index)
        for value, saved in stacks.by_value.items():
            tensors = [run(LIST_GET, stack, index, dims=None) for stack in saved]
            mapping[value] = restored(joint, value, tensors)
            mapping[value].spec = substitute_spec(value.spec, renamed)
        for value, given, spec in zip(joint.unknown, gradients, inside, strict=True):
            mapping[value] = _in_dims_of(given, spec)
        results = joint.region.results[loop.count :]
        return [index, *copy_into(builder, joint, parts.backward, results, mapping, renamed)]

    recorder: Any = context.recorder
    children = [
        trace_in(recorder, fn, [stacks.count.spec, *outside_specs])
        for fn in (lambda k, *_: [run(GREATER, k, constant(0, dtypes.int32))], step)
    ]
    captured = recorder.align_captures(children)
    operands = [stacks.count, *loop.seeds, *sums, *captured]
    return list(run_with_regions(WHILE, operands, [c.region for c in children])[1:])


def _count(loop: _Loop, number: int, index: Tensor) -> Value:
    """The value in iteration `index` of a loop variable that counts."""
    start: Tensor = loop.inputs[number]
    distance = run(MULTIPLY, cast(index, start.dtype), constant(loop.counters[number], start.dtype))
    value: Value = run(ADD, start, distance).value
    return value


def _in_dims_of(gradient: Any, spec: Spec) -> Value:
    """The gradient of a result in the result's dims, which this iteration knows."""
    if gradient.spec is not spec and not isinstance(spec, ListSpec):
        gradient = run(RESHAPE, gradient, shape=spec.dims)
    value: Value = gradient.value
    return value


def _local_symbols(loop: _Loop, joint: Joint) -> dict[str, Dim]:
    """New names for the symbols that each iteration binds: the backward loop binds them anew."""
    known: set[str] = set()
    builder = loop.builder
    while builder is not None:
        for value in _values_before(builder.region, loop.node):
            known |= value.spec.symbols()
        builder = builder.parent
    return {name: fresh_symbol() for name in sorted(inner_symbols([joint.region]) - known)}


def _values_before(region: Region, node: Node) -> list[Value]:
    values = list(region.params)
    for other in region.nodes:
        if other is node:
            break
        values += other.outputs
    return values

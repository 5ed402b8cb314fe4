"""The gradient of ``cond``: another cond, whose branches compute the forward branch again.

Values that a branch cannot compute again (random numbers, variables' values) or that are costly
(loops, matmuls) become further results of the forward node; the other branch gives zeros for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from treadle.autodiff.partition import Joint, Partition, is_recomputable, partition
from treadle.autodiff.values import filled
from treadle.core.context import context
from treadle.core.origin import attributed_to
from treadle.core.shapes import ANY, dim_symbols
from treadle.core.spec import ListSpec, Spec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Node, Value
from treadle.ops.collections.lists import LIST_GET, list_new, list_push
from treadle.ops.control.control_flow import COND
from treadle.ops.conversion import constant
from treadle.ops.registry import OpCall, run, run_with_regions


def cond_gradient(call: OpCall, output_grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradient rule of ``cond``."""
    branches = _Branches(call, output_grads)
    gradients: list[Tensor | None] = [None] * len(call.inputs)
    if not branches.sources:
        return gradients
    with attributed_to(branches.node.origin):
        joints = [branches.trace_joint(number) for number in (0, 1)]
        parts = [partition(j, is_recomputable) for j in joints]
        kept = _extend_forward(branches, joints, parts)
        results = _run_backward(branches, joints, parts, kept)
    for number, gradient in zip(branches.sources, results, strict=True):
        if number + 1 < len(gradients):
            gradients[number + 1] = gradient
    return gradients


class _Branches:
    """A ``cond`` node, and which of its results and operands take part in differentiation.

    Attributes:
        results: the numbers of the results with gradients, which `seeds` holds.
        sources: the numbers of the operands (after the predicate) to differentiate by.
    """

    def __init__(self, call: OpCall, output_grads: Sequence[Tensor | None]) -> None:
        first: Any = call.outputs[0]
        self.builder: Any = first.recorder
        self.node: Node = first.value.producer
        self.inputs: list[Any] = [self.builder.tensor_of(v) for v in self.node.inputs]
        needed = {i - 1 for i, n in enumerate(call.needed) if n and i}
        given = {i for i, g in enumerate(output_grads) if g is not None}
        regions = self.node.regions
        used = set[int]().union(*(dependent(r, needed) for r in regions)) & given
        wanted = set[int]().union(*(influencing(r, used) for r in regions)) & needed
        self.results = sorted(used)
        self.sources = sorted(wanted)
        self.seeds: list[Any] = [output_grads[i] for i in self.results]

    def trace_joint(self, number: int) -> Joint:
        """A branch with its gradient, in a region of its own.

        Its parameters: the operands, the gradients of the results. Its results: the results of the
        branch, then the gradients of the operands.
        """
        region = self.node.regions[number]
        specs = [p.spec for p in region.params]
        moving = [region.results[i].spec for i in self.results]
        effects: list[frozenset[Node]] = []

        def step(*params: Any) -> list[Tensor]:
            own, seeds = params[: len(specs)], params[len(specs) :]
            bind_sources(own, self.inputs[1:])
            outputs, gradients, inside = trace_gradient(
                region, own, self.results, seeds, self.sources
            )
            effects.append(inside)
            return [*outputs, *gradients]

        child = trace_in(self.builder, step, [*specs, *moving])
        params = child.region.params
        unknown = params[len(specs) : len(specs) + len(moving)]
        free = [p for p in params if p not in set(unknown)]
        return Joint(
            child.region, len(region.results), unknown, free, captured_outside(child), effects[0]
        )


# How a saved value leaves its branch: as itself, or as the one element of a list where its dims
# are known only inside.
_Kept = list[tuple[Value, Any]]


def _extend_forward(
    branches: _Branches, joints: Sequence[Joint], parts: Sequence[Partition]
) -> list[_Kept]:
    """Make the saved values of both branches results of the forward node."""
    builder, node = branches.builder, branches.node
    saved = [p.saved for p in parts]
    if not any(saved):
        return [[], []]
    known = {s for v in node.inputs for s in v.spec.symbols()}
    forms = [[_outer_spec(v.spec, known) for v in values] for values in saved]
    specs = [p.spec for p in node.regions[0].params]

    def branch(number: int) -> Any:
        joint = joints[number]
        count = joint.forward_results

        def traced(*params: Any) -> list[Tensor]:
            mapping = dict(zip(joint.region.params, [p.value for p in params], strict=False))
            wanted = [*joint.region.results[:count], *saved[number]]
            results = copy_into(context.recorder, joint, parts[number].forward, wanted, mapping)
            own: list[Tensor] = [
                _wrapped(x, form) for x, form in zip(results[count:], forms[number], strict=True)
            ]
            other = [_placeholder(form) for form in forms[1 - number]]
            return [*results[:count], *(own + other if number == 0 else other + own)]

        return trace_in(builder, traced, specs)

    children = [branch(number) for number in (0, 1)]
    more = builder.align_captures(children)
    extra = [*forms[0], *forms[1]]
    outputs = extend_node(builder, node, [*branches.inputs, *more], children, extra)
    first = len(saved[0])
    return [
        list(zip(saved[0], outputs[:first], strict=True)),
        list(zip(saved[1], outputs[first:], strict=True)),
    ]


def _outer_spec(spec: Spec, known: set[str]) -> Spec:
    """The spec of a saved value outside its branch."""
    local = [bool(dim_symbols(d) - known) for d in spec.dims]
    if isinstance(spec, ListSpec) or not any(local):
        return spec
    return ListSpec(
        [ANY if here else d for d, here in zip(spec.dims, local, strict=True)], spec.dtype
    )


def _wrapped(value: Tensor, form: Spec) -> Tensor:
    if isinstance(form, ListSpec) and not isinstance(value.spec, ListSpec):
        return list_push(list_new(form, capacity=1), value)
    return value


def _placeholder(form: Spec) -> Tensor:
    """A saved value of the branch that did not run: it is never read."""
    return list_new(form) if isinstance(form, ListSpec) else filled(0, form)


def _run_backward(
    branches: _Branches, joints: Sequence[Joint], parts: Sequence[Partition], kept: Sequence[_Kept]
) -> list[Tensor]:
    """Record the cond of the gradients and return the gradients of the sources."""
    recorder: Any = context.recorder

    def branch(number: int) -> Any:
        joint = joints[number]

        def traced() -> list[Tensor]:
            builder: Any = context.recorder
            mapping = {
                param: builder.use(seed).value
                for param, seed in zip(joint.unknown, branches.seeds, strict=True)
            }
            operands = dict(zip(joint.region.params, branches.inputs[1:], strict=False))
            for value in parts[number].free:
                if value in operands and value not in mapping:
                    mapping[value] = builder.use(operands[value]).value
            for value, outer in kept[number]:
                mapping[value] = _read(builder, value, outer)
            gradients = joint.region.results[joint.forward_results :]
            return list(copy_into(builder, joint, parts[number].backward, gradients, mapping))

        return trace_in(recorder, traced, [])

    children = [branch(number) for number in (0, 1)]
    captured = recorder.align_captures(children)
    predicate = branches.inputs[0]
    return list(run_with_regions(COND, [predicate, *captured], [c.region for c in children]))


def _read(builder: Any, value: Value, outer: Any) -> Value:
    """The saved value inside the backward branch."""
    inner = builder.use(outer)
    if not isinstance(inner.spec, ListSpec) or isinstance(value.spec, ListSpec):
        found: Value = inner.value
        return found
    zero = constant(0)
    loaded: Any = run(LIST_GET, inner, zero, dims=None)
    loaded.value.spec = value.spec
    element: Value = loaded.value
    return element

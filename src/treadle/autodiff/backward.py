"""Reverse mode: from recorded operations to gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treadle.autodiff.values import Gradient, is_differentiable, key, mismatch, total, zeros_for
from treadle.core.context import context, naming
from treadle.core.interrupts import during
from treadle.core.origin import Origin, at, attributed_to
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.indexing.gather import dense
from treadle.ops.registry import OpCall


class Entry:
    """One recorded operation. `outputs` may grow when a control flow node is extended."""

    __slots__ = ("attrs", "inputs", "op", "outputs")

    def __init__(
        self, op: Any, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Tensor]
    ) -> None:
        self.op = op
        self.inputs = tuple(inputs)
        self.attrs = attrs
        self.outputs = tuple(outputs)


def backpropagate(
    entries: Iterable[Entry],
    targets: Sequence[Any],
    seeds: Sequence[Tensor],
    sources: Sequence[Any],
) -> list[Gradient | None]:
    """The gradients of sum(targets * seeds) with respect to each source.

    Args:
        entries: recorded operations in program order.
        seeds: one gradient for each target.

    Returns:
        For each source its gradient, None where no target depends on it. It is IndexedSlices where
        rows of the source were read and nothing else of it.
    """
    walk = _Walk(sources)
    for target, seed in zip(targets, seeds, strict=True):
        walk.add(key(target), seed)
    useful = walk.useful(entries)
    while useful:  # popped one by one: an operation's arrays can be freed at once
        walk.step(useful.pop())
    return [walk.gradient(key(s)) for s in sources]


class _Walk:
    """The gradients known so far, by the identity of the value they belong to."""

    def __init__(self, sources: Sequence[Any]) -> None:
        self.sources = {key(s) for s in sources}
        self.reached = set(self.sources)
        self.parts: dict[int, list[Gradient]] = {}

    def useful(self, entries: Iterable[Entry]) -> list[Entry]:
        """The operations that depend on a source."""
        reached, found = self.reached, []
        for entry in entries:
            for x in entry.inputs:
                if id(x) in reached or key(x) in reached:
                    found.append(entry)
                    reached.update(map(id, entry.outputs))
                    break
        return found

    def add(self, identity: int, gradient: Gradient) -> None:
        self.parts.setdefault(identity, []).append(gradient)

    def gradient(self, identity: int) -> Gradient | None:
        parts = self.parts.get(identity)
        return total(parts) if parts else None

    def _take(self, output: Tensor) -> Gradient | None:
        """The gradient of an output, which nothing before it in the program can add to."""
        identity = id(output)
        parts = self.parts.pop(identity, None)
        if parts is None:
            return None
        gradient = parts[0] if len(parts) == 1 else total(parts)
        if identity in self.sources:
            self.parts[identity] = [gradient]
        return gradient

    def step(self, entry: Entry) -> None:
        """Push the gradients of an operation's outputs through to its inputs."""
        op, inputs, parts, reached = entry.op, entry.inputs, self.parts, self.reached
        output_grads = [self._take(o) for o in entry.outputs]
        for gradient in output_grads:
            if gradient is not None:
                break
        else:
            return
        keys = [id(x) if type(x) is Tensor else key(x) for x in inputs]
        pairs = zip(keys, inputs, strict=True)
        needed = tuple([k in reached and is_differentiable(x) for k, x in pairs])
        if True not in needed:
            return
        if "passes_on" in op.tags:
            gradients = output_grads
        else:
            given = output_grads
            if "takes_rows" not in op.tags:
                given = [None if g is None else dense(g) for g in given]
            call = OpCall(op, inputs, entry.attrs, entry.outputs, needed)
            gradients = input_gradients(call, given)
        for identity, wanted, gradient in zip(keys, needed, gradients, strict=True):
            if wanted and gradient is not None:
                known = parts.get(identity)
                if known is None:
                    parts[identity] = [gradient]
                else:
                    known.append(gradient)


def input_gradients(call: OpCall, output_grads: Sequence[Gradient | None]) -> list[Gradient | None]:
    """The gradients by the op's rule, checked: one gradient or None for each input.

    Raises:
        ValueError: the rule gives too few or too many, or one of a wrong dtype or shape.
    """
    op = call.op
    assert op.gradient is not None
    if len(output_grads) > 1 and "control_flow" not in op.tags:
        output_grads = [
            zeros_for(o) if g is None and is_differentiable(o) else g
            for g, o in zip(output_grads, call.outputs, strict=True)
        ]
    origin = _origin(call)
    if origin is None:
        result = op.gradient(call, *output_grads)
    else:
        with attributed_to(origin), during(naming, "layers", _scope(call)):
            result = op.gradient(call, *output_grads)
    gradients: list[Any] = list(result) if isinstance(result, list | tuple) else [result]
    inputs = call.inputs
    if len(gradients) != len(inputs):
        raise ValueError(
            f"The gradient of {op.name} gave {len(gradients)} values for "
            f"{len(inputs)} inputs{_place(call)}"
        )
    for number, gradient in enumerate(gradients):
        if gradient is None or (call.needed and not call.needed[number]):
            continue
        wrong = mismatch(gradient, inputs[number])
        if wrong is not None:
            raise ValueError(
                f"The gradient of {op.name} with respect to input {number} {wrong}{_place(call)}"
            )
    return gradients


def _place(call: OpCall) -> str:
    return at(_origin(call))


def _scope(call: OpCall) -> tuple[str, str]:
    """The name scope of what computes the gradient of a traced operation: as TensorFlow's, that of
    the operation in ``gradient_tape/``."""
    output = call.outputs[0]
    if context.recorder is None or not isinstance(output, SymbolicTensor):
        return naming.layers
    return f"gradient_tape/{output.recorder.names.scope(output.value.node)}", naming.scope


def _origin(call: OpCall) -> Origin | None:
    """Where the forward operation was called, when it was traced."""
    if not call.outputs or type(call.outputs[0]) is Tensor:
        return None
    return getattr(call.outputs[0], "origin", None)

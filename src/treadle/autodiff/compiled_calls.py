"""Calls of compiled functions under gradient tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.function_gradient import ForwardBackward, build_gradient
from treadle.autodiff.recording import record_custom
from treadle.autodiff.values import Gradient, exact_spec, zeros_for
from treadle.core import dtypes, locks
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph
from treadle.graph.replay import replay
from treadle.ops.conversion import constant
from treadle.ops.indexed_slices import IndexedSlices

# Makes a graph callable: takes a tensor or Variable for each parameter, gives tensors.
Compile = Callable[[Graph], Callable[[Sequence[Any]], list[Tensor]]]


class DifferentiableCall:
    """A graph that is run as one compiled program and that tapes see as one operation.

    Args:
        graph: the graph to run.
        compile: makes a graph callable; the results are not seen by tapes.

    Thread-safe. Forward and backward programs are built on the first call that needs them.
    """

    def __init__(self, graph: Graph, compile: Compile) -> None:
        self.graph = graph
        self.compile = compile
        self._lock = locks.reentrant_lock()
        self._plain: Any = None
        self._splits: dict[tuple[bool, ...], _Split | None] = {}

    def __call__(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The results for a tensor or Variable for each parameter, recorded on active tapes. While
        something is traced, as the backward pass of a Jacobian is, the graph's nodes are recorded.
        """
        if context.recorder is not None:
            return replay(self.graph, [*inputs, *self.own_captures(inputs)])
        tapes = context.tapes
        needs = tuple(any(t.watches(x) for t in tapes) for x in inputs)
        levels = max((sum(t.watches(x) for t in tapes) for x in inputs), default=0)
        levels += any(getattr(t, "_persistent", False) for t in tapes)
        split = self._split(needs) if any(needs) else None
        if split is None:
            return self._run(inputs)
        return split.run(inputs, levels)[: len(self.graph.results)]

    def prepare(self, needs: Sequence[bool]) -> None:
        """Compile what calls need of which one tape watches these inputs."""
        split = self._split(tuple(needs)) if any(needs) else None
        for part in (self,) if split is None else (split.forward, split.backward):
            part._compiled()

    def _compiled(self) -> Callable[[Sequence[Any]], list[Tensor]]:
        with self._lock:
            if self._plain is None:
                self._plain = self.compile(self.graph)
            result: Callable[[Sequence[Any]], list[Tensor]] = self._plain
            return result

    def _run(self, inputs: Sequence[Any]) -> list[Tensor]:
        run = self._compiled()
        with taping(()):
            return run([*inputs, *self.own_captures(inputs)])

    def own_captures(self, inputs: Sequence[Any]) -> list[Any]:
        """The graph's captures where the caller gave only the other parameters."""
        missing = len(self.graph.params) - len(inputs)
        return list(self.graph.captures[len(self.graph.captures) - missing :]) if missing else []

    def _split(self, needs: tuple[bool, ...]) -> _Split | None:
        with self._lock:
            if needs not in self._splits:
                padded = (*needs, *[False] * (len(self.graph.params) - len(needs)))
                parts = build_gradient(self.graph, padded)
                self._splits[needs] = None if parts is None else _Split(self, parts)
            return self._splits[needs]


class _Split:
    """The forward program of a function for one set of wanted gradients, and its backward one."""

    def __init__(self, whole: DifferentiableCall, parts: ForwardBackward) -> None:
        self.whole = whole
        self.parts = parts
        self.forward = DifferentiableCall(parts.forward, whole.compile)
        self.backward = DifferentiableCall(parts.backward, whole.compile)
        self.name = parts.forward.name.removesuffix("_forward")

    def run(self, inputs: Sequence[Any], levels: int) -> list[Tensor]:
        """Run forward for gradients of up to `levels`-th order, and tell the tapes.

        Gives the function's results and all that was saved.
        """
        chain = self._chain(inputs, levels)
        with taping(()):
            outputs = chain[-1].forward._run(inputs)

        def gradient(*output_grads: Any) -> list[Gradient | None]:
            return _input_gradients(chain, inputs, outputs, output_grads)

        record_custom(self.name, inputs, outputs, gradient, missing_as_zeros=False)
        return outputs

    def _chain(self, inputs: Sequence[Any], levels: int) -> list[_Split]:
        """This split, the split of its forward program, and so on: each split saves the values that
        are needed to differentiate the one before with respect to its saved values."""
        chain = [self]
        for _ in range(levels - 1):
            count = len(inputs)
            needs = tuple(i in chain[-1].parts.sources for i in range(count))
            deeper = chain[-1].forward._split(needs)
            if deeper is None or deeper.parts.results == len(deeper.parts.forward.results):
                break
            chain.append(deeper)
        return chain


def _input_gradients(
    chain: Sequence[_Split], inputs: Sequence[Any], outputs: Sequence[Tensor], grads: Sequence[Any]
) -> list[Gradient | None]:
    """The gradients of the inputs, by the backward program that covers all given gradients."""
    last = max(i for i, g in enumerate(grads) if g is not None)
    for split in chain:
        parts = split.parts
        if last < parts.results:
            break
    else:
        raise NotImplementedError(
            f"{chain[0].name} was called under {len(chain)} gradient tapes and a derivative of a "
            "higher order is asked for: start the tape of that derivative before the call"
            f"{at(user_origin())}"
        )
    saved = outputs[parts.results : len(parts.forward.results)]
    seeds = [zeros_for(outputs[i]) if grads[i] is None else grads[i] for i in parts.targets]
    params = [*inputs, *split.whole.own_captures(inputs)]
    kept = [params[i] for i in parts.kept]
    found = iter(split.backward([*kept, *saved, *seeds]))
    result: list[Gradient | None] = [None] * len(inputs)
    for number in parts.sources:
        gradient = next(found)
        result[number] = gradient
        if number in parts.of_rows:
            result[number] = _rows(gradient, next(found), inputs[number])
    return result


def _rows(values: Tensor, indices: Tensor, x: Any) -> IndexedSlices:
    """The gradient of `x` by these rows of it."""
    dims = exact_spec(x).dims
    return IndexedSlices.of_dims(values, indices, constant(dims, dtypes.int32), dims)

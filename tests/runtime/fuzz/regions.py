"""Steps with bodies: loops, branches, gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from tests.runtime.fuzz.program import Step


def _while(run: Any, step: Step, args: Sequence[Any], env: dict[int, Any]) -> list[Any]:
    """Carried values, then stacks of some results of the body.

    ``count`` iterations, or as many as the first argument says (``trips`` in any case).
    ``stacked`` results of the body are put into TensorArrays, or with ``growing`` into arrays that
    start empty.
    """
    attrs, body = step.attrs, step.bodies[0]
    count = attrs["count"]
    if count is None:
        count, *args = args
    carried = len(args)
    arrays = tuple(
        td.TensorArray(dtype, 0, dynamic_size=True)
        if attrs["growing"]
        else td.TensorArray(dtype, count)
        for dtype in attrs["stacked"]
    )

    def iteration(i: Any, values: Any, arrays: Any) -> Any:
        # Loop variables are values of their own, also where eagerly two are one tensor.
        own = (i, *(td.identity(v) for v in values))
        inner = {**env, **dict(zip(body.params, own, strict=True))}
        run.block(body, inner)
        results = [inner[r] for r in body.results]
        written = tuple(a.write(i, r) for a, r in zip(arrays, results[carried:], strict=True))
        return i + 1, tuple(results[:carried]), written

    start = (td.constant(0), tuple(args), arrays)
    _, values, arrays = td.while_loop(
        lambda i, values, arrays: i < count, iteration, start, checkpoint=attrs["checkpoint"]
    )
    return [*values, *(_counted(a.stack(), attrs["trips"]) for a in arrays)]


def _counted(x: Any, count: int) -> Any:
    """The stack of a loop, whose length may not be known to the trace."""
    return td.ensure_shape(x, [count, *[None] * (len(x.shape) - 1)])


def _cond(run: Any, step: Step, args: Sequence[Any], env: dict[int, Any]) -> list[Any]:
    def branch(body: Any) -> Callable[[], list[Any]]:
        def call() -> list[Any]:
            inner = dict(env)
            run.block(body, inner)
            return [inner[r] for r in body.results]

        return call

    return list(td.cond(args[0], *(branch(b) for b in step.bodies)))


def _gradient(run: Any, step: Step, args: Sequence[Any], env: dict[int, Any]) -> list[Any]:
    """The body's results, then the gradients of their sum for the arguments."""
    body = step.bodies[0]
    args = [td.identity(a) for a in args]  # values of their own: some operations give their operand
    with td.GradientTape() as tape:
        tape.watch(args)
        inner = {**env, **dict(zip(body.params, args, strict=True))}
        run.block(body, inner)
        targets = [inner[r] for r in body.results]
    return [*targets, *tape.gradient(targets, args, unconnected_gradients="zero")]


REGIONS: dict[str, Callable[[Any, Step, Sequence[Any], dict[int, Any]], list[Any]]] = {
    "while": _while,
    "cond": _cond,
    "gradient": _gradient,
}

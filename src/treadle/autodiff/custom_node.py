"""Custom gradients in graphs: a node that passes results through and knows their gradient.

The gradient function is traced together with the function, so that the graph can be differentiated
later, in loops, and from outside.

    %r', ... = custom_gradient(%r, ..., %x, ..., %c, ...) {count, sources, gradient}
      gradient(%dr, ..., %c, ...) { return %dx, ... }

%r are the results, %x the arguments and variables, %c what the gradient's graph reads besides. The
gradient is a `NamedRegion`, which says for which of %x there is a gradient.

A gradient may call its own function, as that of a sine that needs a cosine whose gradient needs the
sine. Each such call is traced with a gradient again, up to the order `ORDERS`: the last one has a
`NamedRegion` without a region.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.recording import record_custom
from treadle.autodiff.values import zeros_for
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec
from treadle.core.tensor import Tensor
from treadle.graph.ir import NamedRegion
from treadle.graph.replay import replay
from treadle.ops.batching.call import BatchedCall, NoRule
from treadle.ops.elementwise.unary import identity
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run

_numbers = itertools.count()
ORDERS = 3  # derivatives of functions whose gradients call them; each may take twice as many traces


def mark_custom_gradient(
    name: str, results: Sequence[Tensor], sources: Sequence[Any], gradient: Callable[..., Any],
    code: Any,
) -> list[Tensor]:  # fmt: skip
    """`results` with a gradient of their own in the graph being traced.

    Args:
        sources: the arguments and variables that `gradient` gives gradients for.
        gradient: called with a gradient for each result.
        code: tells the function that has the gradient; None where the gradient cannot call it.
    """
    recorder: Any = context.recorder
    name = f"{name}_{next(_numbers)}"
    if code is not None and _order(recorder, code) >= ORDERS:
        return _marked(results, sources, [], NamedRegion(name))
    present: list[bool] = []

    def traced(*output_grads: Any) -> list[Tensor]:
        inner: Any = context.recorder
        inner.gradient_of = code
        found = gradient(*output_grads)
        present[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    with taping(()):
        child = recorder.trace_region(traced, [r.spec for r in results])
    label = NamedRegion(name, child.region, present)
    return _marked(results, sources, child.captures(), label)


def _marked(
    results: Sequence[Tensor], sources: Sequence[Any], captured: Sequence[Any], label: NamedRegion
) -> list[Tensor]:
    outputs = run(
        CUSTOM, *results, *sources, *captured, count=len(results), sources=len(sources),
        gradient=label,
    )  # fmt: skip
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _order(recorder: Any, code: Any) -> int:
    """Of how many gradients of a function, one in the other, a trace is a part."""
    found = 0
    while recorder is not None:
        found += recorder.gradient_of is code
        recorder = recorder.parent or recorder.outer
    return found


def _infer(*specs: Spec, count: int, sources: int, gradient: str) -> tuple[Spec, ...]:
    region = getattr(gradient, "region", None)
    if isinstance(gradient, NamedRegion) and region is not None:
        present = gradient.present
        fits = len(present) == sources and len(region.results) == sum(present)
        if not fits or len(region.params) != len(specs) - sources:
            raise ValueError(f"the region of {gradient!r} does not fit the node")
    return specs[:count]


def _eager(*values: Any, count: int, sources: int, gradient: str) -> tuple[Any, ...]:
    return values[:count]


def _gradient(call: OpCall, *output_grads: Any) -> list[Any]:
    count, sources, label = (call.attrs[k] for k in ("count", "sources", "gradient"))
    if getattr(label, "region", None) is None:
        raise NotImplementedError(
            f"the custom gradient {label!r} was not traced: parsed graphs have none, and functions "
            f"whose gradients call them have {ORDERS} derivatives in a td.function, and any number "
            f"outside of one{at(user_origin())}"
        )
    captured = call.inputs[count + sources :]
    given = [  # None for a result of integers, which the region has a parameter for
        zeros_for(o) if g is None else g for g, o in zip(output_grads, call.outputs, strict=True)
    ]
    found = iter(replay(label.region, [*given, *captured]))
    of_sources = [next(found) if there else None for there in label.present]
    return [*[None] * count, *of_sources, *[None] * len(captured)]


def _batch(call: BatchedCall) -> tuple[Tensor, ...]:
    """The gradient's graph runs for all examples; what they share gets the sum of theirs."""
    count, sources, label = (call.attrs[k] for k in ("count", "sources", "gradient"))
    if getattr(label, "region", None) is None:
        inputs = [call.whole(k) for k in range(count)], call.inputs[count : count + sources]
        return tuple(_marked(*inputs, [], label))
    if call.replay is None:
        raise NoRule("its gradient is not part of a parsed graph")
    captured, flags = call.inputs[count + sources :], call.batched[count + sources :]
    replay_all = call.replay

    def gradient(*output_grads: Any) -> list[Any]:
        moving = [True] * count + flags
        found = iter(replay_all(label.region, [*output_grads, *captured], moving))
        of_all = [next(found) if there else None for there in label.present]
        return [
            g if g is None or batched else reduce_sum(g, 0)
            for g, batched in zip(of_all, call.batched[count:], strict=False)
        ]

    results = [call.whole(k) for k in range(count)]
    return tuple(
        with_gradient(str(label), results, call.inputs[count : count + sources], gradient)
    )


def with_gradient(
    name: str, results: Sequence[Tensor], sources: Sequence[Any], gradient: Callable[..., Any],
    code: Any = None,
) -> list[Tensor]:  # fmt: skip
    """`results` with a gradient of their own, in the graph that is traced or on the tapes.

    Args:
        sources: the tensors and variables that `gradient` gives gradients for.
        gradient: called with a gradient for each result.
        code: tells the function that has the gradient; None where the gradient cannot call it.
    """
    if context.recorder is not None:
        return mark_custom_gradient(name, results, sources, gradient, code)
    with taping(()):  # results that only this entry knows
        outputs = [identity(x) for x in results]
    record_custom(name, sources, outputs, gradient)
    return outputs


CUSTOM = register(
    Op(
        "custom_gradient", _infer, _eager, _gradient,
        tags=frozenset({"any_elements", "gradient_mark"}), batch=_batch, takes_variables=True,
    )
)  # fmt: skip

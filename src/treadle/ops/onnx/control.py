"""Forms of branches and loops. ONNX's read what is outside by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.ops.onnx.call import OnnxCall, form


@form("cond")
def _cond(call: OnnxCall) -> Sequence[str]:
    if not call.outs:
        return []
    pred, *operands = call.inputs

    def branch(region: Any, label: str) -> Callable[[OnnxCall], Sequence[str]]:
        scope = f"{call.name}/{label}"
        return lambda inner: call.translate(region, operands, inner.block, scope)

    labels = ("then", "else")
    branches = [branch(r, label) for r, label in zip(call.regions, labels, strict=True)]
    return call.choose(pred, branches, call.outs)


@form("while")
def _while(call: OnnxCall) -> Sequence[str]:
    """The condition stands before the loop and at the end of its body."""
    condition, body = call.regions
    count = len(call.outs)
    carried, invariant = call.inputs[:count], call.inputs[count:]

    def test(inner: OnnxCall, values: Sequence[str], label: str) -> str:
        operands = [*values, *invariant]
        return call.translate(condition, operands, inner.block, f"{call.name}/{label}")[0]

    def once(inner: OnnxCall, _: str, values: list[str]) -> tuple[str, Sequence[str]]:
        operands = [*values, *invariant]
        changed = call.translate(body, operands, inner.block, f"{call.name}/body")
        return test(inner, changed, "condition"), changed

    specs = [p.spec for p in body.params[:count]]
    return call.loop("", test(call, carried, "before"), carried, specs, once)

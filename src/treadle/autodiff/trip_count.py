"""How often a loop can run at most, where its condition and constants tell."""

from __future__ import annotations

from typing import Any

from treadle.graph.ir import Node, Region, Value


def most_iterations(node: Node) -> int | None:
    """An upper bound for a ``while`` that counts from a constant to a constant.

    Recognised is a condition ``i < n`` (``<=``, ``>``, ``>=``, ``!=`` with a step of one), alone or
    joined to others by ``logical_and``, where the body adds a constant to i.
    """
    condition, body = node.regions
    bounds = [
        bound
        for test in _conjuncts(condition.results[0])
        if (bound := _bound(node, condition, body, test)) is not None
    ]
    return min(bounds, default=None)


def _conjuncts(value: Value) -> list[Node]:
    node = value.node
    if node is None:
        return []
    if node.op.name == "logical_and":
        return [n for v in node.inputs for n in _conjuncts(v)]
    return [node]


_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less",
             "greater_equal": "less_equal", "not_equal": "not_equal"}  # fmt: skip


def _bound(node: Node, condition: Region, body: Region, test: Node) -> int | None:
    """The number of iterations after which `test` fails."""
    if test.op.name not in _MIRRORED:
        return None
    left, right = test.inputs
    kind = test.op.name
    if left.node is not None:
        left, right, kind = right, left, _MIRRORED[kind]
    if left.producer is not condition or left.index >= len(body.results):
        return None
    number = left.index
    start = _constant(node.inputs[number])
    limit = _outer_constant(node, condition, right)
    step = _step(node, body, number)
    if start is None or limit is None or not step:
        return None
    return _count(kind, start, limit, step)


def _count(kind: str, start: int, limit: int, step: int) -> int | None:
    if kind == "not_equal":
        distance = limit - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if (step > 0) != kind.startswith("less"):
        return None
    distance = (limit - start) * (1 if step > 0 else -1)
    if kind.endswith("_equal"):
        distance += 1
    return max(0, -(-distance // abs(step)))


def _constant(value: Value) -> int | None:
    """The number that an integer scalar constant holds."""
    node = value.node
    if node is None or node.op.name != "const":
        return None
    array: Any = node.attrs["value"]
    return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else None


def _outer_constant(node: Node, region: Region, value: Value) -> int | None:
    """A constant inside the region, or an invariant operand that is one outside."""
    if value.producer is region:
        carried = len(node.outputs)
        return _constant(node.inputs[value.index]) if value.index >= carried else None
    return _constant(value)


def _step(node: Node, body: Region, number: int) -> int | None:
    """The constant that the body adds to carried value `number`."""
    result = body.results[number].node
    if result is None or result.op.name not in ("add", "subtract"):
        return None
    left, right = result.inputs
    param = body.params[number]
    sign = -1 if result.op.name == "subtract" else 1
    if left is param:
        step = _outer_constant(node, body, right)
    elif right is param and sign == 1:
        step = _outer_constant(node, body, left)
    else:
        return None
    return None if step is None else sign * step

"""How often a loop runs, and which numbers its counters go through, where constants tell."""

from __future__ import annotations

from typing import Any

from treadle.core.records import record
from treadle.graph.ir import Node, Region, Value
from treadle.ops.control.control_flow import COND
from treadle.ops.conversion import CONST
from treadle.ops.elementwise.arithmetic import ADD, SUBTRACT
from treadle.ops.elementwise.comparison import LESS
from treadle.ops.elementwise.logic import LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.properties import Relation


@record(frozen=True)
class Counter:
    """An integer loop variable that starts at a constant and changes by a constant.

    Attributes:
        number: its number among the loop variables.
    """

    number: int
    start: int
    step: int


@record(frozen=True)
class Pace:
    """A loop variable that each iteration moves by one number, towards a limit that ends the loop.

    Attributes:
        number: its number among the loop variables.
        step: what an iteration adds: a constant, or an operand that the loop does not change.
        falls: whether that operand is subtracted.
        relation: between the variable and the limit while the loop goes on, unless it ends before.
        limit: a constant, or an operand that the loop does not change.
        test: the comparison, a value of the condition. The loop ends where it is false.
    """

    number: int
    step: Value | int
    falls: bool
    relation: Relation
    limit: Value | int
    test: Value


def pace(node: Node) -> Pace | None:
    """The first test of a ``while`` that a variable approaches evenly, if there is one."""
    condition = node.regions[0]
    for test in conjuncts(condition.results[0]):
        relation = bounding(test)
        if relation is None or not relation.is_order:
            continue
        left, right = test.inputs
        if not _varies(node, left):
            left, right, relation = right, left, relation.mirrored
        if not _varies(node, left):
            continue
        limit, step = _fixed(node, condition, right), _even_step(node, left.index)
        if limit is None or step is None:
            continue
        if isinstance(step[0], int) and (step[0] > 0) != relation.is_less:
            continue
        return Pace(left.index, *step, relation, limit, test.outputs[0])
    return None


def _varies(node: Node, value: Value) -> bool:
    """Whether a value of the condition is a loop variable that changes."""
    condition, body = node.regions
    inside = value.producer is condition and value.index < len(body.results)
    return inside and body.results[value.index] is not body.params[value.index]


def _even_step(node: Node, number: int) -> tuple[Value | int, bool] | None:
    """What each iteration adds to loop variable `number`, and whether it is subtracted instead."""
    body = node.regions[1]
    param, known = body.params[number], step_of(node, number)
    if known is not None:
        return (known, False) if known else None
    made = body.results[number].node
    if not param.spec.dtype.is_integer or made is None or made.op not in (ADD, SUBTRACT):
        return None
    left, right = made.inputs
    if left is not param and made.op is ADD:
        left, right = right, left
    step = _fixed(node, body, right) if left is param else None
    return None if step is None else (step, made.op is SUBTRACT)


def _fixed(node: Node, region: Region, value: Value) -> Value | int | None:
    """A number that is the same in all iterations: a constant, or an operand of the loop."""
    known = _outer_constant(node, region, value)
    if known is not None:
        return known
    if value.producer is not region:
        return None
    body = node.regions[1]
    same = value.index >= len(body.results) or body.results[value.index] is body.params[value.index]
    return node.inputs[value.index] if same else None


def most_iterations(node: Node) -> int | None:
    """An upper bound for a ``while`` that counts from a constant to a constant.

    Recognised is a condition ``i < n`` (``<=``, ``>``, ``>=``, ``!=`` with a step of one), alone or
    joined to others by ``logical_and``, where the body adds a constant to i.
    """
    tests = conjuncts(node.regions[0].results[0])
    bounds = [bound for test in tests if (bound := _bound(node, test)) is not None]
    return min(bounds, default=None)


def trip_count(node: Node) -> int | None:
    """The number of iterations of a ``while`` that ends by its counter alone."""
    tests = conjuncts(node.regions[0].results[0])
    return _bound(node, tests[0]) if len(tests) == 1 else None


def counts_to(node: Node) -> tuple[int, Value | int] | None:
    """(counter, limit) of a ``while`` that adds 1 to its counter, whose number this is, until it is
    not less than the limit: a constant, or an operand that the loop does not change."""
    condition, body = node.regions
    test = condition.results[0].node
    if test is None or test.op is not LESS:
        return None
    left, right = test.inputs
    carried = len(body.results)
    counts = left.producer is condition and left.index < carried and step_of(node, left.index) == 1
    if not counts:
        return None
    known = _outer_constant(node, condition, right)
    if known is not None:
        return (left.index, known) if right.spec.dtype is left.spec.dtype else None
    if right.producer is not condition:
        return None
    fixed = right.index >= carried or body.results[right.index] is body.params[right.index]
    return (left.index, node.inputs[right.index]) if fixed else None


def invariants(node: Node) -> dict[Value, Value]:
    """The body's parameters that are the same in every iteration -> the loop's inputs for them."""
    body = node.regions[1]
    fixed = (i >= len(body.results) or body.results[i] is p for i, p in enumerate(body.params))
    pairs = zip(body.params, node.inputs, fixed, strict=True)
    return {param: value for param, value, same in pairs if same}


def counter(node: Node, number: int) -> Counter | None:
    """Loop variable `number` as a counter, if it is one."""
    start, step = _constant(node.inputs[number]), step_of(node, number)
    return None if start is None or step is None else Counter(number, start, step)


def position(node: Node, value: Value) -> tuple[int, int] | None:
    """(first, step) of a value of the body that is a counter, or one plus a constant."""
    body = node.regions[1]
    for root, offset in _offsets(node, value):
        if root.producer is body and root.index < len(body.results):
            found = counter(node, root.index)
            if found is not None:
                return found.start + offset, found.step
    return None


def counts_through(node: Node, value: Value, size: Any) -> int | None:
    """1 or -1 where a value of the body goes through 0 .. size-1, every number once, upwards or
    downwards; else None."""
    found = counts_within(node, value, size)
    return found[1] if found is not None and trip_count(node) == size else None


def counts_within(node: Node, value: Value, size: Any) -> tuple[int, int] | None:
    """(least number, 1 or -1) where a value of the body goes through neighbouring numbers of
    0 .. size-1, every one once, upwards or downwards; else None."""
    found, ends = position(node, value), counted_range(node, value)
    if found is None or ends is None or abs(found[1]) != 1 or not isinstance(size, int):
        return None
    return (ends[0], found[1]) if ends[0] >= 0 and ends[1] < size else None


def counted_range(node: Node, value: Value) -> tuple[int, int] | None:
    """The least and the largest number that a value of the body is, where it counts."""
    trips, found = trip_count(node), position(node, value)
    if not trips or found is None:
        return None
    ends = found[0], found[0] + found[1] * (trips - 1)
    return min(ends), max(ends)


def step_of(node: Node, number: int) -> int | None:
    """The constant that the body adds to loop variable `number`."""
    body = node.regions[1]
    param = body.params[number]
    if not param.spec.dtype.is_integer or param.spec.rank:
        return None
    for root, offset in _offsets(node, body.results[number]):
        if root is param:
            return offset
    return None


def _offsets(node: Node, value: Value) -> list[tuple[Value, int]]:
    """Ways to write an integer of the body as another one plus a constant."""
    found = [(value, 0)]
    while (step := _taken_apart(node, found[-1][0])) is not None:
        rest, number = step
        found.append((rest, found[-1][1] + number))
    return found


def _taken_apart(node: Node, value: Value) -> tuple[Value, int] | None:
    """A sum or difference of a value and a constant."""
    made = value.node
    if made is None or made.op not in (ADD, SUBTRACT):
        return None
    left, right = made.inputs
    number = _outer_constant(node, node.regions[1], right)
    if number is not None:
        return left, -number if made.op is SUBTRACT else number
    if made.op is SUBTRACT:
        return None
    number = _outer_constant(node, node.regions[1], left)
    return None if number is None else (right, number)


def conjuncts(value: Value) -> list[Node]:
    """The tests that must all hold for a condition to hold."""
    node = value.node
    if node is None:
        return []
    if node.op is LOGICAL_AND:
        return _both(node, *node.inputs)
    if node.op is WHERE and _is_false(node.inputs[2]):  # ``a and b``, b asked always
        return _both(node, node.inputs[0], node.inputs[1])
    if node.op is COND and _is_false(node.regions[1].results[value.index]):
        return [*conjuncts(node.inputs[0]), node]  # ``a and b``, where b is asked only after a
    return [node]


def _both(node: Node, a: Value, b: Value) -> list[Node]:
    """The tests of ``a and b``; with the node itself where one of them is a variable."""
    found = [*conjuncts(a), *conjuncts(b)]
    return [*found, node] if a.node is None or b.node is None else found


def ending_flags(node: Node) -> list[int]:
    """The numbers of the bool variables of a ``while`` that end it as soon as they are true, as
    ``break`` and ``return`` set them."""
    condition, body = node.regions
    found: list[int] = []
    for test in conjuncts(condition.results[0]):
        if test.op is LOGICAL_NOT:
            for value in _disjuncts(test.inputs[0]):
                if value.producer is condition and value.index < len(body.results):
                    found.append(value.index)
    return list(dict.fromkeys(found))


def _disjuncts(value: Value) -> list[Value]:
    """Values that are all false where a value is false."""
    node = value.node
    if node is None:
        return [value]
    if node.op is LOGICAL_OR:
        return [v for side in node.inputs for v in _disjuncts(side)]
    if node.op is WHERE and _is_true(node.inputs[1]):  # ``a or b``, b asked always
        return [*_disjuncts(node.inputs[0]), *_disjuncts(node.inputs[2])]
    if node.op is COND and _is_true(node.regions[0].results[value.index]):
        return _disjuncts(node.inputs[0])  # ``a or b``, where b is asked only after a
    return [value]


def _is_false(value: Value) -> bool:
    node = value.node
    return node is not None and node.op is CONST and not node.attrs["value"].any()


def _is_true(value: Value) -> bool:
    node = value.node
    return node is not None and node.op is CONST and bool(node.attrs["value"].all())


def bounding(node: Node) -> Relation | None:
    """The relation of a comparison, if a counter fulfils it for a while; None for ==."""
    return None if node.op.relation is Relation.EQUAL else node.op.relation


def _bound(node: Node, test: Node) -> int | None:
    """The number of iterations after which `test` fails."""
    condition, body = node.regions
    relation = bounding(test)
    if relation is None:
        return None
    left, right = test.inputs
    if left.node is not None:
        left, right, relation = right, left, relation.mirrored
    if left.producer is not condition or left.index >= len(body.results):
        return None
    found = counter(node, left.index)
    limit = _outer_constant(node, condition, right)
    if found is None or limit is None or not found.step:
        return None
    return _count(relation, found.start, limit, found.step)


def _count(relation: Relation, start: int, limit: int, step: int) -> int | None:
    if relation is Relation.NOT_EQUAL:
        distance = limit - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if (step > 0) != relation.is_less:
        return None
    distance = (limit - start) * (1 if step > 0 else -1)
    if relation.holds_of_equals:
        distance += 1
    return max(0, -(-distance // abs(step)))


def _constant(value: Value) -> int | None:
    """The number that an integer scalar constant holds."""
    node = value.node
    if node is None or node.op is not CONST:
        return None
    array: Any = node.attrs["value"]
    return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else None


def _outer_constant(node: Node, region: Region, value: Value) -> int | None:
    """A constant inside the region, or an invariant operand that is one outside."""
    if value.producer is region:
        carried = len(node.outputs)
        return _constant(node.inputs[value.index]) if value.index >= carried else None
    return _constant(value)

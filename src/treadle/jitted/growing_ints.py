"""Python ints that a loop multiplies again and again: where they leave 64 bits, the program raises.

Python's ints have any size, those of a program 64 bits. A loop that adds a number in each iteration
does not get far in a lifetime, but one whose ints grow by a factor, as factorials, powers and
Fibonacci numbers do, leaves 64 bits after some dozens of iterations. Such a loop has a cycle of
linear operations from one iteration to the next, of which one multiplies, or adds two numbers of
the cycle. There the program asks whether the result is the true one, and carries the answer: it
raises where a next iteration, or what is behind the loop, takes a number that is not. A remainder,
mask or division ends a cycle: ``seed = (a * seed + c) % m`` is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.graph.ir import Node, Region, Value
from treadle.graph.rewrite import constant_of
from treadle.ops.control.raising import Raised, raise_unless
from treadle.ops.conversion import CONST
from treadle.ops.numbers.python_numbers import Source
from treadle.ops.registry import OPS, infer_outputs

_SAFE = 2.0**62  # two products that are equal but for 2**64 are further apart than their rounding
_MOST = 2**63 - 1
# Operations whose result grows as their operands do.
_LINEAR = frozenset({"add", "subtract", "multiply", "negative", "identity", "where"})

Reach = frozenset[int]  # the carried ints that a value is computed of


def exactness(begun: Sequence[Value], ended: Sequence[Value]) -> dict[int, Value]:
    """For Python ints that a loop's body multiplies, a bool that tells whether what they are at the
    end of an iteration is what Python has, where they are at its begin.

    Args:
        begun: the carried ints at the begin of an iteration, values of the body's region.
        ended: the same ints at its end.
    """
    cycles = _Cycles(begun, ended)
    found = {i: cycles.is_exact(value, i) for i, value in enumerate(ended)}
    return {i: value for i, value in found.items() if value is not None}


class Exact(Source):
    """A Python int after a loop, which ends with an error where it is used and is not exact: a
    number that the last iteration gives for a next one (``a, b = b, a + b``) may be anything."""

    def __init__(self, tensor: Tensor, is_exact: Tensor, line: str) -> None:
        super().__init__(tensor)
        self.is_exact, self.line = is_exact, line

    def tensor(self) -> Tensor:
        raise_unless(self.is_exact, overflow(self.line))
        return self._tensor


def overflow(line: str) -> Raised:
    """What a program raises whose ints leave 64 bits."""
    return Raised(OverflowError(
        "a Python int in a loop leaves the 64 bits that it has in a jitted function: use floats, "
        f"or np.int64(...) for a number that wraps around{line}"
    ), [])  # fmt: skip


class _Cycles:
    """Which carried ints are computed of which in an iteration."""

    def __init__(self, begun: Sequence[Value], ended: Sequence[Value]) -> None:
        self.known: dict[Value, Reach] = {v: frozenset([i]) for i, v in enumerate(begun)}
        self.exact: dict[tuple[Value, int], Value | None] = {}
        self.together = _closed([self.reach(v) for v in ended])

    def reach(self, value: Value) -> Reach:
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._reach(value)
        return found

    def _reach(self, value: Value) -> Reach:
        node = value.node
        if node is None or value.spec.dtype is not dtypes.int64:
            return frozenset()
        if node.op.name == "cond":
            sides = [self._inside(node, region, value.index) for region in node.regions]
            return frozenset().union(*map(self.reach, sides))
        if node.op.name not in _LINEAR:
            return frozenset()
        return frozenset().union(*map(self.reach, _operands(node)))

    def _inside(self, node: Node, region: Region, index: int) -> Value:
        """The result of a branch, whose parameters are the operands."""
        for param, operand in zip(region.params, node.region_inputs, strict=True):
            self.known.setdefault(param, self.reach(operand))
        return region.results[index]

    def is_exact(self, value: Value, number: int) -> Value | None:
        """Whether a value on the way to the carried int of a number is what Python has; None where
        it is in any case."""
        key = value, number
        if key not in self.exact:
            self.exact[key] = self._is_exact(value, number)
        return self.exact[key]

    def _is_exact(self, value: Value, number: int) -> Value | None:
        node = value.node
        if node is None or not self._is_cycle(value, number):
            return None
        if node.op.name == "cond":
            return self._of_cond(node, value.index, number)
        operands = _operands(node)
        checks = [self.is_exact(v, number) for v in operands]
        if multiplies(node, operands, [self._is_cycle(v, number) for v in operands]):
            checks.append(exact_result(node))
        assert node.region is not None
        return _all(node.region, checks)

    def _of_cond(self, node: Node, index: int, number: int) -> Value | None:
        """One more result of a conditional."""
        sides = [(r, self.is_exact(r.results[index], number)) for r in node.regions]
        if all(found is None for _, found in sides):
            return None
        for region, found in sides:
            true = found if found is not None else _constant(region, node, np.True_)
            region.results.append(true)
        spec = node.regions[0].results[-1].spec
        node.outputs.append(Value(spec, node, len(node.outputs)))
        return node.outputs[-1]

    def _is_cycle(self, value: Value, number: int) -> bool:
        """Whether a value on the way to a carried int is computed of one that is computed of it."""
        return any(number in self.together[i] and i in self.together[number]
                   for i in self.reach(value))  # fmt: skip


def _operands(node: Node) -> list[Value]:
    return node.inputs[1:] if node.op.name == "where" else list(node.inputs)


def _closed(given: Sequence[Reach]) -> list[set[int]]:
    """For each carried int those that it is computed of in some number of iterations."""
    closed = [set(reach) for reach in given]
    grows = True
    while grows:
        grows = False
        for own in closed:
            more = set[int]().union(*(closed[i] for i in own)) - own
            own |= more
            grows |= bool(more)
    return closed


def multiplies(node: Node, operands: Sequence[Value], own: Sequence[bool]) -> bool:
    """Whether an operation multiplies an int of a cycle, by more than 1, or adds two."""
    name = node.op.name
    if name == "multiply":
        factors = [constant_of(v) for v, is_own in zip(operands, own, strict=True) if not is_own]
        return all(f is None or abs(int(f)) > 1 for f in factors)
    return name in ("add", "subtract") and all(own)


def _all(region: Region, tests: Sequence[Value | None]) -> Value | None:
    """``a and b and ...`` of those that are not None."""
    found: Value | None = None
    for test in tests:
        if test is not None:
            found = test if found is None else _add(region, found.node, "logical_and", found, test)
    return found


def _constant(region: Region, like: Node, value: Any) -> Value:
    node = Node(CONST, (), {"value": np.asarray(value)}, infer_outputs(
        CONST, (), {"value": np.asarray(value)}), (), like.origin)  # fmt: skip
    return region.append(node).outputs[0]


def _add(region: Region, like: Node | None, name: str, *inputs: Value, **attrs: Any) -> Value:
    """An operation at the end of a region, of the line of another one."""
    specs = infer_outputs(OPS[name], [v.spec for v in inputs], attrs)
    origin = None if like is None else like.origin
    return region.append(Node(OPS[name], inputs, attrs, specs, (), origin)).outputs[0]


def exact_result(node: Node) -> Value:
    """A bool that tells whether the result of an addition, subtraction or product of ints is the
    true one; of arrays, whether all numbers are. It is computed at the end of the node's region."""
    found = _Check(node).is_exact()
    return found if found.spec.rank == 0 else _add(_region_of(node), node, "reduce_all", found)


def _region_of(node: Node) -> Region:
    assert node.region is not None
    return node.region


class _Check:
    """The operations that tell whether the result of another one is the true one."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def is_exact(self) -> Value:
        return self._product() if self.node.op.name == "multiply" else self._sum()

    def _product(self) -> Value:
        a, b = self.node.inputs
        for one, other in ((a, b), (b, a)):
            factor = constant_of(other)
            if factor is not None:
                most = self._constant(np.int64(_MOST // abs(int(factor))))
                return self("less_equal", self("abs", one), most)
        double = {"dtype": dtypes.float64}
        true = self("multiply", self("cast", a, **double), self("cast", b, **double))
        found = self("cast", self.node.outputs[0], **double)
        apart = self("abs", self("subtract", found, true))
        return self("less", apart, self._constant(np.float64(_SAFE)))

    def _sum(self) -> Value:
        """Two numbers of one sign do not have a sum of the other one; nor two numbers of two signs
        a difference of the sign of the second."""
        (a, b), total = self.node.inputs, self.node.outputs[0]
        is_sum = self.node.op.name == "add"
        first = self("bitwise_xor", a, total if is_sum else b)
        second = self("bitwise_xor", b if is_sum else a, total)
        wrong = self("bitwise_and", first, second)
        return self("greater_equal", wrong, self._constant(np.int64(0)))

    def __call__(self, name: str, *inputs: Value, **attrs: Any) -> Value:
        return _add(_region_of(self.node), self.node, name, *inputs, **attrs)

    def _constant(self, value: Any) -> Value:
        return _constant(_region_of(self.node), self.node, value)

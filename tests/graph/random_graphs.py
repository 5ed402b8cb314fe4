"""Random well-formed graphs with control flow, variables and symbolic dims, for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.context import recording
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.conversion import constant
from treadle.ops.elementwise import arithmetic, casting, comparison, powers, selection, unary
from treadle.ops.indexing import transposing
from treadle.ops.reductions import reduction
from treadle.ops.shaping import creation, reshaping
from treadle.ops.state import Variable

ROWS = 3  # the run-time value of the symbolic dim


class RandomGraph:
    """A graph, and fresh arguments for it."""

    def __init__(self, seed: int, size: int = 25) -> None:
        self.rng = np.random.default_rng(seed)
        self.start = [self.array((ROWS, 4)), self.array((4,)), np.float32(self.rng.integers(-2, 3))]
        self.variables = [Variable(self.array((4,)), name="w"), Variable(self.array(()), name="b")]
        self.graph = self.build(size)

    def array(self, shape: tuple[int, ...]) -> Any:
        """Small integers and halves: sums and products are often equal, zero or special."""
        values = self.rng.integers(-4, 5, shape) / 2
        return np.asarray(values, np.float32)

    def arguments(self) -> list[Any]:
        """Parameter values; variables are new, so that runs do not disturb each other."""
        copies = {id(v): Variable(v.numpy().copy()) for v in self.variables}
        captured = [copies[id(v)] for v in self.graph.captures]
        return [np.asarray(a) for a in self.start] + captured

    def build(self, size: int) -> Graph:
        builder = GraphBuilder("random")
        with recording(builder):
            x = builder.parameter(TensorSpec([None, 4]).with_fresh_symbols("B"), "x")
            pool = [
                x,
                builder.parameter(TensorSpec([4]), "y"),
                builder.parameter(TensorSpec([]), "s"),
            ]
            self.grow(pool, size, depth=0)
            results = [self.pick(pool) for _ in range(3)]
            return builder.finish(results)

    def pick(self, pool: list[Any]) -> Any:
        return pool[self.rng.integers(len(pool))]

    def grow(self, pool: list[Any], size: int, depth: int) -> None:
        for _ in range(size):
            kinds = [self.unary, self.binary, self.shape, self.reduce, self.literal, self.state]
            if depth < 2:
                kinds += [self.branch, self.loop]
            step = kinds[self.rng.integers(len(kinds))]
            pool.append(step(pool, depth))

    def unary(self, pool: list[Any], depth: int) -> Any:
        x = self.pick(pool)
        ops = [
            unary.negative, unary.tanh, unary.identity, unary.square,
            unary.stop_gradient, unary.abs, lambda t: casting.cast(t, dtypes.float64),
            lambda t: powers.pow(t, 3.0), lambda t: powers.pow(t, 1.0),
        ]  # fmt: skip
        return casting.cast(ops[self.rng.integers(len(ops))](x), dtypes.float32)

    def binary(self, pool: list[Any], depth: int) -> Any:
        ops = [
            arithmetic.add, arithmetic.subtract, arithmetic.multiply, arithmetic.divide,
            arithmetic.maximum,
            lambda a, b: selection.where(comparison.less(a, b), a, b),
        ]  # fmt: skip
        op = ops[self.rng.integers(len(ops))]
        operands = [self.pick(pool), self.pick(pool)]
        if self.rng.integers(3) == 0:
            numbers = [0.0, -0.0, 1.0, 2.0, -1.0, 0.25, 3.0]
            operands[self.rng.integers(2)] = constant(numbers[self.rng.integers(len(numbers))])
        return op(*operands)

    def shape(self, pool: list[Any], depth: int) -> Any:
        x = self.pick(pool)
        if x.ndim == 2:
            moved = transposing.transpose(x)
            return self.unary([transposing.transpose(moved) if self.rng.integers(2) else x], depth)
        flat = reshaping.reshape(x, [-1])
        return reshaping.reshape(reshaping.reshape(flat, [1, -1]), list(x.dims))

    def reduce(self, pool: list[Any], depth: int) -> Any:
        x = self.pick(pool)
        return reduction.reduce_sum(x, axis=0) if x.ndim == 2 else reduction.reduce_max(x)

    def literal(self, pool: list[Any], depth: int) -> Any:
        if self.rng.integers(2):
            return creation.fill(list(self.pick(pool).dims), self.scalar(pool))
        return constant(self.array([(), (4,), (1, 4)][self.rng.integers(3)]))

    def state(self, pool: list[Any], depth: int) -> Any:
        variable = self.variables[self.rng.integers(2)]
        fits = [t for t in pool if t.dims == variable.spec.dims]
        if fits and self.rng.integers(2):
            variable.assign(self.pick(fits))
        return variable.value()

    def branch(self, pool: list[Any], depth: int) -> Any:
        predicate = comparison.less(reduction.reduce_sum(self.pick(pool)), self.scalar(pool))
        if self.rng.integers(4) == 0:
            predicate = constant(bool(self.rng.integers(2)))
        like = self.pick(pool)

        def side() -> list[Any]:
            inner = list(pool)
            self.grow(inner, 4, depth + 1)
            fits = [t for t in inner if t.dims == like.dims]
            return [self.pick(fits), self.scalar(inner)]

        return cond(predicate, side, side)[self.rng.integers(2)]

    def scalar(self, pool: list[Any]) -> Any:
        return self.pick([t for t in pool if t.ndim == 0] or [constant(1.0)])

    def loop(self, pool: list[Any], depth: int) -> Any:
        start = [constant(0), self.pick(pool), self.pick(pool)]

        def body(i: Any, *state: Any) -> list[Any]:
            inner = [*pool, *state]
            self.grow(inner, 4, depth + 1)
            new = [self.pick([t for t in inner if t.dims == s.dims]) for s in state]
            return [arithmetic.add(i, 1), *new]

        count = int(self.rng.integers(4))
        return while_loop(lambda i, *_: comparison.less(i, count), body, start)[1]

"""Long chains of updates, views and the like, as Python loops unroll them.

Every program takes an array of 8 by 8 (`stencil` and `sweep`: of 100) and a number of steps.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td

Chain = Callable[[Any, int], Any]
SHAPES = {"stencil": (100,), "sweep": (100,)}


def stencil(u, n):
    for _ in range(n):
        u[1:-1] += u[2:] + u[:-2]
        u[0] = u[1]
    return u


def borders(p, n):
    for _ in range(n):
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
    return p


def sweep(u, n):
    for i in range(n):
        u[i % 60 + 1] = u[i % 60] * 0.5 + u[i % 60 + 2]
    return u


def swaps(u, n):
    v = td.zeros_like(u)
    for i in range(n):
        v[i % 7 + 1] = u[i % 7] + v[i % 7]
        u, v = v, u
    return u


def views(u, n):
    for _ in range(n):
        u = td.reverse(td.transpose(u[:, ::-1]), [0])
    return u


def reshapes(u, n):
    for _ in range(n):
        u = td.reshape(td.transpose(td.reshape(u, [4, 16])), [8, 8])
    return u


def squeezes(u, n):
    for _ in range(n):
        u = td.squeeze(td.transpose(td.expand_dims(u, 1)), 1)
    return u


def old_readers(u, n):
    """Every update is followed by a reader of what was there before."""
    total = u
    for i in range(n):
        new = td.tensor_scatter_nd_update(u, [[i % 8]], u[:1] * 0.5)
        total, u = total + td.sqrt(u), new
    return total + u


def scatter_adds(u, n):
    for i in range(n):
        u = td.tensor_scatter_nd_add(u, [[i % 8]], td.reshape(u[(i + 1) % 8] * 0.5, [1, -1]))
    return u


def scatters(u, n):
    for i in range(n):
        u = td.tensor_scatter_nd_update(u, [[i % 8], [(i + 3) % 8]], u[:2])
    return u


def concats(u, n):
    for _ in range(n):
        u = td.concat([u[1:], u[:1] * 0.5], 0)
    return u


def stacks(u, n):
    for _ in range(n):
        a, b = td.unstack(td.reshape(u, [2, -1]))
        u = td.reshape(td.stack([b, a * 0.5]), [8, 8])
    return u


def one_reader_each(u, n):
    return td.add_n([u[i % 8] * float(i) for i in range(n)])


def means(u, n):
    for _ in range(n):
        u = u - td.reduce_mean(u, 0)
    return u


def joins(u, n):
    """Every step joins its result to all that were before, as densely connected networks do."""
    for i in range(n):
        mean, variance = td.nn.moments(u, 0)
        ready = td.nn.relu((u - mean) * td.math.rsqrt(variance + 1.0))
        u = td.concat([u, ready @ td.ones([8 + 2 * i, 2])], 1)
    return u


def residuals(u, n):
    """A gradient through steps that all add to one array."""
    with td.GradientTape() as tape:
        tape.watch(u)
        v = u
        for _ in range(n):
            mean, variance = td.nn.moments(v, 0)
            v = v + td.tanh((v - mean) * td.math.rsqrt(variance + 1.0)) @ u
        total = td.reduce_sum(v)
    return u - 0.1 * tape.gradient(total, u)


def gathers(u, n):
    order = td.constant([1, 0, 2, 3, 4, 7, 6, 5])
    for _ in range(n):
        u = td.gather(u, order) + 1.0
    return u


def scalars(u, n):
    s = u[0, 0]
    for i in range(n):
        s = s * 0.5 + u[i % 8, 0]
    return s


def lists(u, n):
    found = td.TensorArray(td.float32, size=n)
    for i in range(n):
        found = found.write(i, u[i % 8] * 0.5)
    return found.stack()


def branches(u, n):
    for _ in range(n):
        u = td.cond(u[0, 0] > 0.0, lambda u=u: u * 0.5, lambda u=u: u + 1.0)
    return u


def update_gradient(u, n):
    with td.GradientTape() as tape:
        tape.watch(u)
        y = u * 1.0
        for i in range(n):
            y[i % 8] = y[(i + 1) % 8] * 0.5
    return tape.gradient(y, u)


CHAINS: dict[str, Chain] = {
    f.__name__: f
    for f in (
        stencil, borders, sweep, swaps, views, reshapes, squeezes, old_readers, scatter_adds,
        scatters, concats, stacks, one_reader_each, means, gathers, scalars, lists, branches,
        update_gradient, joins, residuals,
    )
}  # fmt: skip


def variable_chain() -> Chain:
    """Assignments to a variable, each followed by a reader."""
    variable = td.Variable(np.zeros((8, 8), np.float32))

    def assign(u, n):
        for _ in range(n):
            variable.assign_add(u)
            u = u + variable * 0.5
        return u

    return assign


def argument(name: str) -> Any:
    return td.constant(np.random.default_rng(0).random(SHAPES.get(name, (8, 8)), np.float32))

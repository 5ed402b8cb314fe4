"""How often the body of a loop is traced: nests of loops would multiply what each of them adds."""

import numpy as np
import pytest

import treadle as td
from treadle.jitted.loops import Loop


@pytest.fixture
def traces(monkeypatch):
    """The traces of bodies, each by the number of variables of its loop."""
    found, traced = [], Loop.traced_body

    def noted(self, *args):
        found.append(len(self.state))
        return traced(self, *args)

    monkeypatch.setattr(Loop, "traced_body", noted)
    return found


def alike(function, *arguments):
    """td.jit gives what NumPy gives, in the result and in the arguments."""
    mine, theirs = ([np.array(a) for a in arguments] for _ in range(2))
    result = td.jit(function)(*mine)
    np.testing.assert_allclose(result, function(*theirs), 1e-12)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, 1e-12)


A = np.random.default_rng(3).normal(size=(20, 20))


def shortest(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def test_bodies_of_nested_loops_are_traced_once(traces):
    alike(shortest, np.abs(A))
    assert len(traces) == 3


def forces(x, v):
    n = x.shape[0]
    for i in range(n):
        f = np.zeros(x.shape[1])
        for j in range(n):
            if i != j:
                f += x[j] - x[i]
        v[i] += f
    return v


def test_arrays_made_in_a_body_are_carried_by_the_loops_inside(traces):
    alike(forces, A, A + 1)
    assert len(traces) == 2


def totals(x):
    t = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        s = 0
        for j in range(x.shape[1]):
            s += x[i, j]
        t[i] = s
    return t


def test_a_number_that_becomes_another_one_costs_one_trace_more(traces):
    alike(totals, A)
    assert len(traces) == 3


def replaced(x):
    y = x + 1.0
    for i in range(x.shape[0]):
        y = y * 0.5 + x[i]
    return y


def swapped(x, y):
    for i in range(x.shape[0]):
        x[i] += y[0]
        x, y = y, x
    return x - y


def add_to(target, i):
    target[i] += 1.0


def changed_elsewhere(x, y):
    z = x
    for i in range(x.shape[0]):
        add_to(y, i)
        z = z + y
    return z


def sometimes(x, y):
    if x[0, 0] > y[0, 0]:
        for i in range(x.shape[0]):
            x[i] = y[i] * 2.0
    else:
        for i in range(x.shape[0]):
            y = y * 1.5
    return y + x


@pytest.mark.parametrize("function", [replaced, swapped, changed_elsewhere, sometimes])
def test_bodies_that_write_other_arrays_than_they_assign_are_traced_again(function, traces):
    second = [A.T + 1] * (function is not replaced)
    alike(function, A, *second)
    assert len(traces) > 1
    alike(function, A + 3, *second)

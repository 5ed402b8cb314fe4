"""Loops over Python lists, `zip`, `enumerate` and `reversed` of them, in jitted functions."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

WEIGHTS = [0.1 * k * k for k in range(40)]
COUNTS = [3, 1, 4, 1, 5] * 8


def over_a_list(x):
    for w in WEIGHTS:
        x = x * 0.5 + w
    return x, w


def enumerated_and_zipped(x):
    for i, (w, k) in enumerate(zip(WEIGHTS, COUNTS, strict=True)):
        x = x * 0.5 + w * k + i
    return x, i, w


def zipped_with_an_array(x):
    s = 0.0
    for w, v in zip(WEIGHTS, x, strict=True):
        s += w * v
    return s


def backwards(x):
    for w in reversed(WEIGHTS):
        x = x * w * 0.1
    return x


def ends_early(x):
    for a, b in [(i, 0.5 * i) for i in range(20)]:
        if a > 10 and b > 7:
            break
        x = x + a * b
    return x, a, b


def one_iterator_for_two_loops(x):
    left = iter(WEIGHTS)
    for w in left:
        x = x + w
        if w > 10:
            break
    for w in left:
        x = x * 0.5 - w
    return x


def collects(x):
    found = []
    for w in WEIGHTS:
        found.append(w * x[0])
    return np.array(found)


def mixes_types(x):
    for w in [1, 2.0] * 10:
        x = x * w
    return x


STAGED = [over_a_list, enumerated_and_zipped, zipped_with_an_array, backwards, ends_early]
OTHERS = [one_iterator_for_two_loops, collects, mixes_types]


@pytest.mark.parametrize("function", [*STAGED, *OTHERS], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_are_those_of_numpy(function, dtype):
    x = np.linspace(0, 1, 40).astype(dtype)
    jitted = td.jit(function)
    found, wanted = jitted(x.copy()), function(x.copy())
    assert type(found) is type(wanted)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for a, b in pairs:
        assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-5)
    if function in STAGED:
        graph = jitted.get_concrete_function(x).graph
        assert [n.op.name for n in graph.walk()].count("while") == 1

"""A call goes on with its plan, whatever collections do to it meanwhile."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td


class Dropping:
    """Garbage in a cycle that drops all traces, and their plans, when it is collected."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        td.clear_caches()
        self.fill = [bytes([255]) * size for size in range(8, 3000, 8)]  # what was free is not now


def results(x):
    return x + 1, x * 2, x - 1


def nested(xs):
    return {"sum": xs[0] + xs[1], "product": xs[0] * xs[1]}


@pytest.fixture
def usual_collections():
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*before)


@pytest.mark.parametrize("decorate", [td.function, td.jit])
@pytest.mark.parametrize("python", [results, nested])
def test_a_collection_that_drops_the_plan_of_the_call(usual_collections, decorate, python):
    f, kept = decorate(python), []
    x = td.constant(np.arange(4.0)) if decorate is td.function else np.arange(4.0)
    given = [x, x] if python is nested else x
    wanted = [np.asarray(y) for y in td.nest.flatten(python(given))]
    for _ in range(20):
        kept += [f(given) for _ in range(4)]  # the plan exists, its spare results are in use
        gc.collect()
        gc.disable()
        garbage = [Dropping(), Dropping()]
        gc.set_threshold(1)
        del garbage
        gc.enable()
        found = f(given)
        gc.set_threshold(700)
        kept.append(found)
        for y, w in zip(td.nest.flatten(found), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(y), w)

"""Reads and writes of variables around branches and loops: values stay what they were when read."""

import numpy as np
import pytest

import treadle as td
from tests.graph.random_graphs import RandomGraph
from tests.runtime.harness import both, trace
from treadle.core.spec import TensorSpec
from treadle.graph.passes import disabled
from treadle.ops.control.control_flow import cond, while_loop


def once(body):
    return while_loop(lambda i: i < 1, lambda i: (body(), i + 1)[1:], (td.constant(0),))


def written_back_after_a_loop(w, y):
    before = w.value()
    once(lambda: w.assign(y))
    w.assign(before)
    return w.value()


def written_back_in_a_branch(w, y):
    before = w.value()
    w.assign(y * 2.0)
    cond(td.reduce_sum(y) > 0.0, lambda: [w.assign(before)][1:], lambda: [])
    return w.value()


def added_to_what_a_branch_reads(w, y):
    before = w.value()
    w.assign(y * 2.0)
    (later,) = cond(td.reduce_sum(y) > 0.0, lambda: [w.value()], lambda: [w.value() + 1.0])
    return before + later


def added_to_what_is_read_later(w, y):
    before = w.value()
    w.assign(y * 2.0)
    return before + w.value()


def assigned_twice(w, y):
    first = w.value()
    w.assign(first + y)
    second = w.value()
    w.assign(first * 2.0)
    return first, second, w.value()


def kept_and_assigned_in_a_loop(w, y):
    def body(i, x):
        new = x * -1.0
        w.assign(new)
        return i + 1, new

    found = while_loop(lambda i, x: i < 3, body, (td.constant(0), y))
    return found[1], w.value()


def read_after_a_loop_into_an_earlier_kernel(w, y):
    early = td.maximum(y, 1.0)
    test = td.reduce_sum(y) < 0.0
    once(lambda: cond(test, lambda: [], lambda: [w.assign(y)][1:]))
    return w.value() - early


def read_into_a_kernel_that_a_branch_needs(w, y):
    early = td.tanh(y)
    cond(td.reduce_sum(y) > 0.0, lambda: [w.assign(early)][1:], lambda: [])
    return w.value() + early


CASES = [
    written_back_after_a_loop, written_back_in_a_branch, added_to_what_a_branch_reads,
    added_to_what_is_read_later, assigned_twice, kept_and_assigned_in_a_loop,
    read_after_a_loop_into_an_earlier_kernel, read_into_a_kernel_that_a_branch_needs,
]  # fmt: skip


@pytest.mark.parametrize("passes", ["all passes", "no passes"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_a_value_is_what_was_read(case, passes):
    w = td.Variable([1.0, 2.0, 3.0])
    with disabled(*(["all"] if passes == "no passes" else [])):
        graph = trace(lambda y: case(w, y), TensorSpec((3,)))
        both(graph, np.array([5.0, 6.0, 7.0], np.float32))


@pytest.mark.parametrize("seed", [50, 122, 1035, 1137, 1603, 3194, 3342, 7641])
def test_graphs_that_had_no_order_or_a_wrong_one(seed):
    random = RandomGraph(seed, size=14)
    both(random.graph, *random.start, rtol=1e-4, atol=1e-4)


def spread(v, w, x):
    new = td.tanh(x)
    v.assign(new)
    w.assign(new)


def spread_and_changed(v, w, x):
    new = td.tanh(x)
    v.assign(new)
    w.assign(new)
    v.assign_add(x)
    w.assign_sub(new * 3.0)


def changed_in_between(v, w, x):
    new = td.tanh(x)
    v.assign(new)
    v.assign_add(x)
    w.assign(new)
    v.assign(new)


@pytest.mark.parametrize("off", [[], ["forwarding"], ["fusion"], ["all"]], ids="-".join)
@pytest.mark.parametrize("program", [spread, spread_and_changed, changed_in_between])
def test_one_value_assigned_to_several_variables(program, off):
    """A kernel writes its result into one of them; the others get copies, while it is there."""
    v, w = (td.Variable(np.full(5, float(k), np.float32)) for k in range(2))
    with disabled(*off):
        graph = trace(lambda x: [program(v, w, x), td.reduce_sum(x)][1:], TensorSpec((5,)))
        both(graph, np.linspace(-1, 1, 5, dtype=np.float32))

"""Functions with many signatures: calls find their plan, and only calls that fit it."""

import dataclasses
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.tracing.plans import FRONT, Plans, form_of


def quiet(fn, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fn(*args)


def test_many_signatures_all_run_through_plans():
    f = td.function(lambda x, k=1: x * float(k))

    def calls():
        for n in range(1, 40):
            for k in (1, 2):
                assert f(td.ones([n]), k).numpy().sum() == n * k
                assert f(td.ones([n]), k=k).numpy().sum() == n * k

    with disabled("native_calls"):
        for _ in range(2):  # a plan is made when a trace is called again
            quiet(calls)
    assert f.experimental_get_tracing_count() == 78
    assert len(f._plans) == 78 and len(f._plans.front) == FRONT
    slow = []
    f._call_slowly = lambda *args: slow.append(args)
    for _ in range(2):
        calls()
    assert not slow


def test_plans_are_made_once_whatever_the_calls():
    f = td.function(lambda x: x + 1.0)
    for _ in range(500):
        f(np.ones((4, 4), np.float32).T)  # not contiguous as the plan wants it: the general path
        f(np.float32(1))
    assert len(f._plans) <= 2


def test_open_dims_need_one_plan():
    f = td.function(lambda x: x + 1.0, input_signature=[td.TensorSpec([None])])
    for n in range(20):
        f(td.ones([n]))
    assert len(f._plans) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2), (1, 1.0), (1, True), ("a", "b"), (None, 0), (0.0, -0.0), (1j, -1j), (0j, -0j),
        ((1, 2), [1, 2]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ([1], [1, 1]),
        (td.float32, td.int32), (slice(1), slice(2)), (range(2), range(3)), ({1}, {2}),
        (np.float32, np.float64),
    ],
)  # fmt: skip
def test_values_that_differ_never_share_a_plan(a, b):
    f = td.function(lambda x, k: x + 0.0)
    x = td.constant(1.0)
    for _ in range(4):
        f(x, a)
        f(x, b)
    assert f.experimental_get_tracing_count() == 2


def test_forms():
    x, y = td.ones([2]), np.ones([2], np.float32)
    assert form_of((x,)) == form_of((y,)) != form_of((td.ones([3]),))
    assert form_of((x,), shapes=False) == form_of((td.ones([3]),), shapes=False)
    assert form_of(({"a": 1, "b": 2},)) == form_of(({"b": 2, "a": 1},))
    assert isinstance(hash(form_of((np.array(["text", None], object), {1}, x))), int)


def test_a_table_that_is_full_begins_anew(monkeypatch):
    monkeypatch.setattr("treadle.tracing.plans.MOST_PLANS", 10)
    plans = Plans()
    for n in range(50):
        plans.add(plans, (n,), False, lambda: lambda values: values)
        assert len(plans) <= 10
    assert len(plans.front) == FRONT


class Pair(NamedTuple):
    scale: float
    values: list


@dataclasses.dataclass
class Options:
    scale: float
    values: list


@pytest.mark.parametrize("kind", [Pair, Options])
def test_plans_look_into_named_tuples_and_dataclasses(kind):
    f = td.function(lambda x, options: x * options.scale + options.values[0])
    x, options = td.constant(1.0), kind(2.0, [3.0])
    for _ in range(3):
        assert f(x, options).numpy() == f(x, kind(2.0, [3.0])).numpy() == 5
    assert f.experimental_get_tracing_count() == 1
    f._call_slowly = None
    assert f(x, kind(2.0, [3.0])).numpy() == 5  # through the plan
    del f._call_slowly
    options.values[0] = 4.0  # the object is the same, what it holds is not
    assert f(x, options).numpy() == 6

"""The bound on traces: which go, what they give back, and what is said about it."""

import gc
import warnings
import weakref

import pytest

import treadle as td
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.filterwarnings("ignore:.*max_traces:RuntimeWarning")


def ones(*shape):
    return td.ones(shape)


def made(most, **options):
    calls = []

    @td.function(max_traces=most, **options)
    def f(x):
        calls.append(x.shape.as_list())
        return x + 1.0

    return f, calls


def kept(f):
    return [c.structured_input_signature[0][0].shape.as_list() for c in f.concrete_functions]


def test_the_trace_not_used_for_longest_goes():
    f, calls = made(2)
    for n in (1, 2, 1, 3):  # when 3 comes, 2 was used before 1
        f(ones(n))
    assert kept(f) == [[1], [3]]
    f(ones(1))
    f(ones(2))
    assert calls == [[1], [2], [3], [2]] and kept(f) == [[1], [2]]


def test_calls_through_plans_count_as_uses():
    f, _ = made(3)
    for n in (1, 2, 3):
        f(ones(n))
        f(ones(n))
        f(ones(n))  # all calls but the first run through a plan
    f(ones(4))
    assert kept(f) == [[2], [3], [4]]
    f(ones(2))
    f(ones(5))
    assert kept(f) == [[2], [4], [5]]
    count = lambda: len(f._plans if call_layout() is None else f._native.plans)
    assert count() == 1  # of [2], as the other traces that are kept were called once
    for n in (4, 5):
        f(ones(n))
    assert count() == 3


def test_an_evicted_program_is_freed():
    f, _ = made(1)
    f(ones(3))
    f(ones(3))
    concrete = weakref.ref(f.concrete_functions[0])
    program = weakref.ref(f.concrete_functions[0].executable)
    f(ones(4))
    gc.collect()
    assert concrete() is None and program() is None


def test_a_concrete_function_held_by_the_user_still_works():
    f, _ = made(1)
    concrete = f.get_concrete_function(ones(2))
    f(ones(3))
    assert concrete(ones(2)).numpy().tolist() == [2, 2]
    assert concrete not in f.concrete_functions


def test_every_trace_counts_and_explain_tells_of_the_evicted_ones():
    f, calls = made(1)
    for n in (1, 2, 1):
        f(ones(n))
    assert f.experimental_get_tracing_count() == len(calls) == 3
    text = str(f.explain())
    assert "f was traced 3 times" in text
    assert text.count("freed: at most 1 traces are kept (max_traces)") == 3  # and why 3 was needed
    assert "nearest to trace 1:\n      that trace was freed" in text


def test_no_retrace_says_that_the_trace_was_freed():
    f, _ = made(1)
    f(ones(1))
    f(ones(2))
    with td.no_retrace(), pytest.raises(td.RetraceError, match="that trace was freed: at most 1"):
        f(ones(1))


def test_one_warning_with_the_ways_out():
    f, _ = made(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(6):
            f(ones(n))
    (warning,) = caught
    assert "f has more than 2 traces" in str(warning.message)
    for way in ("input_signature", "reduce_retracing", "td.config.set_max_traces"):
        assert way in str(warning.message)
    assert warning.filename == __file__


def test_the_setting_and_its_default():
    assert td.config.max_traces() == 512
    f = td.function(lambda x: x + 1.0)
    g, _ = made(5)
    td.config.set_max_traces(2)
    try:
        for n in range(5):
            f(ones(n))
            g(ones(n))
        assert len(f.concrete_functions) == 2 and len(g.concrete_functions) == 5
    finally:
        td.config.set_max_traces(512)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_bad_bounds(bad):
    with pytest.raises(ValueError, match="positive number of traces"):
        td.function(lambda x: x, max_traces=bad)
    with pytest.raises(ValueError, match="positive number of traces"):
        td.config.set_max_traces(bad)


def test_traces_for_objects_that_died_go_without_a_warning():
    class Config:
        scale = 2.0

    @td.function(max_traces=3)
    def f(x, config):
        return x * config.scale

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            f(ones(2), Config())
    assert len(f.concrete_functions) <= 2
    assert "an object that it was made for no longer exists" in str(f.explain())


def test_traces_inside_other_traces_go_with_these():
    def outer():
        @td.function
        def caller(x):
            y = x * 2.0

            @td.function
            def inner(z):
                return z + y

            kept_inner.append(inner)
            return inner(x) + inner(x)

        return caller

    kept_inner = []
    assert outer()(ones(2)).numpy().tolist() == [6, 6]
    (inner,) = kept_inner
    assert len(inner.concrete_functions) == 1
    assert inner._cache.out_of_reach() == inner.concrete_functions


def test_each_object_has_its_own_bound():
    class Model:
        @td.function(max_traces=2)
        def f(self, x):
            return x * 2.0

    a, b = Model(), Model()
    for n in range(4):
        a.f(ones(n))
    b.f(ones(1))
    assert len(a.f.concrete_functions) == 2 and len(b.f.concrete_functions) == 1


def test_open_dims_can_be_evicted_too():
    f, calls = made(2, reduce_retracing=True)
    for n in (1, 2, 3, 4):
        f(ones(n))
    assert len(calls) == 2  # [1] and [None]
    f(ones(1, 1))
    f(ones(1, 2))
    f(ones(5))
    assert len(f.concrete_functions) == 2 and f(ones(7)).shape == (7,)

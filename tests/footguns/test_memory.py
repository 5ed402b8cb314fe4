"""Traps of memory: traces that pile up, arguments that never die, caches that nothing empties."""

import gc
import weakref

import numpy as np
import pytest

import treadle as td


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_25_traces_are_bounded():
    f = td.function(lambda x, k: x * float(k), max_traces=5)
    for k in range(30):
        f(td.ones([2]), k)
    assert len(f.concrete_functions) == 5 and f.experimental_get_tracing_count() == 30
    assert td.config.max_traces() >= 100  # functions have a bound by themselves


def test_25_a_deleted_function_is_gone():
    class Model:
        @td.function
        def f(self, x):
            return x + 1.0

    model = Model()
    g = td.function(lambda x: x * 2.0)
    for _ in range(3):
        g(model.f(td.ones([2])))
    parts = [model, g, g.concrete_functions[0].graph, model.f.concrete_functions[0].executable]
    references = [weakref.ref(part) for part in parts]
    del model, g, parts
    gc.collect()
    assert [r() for r in references] == [None] * 4


def test_26_arguments_die():
    class Options:
        factor = 2.0

    f = td.function(lambda x, options: x * options.factor)
    array, options = np.ones(1000, np.float32), Options()
    for _ in range(3):
        f(array, options)
    references = [weakref.ref(array), weakref.ref(options)]
    del array, options
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_27_one_call_clears_all_caches():
    functions = [td.function(lambda x, k=k: td.sin(x) * float(k)) for k in range(5)]
    x = td.ones([3])
    values = [f(x).numpy() for f in functions for _ in range(2)][::2]
    programs = [weakref.ref(f.concrete_functions[0].executable) for f in functions]
    td.clear_caches()
    assert [p() for p in programs] == [None] * 5
    assert all(f.concrete_functions == [] for f in functions)
    np.testing.assert_array_equal([f(x).numpy() for f in functions], values)

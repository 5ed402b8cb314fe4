"""Memory: what dies with a function, what `clear_caches` gives back, what arguments outlive."""

import gc
import linecache
import weakref

import numpy as np
import pytest

import treadle as td
from treadle.core.origin import LINE_MAPS
from treadle.runtime.cpu.jit import jit


def make(scale):
    @td.function
    def f(x):
        y = x * scale
        if td.reduce_sum(y) > 0.0:
            y = y + 1.0
        return td.tanh(y)

    return f


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_deleted_function_frees_everything():
    f = make(2.0)
    for _ in range(3):
        f(td.ones([3]))
    concrete = f.concrete_functions[0]
    parts = [f, f.python_function, f._converted, concrete, concrete.graph, concrete.executable]
    references = [weakref.ref(p) for p in parts]
    del f, concrete, parts
    gc.collect()
    assert [r() for r in references] == [None] * 6


def test_a_recursive_function_is_freed():
    def outer():
        @td.function
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        assert power(td.constant(2.0), 5).numpy() == 32
        return weakref.ref(power), weakref.ref(power.python_function)

    references = outer()
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_generated_text_goes_with_its_code():
    def forms():
        return {name for name in [*LINE_MAPS, *linecache.cache] if "autograph of leaving" in name}

    namespace = {"td": td}
    source = "def leaving(x):\n    if td.reduce_sum(x) > 0:\n        return x\n    return -x\n"
    linecache.cache["<leaving>"] = (len(source), None, source.splitlines(True), "<leaving>")
    exec(compile(source, "<leaving>", "exec"), namespace)
    f = td.function(namespace.pop("leaving"))
    assert f(td.constant([-1.0])).numpy() == 1 and len(forms()) == 1
    del f
    gc.collect()
    assert not forms()


def test_memory_is_flat_over_many_functions():
    """Machine code, kernels and texts of dead functions go, but for a bounded number."""

    def run(count):
        for i in range(count):
            f = make(float(i))
            f(td.ones([5]))
            del f
        gc.collect()

    run(3)
    before, codes = resident(), jit().loaded
    run(60)
    td.clear_caches()
    assert jit().loaded <= codes
    assert resident() - before < 8 << 20


def test_clear_caches_frees_programs_and_keeps_functions_working():
    f = make(3.0)
    x = td.constant([1.0, 2.0])
    first = [f(x).numpy() for _ in range(3)]
    program = weakref.ref(f.concrete_functions[0].executable)
    held = f.get_concrete_function(td.ones([7]))
    td.clear_caches()
    assert program() is None and f.concrete_functions == []
    np.testing.assert_array_equal(f(x).numpy(), first[0])
    assert f.experimental_get_tracing_count() == 3
    assert "freed by clear_caches" in str(f.explain())
    assert held(td.ones([7])).shape == (7,)


def test_clear_caches_keeps_variables():
    @td.function
    def f(x):
        if f.v is None:
            f.v = td.Variable(10.0)
        return f.v.assign_add(x)

    f.v = None
    assert f(td.constant(1.0)).numpy() == 11
    td.clear_caches()
    assert f(td.constant(1.0)).numpy() == 12


def test_clear_caches_during_a_call():
    """A call that is running goes on; functions called by the trace too."""

    @td.function
    def inner(x):
        return x * 2.0

    @td.function
    def f(x):
        y = inner(x)
        td.clear_caches()
        return y + inner(x)

    assert f(td.constant(1.0)).numpy() == 4
    assert f(td.constant(2.0)).numpy() == 8


@pytest.mark.parametrize("options", [{}, {"reduce_retracing": True}])
def test_arrays_tensors_and_objects_are_not_kept(options):
    class Config:
        pass

    @td.function(**options)
    def f(x, y, v, config):
        return x + y + v

    array, tensor = np.ones(3, np.float32), td.constant([1.0, 2.0, 3.0])
    variable, config = td.Variable([1.0, 1.0, 1.0]), Config()
    for _ in range(3):
        f(array, tensor, variable, config)
        f(array[:2].copy(), tensor[:2], td.Variable([1.0, 1.0]), config)
    references = [weakref.ref(thing) for thing in (array, tensor, variable, config)]
    del array, tensor, variable, config
    gc.collect()
    assert [r() for r in references] == [None] * 4


def test_concrete_functions_and_gradients_keep_no_argument():
    @td.function
    def f(x, w):
        return td.reduce_sum(x * w)

    x, w = td.constant([1.0, 2.0]), td.Variable([3.0, 4.0])
    concrete = f.get_concrete_function(x, w)
    with td.GradientTape() as tape:
        y = f(x, w)
    assert tape.gradient(y, w).numpy().tolist() == [1, 2]
    references = weakref.ref(x), weakref.ref(w)
    del x, w, tape, y
    gc.collect()
    assert [r() for r in references] == [None, None] and concrete.inputs

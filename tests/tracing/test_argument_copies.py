"""Arrays that are arguments are read where they are, and nothing that outlives a call shares
memory with them."""

import tracemalloc

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.tracing.python_plans import MISS

SIZE = 100_000
CALLS = range(4)  # through the general path, through plans in Python, through native plans


@pytest.fixture(autouse=True, scope="module")
def loaded():
    """What plans are made with is imported when a process first makes one."""
    f = td.function(lambda x, a: x * a)
    for _ in CALLS:
        f(np.ones(2), 2.0)


def allocated(function, *args):
    """The most bytes that a call had allocated besides its arguments."""
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize(
    "scalar", [2.0, np.float64(2), np.float32(2), np.int64(2), np.int8(2), np.bool_(True)]
)
def test_a_scalar_does_not_make_calls_copy_arrays(scalar, portable, monkeypatch):
    if portable:
        import treadle.tracing.function as module

        monkeypatch.setattr(module, "is_native", lambda function: False)
    f = td.function(lambda x, a: td.reduce_sum(x) * td.cast(a, x.dtype))
    x = np.ones(SIZE)
    wanted = SIZE * float(scalar)
    assert f(x, scalar).numpy() == wanted  # traces and compiles
    for _ in CALLS:
        assert allocated(f, x, scalar) < x.nbytes / 2
        assert f(x, scalar).numpy() == wanted


def test_a_plan_takes_numpy_scalars():
    f = td.function(lambda x, a: x * td.cast(a, x.dtype))
    x = np.ones(3)
    with disabled("native_calls"):
        for value in (1.0, 2.0, 3.0, 4.0):
            assert f(x, np.float64(value)).numpy().tolist() == [value] * 3
    plan = f._front[0]
    assert plan((x, np.float64(5))).numpy().tolist() == [5, 5, 5]
    assert f.experimental_get_tracing_count() == 1
    assert plan((x, np.float32(5))) is MISS
    assert f(x, np.float32(2)).numpy().tolist() == [2, 2, 2]  # of another dtype: a trace of its own
    assert f.experimental_get_tracing_count() == 2


def test_a_concrete_function_reads_arrays_where_they_are():
    x = np.ones(SIZE)
    concrete = td.function(td.reduce_sum).get_concrete_function(td.TensorSpec([None], td.float64))
    assert concrete(x).numpy() == SIZE
    assert allocated(concrete, x) < x.nbytes / 2
    assert concrete(x[::2]).numpy() == SIZE / 2  # not in C order: a copy
    assert concrete(x.astype(">f8")).numpy() == SIZE


def parts(x):
    return [x, td.reshape(x, (4, -1)), x[:5], td.stop_gradient(x), *td.split(x, 2)]


def pieces(x):
    """A list among the results, which is made of an array that the program gives."""
    return [td.TensorArray(td.float64, size=4).unstack(td.reshape(x, (4, -1))), *parts(x)]


def through_python(x):
    return td.numpy_function(lambda a: a, [x], td.TensorSpec((SIZE,), td.float64))


@pytest.mark.parametrize("function", [parts, pieces, through_python])
def test_results_do_not_change_with_the_argument(function):
    f = td.function(function)
    for _ in CALLS:
        x = np.arange(float(SIZE))
        result = f(x)
        x[:] = -1
        for r in result if isinstance(result, list) else [result]:
            assert ((r.stack() if isinstance(r, td.TensorArray) else r).numpy() >= 0).all()


def test_variables_do_not_change_with_the_argument():
    v = td.Variable(np.zeros(SIZE))

    def keep(x):
        v.assign(x)
        return td.TensorArray(td.float64, size=4).unstack(td.reshape(x, (4, -1)))

    f, g = td.function(keep), td.function(lambda x: v.assign(x).read_value())
    for function in (f, g):
        for i in CALLS:
            x = np.full(SIZE, float(i))
            function(x)
            x[:] = -1
            assert (v.numpy() == i).all()


def test_tapes_keep_what_the_argument_was():
    f = td.function(lambda x, w: td.reduce_sum(x * w))
    w = td.constant(np.ones(3))
    for _ in CALLS:
        x = np.arange(3.0)
        with td.GradientTape() as tape:
            tape.watch(w)
            y = f(x, w)
        x[:] = -1
        assert tape.gradient(y, w).numpy().tolist() == [0, 1, 2]

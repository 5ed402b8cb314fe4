"""Programs over all dtypes, odd shapes and numbers of threads."""

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, captures, inputs, native, trace_like
from treadle.ops.control.control_flow import while_loop

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SHAPES = [(), (1,), (17,), (3, 1), (1, 5), (2, 3, 4), (0, 4), (33, 18)]


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return np.asarray(rng.integers(1, 12, shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def tolerance(dtype):
    return {2: 2e-2, 4: 2e-5, 8: 1e-12}[np.dtype(dtype).itemsize]


def float_work(x):
    y = td.tanh(x) * 2 + td.exp(-td.square(x))
    return y, td.where(x > 0, y, -x), td.cast(x, td.int32)


def integer_work(x):
    return x * 3 + x, x // 2, x % 3, td.maximum(x, 5) - x, td.cast(x, td.float32) / 2.0, x > 4


def reductions(x):
    results = [td.reduce_sum(x), td.reduce_max(x), td.reduce_min(x)]
    if x.ndim:
        results += [td.reduce_sum(x, -1), td.reduce_max(x, 0), td.argmax(x, -1)]
    return results


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_floats(dtype, shape):
    x = values(dtype, shape)
    t = tolerance(dtype)
    both(trace_like(float_work, x), x, rtol=t, atol=t)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: np.dtype(d).name)
def test_integers(dtype, shape):
    x = values(dtype, shape)
    both(trace_like(integer_work, x), x)


@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s], ids=str)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=lambda d: np.dtype(d).name)
def test_reductions(dtype, shape):
    x = values(dtype, shape)
    t = tolerance(dtype) if np.dtype(dtype).kind not in "iu" else 0
    both(trace_like(reductions, x), x, rtol=4 * t, atol=4 * t)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_booleans(shape):
    x = np.asarray(np.random.default_rng(0).integers(0, 2, shape)).astype(bool)
    both(
        trace_like(
            lambda x: (~x, x & ~x, td.reduce_any(x), td.reduce_all(x), td.cast(x, td.int8)), x
        ),
        x,
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_rank_0_values_of_every_float_stay_rounded(dtype):
    x = values(dtype, ())

    def f(x):
        return while_loop(
            lambda i, x: i < 9, lambda i, x: (i + 1, x * 0.75 + 0.3), (td.constant(0), x)
        )[1]

    t = tolerance(dtype)
    both(trace_like(f, x), x, rtol=t, atol=t)


def test_complex_values_are_computed_in_kernels():
    x = np.array([1 + 2j, -3j], np.complex64)
    executable = both(trace_like(lambda x: x * x + x, x), x)
    assert "python" not in executable.stages["schedule"]


@pytest.mark.parametrize("dtype", [td.complex64, td.complex128])
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda a: a * a, 1 + 2j),
        (lambda a: a + 1.0, [1 + 2j]),
        (lambda a: td.reduce_sum(a), [1 + 2j, 2j]),
        (lambda a: td.abs(td.complex(td.math.real(a), 2.0 * td.math.imag(a))), 3 + 2j),
        (lambda a: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * x), (0, a))[1], 1j),
    ],
)
def test_complex_scalars_are_native(f, x, dtype):
    x = td.constant(x, dtype)
    function = td.function(lambda a: f(a))
    np.testing.assert_allclose(function(x), f(x), rtol=1e-6)
    (concrete,) = function.concrete_functions
    assert concrete.executable.mode == "native"
    assert "python" not in concrete.executable.stages["schedule"]


def big_step(x, w):
    h = td.nn.softmax(td.matmul(x, w)) + td.reduce_mean(x, 0, keepdims=True)[:, :1]
    centered = h - td.reduce_mean(h, 0)
    return (
        td.reduce_sum(centered * centered),
        td.tanh(centered),
        td.reduce_sum(h, 0),
        td.transpose(h) * 2.0,
    )


def test_results_do_not_depend_on_the_number_of_threads():
    from treadle.runtime.cpu.threads import pool

    arrays = inputs((700, 300), (300, 301))
    graph = trace_like(big_step, *arrays)
    before = pool().threads
    try:
        found = []
        for threads in (1, 2, 3):
            pool().set_threads(threads)
            found.append(native(graph).run([*arrays, *captures(graph)]))
    finally:
        pool().set_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)

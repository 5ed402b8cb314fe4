"""Parts of arrays whose bounds are data: kernels that know the bounds as dims."""

import itertools

import numpy as np
import pytest

import treadle as td
from tests.runtime.apart import Apart
from tests.runtime.harness import native, same, trace_like
from treadle.core import dtypes, errors
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Buffer, Kernel, const, store
from treadle.kernel.reference import evaluate
from treadle.ops.indexing.updates import set_item
from treadle.runtime import compile, interpreter
from treadle.runtime.devices import using
from treadle.runtime.schedule.slices import NAMES, begin_and_count, step_of

BOUNDS = list(itertools.product((-9, -2, 0, 3, 20), (-8, -1, 0, 4, 30)))
LARGEST = 2**63 - 1


def rows(x, a, b, c):
    return x[a:b:c]


def columns(x, a, b, c):
    return x[:, a:b:c], x[::c], x[:, b:a:c]


def doubled(x, a, b, c):
    x = set_item(x, (slice(None), slice(a, b, c)), x[:, a:b:c] * 2)
    return set_item(x, slice(a, None, c), x[a::c] + x[a::c])


def gradient(x, a, b, c):
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(x[a:b:c] ** 2) + td.reduce_sum(x[:, a:b:c] * 3.0)
    return tape.gradient(y, x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool"])
@pytest.mark.parametrize("fn", [rows, columns, doubled, gradient])
def test_parts(fn, dtype):
    if (fn is gradient and dtype[0] != "f") or (fn is doubled and dtype == "bool"):
        dtype = "float32"
    x = (np.random.default_rng(0).standard_normal((7, 5)) * 9).astype(dtype)
    graph = trace_like(fn, x, *[np.int64(1)] * 3)
    executable = native(graph)
    for (a, b), c in itertools.product(BOUNDS[::3], (-2, 1, 3, LARGEST, -LARGEST - 1)):
        given = [x, *map(np.int64, (a, b, c))]
        pairs = zip(executable.run(given), interpreter.run(graph, given), strict=True)
        for found, wanted in pairs:
            same(found, wanted, 1e-5, 1e-6)
    assert "python" not in executable.stages["schedule"]
    assert "whole[" in executable.stages["kernels"]


def test_parts_on_a_device_with_memory_of_its_own():
    """Its kernels do all the work; bounds that the host knows cost no waiting."""
    x = np.arange(35.0).reshape(7, 5)
    given = [x, *map(np.int64, (4, 0, -2))]
    for fn in (rows, columns, doubled, gradient):
        graph = trace_like(fn, *given)
        with using(Apart()):
            executable = compile(graph)
        pairs = zip(executable.run(given), interpreter.run(graph, given), strict=True)
        for found, wanted in pairs:
            same(found, wanted, 1e-6, 0)
        assert "dynamic_slice" not in executable.text.replace(" for dynamic_slice", "")
        assert len(executable.fetches) <= 3  # the arguments, which nothing computes


@pytest.mark.parametrize("given", list(itertools.product((False, True), repeat=3)))
def test_bounds_are_those_of_python(given):
    inputs = [Buffer(name, dtypes.int64, ()) for name in NAMES]
    outs = [Buffer(name, dtypes.int64, ()) for name in ("begin", "count", "by")]
    for size in (0, 1, 6):
        step = SymbolicDim.symbol("step") if given[2] else None
        by = step_of() if given[2] else const(1, dtypes.int64)
        exprs = *begin_and_count(given, size, step), by
        stores = tuple(store(o, value=e) for o, e in zip(outs, exprs, strict=True))
        used = [b for b, is_given in zip(inputs, given, strict=True) if is_given]
        kernel = Kernel((), (*used, *outs), stores)
        for (a, b), c in itertools.product(BOUNDS, (-LARGEST - 1, -7, -1, 1, 2, LARGEST)):
            numbers = dict(zip(inputs, map(np.int64, (a, b, c)), strict=True))
            arrays = {buffer: numbers[buffer] for buffer in used}
            results = evaluate(kernel, arrays, {"step": max(c, -LARGEST)})
            begin, count, step = (int(results[o]) for o in outs)
            parts = (n if known else None for n, known in zip((a, b, c), given, strict=True))
            wanted = range(size)[slice(*parts)]
            assert count == len(wanted)
            if count:
                assert [begin + k * step for k in range(count)] == list(wanted)


def test_a_step_of_zero_and_values_that_do_not_fit_are_refused():
    x = np.arange(6, dtype=np.float32)
    executable = native(trace_like(lambda x, c: x[::c], x, np.int64(1)))
    np.testing.assert_array_equal(executable.run([x, np.int64(-2)])[0], x[::-2])
    with pytest.raises((ValueError, errors.InvalidArgumentError), match="zero"):
        executable.run([x, np.int64(0)])

    @td.function
    def put(x, c, v):
        x[::c] = v
        return x

    given = td.constant(x)
    assert put(given, td.constant(2), td.constant([1.0, 2.0, 3.0])).numpy()[4] == 3
    with pytest.raises((ValueError, errors.InvalidArgumentError)):
        put(given, td.constant(3), td.constant([1.0, 2.0, 3.0]))

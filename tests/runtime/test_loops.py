"""Ops that are loops of the program: scans, scatters, dynamic slices, positions of a mask."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, native, trace, trace_like
from treadle.core import errors
from treadle.core.spec import TensorSpec
from treadle.ops.indexing.updates import set_item

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((3, 4, 5)).astype(np.float32)
INDEX = np.array([[0, 3], [2, 1], [0, 3]], np.int32)


def checked(fn, *arrays):
    """Compiled without calls into Python, and as the interpreter has it."""
    executable = both(trace_like(fn, *arrays), *arrays)
    assert "python" not in executable.stages["schedule"], executable.stages["schedule"]
    return executable


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("op", [td.cumsum, td.math.cumprod])
def test_scans(op, axis, exclusive, reverse):
    checked(lambda x: op(x, axis, exclusive, reverse), CUBE)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "int8", "uint16"])
@pytest.mark.parametrize("op", [td.cumsum, td.math.cumprod])
def test_scans_of_dtypes(op, dtype):
    x = td.cast(td.constant(CUBE * 3.0), dtype).numpy()
    (found,) = native(trace_like(lambda x: op(x, 1), x)).run([x])
    np.testing.assert_array_equal(found, op(td.constant(x), 1).numpy())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 9), (7, 3), (8, 5), (20, 33), (1, 1)], ids=str)
def test_scans_of_several_lines_at_once(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = np.cumsum(x, axis)
    for spec in (td.TensorSpec(shape), td.TensorSpec([None, None])):
        (found,) = native(trace(lambda x: td.cumsum(x, axis), spec)).run([x])
        assert found.tobytes() == wanted.tobytes()


def kernels_of(fn, *arrays):
    return checked(fn, *arrays).stages["schedule"].count("kernel ")


def test_scans_fuse_with_what_is_beside_them():
    """One kernel for the producers, the scan and what reads it, in each direction."""
    x = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    row = x[0]
    assert kernels_of(lambda x: td.tanh(td.cumsum(x * x + 1.0, 1)) * 2.0, x) == 1
    assert kernels_of(lambda x: td.cumsum(td.transpose(x), 0) - 1.0, x) == 1
    assert kernels_of(lambda x: td.cumsum(td.exp(x)) / 3.0, row) == 1
    assert kernels_of(lambda x: td.cumsum(td.cumsum(x, 1), 1), x) == 1


def test_scans_that_stay_apart():
    """Along two axes, in both directions, read at another place, and beside a reduction."""
    x = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    assert kernels_of(lambda x: td.cumsum(td.cumsum(x, 1), 0), x) == 2
    assert kernels_of(lambda x: td.cumsum(x, 1) + td.cumsum(x, 1, reverse=True), x) == 2
    assert kernels_of(lambda x: td.cumsum(x, 1)[:, ::-1] * 2.0, x) == 2
    assert kernels_of(lambda x: td.reduce_sum(td.cumsum(x, 1), 1), x) == 2
    checked(lambda x: td.cumsum(x[:, :1] * 2.0, 0) * x, x)
    checked(lambda x: (y := td.cumsum(x[:, :1] * 2.0, 0), y * x), x)


@pytest.mark.parametrize("size", [1, 20, 40])
def test_scans_begin_with_the_first_value_itself(size):
    """-0 stays what it is, as in NumPy; exclusive sums begin with 0."""
    x = np.full((size, 20), -0.0, np.float32)
    for axis in (0, 1):
        (found,) = native(trace_like(lambda x: td.cumsum(x, axis), x)).run([x])
        assert found.tobytes() == np.cumsum(x, axis).tobytes()
        (found,) = native(trace_like(lambda x: td.cumsum(x, axis, True), x)).run([x])
        assert found.tobytes() == td.cumsum(x, axis, True).numpy().tobytes() == bytes(x.nbytes)


def test_scans_in_loops():
    """Running sums of a state that a loop carries, of a fixed size and of one that grows."""

    def fixed(x):
        return td.while_loop(
            lambda i, s: i < 5, lambda i, s: (i + 1, td.cumsum(s, 1) * 0.1), (td.constant(0), x)
        )[1]

    checked(fixed, np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32))

    def growing(x):
        return td.while_loop(
            lambda i, s: i < 5,
            lambda i, s: (i + 1, td.concat([td.cumsum(s), s[:1]], 0)),
            (td.constant(0), x),
            shape_invariants=(td.TensorShape([]), td.TensorShape([None])),
        )[1]

    checked(growing, np.random.default_rng(0).standard_normal(20).astype(np.float32))


def test_scans_of_nothing():
    checked(lambda x: td.cumsum(x, 1), np.zeros((2, 0, 3), np.float32))


def test_gradient_of_a_scan():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.cumsum(x, 1) * td.math.cumprod(x, 0))
        return tape.gradient(y, x)

    checked(fn, CUBE)


@pytest.mark.parametrize("width", [1, 3, 8, 37])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "float16"])
def test_scatter(dtype, width):
    updates = (RNG.standard_normal((3, width)) * 5).astype(dtype)
    base = (RNG.standard_normal((3, 4, width)) * 5).astype(dtype)
    checked(lambda i, u: td.scatter_nd(i, u, (3, 4, width)), INDEX, updates)
    checked(lambda x, i, u: td.tensor_scatter_nd_update(x, i, u), base, INDEX, updates)
    checked(lambda x, i, u: td.tensor_scatter_nd_add(x, i, u), base, INDEX, updates)


def test_scatter_of_single_elements():
    checked(lambda i, u: td.scatter_nd(i, u, (3, 4)), INDEX, CUBE[0, 0, :3])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_segment_sums(dtype):
    ids = np.array([2, 0, -1, 2, 0, 3])
    data = (RNG.standard_normal((6, 11)) * 5).astype(dtype)
    checked(lambda x, i: td.math.unsorted_segment_sum(x, i, 5), data, ids)
    checked(lambda x, i: td.math.unsorted_segment_sum(x, i, 5), data[:, 0].copy(), ids)


def test_segment_sums_refuse_ids_that_are_too_large():
    data = CUBE[0, 0, :2].copy()
    graph = trace_like(lambda x, i: td.math.unsorted_segment_sum(x, i, 3), data, INDEX[0])
    executable = native(graph)
    with pytest.raises(errors.InvalidArgumentError, match="segment id 3 is out of range"):
        executable.run([data, INDEX[0]])


def test_gradient_of_an_embedding():
    table = RNG.standard_normal((7, 6)).astype(np.float32)

    def fn(table, ids):
        with td.GradientTape() as tape:
            tape.watch(table)
            loss = td.reduce_sum(td.square(td.gather(table, ids)))
        return tape.gradient(loss, table)

    executable = checked(fn, table, np.array([[1, 5, 1], [6, 0, 1]]))
    with pytest.raises(errors.InvalidArgumentError, match="7 is out of range"):
        executable.run([table, np.array([[1, 7, 1], [6, 0, 1]])])


BOUNDS = [
    (1, 3, None), (None, -1, None), (-3, None, None), (0, 99, 2), (-99, 99, 3), (None, None, -1),
    (3, 0, -1), (99, -99, -2), (2, 2, None), (3, 1, None), (-1, None, -2), (None, 1, -1),
]  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_dynamic_slices(axis):
    def key(bounds, given):
        parts = [b if g else None for b, g in zip(bounds, given, strict=True)]
        return (*[slice(None)] * axis, slice(*parts))

    for bounds in BOUNDS:
        given = [b is not None for b in bounds]
        numbers = [np.int64(b or 0) for b in bounds]

        def read(x, *b, given=given):
            return x[key(b, given)] * 1.0, x[key(b, given)]

        def write(x, *b, given=given):
            return set_item(x, key(b, given), x[key(b, given)] * 2.0 + 1.0)

        checked(read, CUBE, *numbers)
        checked(write, CUBE, *numbers)


def test_a_step_of_zero_is_refused():
    executable = native(trace_like(lambda x, s: x[::s], CUBE, np.int64(1)))
    with pytest.raises(errors.InvalidArgumentError, match="step cannot be zero"):
        executable.run([CUBE, np.array(0, np.int64)])


def test_gradient_of_a_dynamic_slice():
    def fn(x, n):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.square(x[:, n:4]))
        return tape.gradient(y, x)

    checked(fn, CUBE, np.int32(1))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float16"])
def test_positions_of_a_mask(dtype):
    for shape in ((7,), (3, 4), (2, 3, 4), (0,), (3, 0)):
        mask = RNG.integers(0, 2, shape).astype(dtype)
        checked(td.where, mask)


def test_nan_is_true():
    checked(td.where, np.array([0.0, np.nan, -0.0, 1.0], np.float32))


def test_boolean_masks():
    checked(lambda x: td.boolean_mask(x, x[:, 0, 0] > 0.0) * 2.0, CUBE)
    checked(lambda x: x[x > 0.0] + td.reduce_sum(x[x < 0.0]), CUBE)


def test_gradient_of_a_boolean_mask():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.square(td.boolean_mask(x, x > 0.25)))
        return tape.gradient(y, x)

    checked(fn, CUBE)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_symbolic_sizes(count):
    def fn(x, ids):
        table = td.math.unsorted_segment_sum(x, ids, 4)
        return td.cumsum(table), td.boolean_mask(x, x > 0.0), td.scatter_nd(ids[:, None], x, (4,))

    graph = trace(fn, TensorSpec((None,), td.float32), TensorSpec((None,), td.int32))
    both(graph, RNG.standard_normal(count).astype(np.float32), np.arange(count, dtype=np.int32) % 4)

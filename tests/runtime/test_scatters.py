"""Scatters and sums of segments: kernels that store at computed places."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, native, trace, trace_like
from treadle.core import errors
from treadle.kernel.parser import parse_kernel

RNG = np.random.default_rng(0)


def add(table, ids, rows):
    return td.tensor_scatter_nd_add(table, ids, rows)


def update(table, ids, rows):
    return td.tensor_scatter_nd_update(table, ids, rows)


def scatter(table, ids, rows):
    return td.scatter_nd(ids, rows, table.shape)


def larger(table, ids, rows):
    return td.tensor_scatter_nd_max(table, ids, rows)


def smaller(table, ids, rows):
    return td.tensor_scatter_nd_min(table, ids, rows)


def products(table, ids, rows):
    return td.math.unsorted_segment_prod(rows, ids[:, 0] - 1, table.shape[0])


def largest(table, ids, rows):
    return td.math.unsorted_segment_max(rows, ids[:, 0] - 1, table.shape[0])


def smallest(table, ids, rows):
    return td.math.unsorted_segment_min(rows, ids[:, 0] - 1, table.shape[0])


def segments(table, ids, rows):
    return td.math.unsorted_segment_sum(rows, ids[:, 0] - 1, table.shape[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("width", [None, 1, 5, 64, 700])
@pytest.mark.parametrize(
    "fn", [add, update, scatter, segments, larger, smaller, products, largest, smallest]
)
def test_rows(fn, width, dtype):
    shape = () if width is None else (width,)
    table = (RNG.standard_normal((9, *shape)) * 5).astype(dtype)
    rows = (RNG.standard_normal((80, *shape)) * 5).astype(dtype)
    ids = RNG.integers(0, 9, (80, 1)).astype(np.int32)
    executable = both(trace_like(fn, table, ids, rows), table, ids, rows)
    if dtype != "float16" or fn not in (segments, products):
        texts = executable.stages["kernels"]
        assert "target[" in texts
        assert "python" not in executable.stages["schedule"]
    open_ = [td.TensorSpec([None, *shape], dtype), td.TensorSpec([None, 1], "int32")]
    symbolic = native(trace(lambda t, i, x: add(t, i, x), open_[0], open_[1], open_[0]))
    for count in (0, 1, 80):
        (found,) = symbolic.run([table, ids[:count], rows[:count]])
        wanted = td.tensor_scatter_nd_add(table, ids[:count], rows[:count]).numpy()
        assert found.tobytes() == wanted.tobytes()


def test_the_kernel_is_shown():
    table, ids, rows = np.zeros((9, 4), np.float32), np.zeros((5, 1), np.int64), np.ones((5, 4))
    executable = native(trace_like(add, table, ids, rows.astype(np.float32)))
    text = executable.stages["kernels"].partition("\n")[2]
    (stored,) = parse_kernel(text).stores
    assert stored.combine == "add"
    assert "; kernel" in executable.stages["schedule"]


def test_nan_among_updates_changes_nothing():
    """As in TensorFlow; among the rows of a segment it stays, as in other maxima."""
    nan = np.float32(np.nan)
    table, rows = np.array([1, nan, 3], np.float32), np.array([nan, 2, 5, nan], np.float32)
    ids = np.array([[0], [1], [2], [2]])
    for fn, wanted in ((larger, [1, nan, 5]), (smaller, [1, nan, 3])):
        both(trace_like(fn, table, ids, rows), table, ids, rows)
        np.testing.assert_array_equal(fn(table, ids, rows).numpy(), wanted)
    found = td.math.unsorted_segment_max(rows, [0, 1, 1, 0], 3).numpy()
    np.testing.assert_array_equal(found, np.float32([nan, 5, np.finfo(np.float32).min]))


@pytest.mark.parametrize("fn", [td.math.segment_sum, td.math.segment_mean, td.math.segment_max])
def test_segments_of_ids_that_ascend(fn):
    compiled = td.function(fn)
    data = np.arange(12, dtype=np.float32).reshape(6, 2)
    for ids in ([0, 0, 2, 2, 2, 5], [0] * 6, [1, 2, 3, 4, 5, 6]):
        place = np.array(ids, np.int32)
        np.testing.assert_array_equal(compiled(data, place), fn(data, place))
        assert compiled(data, place).shape == (ids[-1] + 1, 2)
    assert compiled(data[:0], np.zeros(0, np.int32)).shape == (0, 2)
    for wrong in ([0, 1, 0, 2, 2, 2], [-1, 0, 0, 1, 1, 1]):
        for way in (fn, compiled):
            with pytest.raises(errors.InvalidArgumentError, match="must ascend"):
                way(data, np.array(wrong, np.int32))
    with pytest.raises(errors.InvalidArgumentError, match="vector of integers"):
        fn(data, np.zeros((6, 2), np.int32))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_variables_keep_extremes_in_place(kind):
    variable = td.Variable(np.zeros((9, 3), np.float32))

    @td.function
    def step(ids, rows):
        getattr(variable, f"scatter_nd_{kind}")(ids, rows)

    ids, rows = np.array([[1], [1], [8]]), np.arange(9, dtype=np.float32).reshape(3, 3) - 4
    step(ids, rows)
    wanted = np.zeros((9, 3), np.float32)
    {"max": np.maximum, "min": np.minimum}[kind].at(wanted, ids[:, 0], rows)
    np.testing.assert_array_equal(variable.numpy(), wanted)
    schedule = native(step.get_concrete_function(ids, rows).graph).stages["schedule"]
    assert f"tensor_scatter_nd_{kind} in v" in schedule
    assert "copy" not in schedule


def test_several_positions_a_row():
    cube = RNG.standard_normal((4, 5, 6)).astype(np.float32)
    for depth in (1, 2, 3):
        ids = RNG.integers(0, 4, (3, 7, depth))
        rows = RNG.standard_normal((3, 7, *cube.shape[depth:])).astype(np.float32)
        for fn in (add, update, scatter):
            both(trace_like(fn, cube, ids, rows), cube, ids, rows)


@pytest.mark.parametrize("bad", [-1, 9])
@pytest.mark.parametrize("count", [3, 40, 100])
@pytest.mark.parametrize("fn", [add, update, scatter, larger])
def test_positions_outside_are_refused_before_anything_is_written(fn, count, bad):
    ids = RNG.integers(0, 9, (count, 1))
    ids[-2] = bad
    rows, variable = np.ones((count, 3), np.float32), td.Variable(np.zeros((9, 3), np.float32))

    @td.function
    def step(ids, rows):
        variable.assign(fn(variable, ids, rows))

    with pytest.raises(errors.InvalidArgumentError):
        step(ids, rows)
    assert not variable.numpy().any()
    ids[-2] = 0
    step(ids, rows)
    assert variable.numpy().any()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_ids_of_every_dtype(dtype):
    """Compared with the number of segments a vector at a time; negative ones drop."""
    ids = RNG.integers(0, 7, 101).astype(dtype)
    if dtype.startswith("int"):
        ids[::5] = -1
    rows = RNG.standard_normal((101, 3)).astype(np.float32)
    executable = both(
        trace_like(lambda x, i: td.math.unsorted_segment_sum(x, i, 7), rows, ids), rows, ids
    )
    for place in (0, 50, 100):
        wrong = ids.copy()
        wrong[place] = 7
        with pytest.raises(errors.InvalidArgumentError, match="segment id 7 is out of range"):
            executable.run([rows, wrong])


def test_results_do_not_depend_on_threads():
    rows = RNG.standard_normal((5000, 1500)).astype(np.float32)
    ids = RNG.integers(0, 50, 5000)
    (once,) = (
        native(trace_like(lambda x, i: td.math.unsorted_segment_sum(x, i, 50), rows, ids))
        .run([rows, ids])
    )  # fmt: skip
    total = np.zeros((50, 1500), np.float32)
    np.add.at(total, ids, rows)
    assert once.tobytes() == total.tobytes()


@pytest.mark.parametrize("fn", [add, scatter, segments])
def test_long_ones_let_other_threads_run(fn):
    table, ids = np.zeros((9, 64), np.float32), RNG.integers(1, 9, (100_000, 1))
    rows = np.ones((100_000, 64), np.float32)
    assert native(trace_like(fn, table, ids, rows)).program.releases_gil
    few = ids[:3], rows[:3]
    assert not native(trace_like(fn, table, *few)).program.releases_gil

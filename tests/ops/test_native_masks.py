"""What masks select, counts and sums over groups, in compiled programs without Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.natively import natively, same_for_any_number_of_threads

DTYPES = ["bool", "int8", "uint16", "float16", "bfloat16", "int32", "float32", "int64", "float64"]


def elements(dtype: str, *shape: int) -> Any:
    x = np.random.default_rng(7).standard_normal(shape) * 50
    return x.astype(td.as_dtype(dtype).np_dtype)


def masks(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).random(shape) < 0.4


def runs_native(function: Any, *args: Any) -> None:
    """Only results whose size is found out are handed over by Python."""
    executable = function.get_concrete_function(*args).executable
    assert executable.mode == "native"
    assert "python " not in executable.stages["schedule"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_that_a_mask_selects(dtype: str) -> None:
    select = td.function(lambda x, m: (x[m], td.boolean_mask(x, m)))
    for shape in ((0,), (1,), (65,), (5000,), (0, 3), (70, 3), (4, 5, 2)):
        x = elements(dtype, *shape)
        for m in (masks(*shape[:1]), masks(*shape), np.zeros(shape, bool), np.ones(shape, bool)):
            for found in select(x, m):
                np.testing.assert_array_equal(found.numpy(), x[m])
        runs_native(select, x, m)


def test_positions_where_a_mask_is_true() -> None:
    find = td.function(lambda m: td.where(m))
    for shape in ((0,), (3,), (6000,), (3, 70), (2, 3, 50), (2, 3, 4, 5)):
        m = masks(*shape)
        np.testing.assert_array_equal(find(m), np.argwhere(m))
        runs_native(find, m)
        x = np.where(m, elements("float32", *shape), np.float32(0))
        np.testing.assert_array_equal(find(x), np.argwhere(x))
    wide = masks(2, 1, 2, 3, 2)
    np.testing.assert_array_equal(find(wide), np.argwhere(wide))


def test_open_dims_and_masks_that_do_not_fit() -> None:
    signature = [td.TensorSpec([None, 2], td.float32), td.TensorSpec([None], td.bool)]
    select = td.function(lambda x, m: x[m], input_signature=signature)
    for n in (0, 1, 40):
        x, m = elements("float32", n, 2), masks(n) if n else np.zeros(0, bool)
        np.testing.assert_array_equal(select(x, m), x[m])
    with pytest.raises((td.errors.InvalidArgumentError, ValueError, IndexError)):
        select(elements("float32", 4, 2), masks(5))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_reductions_under_masks(dtype: str) -> None:
    x, m = elements(dtype, 1000), masks(1000)
    names = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean"]
    for name in names:
        reduce = getattr(td, name)
        function = td.function(lambda x, m, reduce=reduce: reduce(x[m]))
        np.testing.assert_allclose(function(x, m), reduce(td.constant(x[m])), rtol=2e-5)
        if dtype.startswith("float") or name != "reduce_mean":
            text = function.get_concrete_function(x, m).executable.stages["schedule"]
            assert "compress" not in text
        if name != "reduce_mean" or dtype.startswith("float"):
            none = function(x, np.zeros(1000, bool)).numpy()
            np.testing.assert_array_equal(none, reduce(td.constant(x[:0])).numpy())


def test_gradients_of_masks() -> None:
    m = masks(9)
    squares: Callable[..., Any] = lambda x: td.reduce_sum(x[m] * x[m])
    for fn in (lambda x: x[m], squares, lambda x: td.reduce_mean(x[m])):
        check_gradients(fn, elements("float64", 9) / 50)
        check_gradients(td.function(fn), elements("float64", 9) / 50)
    check_gradients(td.function(lambda x: x[m] ** 2.0), elements("float64", 9, 2) / 50)


def test_masks_in_loops() -> None:
    @td.function
    def run(x: Any) -> Any:
        total = td.constant(0.0)
        for i in td.range(10):
            total += td.reduce_max(x[x > td.cast(i, td.float32) / 10.0]) + td.cast(
                td.shape(td.where(x > 0.5))[0], td.float32
            )
        return total

    x = np.random.default_rng(1).random(50).astype(np.float32)
    wanted = sum(x[x > np.float32(i) / np.float32(10)].max() + (x > 0.5).sum() for i in range(10))
    np.testing.assert_allclose(run(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("ids_dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32", "int64"])
def test_sums_over_groups(dtype: str, ids_dtype: str) -> None:
    add = td.math.unsorted_segment_sum
    for inner in ((), (1,), (33,)):
        x = elements(dtype, 100, *inner)
        low = 0 if ids_dtype == "uint8" else -1
        ids = np.random.default_rng(2).integers(low, 7, 100).astype(ids_dtype)
        natively(lambda x, i: add(x, i, 7), td.constant(x), td.constant(ids))
    for count in (3, 0):
        none = td.constant(x[:0]), td.constant(ids[:0])
        natively(lambda x, i, count=count: add(x, i, count), *none)


def test_groups_that_do_not_exist_are_refused() -> None:
    for count, id_ in ((3, 3), (0, 0), (3, 1 << 40)):
        ids = np.array([0, id_])
        for wrap in (td.function, lambda f: f):
            add = wrap(lambda x, i, count=count: td.math.unsorted_segment_sum(x, i, count))
            with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
                add(td.constant([1.0, 2.0]), td.constant(ids))


def test_counts() -> None:
    ids = np.random.default_rng(3).integers(0, 40, 500)
    weights = elements("float64", 500)
    cases: list[tuple[Callable[..., Any], Any]] = [
        (lambda i, w: np.bincount(i), np.bincount(ids)),
        (lambda i, w: np.bincount(i, minlength=60), np.bincount(ids, minlength=60)),
        (lambda i, w: np.bincount(i, w), np.bincount(ids, weights)),
        (lambda i, w: td.math.bincount(i), np.bincount(ids).astype(np.int32)),
        (lambda i, w: td.math.bincount(i, maxlength=5), np.bincount(ids)[:5].astype(np.int32)),
        (lambda i, w: td.math.bincount(i, w, minlength=50), np.bincount(ids, weights, 50)),
    ]
    for fn, wanted in cases:
        function = td.function(fn)
        found = function(td.constant(ids), td.constant(weights)).numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        runs_native(function, td.constant(ids), td.constant(weights))
    with pytest.raises(td.errors.InvalidArgumentError, match="at least 0"):
        td.function(lambda i: np.bincount(i))(td.constant([1, -2]))
    np.testing.assert_array_equal(td.function(lambda i: np.bincount(i))(td.constant(ids[:0])), [])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_histograms(dtype: str) -> None:
    x = elements(dtype, 3000)
    x[::50] = x.max()
    edges = np.array([-20, 0, 1, 30]).astype(dtype)
    for options in ({}, {"bins": 17}, {"bins": 5, "range": (-10, 20)}, {"bins": edges}):
        function = td.function(lambda x, o=options: np.histogram(x, **o))
        counts, found = function(td.constant(x))
        wanted = np.histogram(x, **options)
        np.testing.assert_array_equal(counts, wanted[0])
        np.testing.assert_allclose(found, wanted[1], rtol=1e-6)
        runs_native(function, td.constant(x))


def test_tensorflows_histograms() -> None:
    """The numbers are TensorFlow's."""
    x = td.constant([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0])
    for wrap in (td.function, lambda f: f):
        count = wrap(lambda x: td.histogram_fixed_width(x, [0.0, 5.0], nbins=5))
        np.testing.assert_array_equal(count(x), [2, 1, 1, 0, 2])
        place = wrap(lambda x: td.histogram_fixed_width_bins(x, [0.0, 5.0], nbins=5))
        np.testing.assert_array_equal(place(x), [0, 0, 1, 2, 4, 4])


def test_any_number_of_threads() -> None:
    x, m = td.constant(elements("float32", 50000)), td.constant(masks(50000))
    ids = td.constant(np.random.default_rng(5).integers(0, 9, 3000))
    rows = td.constant(elements("float32", 3000, 40))
    same_for_any_number_of_threads(
        lambda x, m, i, r: (x[m], td.where(m), td.math.unsorted_segment_sum(r, i, 9)),
        x, m, ids, rows,
    )  # fmt: skip

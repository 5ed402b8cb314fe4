"""The NumPy evaluator, against NumPy written by hand."""

import numpy as np
import pytest

from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    Scan,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)  # fmt: skip
from treadle.kernel.reference import cast_array, evaluate, evaluate_segmented

F32, F16, I32, I64 = dtypes.float32, dtypes.float16, dtypes.int32, dtypes.int64
B = SymbolicDim.symbol("B")


def outcome(kernel, arrays, **symbols):
    (array,) = evaluate(kernel, arrays, symbols).values()
    return array


def test_elementwise_broadcast_transpose():
    i, j = Axis("i", B), Axis("j", 3)
    x, y = Buffer("x", F32, (3, B)), Buffer("y", F32, (3,))
    out = Buffer("out", F32, (B, 3))
    value = apply("mul", load(x, j, i), load(y, j))
    kernel = Kernel((i, j), (x, y, out), (store(out, i, j, value=value),))
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(outcome(kernel, {x: a, y: b}, B=4), a.T * b)


def test_reduction_reuses_its_axis():
    i, j = Axis("i", 2), Axis("j", 5)
    x, out = Buffer("x", F32, (2, 5)), Buffer("out", F32, (2, 5))
    v = load(x, i, j)
    value = apply("sub", v, Reduce("max", (j,), v))
    kernel = Kernel((i, j), (x, out), (store(out, i, j, value=value),))
    a = np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)
    np.testing.assert_array_equal(outcome(kernel, {x: a}), a - a.max(1, keepdims=True))


def test_reducing_what_does_not_vary_counts_the_axis():
    i, j = Axis("i", 2), Axis("j", B)
    x, out = Buffer("x", F32, (2,)), Buffer("out", F32, (2,))
    kernel = Kernel((i, j), (x, out), (store(out, i, value=Reduce("sum", (j,), load(x, i))),))
    assert list(outcome(kernel, {x: np.array([1, 2], np.float32)}, B=7)) == [7, 14]


@pytest.mark.parametrize(
    ("op", "wanted"), [("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf), ("argmax", 0)]
)
def test_empty_reductions(op, wanted):
    i = Axis("i", B)
    x = Buffer("x", F32, (B,))
    value = Reduce(op, (i,), load(x, i))
    out = Buffer("out", value.dtype, ())
    kernel = Kernel((i,), (x, out), (store(out, value=value),))
    assert outcome(kernel, {x: np.zeros(0, np.float32)}, B=0) == wanted


def test_masked_load_and_gather():
    i = Axis("i", 6)
    x, index, out = Buffer("x", F32, (3,)), Buffer("index", I32, (6,)), Buffer("out", F32, (6,))
    at = load(index, i)
    inside = apply("and", apply("ge", at, const(0, I32)), apply("lt", at, const(3, I32)))
    for valid, wanted in [(None, [1, 1, 2, 3, 3, 3]), (inside, [-1, 1, 2, 3, -1, -1])]:
        value = load(x, at, valid=valid, fill=-1)
        kernel = Kernel((i,), (x, index, out), (store(out, i, value=value),))
        arrays = {
            x: np.array([1, 2, 3], np.float32),
            index: np.array([-1, 0, 1, 2, 3, 9], np.int32),
        }
        assert list(outcome(kernel, arrays)) == wanted


def test_stores_keep_what_they_do_not_touch():
    i = Axis("i", 3)
    out = Buffer("out", I64, (8,))
    kernel = Kernel((i,), (out,), (store(out, affine([(i, 2)], 1), value=Iota(i)),))
    start = np.full(8, 9)
    assert list(outcome(kernel, {out: start})) == [9, 0, 9, 1, 9, 2, 9, 9]
    assert (start == 9).all()


def test_16_bit_floats_round_when_stored_or_cast():
    i = Axis("i", 1)
    x, out = Buffer("x", F16, (1,)), Buffer("out", F16, (1,))
    square = apply("mul", load(x, i), load(x, i))
    big = apply("sub", square, square)  # inf - inf if it were rounded in between
    array = np.array([300], np.float16)
    assert outcome(Kernel((i,), (x, out), (store(out, i, value=big),)), {x: array})[0] == 0
    rounded = cast(cast(cast(square, F32), F16), F16)
    assert np.isinf(outcome(Kernel((i,), (x, out), (store(out, i, value=rounded),)), {x: array}))[0]


def test_extent_is_the_run_time_value():
    i = Axis("i", B)
    x, out = Buffer("x", F32, (B,)), Buffer("out", F32, ())
    mean = apply("div", Reduce("sum", (i,), load(x, i)), cast(Extent(B), F32))
    kernel = Kernel((i,), (x, out), (store(out, value=mean),))
    assert outcome(kernel, {x: np.arange(5, dtype=np.float32)}, B=5) == 2
    with pytest.raises(KeyError, match="B"):
        evaluate(kernel, {x: np.zeros(5, np.float32)})


def test_casts_saturate():
    x = np.array([3e9, -3e9, np.nan, np.inf, -1.9, 255.5, 1e30], np.float32)
    assert list(cast_array(x, I32)) == [2**31 - 1, -(2**31), 0, 2**31 - 1, -1, 255, 2**31 - 1]
    assert list(cast_array(x, dtypes.uint8)) == [255, 0, 0, 255, 0, 255, 255]
    assert cast_array(x, I64)[-1] == 2**63 - 1
    assert list(cast_array(np.array([300, -1]), dtypes.uint8)) == [44, 255]


def test_segments():
    n = SymbolicDim.symbol("n")
    i = Axis("i", n)
    p, rate = Buffer("p", F32, (n,)), Buffer("rate", F32, ())
    value = apply("mul", load(p, i), load(rate))
    kernel = Kernel((i,), (p, rate), (store(p, i, value=value),), segmented=True)
    two = np.array(2, np.float32)
    groups = [{p: np.ones(k, np.float32), rate: two} for k in (1, 3)]
    first, second = evaluate_segmented(kernel, groups)
    assert list(first[p]) == [2] and list(second[p]) == [2, 2, 2]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("op", "ufunc"),
    [("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)],
)
def test_scans(op, ufunc, axis):
    i, j = Axis("i", 4), Axis("j", B)
    x, y = Buffer("x", F32, (4, B)), Buffer("y", F32, (4, B))
    a = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    a[1, 2], a[:2, :2] = np.nan, -0.0

    def scanned(**ways):
        value = Scan(op, (i, j)[axis], load(x, i, j), **ways)
        return outcome(Kernel((i, j), (x, y), (store(y, i, j, value=value),)), {x: a}, B=6)

    assert scanned().tobytes() == ufunc.accumulate(a, axis).tobytes()
    back = np.flip(ufunc.accumulate(np.flip(a, axis), axis), axis)
    assert scanned(reverse=True).tobytes() == back.tobytes()
    start = {"add": 0, "mul": 1, "max": -np.inf, "min": np.inf}[op]
    first = np.full_like(np.take(a, [0], axis), start)
    moved = np.concatenate([first, np.delete(a, -1, axis)], axis)
    assert scanned(exclusive=True).tobytes() == ufunc.accumulate(moved, axis).tobytes()


def test_scans_of_half_floats_accumulate_in_single():
    i = Axis("i", 5000)
    x, y = Buffer("x", F16, (5000,)), Buffer("y", F16, (5000,))
    kernel = Kernel((i,), (x, y), (store(y, i, value=Scan("add", i, load(x, i))),))
    found = outcome(kernel, {x: np.full(5000, 1, np.float16)})
    assert found[-1] == np.float16(5000)
